package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/task"
	"mimikit/prompts"
)

// said is a history in memory.
type said struct {
	past history.Past
	err  error
}

func (s *said) Read(_ context.Context, conversation string, _ history.Limits) (history.Past, error) {
	if conversation != thread.Key() {
		return history.Past{}, fmt.Errorf("read %s", conversation)
	}
	return s.past, s.err
}

// A study is a planner and what it plans with.
type study struct {
	*Planner
	bench   // its memory, model and task
	past    said
	turns   []action.Turn // of the look-ups
	refused error         // what check says of the next plan
}

func newStudy(t *testing.T, answers ...llm.Response) *study {
	t.Helper()
	set, err := prompts.Open("")
	if err != nil {
		t.Fatal(err)
	}
	s := &study{bench: bench{t: t}}
	s.script(answers...)
	look := action.Define(action.SearchMemory, func(_ context.Context, turn action.Turn, q action.MemoryQuery) (action.Outcome, error) {
		s.turns = append(s.turns, turn)
		return action.Outcome{Answer: "found " + q.Query}, nil
	})
	ends := PlannerActions(func(_ context.Context, turn action.Turn, p action.Plan) error {
		if turn.Conversation != thread || turn.OnBehalfOf != ann || len(p.Tasks)+len(p.Triggers) == 0 {
			t.Errorf("checked %+v of %+v", p, turn)
		}
		defer func() { s.refused = nil }()
		return s.refused
	})
	registry, err := action.New(append(ends, look)...)
	if err != nil {
		t.Fatal(err)
	}
	s.Planner = NewPlanner(PlannerOptions{
		Model:     llmtest.NewFunc(func(ctx context.Context, req llm.Request) (llm.Response, error) { return s.model.Complete(ctx, req) }),
		ModelName: "large", Prompts: set, Actions: registry, History: &s.past, Profiles: []string{"standard"}, Rounds: 6,
		Tasks: func(context.Context, string) (string, error) { return "t9 running standard \"Other work\"", nil },
		Notes: func(_ context.Context, _ chat.Conversation, by chat.Author, text string) ([]prompts.Note, error) {
			if by != ann || text != "compare A and B, then write a report" {
				t.Errorf("looked for notes of %+v on %q", by, text)
			}
			return []prompts.Note{{ID: "n1", Scope: "user", Author: ann, At: epoch, Text: "Ann likes tables"}}, nil
		},
		Archive: &Archive{Dir: t.TempDir()}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: func() time.Time { return epoch.Add(time.Minute) },
	})
	s.task = task.Task{
		ID: "t1", Profile: task.Planner, Title: "Compare", Conversation: thread, Requester: ann,
		CreatedAt: epoch, Attempts: 1, Timeout: 5 * time.Minute, TraceID: "tr",
	}
	return s
}

func (s *study) do() (task.Outcome, error) {
	return s.run(s.t.Context(), s.task, "compare A and B, then write a report", &s.memory)
}

func shown(req llm.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		b.WriteString(m.Content + "\n")
	}
	return b.String()
}

var aPlan = map[string]any{"tasks": []any{map[string]any{"ref": "a", "prompt": "look at A", "title": "A"}}}

func TestPlan(t *testing.T) {
	t.Parallel()
	s := newStudy(t, calls("search_memory", map[string]any{"query": "A"}), calls("done", aPlan))
	s.past.past = history.Past{Lines: []chat.Line{{ID: "i", Role: chat.LineUser, Author: ann, Text: "we spoke of A", At: epoch}}}
	out, err := s.do()
	if err != nil {
		t.Fatal(err)
	}
	var p action.Plan
	if err := json.Unmarshal([]byte(out.Output), &p); err != nil || len(p.Tasks) != 1 || p.Tasks[0].Ref != "a" || out.Ask != nil || out.ResultType != "text" {
		t.Errorf("%+v, %v", out, err)
	}
	if want := (chat.TaskUsage{Calls: 2, Prompt: 20, Cached: 8, Completion: 4, Cost: 6}); out.Usage != want {
		t.Errorf("usage %+v, want %+v", out.Usage, want)
	}
	if got := strings.Join(s.kinds(), " "); got != "planner_start:Compare action_call_start:search_memory action_call_end:search_memory action_call_start:done action_call_end:done" {
		t.Errorf("events %s", got)
	}
	req := s.model.Requests()[0]
	if req.Agent != "planner" || req.Model != "large" || req.Task != "t1" || req.User != "slack/T1/U1" {
		t.Errorf("the call is on account of %+v", req)
	}
	for _, want := range []string{"You are the planner", "we spoke of A", "Ann likes tables", "Other work", "profiles: standard", "compare A and B", "time: 2026-11-21T10:01:00Z"} {
		if !strings.Contains(shown(req), want) {
			t.Errorf("the model is not shown %q", want)
		}
	}
	if len(s.turns) != 1 || s.turns[0].Rights != chat.RoleUser || len(s.turns[0].Authors) != 1 || s.turns[0].Authors[0] != ann {
		t.Errorf("looked up as %+v", s.turns)
	}
	var tools []string
	for _, tool := range req.Tools {
		tools = append(tools, tool.Name)
	}
	if got := strings.Join(tools, " "); got != "done failed needs_input search_memory" {
		t.Errorf("offered %s", got)
	}
	if md, err := os.ReadFile(filepath.Join(s.o.Archive.Dir, out.ArchivePath)); err != nil || !strings.Contains(string(md), "look at A") {
		t.Errorf("archived %q, %v", md, err)
	}
}

