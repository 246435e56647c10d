package prompts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/llm"
)

// Data is what one call is about. Its texts are raw: Compose escapes them, but
// for Actions, which are ours. An agent is shown what its injection file asks
// for, and the rest is left out.
type Data struct {
	Mode    Mode   // empty chooses; see [Mode]
	Bot     string // the name people know the bot by; empty means Mimikit
	Final   bool   // what the thinker writes is posted as it stands
	Actions string // what the agent may do, described; empty while there are no actions

	Summary string      // what was folded out of the history
	History []chat.Line // oldest first; for fold and review, the lines that they are about
	Memory  []Note      // what was remembered and may matter now

	Now       time.Time // shown in the environment; left out when zero
	Platform  string
	Facts     []Fact // further lines of the environment
	Workspace []Fact // of a worker: where it works
	Limits    []Fact // of a worker, the planner, fold or review: time, rounds, words
	Tasks     string // the conversation's tasks, one a line

	Results  []chat.TaskResult
	Inputs   []chat.UserInput
	Decision string  // of the thinker, for the teller
	Request  Request // the task, for a worker and the planner
	Steps    []Step  // what was done in the task before, oldest first
}

// A Fact is a line of the environment, the workspace or the limits.
type Fact struct{ Name, Value string }

// A View is what a template sees: settings, and blocks of data that are fenced,
// labelled and escaped already. A block that would be empty is "".
type View struct {
	Bot         string
	Mode        Mode
	Final       bool
	Actions     string
	History     string // summary and lines; Compose sends them before the injection, so that no file needs it
	Memory      string
	Environment string
	Workspace   string
	Limits      string
	Tasks       string
	Results     string
	Inputs      string
	Decision    string
	Request     string
	Steps       string
}

// viewOf gives a View that holds everything, each block as block makes it.
func viewOf(block func(name string) string) View {
	return View{
		Bot: "Mimikit", Mode: Full, Final: true, Actions: block("Actions"), History: block("History"), Memory: block("Memory"),
		Environment: block("Environment"), Workspace: block("Workspace"), Limits: block("Limits"), Tasks: block("Tasks"),
		Results: block("Results"), Inputs: block("Inputs"), Decision: block("Decision"), Request: block("Request"), Steps: block("Steps"),
	}
}

// A Prompt is one call's messages, in the order in which they change: System
// never within a deployment, History only at its end, Latest always.
type Prompt struct {
	System, History, Latest string
}

// Messages gives the prompt as messages; parts that are empty are left out.
func (p Prompt) Messages() []llm.Message {
	var out []llm.Message
	for _, m := range [...]llm.Message{
		{Role: llm.System, Content: p.System},
		{Role: llm.User, Content: p.History},
		{Role: llm.User, Content: p.Latest},
	} {
		if m.Content != "" {
			if out == nil {
				out = make([]llm.Message, 0, 3)
			}
			out = append(out, m)
		}
	}
	return out
}

// Compose builds the prompt of an agent; [Agents] names them. It fails on an
// agent or a mode that does not exist, on a mode that the agent does not run in,
// and where an override's template fails on this data.
func (s *Set) Compose(name string, d Data) (Prompt, error) {
	a, ok := agents[name]
	if !ok {
		return Prompt{}, fmt.Errorf("compose prompt of %q: no such agent; there are %s", name, strings.Join(Agents(), ", "))
	}
	v, err := d.view(&a)
	if err != nil {
		return Prompt{}, fmt.Errorf("compose prompt of %s: %w", name, err)
	}
	p := Prompt{History: v.History}
	if p.Latest, err = s.render(place{a.role, a.injection}, &v); err != nil {
		return Prompt{}, err
	}
	if v.Mode == None {
		return p, nil
	}
	p.System, err = s.system(name, &a, &v)
	return p, err
}

// view escapes the data and leaves out what the mode leaves out.
func (d *Data) view(a *agent) (View, error) {
	mode, err := a.mode(d.Mode, len(d.History)+len(d.Memory) > 0 || strings.TrimSpace(d.Summary) != "")
	if err != nil {
		return View{}, err
	}
	v := View{
		Bot: oneLine(d.Bot), Mode: mode, Final: d.Final, Actions: strings.TrimSpace(d.Actions),
		Inputs: inputs(d.Inputs), Results: results(d.Results), Decision: element("thinker_decision", d.Decision),
		Request: d.Request.block(), Steps: steps(d.Steps),
	}
	if v.Bot == "" {
		v.Bot = "Mimikit"
	}
	if mode == Full || a.folds {
		v.History = Past(d.Summary, d.History)
	}
	if mode == None {
		return v, nil
	}
	if mode == Full {
		v.Memory = memory(d.Memory)
	}
	v.Environment = environment(d)
	v.Workspace = facts("workspace", d.Workspace)
	v.Limits = facts("limits", d.Limits)
	v.Tasks = element("tasks", d.Tasks)
	return v, nil
}

// Render gives one file of a role's folder ("teller", "voice") filled with data,
// which is a [View] unless an override says otherwise. Space around it is
// trimmed.
func (s *Set) Render(role, file string, data any) (string, error) {
	p := place{role, file}
	if !slices.Contains(files[role], file) {
		return "", fmt.Errorf("render prompt %s: no such prompt; there are %s", p.name(), allowed())
	}
	if v, ok := data.(View); ok {
		return s.render(p, &v)
	}
	return s.execute(p, data)
}
