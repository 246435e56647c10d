package action

import (
	"slices"
	"strings"
)

// A Condition is when a conditional trigger fires. A leaf has a type and params;
// and and or have conditions instead. The JSON is that of stored triggers, so it
// is add-only.
type Condition struct {
	Type       string           `json:"type" enum:"file_changed,file_exists,task_done,task_failed,llm_eval,and,or" about:"file_changed and file_exists take a path, task_done and task_failed a taskId, llm_eval a prompt, and and or conditions"`
	Params     *ConditionParams `json:"params,omitempty" about:"of every type but and, or"`
	Conditions []Condition      `json:"conditions,omitempty" min:"2" max:"10" about:"of and, or; each like this one"`
}

// ConditionParams are the parameters of all leaves; each type takes its own.
type ConditionParams struct {
	Path       string `json:"path,omitempty" max:"1000" about:"file or glob in the workspace, such as src/**/*.ts"`
	FireOnInit bool   `json:"fireOnInit,omitempty" about:"file_changed: fire at once for what is there already, not only when it changes"`
	TaskID     string `json:"taskId,omitempty" max:"100" about:"a task of this conversation"`
	Prompt     string `json:"prompt,omitempty" max:"4000" about:"llm_eval: a yes-or-no question that a model answers now and then, at most every 15 minutes"`
}

const (
	maxConditionDepth  = 4
	maxConditionLeaves = 20
)

// Check refuses params that do not go with the type, and what nests too deep.
func (c *Condition) Check() error {
	leaves := 0
	return c.check("condition", 1, &leaves)
}

func (c *Condition) check(at string, depth int, leaves *int) error {
	if depth > maxConditionDepth {
		return Mistakef("%s: conditions nest more than %d deep", at, maxConditionDepth)
	}
	if c.Type == "and" || c.Type == "or" {
		switch {
		case c.Params != nil:
			return Mistakef("%s.params: %s takes conditions and no params", at, c.Type)
		case len(c.Conditions) == 0:
			return Mistakef("%s.conditions: it is missing; %s takes a list of 2 or more", at, c.Type)
		}
		for i := range c.Conditions {
			if err := c.Conditions[i].check(at+".conditions["+itoa(i)+"]", depth+1, leaves); err != nil {
				return err
			}
		}
		return nil
	}
	if *leaves++; *leaves > maxConditionLeaves {
		return Mistakef("%s: there are more than %d conditions", at, maxConditionLeaves)
	}
	if len(c.Conditions) > 0 {
		return Mistakef("%s.conditions: %s takes params and no conditions", at, c.Type)
	}
	var p ConditionParams
	if c.Params != nil {
		p = *c.Params
	}
	takes := map[string][]string{
		"file_changed": {"path", "fireOnInit"}, "file_exists": {"path"},
		"task_done": {"taskId"}, "task_failed": {"taskId"}, "llm_eval": {"prompt"},
	}[c.Type]
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"path", !blank(p.Path)}, {"fireOnInit", p.FireOnInit}, {"taskId", !blank(p.TaskID)}, {"prompt", !blank(p.Prompt)},
	} {
		switch takes := slices.Contains(takes, f.name); {
		case f.given && !takes:
			return Mistakef("%s.params.%s: %s does not take it", at, f.name, c.Type)
		case takes && !f.given && f.name != "fireOnInit":
			return Mistakef("%s.params.%s: it is missing; %s needs it", at, f.name, c.Type)
		}
	}
	return nil
}

// tasks lists the task ids that a condition names.
func (c *Condition) tasks() []string {
	var out []string
	if c.Params != nil && c.Params.TaskID != "" {
		out = append(out, c.Params.TaskID)
	}
	for i := range c.Conditions {
		out = append(out, c.Conditions[i].tasks()...)
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
