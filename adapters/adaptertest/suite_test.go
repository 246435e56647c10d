package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// signs are the feedback of a stage, whose own method of that name is the rig's.
type signs struct{ *stage }

func (s signs) Working(_ context.Context, c chat.Conversation, what string) error {
	s.workingOn(c, what)
	return nil
}

// A theatre is a stage as a rig.
type theatre struct{ *stage }

func (t theatre) Feedback() adapters.Feedback { return signs(t) }

func (t theatre) Working(c chat.Conversation) bool {
	at, ok := t.work[c]
	lasts := 2 * time.Minute
	switch t.bug {
	case "never lapses":
		lasts = 1000 * time.Hour
	case "lapses early":
		lasts = 10 * time.Second
	}
	return ok && t.now.Sub(at) < lasts
}

// A witness notes what a check says.
type witness struct{ said []string }

var errFatal = errors.New("the check ended")

func (w *witness) Helper()                        {}
func (w *witness) Errorf(format string, a ...any) { w.said = append(w.said, fmt.Sprintf(format, a...)) }
func (w *witness) Fatalf(format string, a ...any) { w.Errorf(format, a...); panic(errFatal) }
func (w *witness) try(c check, r Rig) (fails bool) {
	defer func() {
		if x := recover(); x != nil && x != any(errFatal) {
			panic(x)
		}
		fails = len(w.said) > 0
	}()
	c.try(w, r)
	return
}

// A platform that does everything right passes.
func TestTheChecksPass(t *testing.T) {
	t.Parallel()
	for _, c := range checks {
		w := &witness{}
		if w.try(c, theatre{newStage("")}) {
			t.Errorf("%s: %q", c.name, w.said)
		}
	}
}

// Each bug is found by the check that is there for it, and each check finds one.
func TestTheChecksFail(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for bug, by := range map[string][]string{
		"leaves the mention in":        {"a mention is one input"},
		"knows no authors":             {"a mention is one input", "a direct message is one input"},
		"is never addressed":           {"a mention is one input", "a direct message is one input", "a thread goes on without a mention"},
		"hears everybody":              {"talk among people is no input"},
		"forgets threads":              {"a thread goes on without a mention"},
		"has one conversation for all": {"conversations stay what they are"},
		"makes its own ids":            {"a mention is one input", "a message that is delivered again is no second input"},
		"takes its own time":           {"a message that is delivered again is no second input"},
		"acknowledges first":           {"nothing is acknowledged before it is stored", "what one node could not store another one does"},
		"loses what it held":           {"what one node could not store another one does"},
		"insists":                      {"a refusal is final"},
		"is deaf to edits":             {"edits and removals", "an edit that adds the mention is addressed"},
		"is deaf to added mentions":    {"an edit that adds the mention is addressed"},
		"hears itself":                 {"its own posts are no input"},
		"hears bots":                   {"other bots are not answered"},
		"takes stop for talk":          {"stop is told at once"},
		"hears after its stop":         {"a stop is clean"},
		"posts twice":                  {"a reply is shown once", "parts are shown in order", "a very long reply is whole"},
		"splits as it likes":           {"splitting is pure"},
		"repeats its buttons":          {"splitting is pure"},
		"shows the newest first":       {"parts are shown in order"},
		"cuts off":                     {"parts are shown in order", "a very long reply is whole"},
		"finds nothing":                {"a reply is shown once", "a part whose answer was lost is found"},
		"finds any":                    {"a part whose answer was lost is found"},
		"finds what is not there":      {"a part that was never posted is not found"},
		"tries again":                  {"a part whose answer was lost is found"},
		"does not sort its errors":     {"a rate limit is told", "a refusal is told"},
		"rings":                        {"nobody is rung"},
		"forgets values":               {"buttons carry their values"},
		"says nothing":                 {"a reply without a text is shown"},
		"shows nothing":                {"a message that was taken shows within a second"},
		"shows no work":                {"work is shown and then is not"},
		"never ends a sign":            {"work is shown and then is not"},
		"lapses early":                 {"long work is shown all the time"},
		"never lapses":                 {"work that nobody renews ends"},
	} {
		for _, c := range checks {
			if !slices.Contains(by, c.name) {
				continue
			}
			found[c.name] = true
			if !(&witness{}).try(c, theatre{newStage(bug)}) {
				t.Errorf("%q does not find a platform that %s", c.name, bug)
			}
		}
	}
	for _, c := range checks {
		if !found[c.name] {
			t.Errorf("no bug is known that %q would find", c.name)
		}
	}
}
