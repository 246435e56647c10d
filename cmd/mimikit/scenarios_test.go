package main

import (
	"context"
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mimikit/core/action"
	"mimikit/core/llm"
)

// Every scenario, with the answers that its file has for a good model: they are
// read, done and judged as those of a real model are, by tool calls and by
// blocks. What is proved is all of the product but the model, and the judge.
func TestScenarios(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	for _, s := range readScenarios(t) {
		for name, style := range map[string]action.Style{"native": action.Native, "block": action.Block} {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				good := act(s.Good, style)
				o, err := st.play(t.Context(), s, way{Model: good, Style: style, Prefix: t.Name()})
				if err != nil {
					t.Fatal(err)
				}
				for _, wrong := range append(s.judge(o), s.judgePrompts(o)...) {
					t.Error(wrong)
				}
				if left := good.left(); left != "" {
					t.Errorf("nobody asked for %s", left)
				}
				if len(o.Mistakes) != s.Right.Mistakes {
					t.Errorf("%d calls are wrong, want %d: %q", len(o.Mistakes), s.Right.Mistakes, o.Mistakes)
				}
				for _, wrong := range shown(s, o, style) {
					t.Error(wrong)
				}
				if t.Failed() {
					t.Logf("%s\nreply: %s\ndone: %v\nlooked up: %v", s.About, o.Reply, o.Done, o.Looked)
				}
			})
		}
		for i, b := range s.Bad {
			t.Run(fmt.Sprintf("%s/bad-%d", s.name, i+1), func(t *testing.T) {
				t.Parallel()
				style := action.Native
				if b.Style == "block" {
					style = action.Block
				}
				o, err := st.play(t.Context(), s, way{Model: act(b.script, style), Style: style, Prefix: t.Name()})
				if err != nil {
					t.Fatal(err)
				}
				if done := fmt.Sprint(o.Done); b.Refused != "" && (strings.Contains(done, b.Refused) || !strings.Contains(fmt.Sprint(o.Mistakes), b.Refused)) {
					t.Errorf("%s is not refused: done %s, wrong %q", b.Refused, done, o.Mistakes)
				}
				wrong := strings.Join(s.judge(o), "\n")
				if wrong == "" || !regexp.MustCompile(b.Rejected).MatchString(wrong) {
					t.Errorf("%s: the judge says %q; want /%s/\nreply: %s\ndone: %v", b.Why, wrong, b.Rejected, o.Reply, o.Done)
				}
			})
		}
	}
}

// shown says what is wrong with the prompts of any scenario: all that people
// said is in them, labelled once, and nothing that they said is a label.
func shown(s *scenario, o *outcome, style action.Style) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, d := range o.Looked {
		answer, last := strings.TrimSpace(s.Finds[d.Name]), o.Requests[len(o.Requests)-1]
		if !slices.ContainsFunc(last.Messages, func(m llm.Message) bool { return strings.Contains(html.UnescapeString(m.Content), answer) }) {
			add("the thinker is not told what %s found", d)
		}
	}
	for _, req := range o.Requests {
		text := ""
		for _, m := range req.Messages {
			if m.Role == llm.User {
				text += m.Content + "\n"
			}
		}
		if n := strings.Count(text, "<input "); n != strings.Count(text, "</input>") || n > len(s.Said) {
			add("the prompt of the %s has %d inputs that begin and %d that end; %d were said", req.Agent, n, strings.Count(text, "</input>"), len(s.Said))
		}
		if n := strings.Count(text, "<result "); n != strings.Count(text, "</result>") || req.Agent == "thinker" && n != len(s.Results) {
			add("the prompt of the %s has %d results; %d came", req.Agent, n, len(s.Results))
		}
		for _, name := range []string{"history", "environment", "tasks", "summary"} {
			if n := strings.Count(text, "</"+name+">"); n > 1 {
				add("the prompt of the %s has %d ends of %s", req.Agent, n, name)
			}
		}
		// The teller words a result without knowing who waits for it.
		if nobody := req.User == "" && (req.Agent != "teller" || len(s.Said) > 0); nobody || req.Place == "" || req.Workspace == "" || req.Conversation == "" || req.TraceID == "" {
			add("the call of the %s goes to nobody's account: user %q, place %q, workspace %q, conversation %q, trace %q",
				req.Agent, req.User, req.Place, req.Workspace, req.Conversation, req.TraceID)
		}
		if req.Agent != "thinker" {
			continue
		}
		if system := req.Messages[0]; system.Role != llm.System || !strings.Contains(system.Content, "create_task") {
			add("the thinker is not told of its actions")
		}
		if style == action.Block && len(req.Tools) > 0 {
			add("a model that writes blocks is given %d tools", len(req.Tools))
		}
	}
	return wrong
}

