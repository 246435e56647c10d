package prompts

import (
	"fmt"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/llm"
)

// A Mode says how much is injected around what is asked.
type Mode string

// The modes. The empty mode chooses [Full] when there is history, else
// [Minimal], which is the rule at run time.
const (
	Full    Mode = "full"    // rules, history and what is new
	Minimal Mode = "minimal" // rules and what is new
	None    Mode = "none"    // only what is asked: inputs, results, decision; for tests
)

// Data is what one call is about. Its texts are raw: Compose escapes them.
type Data struct {
	Mode     Mode
	Bot      string // the name people know the bot by; empty means Mimikit
	Final    bool   // what the thinker writes is posted as it stands
	Actions  string // what the thinker may do, described; empty while there are no actions
	History  []chat.Line
	Now      time.Time // shown in the environment; left out when zero
	Platform string
	Facts    []Fact // further lines of the environment
	Tasks    string // the conversation's tasks, one a line
	Results  []chat.TaskResult
	Inputs   []chat.UserInput
	Decision string
}

// A Fact is a line of the environment.
type Fact struct{ Name, Value string }

// A View is what a template sees: settings, and blocks of data that are fenced,
// labelled and escaped already. A block that would be empty is "".
type View struct {
	Bot         string
	Mode        Mode
	Final       bool
	Actions     string
	History     string
	Environment string
	Tasks       string
	Results     string
	Inputs      string
	Decision    string
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

// The agents that Compose knows, by the name that is given as llm.Request.Agent:
// whose folder, and the prefix of its system and injection files.
var agents = map[string]struct{ role, prefix string }{
	"teller":        {"teller", ""},
	"teller-digest": {"teller", "digest-"},
	"thinker":       {"thinker", ""},
}

// Compose builds the prompt of an agent: "teller", "teller-digest" or "thinker".
func (s *Set) Compose(agent string, d Data) (Prompt, error) {
	a, ok := agents[agent]
	if !ok {
		return Prompt{}, fmt.Errorf("compose prompt of %q: no such agent; there are teller, teller-digest and thinker", agent)
	}
	v, err := d.view()
	if err != nil {
		return Prompt{}, fmt.Errorf("compose prompt of %s: %w", agent, err)
	}
	p := Prompt{History: v.History}
	if p.Latest, err = s.render(a.role, a.prefix+"injection", &v); err != nil {
		return Prompt{}, err
	}
	if v.Mode == None {
		return p, nil
	}
	p.System, err = s.system(a.role, a.prefix+"system", &v)
	return p, err
}

// view escapes the data and leaves out what the mode leaves out.
func (d *Data) view() (View, error) {
	v := View{
		Bot: oneLine(d.Bot), Mode: d.Mode, Final: d.Final, Actions: strings.TrimSpace(d.Actions),
		Inputs: inputs(d.Inputs), Results: results(d.Results), Decision: element("thinker_decision", d.Decision),
	}
	if v.Bot == "" {
		v.Bot = "Mimikit"
	}
	if v.Mode == "" {
		v.Mode = Minimal
		if len(d.History) > 0 {
			v.Mode = Full
		}
	}
	switch v.Mode {
	case Full:
		v.History = history(d.History)
	case Minimal:
	case None:
		return v, nil
	default:
		return View{}, fmt.Errorf("unknown prompt mode %q; allowed are full, minimal and none", v.Mode)
	}
	v.Environment = environment(d)
	v.Tasks = element("tasks", d.Tasks)
	return v, nil
}
