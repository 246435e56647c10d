package prompts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// What an agent is given in a block, for who reads a warning.
var contents = map[string]string{
	"Actions": "what it may do", "Memory": "what was remembered", "Environment": "the time and the place",
	"Workspace": "where it works", "Limits": "what it may use", "Tasks": "the tasks there are", "Results": "how tasks ended",
	"Inputs": "what people said", "Decision": "what the thinker decided", "Request": "the task itself",
	"Steps": "what it did before",
}

// builtIn is the set without overrides.
var builtIn = sync.OnceValues(func() (*Set, error) { return Open("") })

// Warnings tells what overrides spoil without being wrong: a block that an agent
// is given no longer, one that it is given twice, and a stable part that changes
// from turn to turn. A set without overrides has none.
func (s *Set) Warnings() ([]string, error) {
	if !slices.ContainsFunc(s.files, func(f File) bool { return f.Override != "" }) {
		return nil, nil
	}
	ours, err := builtIn()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range Agents() {
		a := agents[name]
		was, err := ours.shown(&a)
		if err != nil {
			return nil, err
		}
		is, err := s.shown(&a)
		if err != nil {
			return nil, err
		}
		for _, block := range sorted(contents) {
			before, after := was.system[block]+was.latest[block], is.system[block]+is.latest[block]
			switch {
			case before > 0 && after == 0:
				out = append(out, fmt.Sprintf("%s is no longer given %s (%s)", name, block, contents[block]))
			case after > max(before, 1):
				out = append(out, fmt.Sprintf("%s is given %s (%s) %d times", name, block, contents[block], after))
			}
			if block != "Actions" && is.system[block] > 0 {
				out = append(out, fmt.Sprintf("%s has %s in its stable part, so that no provider can cache its prompt", name, block))
			}
		}
		if is.latest["History"]+is.system["History"] > 0 {
			out = append(out, fmt.Sprintf("%s is given History twice: it is sent ahead of the injection anyway", name))
		}
	}
	return out, nil
}

// shown is how often each block stands in the two parts of an agent's prompt.
type shown struct{ system, latest map[string]int }

func (s *Set) shown(a *agent) (shown, error) {
	mark := func(block string) string { return "\x00" + block + "\x00" }
	out := shown{map[string]int{}, map[string]int{}}
	// Of the settings, what shows most counts: some blocks stand in one branch.
	for _, final := range []bool{true, false} {
		v := viewOf(mark)
		v.Final, v.Mode = final, a.modes[0]
		system, err := s.joined(a, &v)
		if err != nil {
			return shown{}, err
		}
		latest, err := s.render(place{a.role, a.injection}, &v)
		if err != nil {
			return shown{}, err
		}
		for _, block := range append(sorted(contents), "History") {
			out.system[block] = max(out.system[block], strings.Count(system, mark(block)))
			out.latest[block] = max(out.latest[block], strings.Count(latest, mark(block)))
		}
	}
	return out, nil
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