// There is a scenario of every kind, and none says the same as another.
func TestScenariosCoverAll(t *testing.T) {
	t.Parallel()
	all := readScenarios(t)
	if len(all) < 40 {
		t.Errorf("there are %d scenarios", len(all))
	}
	known, err := newStage(t).actions(slices.Sorted(maps.Keys(further)))
	if err != nil {
		t.Fatal(err)
	}
	bad, about := 0, map[string]string{}
	for _, kind := range scenarioKinds {
		if !slices.ContainsFunc(all, func(s *scenario) bool { return s.Kind == kind }) {
			t.Errorf("there is none of kind %q", kind)
		}
	}
	for _, s := range all {
		if other := about[s.About]; other != "" {
			t.Errorf("%s and %s are about the same", s.name, other)
		}
		about[s.About] = s.name
		names := slices.Concat(s.Right.May, s.Right.Never, s.Right.Offered, s.Right.Withheld)
		for _, c := range s.Right.Actions {
			names = slices.AppendSeq(names, maps.Keys(c))
		}
		for _, name := range names {
			if !slices.Contains(known.Names(), name) {
				t.Errorf("%s judges by %q, which is no action", s.name, name)
			}
		}
		if bad += len(s.Bad); len(s.Good.Thinks) == 0 && !s.Right.NoCall {
			t.Errorf("%s has no answer of a good model", s.name)
		}
	}
	if bad < 12 {
		t.Errorf("there are %d bad answers", bad)
	}
}

// A judge that took any answer would find nothing: each scenario has to reject
// nearly every answer that is good in another one.
func TestScenariosTellAnswersApart(t *testing.T) {
	t.Parallel()
	st, all := newStage(t), readScenarios(t)
	good := map[string]*outcome{}
	for _, s := range all {
		o, err := st.play(t.Context(), s, way{Model: act(s.Good, action.Native), Style: action.Native})
		if err != nil {
			t.Fatal(err)
		}
		good[s.name] = o
	}
	for _, s := range all {
		var taken []string
		for _, other := range all {
			if other.name != s.name && len(s.judge(good[other.name])) == 0 {
				taken = append(taken, other.name)
			}
		}
		if len(taken)*20 > len(all) {
			t.Errorf("%s takes the answers of %s for right", s.name, strings.Join(taken, ", "))
		}
	}
}

// What is no scenario is refused with what is wrong.
func TestScenariosAreRead(t *testing.T) {
	t.Parallel()
	const good = "kind: answer\nabout: x\nsaid: [{who: Ann, text: hi}]\nright: {says: [x]}\n"
	if _, err := readScenario("x", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		"kind: answer->kind: riddle":                           `kind: "riddle"`,
		"about: x->abuot: x":                                   "field abuot not found",
		"about: x->about: ''":                                  "about: it is missing",
		"who: Ann->who: 'Ann (king)'":                          `who: "Ann (king)"`,
		"says: [x]->says: ['(']":                               "right: error parsing regexp",
		"right: {says: [x]}->right: {}":                        "nothing could be wrong",
		"kind: answer->pace: slow\nkind: answer":               `pace: "slow"`,
		"about: x->about: x\nwhere: attic":                     `where: "attic"`,
		"said: [{who: Ann, text: hi}]->said: []":               "there is neither",
		"about: x->about: x\nbad: [{why: x}]":                  "bad[0]: it needs",
		"about: x->about: x\nbad: [{why: x, rejected: '('}]":   "bad[0]: rejected",
		"right: {says: [x]}->right: {says: [x]}\n---\nkind: x": "more than one document",
	} {
		from, to, _ := strings.Cut(change, "->")
		_, err := readScenario("x", []byte(strings.Replace(good, from, to, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", change, err, want)
		}
	}
}

// The scripts run out, and whoever plays is told.
func TestScenarioModelRunsOut(t *testing.T) {
	t.Parallel()
	s, err := readScenario("x", []byte("kind: answer\nabout: x\nsaid: [{who: Ann, text: hi}]\nright: {says: [x]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := newStage(t).play(context.Background(), s, way{Model: act(s.Good, action.Native)})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.judge(o), "\n"); !strings.Contains(got, "no further answer of the thinker") || !strings.Contains(got, "the turn failed") {
		t.Errorf("the judge says %q", got)
	}
}
