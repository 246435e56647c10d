package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/task"
)

// The whole story of a task, in order and with times: who asked, both runs, what
// was done and for how long, and the end.
func TestStory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(func(ctx context.Context, run *task.Run) (task.Outcome, error) {
		half := 50
		for _, e := range []task.Event{
			{Kind: "standard_start", Message: "count"}, {Kind: "action_call_start", Message: "read_file"}, {Kind: "action_call_end", Message: "read_file"},
			{Kind: "report_progress", Message: "half of it", Percent: &half}, {Kind: "action_call_start", Message: "wiki_search"},
		} {
			if err := run.Report(ctx, e); err != nil {
				return task.Outcome{}, err
			}
		}
		if run.Task.Attempts == 1 {
			return task.Outcome{}, errors.New("the file is odd")
		}
		return task.Outcome{Output: "7", ArchivePath: "tasks/x.md"}, nil
	})
	id, _, err := r.q.Enqueue(t.Context(), task.Draft{
		Profile: task.Standard, Title: "count", Prompt: "count", Conversation: thread, Requester: ann, Retry: &task.Retry{MaxAttempts: 1, Backoff: 10 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	child, _, err := r.q.Enqueue(t.Context(), task.Draft{Profile: task.Expert, Title: "step one", Prompt: "x", Conversation: thread, Requester: ann, ParentTaskID: id})
	if err != nil {
		t.Fatal(err)
	}
	r.over(id, task.Succeeded)
	text, a, err := r.run(at(ann, thread), "task "+id)
	if err != nil {
		t.Fatal(err)
	}
	d := a.Data.(admin.TaskDetail)
	var got []string
	for _, m := range d.Story {
		if m.At.IsZero() {
			t.Errorf("%q is at %s", m.What, m.At)
		}
		what, _, _ := strings.Cut(m.What, ", ")
		got = append(got, what)
	}
	all := strings.Join(got, " | ")
	for _, want := range []string{
		"asked for by you | the first run began | reading a file | report progress: half of it | wiki_search",
		"wiki_search | run 2 began | reading a file | ", "wiki_search | succeeded",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	has(t, text, "When (UTC)", "50%", "reading a file, ", "runs: 2", "succeeded, after running for ")
	has(t, text, "started: "+child[:10]+" pending (step one)")
	hasNot(t, text, "archive", "progress file", "standard_start")
	has(t, r.ok(owner(), "task "+id), "archive: tasks/x.md", "progress file: task-progress/"+id+".jsonl")
	// Aloud elsewhere it has the times and no words.
	elsewhere := r.ok(aloud(ann, lobby), "task "+id)
	has(t, elsewhere, "reading a file", "report progress", "an action")
	hasNot(t, elsewhere, "half of it", "odd", "wiki")
}

// Who canceled, when and why, and a failure with its reason.
func TestStoryOfACancelAndAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.task(ann, thread, "sleep")
	r.ok(at(ola, thread), "cancel "+id)
	text := r.ok(at(ann, thread), "task "+id)
	has(t, text, "told to end by Ola: asked for with cancel at slack", "| canceled |")
	hasNot(t, text, "first run")
	r.work(func(ctx context.Context, run *task.Run) (task.Outcome, error) {
		for i := range 30 {
			if err := run.Report(ctx, task.Event{Kind: "step", Message: fmt.Sprint("no ", i)}); err != nil {
				return task.Outcome{}, err
			}
		}
		return task.Outcome{}, task.Final(errors.New("the disk is full"))
	})
	id = r.task(ann, thread, "write")
	r.over(id, task.Failed)
	text = r.ok(at(ann, thread), "task "+id)
	has(t, text, "failed (error)", "the disk is full", "step: no 29", "18 earlier events of its progress are left out here", "task "+id[:10]+" progress")
	hasNot(t, text, "step: no 17 ")
	has(t, r.ok(owner(), "task "+id), "step: no 0 ")
}