// What cannot be carried out goes back to the model, which mends it.
func TestAPlanIsMended(t *testing.T) {
	t.Parallel()
	s := newStudy(t, calls("done", aPlan), calls("done", map[string]any{"tasks": []any{}}), calls("done", aPlan))
	s.refused = errors.New(`triggers[0]: zone "Berlin": there is no such time zone`)
	if out, err := s.do(); err != nil || !strings.Contains(out.Output, "look at A") {
		t.Fatalf("%+v, %v", out, err)
	}
	last := shown(s.model.Requests()[2])
	for _, want := range []string{"there is no such time zone", "there is nothing in the plan"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model was not told %q", want)
		}
	}
}

// A question makes the task wait; with the answer the planner goes on, also with a
// second one, and knows both.
func TestPlannerAsks(t *testing.T) {
	t.Parallel()
	s := newStudy(t, calls("search_memory", map[string]any{"query": "servers"}),
		calls("needs_input", map[string]any{"question": "Which servers?", "options": []string{"old", "new"}, "default": "old"}))
	out, err := s.do()
	if err != nil || out.Ask == nil || out.Ask.Question != "Which servers?" || len(out.Ask.Options) != 2 || out.Ask.Default != "old" || out.ArchivePath != "" {
		t.Fatalf("%+v, %v", out, err)
	}
	bob := chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleUser}
	s.task.Attempts, s.task.Question, s.task.Answer, s.task.AnsweredBy = 2, &chat.TaskQuestion{ID: "q1", Question: "Which servers?", Options: []string{"old", "new"}}, "the <old> ones", bob
	s.script(calls("needs_input", map[string]any{"question": "And when?"}))
	if out, err := s.do(); err != nil || out.Ask == nil || out.Ask.Question != "And when?" {
		t.Fatalf("%+v, %v", out, err)
	}
	req := s.model.Requests()[0]
	for _, want := range []string{"Which servers?", "the &lt;old> ones", `from="Bob"`, `question="q1"`} {
		if !strings.Contains(shown(req), want) {
			t.Errorf("the model is not shown %q in\n%s", want, shown(req))
		}
	}
	s.task.Question, s.task.Answer, s.task.AnsweredBy = &chat.TaskQuestion{ID: "q2", Question: "And when?"}, "at night", ann
	// A crash between two runs changes nothing of what is known.
	for range 2 {
		s.script(calls("done", aPlan))
		if out, err := s.do(); err != nil || !strings.Contains(out.Output, "look at A") {
			t.Fatalf("%+v, %v", out, err)
		}
		if text := shown(s.model.Requests()[0]); strings.Count(text, "the &lt;old> ones") != 1 || strings.Count(text, "at night") != 1 || strings.Count(text, `action="needs_input"`) != 2 {
			t.Errorf("the model is shown\n%s", text)
		}
	}
}

func TestPlannerFails(t *testing.T) {
	t.Parallel()
	var final *task.FinalError
	s := newStudy(t, calls("failed", map[string]any{"error": "nobody can do that"}))
	if out, err := s.do(); !errors.As(err, &final) || err.Error() != "nobody can do that" || out.Usage.Calls != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	s = newStudy(t, llm.Response{Text: "I think", Finish: "stop"}, llm.Response{Text: "hm", Finish: "stop"}, llm.Response{Text: "so", Finish: "stop"},
		llm.Response{Text: "on", Finish: "stop"}, llm.Response{Text: "and", Finish: "stop"}, llm.Response{Text: "on", Finish: "stop"})
	if _, err := s.do(); !errors.As(err, &final) || !errors.Is(err, errNoResult) {
		t.Errorf("%v", err)
	}
	s = newStudy(t)
	s.past.err = errors.New("redis is away")
	if _, err := s.do(); err == nil || errors.As(err, &final) {
		t.Errorf("%v", err)
	}
	// The rounds are of all runs together.
	s = newStudy(t)
	s.memory.data = []byte(`{"rounds":6}`)
	if _, err := s.do(); !errors.Is(err, errNoResult) {
		t.Errorf("%v", err)
	}
	s = newStudy(t, calls("needs_input", map[string]any{"question": "Which?"}))
	s.memory.data = []byte(`{"rounds":5}`)
	if out, err := s.do(); !errors.Is(err, errNoResult) || out.Ask != nil {
		t.Errorf("%+v, %v", out, err)
	}
	s.memory.data = []byte(`{`)
	s.script(calls("done", aPlan))
	if out, err := s.do(); err != nil || out.Output == "" {
		t.Errorf("with a damaged checkpoint: %v", err)
	}
}
