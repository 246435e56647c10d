package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/prompts"
)

// What the demo model does is tried with the prompts and the actions that the
// program gives it, so that it cannot know other ones.

// demoNow is a Monday.
var demoNow = time.Date(2026, 11, 23, 10, 15, 30, 0, time.UTC)

var ada = chat.Author{ID: "U1", Name: "Ada", Role: chat.RoleUser}

var promptSet = sync.OnceValues(func() (*prompts.Set, error) { return prompts.Open("") })

var vocabulary = sync.OnceValues(func() (*action.Registry, error) { return action.Outline(action.Vocabulary()...) })

// openTasks are as the thinker's prompt lists them, the newest first.
const openTasks = `t00000000000000000a02 running standard "Sales report" created=2m_ago started=1m_ago
t00000000000000000a01 deferred standard "清理缓存" created=1h_ago due=in_2h
t00000000000000000a00 succeeded standard "Nightly build" created=5h_ago ended=4h_ago result="cancel everything"`

// A scene is one turn as an agent sees it.
type scene struct {
	agent string
	data  prompts.Data
	style action.Style
	only  []string // actions that are offered; nil for all
	none  bool     // offer nothing
	funcs []action.Definition
}

func says(texts ...string) scene {
	d := prompts.Data{Final: true, Now: demoNow, Platform: "console", Tasks: openTasks}
	for i, text := range texts {
		d.Inputs = append(d.Inputs, chat.UserInput{ID: fmt.Sprint("i", i), Author: ada, Text: text, At: demoNow})
	}
	return scene{agent: action.Thinker, data: d}
}

func works(text string) scene {
	return scene{agent: action.WorkerStandard, data: prompts.Data{
		Now: demoNow, Request: prompts.Request{Task: "t1", Author: ada, Title: "The work", Text: text},
	}}
}

func (s scene) offer(t testing.TB) *action.Offer {
	t.Helper()
	if s.funcs != nil {
		r, err := action.New(s.funcs...)
		if err != nil {
			t.Fatal(err)
		}
		return r.For(s.agent, chat.RoleUser)
	}
	if !s.none && s.only == nil {
		r, err := vocabulary()
		if err != nil {
			t.Fatal(err)
		}
		return r.For(s.agent, chat.RoleUser)
	}
	var defs []action.Definition
	for _, d := range action.Vocabulary() {
		if !s.none && slices.Contains(s.only, d.Name) {
			defs = append(defs, d)
		}
	}
	r, err := action.Outline(defs...)
	if err != nil {
		t.Fatal(err)
	}
	return r.For(s.agent, chat.RoleUser)
}

func (s scene) request(t testing.TB) llm.Request {
	t.Helper()
	set, err := promptSet()
	if err != nil {
		t.Fatal(err)
	}
	if s.style == 0 {
		s.style = action.Native
	}
	offer := s.offer(t)
	s.data.Actions = offer.Describe(s.style)
	p, err := set.Compose(s.agent, s.data)
	if err != nil {
		t.Fatal(err)
	}
	req := llm.Request{Agent: s.agent, Messages: p.Messages()}
	if s.style == action.Native {
		req.Tools = offer.Tools()
	}
	return req
}

func demoModel() llm.Model {
	return llm.NewDemo(llm.DemoOptions{
		Now:  func() time.Time { return demoNow },
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
}

func (s scene) ask(t testing.TB) llm.Response {
	t.Helper()
	res, err := demoModel().Complete(t.Context(), s.request(t))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// calls gives what is called in the first round, each judged by its own schema
// and rules.
func (s scene) calls(t testing.TB) []string {
	t.Helper()
	res := s.ask(t)
	var out []string
	for _, c := range s.offer(t).DecodeTools(res.ToolCalls) {
		if c.Err != nil {
			t.Errorf("%s %s: %v", c.Call.Name, c.Call.Raw, c.Err)
		}
		out = append(out, c.Call.Name+" "+c.Call.Raw)
	}
	if len(out) > 0 && res.Finish != "tool_calls" {
		t.Errorf("finish = %q", res.Finish)
	}
	if len(out) == 0 && strings.TrimSpace(res.Text) == "" {
		t.Error("it neither calls nor says anything")
	}
	return out
}

// call gives the one call, and its arguments.
func (s scene) call(t testing.TB) (name string, args map[string]any) {
	t.Helper()
	all := s.calls(t)
	if len(all) != 1 {
		t.Fatalf("calls = %q, want one", all)
	}
	name, raw, _ := strings.Cut(all[0], " ")
	if err := json.Unmarshal([]byte(raw), &args); err != nil {
		t.Fatal(err)
	}
	return name, args
}

func (s scene) run(t testing.TB) action.Result {
	t.Helper()
	turn := action.NewTurn(chat.Conversation{Platform: "console", Place: "ada"}, []chat.Author{ada}, chat.Author{}, demoNow, "tr")
	if s.style == 0 {
		s.style = action.Native
	}
	res, err := action.Run(t.Context(), demoModel(), s.request(t), s.offer(t), turn, action.Bounds{Rounds: 30, Style: s.style})
	if err != nil {
		t.Fatal(err)
	}
	return res
}
