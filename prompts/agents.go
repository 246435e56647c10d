package prompts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The files of each role, without ".md". What is not listed does not exist.
var files = map[string][]string{
	"teller":          {"identity", "voice", "tools", "output", "system", "injection", "digest-system", "digest-injection"},
	"thinker":         {"system", "injection"},
	"planner":         {"identity", "tools", "rules", "output", "injection"},
	"worker-standard": {"system", "injection"},
	"worker-expert":   {"system", "injection"},
	"fold":            {"system", "injection"},
	"review":          {"system", "injection"},
}

// A Mode says how much is injected around what is asked.
type Mode string

// The modes. The empty mode chooses, which is the rule at run time: the teller,
// the thinker and the planner run [Full] when there is history, a summary or a
// note, else [Minimal]; workers always run [Minimal]; fold and review always
// run [Full], since the history is what they work on.
const (
	Full    Mode = "full"    // rules, history, summary, memory, and what is new
	Minimal Mode = "minimal" // rules and what is new
	None    Mode = "none"    // only what is asked; for tests
)

// An agent is who is called with a prompt: whose files make it, and in which
// modes it runs besides [None].
type agent struct {
	role      string
	system    []string // files of the stable part, a blank line between them
	injection string
	modes     []Mode
	folds     bool // the history is what is asked, so every mode has it
}

// The agents that Compose knows, by the name that is given as llm.Request.Agent.
// The planner's stable part has no file of its own: it is its four files in this
// order.
var agents = map[string]agent{
	"teller":          {role: "teller", system: []string{"system"}, injection: "injection", modes: []Mode{Full, Minimal}},
	"teller-digest":   {role: "teller", system: []string{"digest-system"}, injection: "digest-injection", modes: []Mode{Full, Minimal}},
	"thinker":         {role: "thinker", system: []string{"system"}, injection: "injection", modes: []Mode{Full, Minimal}},
	"planner":         {role: "planner", system: []string{"identity", "tools", "rules", "output"}, injection: "injection", modes: []Mode{Full, Minimal}},
	"worker-standard": {role: "worker-standard", system: []string{"system"}, injection: "injection", modes: []Mode{Minimal}},
	"worker-expert":   {role: "worker-expert", system: []string{"system"}, injection: "injection", modes: []Mode{Minimal}},
	"fold":            {role: "fold", system: []string{"system"}, injection: "injection", modes: []Mode{Full}, folds: true},
	"review":          {role: "review", system: []string{"system"}, injection: "injection", modes: []Mode{Full}, folds: true},
}

// Agents gives the names that [Set.Compose] knows, sorted.
func Agents() []string { return slices.Sorted(maps.Keys(agents)) }

// Modes gives the modes that an agent can be composed in, the one that holds
// most first; nil for an agent that does not exist.
func Modes(name string) []Mode {
	a, ok := agents[name]
	if !ok {
		return nil
	}
	return append(slices.Clone(a.modes), None)
}

// mode settles the mode of one call. A mode that the agent does not run in is
// refused: a worker that was given a conversation's history would carry it into
// a task, and nobody would notice.
func (a *agent) mode(asked Mode, remembers bool) (Mode, error) {
	switch {
	case asked == "" && len(a.modes) > 1 && !remembers:
		return Minimal, nil
	case asked == "":
		return a.modes[0], nil
	case asked == None || slices.Contains(a.modes, asked):
		return asked, nil
	}
	if asked != Full && asked != Minimal {
		return "", fmt.Errorf("unknown prompt mode %q; allowed are full, minimal and none", asked)
	}
	return "", fmt.Errorf("prompt mode %q: it runs in %s only, and in none for tests", asked, a.modes[0])
}

func roles() []string { return slices.Sorted(maps.Keys(files)) }

// allowed lists every path an override may have.
func allowed() string {
	var out []string
	for _, p := range places() {
		out = append(out, p.path())
	}
	return strings.Join(out, ", ")
}

// A place is where a file stands.
type place struct{ role, file string }

func (p place) path() string { return "agents/" + p.role + "/" + p.file + ".md" }
func (p place) name() string { return p.role + "/" + p.file }

// places gives every file's place, by path.
func places() []place {
	var out []place
	for _, role := range roles() {
		for _, file := range files[role] {
			out = append(out, place{role, file})
		}
	}
	return out
}
