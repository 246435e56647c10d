package trigger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The types of a condition: leaves, and what joins them.
const (
	FileChanged = "file_changed"
	FileExists  = "file_exists"
	TaskDone    = "task_done"
	TaskFailed  = "task_failed"
	LLMEval     = "llm_eval"
	And         = "and"
	Or          = "or"
)

// A Condition is when a conditional trigger fires: a leaf with its params, or and
// and or with conditions. The JSON is that of the action schedule, and stored, so
// it is add-only.
type Condition struct {
	Type       string      `json:"type"`
	Params     *Params     `json:"params,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Params are the parameters of all leaves; each type takes its own.
type Params struct {
	Path       string `json:"path,omitempty"`       // file_changed, file_exists: a file, or a pattern of files, in the workspace
	FireOnInit bool   `json:"fireOnInit,omitempty"` // file_changed: fire for what is there from the beginning
	TaskID     string `json:"taskId,omitempty"`     // task_done, task_failed: a task of the conversation, or a trigger, meaning the task that it starts
	Prompt     string `json:"prompt,omitempty"`     // llm_eval: a question that is answered by yes or no
}

// The bounds of a condition.
const (
	maxDepth    = 4
	maxLeaves   = 20
	maxChildren = 10
	maxParam    = 16 << 10 // bytes
)

// ParseCondition reads a condition, as the JSON of an action or of a plan has it,
// and checks it.
func ParseCondition(data []byte) (*Condition, error) {
	c := new(Condition)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("read a condition: %w", err)
	}
	return c, c.Check()
}

// Check refuses a condition that is not whole. The error is for whoever asked.
func (c *Condition) Check() error {
	leaves := 0
	return c.check("condition", 1, &leaves)
}

func (c *Condition) check(at string, depth int, leaves *int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: conditions nest more than %d deep", at, maxDepth)
	}
	if c.Type == And || c.Type == Or {
		if n := len(c.Conditions); n < 2 || n > maxChildren || c.Params != nil {
			return fmt.Errorf("%s: %s takes 2 to %d conditions and no params", at, c.Type, maxChildren)
		}
		for i := range c.Conditions {
			if err := c.Conditions[i].check(at+".conditions["+strconv.Itoa(i)+"]", depth+1, leaves); err != nil {
				return err
			}
		}
		return nil
	}
	if *leaves++; *leaves > maxLeaves {
		return fmt.Errorf("%s: there are more than %d conditions", at, maxLeaves)
	}
	var p Params
	if c.Params != nil {
		p = *c.Params
	}
	name, value := "", ""
	switch c.Type {
	case FileChanged, FileExists:
		name, value = "path", p.Path
	case TaskDone, TaskFailed:
		name, value = "taskId", p.TaskID
	case LLMEval:
		name, value = "prompt", p.Prompt
	default:
		return fmt.Errorf("%s.type: %q: allowed are %s", at, c.Type,
			strings.Join([]string{FileChanged, FileExists, TaskDone, TaskFailed, LLMEval, And, Or}, ", "))
	}
	switch {
	case len(c.Conditions) > 0:
		return fmt.Errorf("%s.conditions: %s takes params and no conditions", at, c.Type)
	case strings.TrimSpace(value) == "":
		return fmt.Errorf("%s.params.%s: it is missing; %s needs it", at, name, c.Type)
	case len(value) > maxParam:
		return fmt.Errorf("%s.params.%s: %d bytes are more than %d", at, name, len(value), maxParam)
	case name == "taskId" && strings.ContainsAny(value, " \t\r\n"):
		return fmt.Errorf("%s.params.taskId: %q is no id", at, value)
	case p != only(p, c.Type):
		return fmt.Errorf("%s.params: %s takes only %s", at, c.Type, strings.TrimSuffix(name+", "+map[string]string{FileChanged: "fireOnInit"}[c.Type], ", "))
	}
	return nil
}

// only is what a type takes of params.
func only(p Params, kind string) Params {
	switch kind {
	case FileChanged:
		return Params{Path: p.Path, FireOnInit: p.FireOnInit}
	case FileExists:
		return Params{Path: p.Path}
	case LLMEval:
		return Params{Prompt: p.Prompt}
	}
	return Params{TaskID: p.TaskID}
}

// root is the path of a whole condition; below are those of its parts.
const root = "c"

func below(path string, i int) string { return path + "." + strconv.Itoa(i) }

// each calls f with every leaf and its path, in order.
func (c *Condition) each(path string, f func(path string, leaf *Condition)) {
	if c.Type != And && c.Type != Or {
		f(path, c)
		return
	}
	for i := range c.Conditions {
		c.Conditions[i].each(below(path, i), f)
	}
}

// leaves lists what leaves of some types name, each once.
func (c *Condition) leaves(value func(Params) string, kinds ...string) []string {
	var out []string
	if c == nil {
		return nil
	}
	c.each(root, func(_ string, leaf *Condition) {
		if v := value(*leaf.Params); slices.Contains(kinds, leaf.Type) && !slices.Contains(out, v) {
			out = append(out, v)
		}
	})
	return out
}

// Tasks lists the ids of tasks and triggers that the condition names.
func (c *Condition) Tasks() []string {
	return c.leaves(func(p Params) string { return p.TaskID }, TaskDone, TaskFailed)
}

// Paths lists the patterns of files that the condition names.
func (c *Condition) Paths() []string {
	return c.leaves(func(p Params) string { return p.Path }, FileChanged, FileExists)
}

// asks reports whether the condition has an llm_eval.
func (c *Condition) asks() bool {
	return len(c.leaves(func(p Params) string { return p.Prompt }, LLMEval)) > 0
}

// level reports whether the condition is made only of what can hold for a while,
// and so fires when it begins to hold.
func (c *Condition) level() bool {
	switch c.Type {
	case And, Or:
		return !slices.ContainsFunc(c.Conditions, func(c Condition) bool { return !c.level() })
	}
	return c.Type == FileExists || c.Type == LLMEval
}

// Watches reports whether what the files of a pattern hold matters, and not only
// whether there are any.
func (c *Condition) Watches(path string) bool {
	return slices.Contains(c.leaves(func(p Params) string { return p.Path }, FileChanged), path)
}
