package worker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/task"
	"mimikit/core/workspace"
)

func TestTaskIsDone(t *testing.T) {
	t.Parallel()
	b := newBench(t, Tools{},
		calls("report_progress", map[string]any{"message": "half way", "percent": 50}),
		calls("write_file", map[string]any{"path": "a.txt", "content": "one\ntwo\n"}),
		calls("read_file", map[string]any{"path": "a.txt"}),
		calls("respond", map[string]any{"output": "It has 2 lines.", "resultType": "analysis"}),
	)
	out, err := b.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.Output != "It has 2 lines." || out.ResultType != "analysis" {
		t.Errorf("result %+v", out)
	}
	if want := (chat.TaskUsage{Calls: 4, Prompt: 40, Cached: 16, Completion: 8, Cost: 12}); out.Usage != want {
		t.Errorf("usage %+v, want %+v", out.Usage, want)
	}
	want := []string{
		"standard_start:Count lines",
		"action_call_start:report_progress", "progress:half way", "action_call_end:report_progress",
		"action_call_start:write_file", "action_call_end:write_file",
		"action_call_start:read_file", "action_call_end:read_file",
		"action_call_start:respond", "action_call_end:respond",
	}
	if got := b.kinds(); !slices.Equal(got, want) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if b.saves != 3 {
		t.Errorf("%d checkpoints, want one after each step that another follows", b.saves)
	}
	last := b.model.Requests()[3]
	answers := ""
	for _, m := range last.Messages {
		if m.Role == llm.ToolRole {
			answers += m.Content + "\n"
		}
	}
	if !strings.Contains(answers, "a.txt, lines 1 to 2 of 2:\n1\tone\n2\ttwo") || !strings.Contains(answers, "wrote a.txt, 8 bytes") {
		t.Errorf("the model was told\n%s", answers)
	}
	if last.Task != "t1" || last.User != "slack/T1/U1" || last.Agent != "worker-standard" || last.Model != "small" {
		t.Errorf("the call is on account of %+v", last)
	}
	// The archive tells a person all of it.
	md, err := os.ReadFile(filepath.Join(b.o.Archive.Dir, out.ArchivePath))
	if err != nil || out.ArchivePath != filepath.Join("tasks", "2026-11-21", "t1.md") {
		t.Fatalf("archived at %q: %v", out.ArchivePath, err)
	}
	for _, w := range []string{"# Count lines", "count the lines of a.txt", "It has 2 lines.", "Ann (U1)"} {
		if !strings.Contains(string(md), w) {
			t.Errorf("the archive lacks %q:\n%s", w, md)
		}
	}
	events, err := os.ReadFile(filepath.Join(b.o.Archive.Dir, "task-progress", "t1.jsonl"))
	if err != nil || strings.Count(string(events), "\n") != len(want) {
		t.Errorf("archived events: %v\n%s", err, events)
	}
}

// cutAfter ends the run when so many checkpoints were kept, as a crash would.
func (b *bench) cutAfter(saves int, cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(b.t.Context())
	answers := b.model
	b.model = llmtest.NewFunc(func(c context.Context, req llm.Request) (llm.Response, error) {
		if b.saves >= saves {
			cancel(cause)
			return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: context.Canceled}
		}
		return answers.Complete(c, req)
	})
	return ctx, func() { cancel(nil) }
}

func TestResume(t *testing.T) {
	t.Parallel()
	steps := []llm.Response{
		calls("write_file", map[string]any{"path": "a.txt", "content": "1\n"}),
		calls("edit_file", map[string]any{"path": "a.txt", "old_text": "1", "new_text": "2"}),
		calls("respond", map[string]any{"output": "done"}),
	}
	for cut := 1; cut < len(steps); cut++ {
		b := newBench(t, Tools{}, steps...)
		ctx, done := b.cutAfter(cut, task.ErrStopping)
		if _, err := b.do(ctx); !errors.Is(err, task.ErrStopping) {
			t.Fatalf("cut after %d: %v", cut, err)
		}
		done()
		b.task.Attempts++
		b.script(steps[cut:]...)
		out, err := b.do(t.Context())
		if err != nil || out.Output != "done" {
			t.Fatalf("resumed after %d: %+v, %v", cut, out, err)
		}
		first := b.model.Requests()[0]
		asked := 0
		for _, m := range first.Messages {
			asked += len(m.ToolCalls)
		}
		if asked != cut {
			t.Errorf("resumed after %d steps: the model sees %d", cut, asked)
		}
		if !slices.Contains(b.kinds(), "standard_resume:going on after "+string(rune('0'+cut))+" steps") {
			t.Errorf("events %q", b.kinds())
		}
		w, err := b.o.Storage.Open(thread.Key())
		if err != nil {
			t.Fatal(err)
		}
		if p, err := w.Read(t.Context(), "a.txt", 1, 10); err != nil || p.Lines[0] != "2" {
			t.Errorf("the file is %+v, %v", p, err)
		}
		_ = w.Close()
	}
}

// A run that goes on where the files of the earlier one are not says so.
func TestResumeWithoutTheFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, Tools{}, calls("write_file", map[string]any{"path": "a.txt", "content": "1\n"}))
	ctx, done := b.cutAfter(1, task.ErrStopping)
	_, _ = b.do(ctx)
	done()
	other, err := workspace.Create(t.TempDir(), workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	b.o.Storage = other
	b.script(calls("respond", map[string]any{"output": "sorry"}))
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, m := range b.model.Requests()[0].Messages {
		all += m.Content
	}
	if !strings.Contains(all, "the files it made are not here") {
		t.Errorf("the model is not told:\n%s", all)
	}
}

func TestDamagedCheckpointBeginsAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, Tools{}, calls("respond", map[string]any{"output": "done"}))
	b.data = []byte("{broken")
	if out, err := b.do(t.Context()); err != nil || out.Output != "done" {
		t.Errorf("%+v, %v", out, err)
	}
	if !strings.HasPrefix(b.kinds()[0], EventStart) {
		t.Errorf("events %q", b.kinds())
	}
}

func TestRoundsAreBoundedOverAllRuns(t *testing.T) {
	t.Parallel()
	read := calls("search_files", map[string]any{"query": "x"})
	last := llm.Response{Text: "I found nothing yet.", Finish: "stop"}
	b := newBench(t, Tools{}, read, read)
	b.o.Rounds = 4
	ctx, done := b.cutAfter(2, task.ErrStopping)
	_, _ = b.do(ctx)
	done()
	b.script(read, last)
	out, err := b.do(t.Context())
	var final *task.FinalError
	if !errors.As(err, &final) || !errors.Is(err, errNoResult) || out.Output != last.Text {
		t.Errorf("%+v, %v", out, err)
	}
	if n := len(b.model.Requests()); n != 2 {
		t.Errorf("%d more steps, want 2", n)
	}
	if tools := b.model.Requests()[1].Tools; len(tools) != 1 || tools[0].Name != "respond" {
		t.Errorf("in the last round there is more than respond: %+v", tools)
	}
	b.data, _ = json.Marshal(checkpoint{Rounds: 4})
	if _, err := b.do(t.Context()); !errors.As(err, &final) {
		t.Errorf("a task without rounds left: %v", err)
	}
}

func TestWhatEndsARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		err   error
		final bool
		says  string
	}{
		{"a spent budget", &llm.Error{Kind: llm.OverBudget, Err: &llm.BudgetError{Budget: llm.Budget{Subject: llm.Subject{Kind: llm.TaskSubject, ID: "t1"}}}}, true, "the budget of the task"},
		{"a refusal", &llm.Error{Kind: llm.Refused, Err: errors.New("at 10.0.0.1")}, true, "refused"},
		{"too long", &llm.Error{Kind: llm.TooLong, Err: errors.New("at 10.0.0.1")}, true, "longer than"},
		{"misconfigured", &llm.Error{Kind: llm.Fatal, Err: errors.New("key sk-1")}, false, "not set up"},
		{"busy", &llm.Error{Kind: llm.RateLimited, Err: errors.New("at 10.0.0.1")}, false, "too many"},
		{"away", &llm.Error{Kind: llm.Transient, Err: errors.New("at 10.0.0.1")}, false, "could not be reached"},
	} {
		b := newBench(t, Tools{})
		b.model = llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{Usage: llm.Usage{Prompt: 7}}, c.err
		})
		out, err := b.do(t.Context())
		var final *task.FinalError
		if err == nil || errors.As(err, &final) != c.final || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "10.0.0.1") || strings.Contains(err.Error(), "sk-1") {
			t.Errorf("%s: %v, want final %v and %q", c.name, err, c.final, c.says)
		}
		if out.Usage.Prompt != 7 {
			t.Errorf("%s: usage %+v is lost", c.name, out.Usage)
		}
	}
	for _, cause := range []error{task.ErrCanceled, task.ErrTimedOut, task.ErrLapsed, task.ErrStopping} {
		b := newBench(t, Tools{})
		ctx, done := b.cutAfter(0, cause)
		if _, err := b.do(ctx); !errors.Is(err, cause) {
			t.Errorf("%v: ended with %v", cause, err)
		}
		done()
	}
	b := newBench(t, Tools{}, calls("search_files", map[string]any{"query": "x"}))
	b.fail = task.ErrLapsed
	if _, err := b.do(t.Context()); !errors.Is(err, task.ErrLapsed) {
		t.Errorf("a task that was lost: %v", err)
	}
}

// However much a task has read, its checkpoint fits, and the newest step is whole.
func TestCheckpointFits(t *testing.T) {
	t.Parallel()
	var c checkpoint
	for i := range 60 {
		c.add([]llm.Message{
			{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "c", Name: "write_file", Arguments: `{"content":"` + strings.Repeat("y", 20<<10) + `"}`}}},
			{Role: llm.ToolRole, ToolCallID: "c", Content: strings.Repeat("x", 16<<10) + string(rune('a'+i%26))},
		})
	}
	data, err := c.encode()
	if err != nil || len(data) > task.MaxCheckpoint {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	var back checkpoint
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if n := len(back.Steps); n != 120 || back.Steps[n-1].Content != c.Steps[n-1].Content || back.Rounds != 60 {
		t.Errorf("%d steps, the newest has %d bytes", n, len(back.Steps[n-1].Content))
	}
	for _, m := range back.Steps {
		for _, call := range m.Calls {
			if !json.Valid([]byte(call.Arguments)) {
				t.Fatalf("a call's arguments are %.40q", call.Arguments)
			}
		}
	}
	for round := 1; round <= 3; round++ {
		for _, m := range c.shorter(round) {
			if m.Role == llm.ToolRole && len(m.Content) > 4<<10 {
				t.Errorf("round %d has an output of %d bytes", round, len(m.Content))
			}
		}
	}
}
