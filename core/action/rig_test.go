package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/llm"
)

var (
	epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	here  = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.1"}
	ann   = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	root  = chat.Author{ID: "U9", Name: "Root", Role: chat.RoleAdmin}
)

func turn(authors ...chat.Author) Turn { return NewTurn(here, authors, chat.Author{}, epoch, "tr") }

// vocabulary offers an agent the outlines of all its actions.
func vocabulary(t testing.TB, agent string) *Offer {
	t.Helper()
	r, err := Outline(Vocabulary()...)
	if err != nil {
		t.Fatal(err)
	}
	return r.For(agent, chat.RoleUser)
}

// noted are calls of functions, in their order.
type noted struct{ calls []string }

func (n *noted) add(format string, args ...any) {
	n.calls = append(n.calls, fmt.Sprintf(format, args...))
}

type none struct{}

// thinker offers the thinker functions that note what they are called with: two
// look-ups, effects with and without an answer, and the ways to fail.
func thinker(t testing.TB, n *noted, more ...Definition) *Registry {
	t.Helper()
	defs := append([]Definition{
		Define(ListTasks, func(_ context.Context, _ Turn, a TaskQuery) (Outcome, error) {
			n.add("list %s %d", a.Status, a.Limit)
			return Outcome{Answer: "t1 running"}, nil
		}),
		Define(SearchMemory, func(_ context.Context, _ Turn, a MemoryQuery) (Outcome, error) {
			n.add("search %s %d", a.Query, a.Limit)
			return Outcome{Answer: strings.Repeat("é", 20<<10)}, nil
		}),
		Define(CreateTask, func(_ context.Context, tn Turn, a NewTask) (Outcome, error) {
			n.add("create %s %d for %s", a.Title, a.Priority, tn.OnBehalfOf.ID)
			return Outcome{Effects: []any{a}}, nil
		}),
		Define(Remember, func(_ context.Context, _ Turn, a Note) (Outcome, error) {
			if a.Scope == "workspace" {
				return Outcome{}, Mistakef("scope: workspace is not allowed here; want conversation or user")
			}
			n.add("remember %s", a.Content)
			return Outcome{Answer: "n-1", Effects: []any{a}}, nil
		}),
		Define(Spec[none]{Name: "break", Kind: Lookup, Agents: thinks, Description: "Panics."},
			func(context.Context, Turn, none) (Outcome, error) { panic("boom") }),
		Define(Spec[none]{Name: "fall", Kind: Lookup, Agents: thinks, Description: "Fails."},
			func(context.Context, Turn, none) (Outcome, error) {
				return Outcome{}, errors.New("dial redis at 10.1.2.3: refused")
			}),
		Define(Spec[none]{Name: "purge", Kind: Effect, Agents: thinks, Rights: chat.RoleAdmin, Description: "Removes everything."},
			func(context.Context, Turn, none) (Outcome, error) {
				n.add("purge")
				return Outcome{Effects: []any{"purge"}}, nil
			}),
	}, more...)
	r, err := New(defs...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// worker offers a worker a look-up and its end.
func worker(t testing.TB, n *noted) *Registry {
	t.Helper()
	r, err := New(
		Define(ReadFile, func(_ context.Context, _ Turn, a FileRead) (Outcome, error) {
			n.add("read %s %d+%d", a.Path, a.StartLine, a.LineCount)
			return Outcome{Answer: "package main"}, nil
		}),
		Define(Respond, func(_ context.Context, _ Turn, a Response) (Outcome, error) {
			if strings.Contains(a.Output, "unfinished") {
				return Outcome{}, Mistakef("output: it says unfinished")
			}
			n.add("respond %s", a.Output)
			return Outcome{Effects: []any{a}}, nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A script is a model that answers in a fixed order and keeps what it was asked.
type script struct {
	t       testing.TB
	answers []llm.Response
	asked   []llm.Request
	before  func(round int) // called when asked
}

func model(t testing.TB, answers ...llm.Response) *script { return &script{t: t, answers: answers} }

func (s *script) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	s.asked = append(s.asked, req)
	n := len(s.asked)
	if s.before != nil {
		s.before(n)
	}
	if n > len(s.answers) {
		s.t.Errorf("the model was asked %d times; want %d", n, len(s.answers))
		return llm.Response{}, &llm.Error{Kind: llm.Fatal, Err: errors.New("asked too often")}
	}
	resp := s.answers[n-1]
	if resp.Finish == "fail" {
		return llm.Response{Usage: resp.Usage}, &llm.Error{Kind: llm.Transient, Err: errors.New(resp.Text)}
	}
	if req.OnDelta != nil {
		for i := 0; i < len(resp.Text); i += 3 {
			req.OnDelta(resp.Text[i:min(i+3, len(resp.Text))])
		}
	}
	resp.Model = "m"
	return resp, nil
}

// says is an answer; calls come as name, arguments, name, arguments.
func says(text string, calls ...string) llm.Response {
	r := llm.Response{Text: text, Finish: "stop", Usage: llm.Usage{Prompt: 10, Completion: 2, Cached: 1}}
	for i := 0; i+1 < len(calls); i += 2 {
		r.Finish = "tool_calls"
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: fmt.Sprintf("c%d", i/2), Name: calls[i], Arguments: calls[i+1]})
	}
	return r
}

func request() llm.Request {
	return llm.Request{Agent: Thinker, Messages: []llm.Message{{Role: llm.System, Content: "rules"}, {Role: llm.User, Content: "hi"}}}
}

// verdicts lists a trail in short.
func verdicts(trail []Step) string {
	var all []string
	for _, s := range trail {
		all = append(all, fmt.Sprintf("%d:%s:%s", s.Round, s.Call.Name, s.Verdict))
	}
	return strings.Join(all, " ")
}

// block is a block of actions with these lines.
func block(lines ...string) string {
	return "<MIMIKIT:actions>\n" + strings.Join(lines, "\n") + "\n</MIMIKIT:actions>"
}

// tool decodes one native call.
func tool(o *Offer, name, arguments string) Decoded {
	return o.DecodeTools([]llm.ToolCall{{ID: "1", Name: name, Arguments: arguments}})[0]
}

func mustEqualJSON(t testing.TB, got json.RawMessage, want string) {
	t.Helper()
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
