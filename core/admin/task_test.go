package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// A hanging worker does as it is told, then works until it is canceled.
type hanging struct {
	began chan string // ids of tasks that run
	end   map[string]error
}

func (h *hanging) run(ctx context.Context, r *task.Run) (task.Outcome, error) {
	percent := 40
	if err := r.Report(ctx, task.Event{Kind: "action_call_start", Message: "counting | lines\x1b[2J of @everyone", Percent: &percent}); err != nil {
		return task.Outcome{}, err
	}
	if err, known := h.end[r.Task.Title]; known {
		return task.Outcome{Output: "There are **7** lines.", Usage: chat.TaskUsage{Calls: 2, Prompt: 12345, Completion: 67, Cost: 1500}}, err
	}
	h.began <- r.Task.ID
	<-ctx.Done()
	return task.Outcome{}, ctx.Err()
}

func (r *rig) over(id string, want task.Status) {
	r.Helper()
	storetest.Eventually(r, "the end of "+id, func() error {
		if s := r.status(id); s != want {
			return fmt.Errorf("%s", s)
		}
		return nil
	})
}

func TestARunningTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := &hanging{began: make(chan string, 10)}
	id := r.task(ann, thread, "count *all* the `lines`")
	r.work(h.run)
	<-h.began
	list, a, _ := r.run(at(ann, thread), "tasks running")
	has(t, list, id[:10], "running", "40%", `\*all\*`, "counting")
	hasNot(t, list, "\x1b", "@everyone", "| lines |")
	if views := a.Data.([]admin.TaskView); len(views) != 1 || views[0].ID != id || *views[0].Percent != 40 {
		t.Errorf("told programs %+v", views)
	}
	one, a, _ := r.run(at(ann, thread), "task "+id[:12])
	has(t, one, id, "running since", "asked for by: you", "profile: standard", "40%", "trace: ")
	hasNot(t, one, "node-1", "\x1b")
	if len(a.Buttons) != 1 || a.Buttons[0].Label != "Cancel" {
		t.Errorf("buttons %+v", a.Buttons)
	}
	has(t, r.ok(at(ola, thread), "task "+id), "on node-1", "asked for by: Ann")
	// The button does what it says.
	words, ok := admin.ButtonWords(a.Buttons[0].Value)
	if !ok || strings.Join(words, " ") != "cancel "+id {
		t.Fatalf("the button stands for %q", words)
	}
	r.audit.take()
	has(t, r.ok(at(ann, thread), strings.Join(words, " ")), "Canceling", "its worker was told")
	if acts := r.audit.take(); len(acts) != 1 || acts[0] != "U1: cancel "+id+" → "+id+": flagged" {
		t.Errorf("recorded %q", acts)
	}
	r.over(id, task.Canceled)
	has(t, r.ok(at(ann, thread), "cancel "+id), "is over already: canceled")
	has(t, r.ok(at(ann, thread), "task "+id), "canceled by: Ann")
}

func TestResults(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := &hanging{began: make(chan string, 10), end: map[string]error{"good": nil, "bad": task.Final(errors.New("the disk is full"))}}
	good, bad := r.task(ann, thread, "good"), r.task(ann, thread, "bad")
	r.work(h.run)
	r.over(good, task.Succeeded)
	r.over(bad, task.Failed)
	text := r.ok(at(ann, thread), "task "+good)
	has(t, text, "succeeded", "There are **7** lines.", "2 model calls, 12,345 tokens in", "cost 0.0015")
	if out := r.ok(at(ann, thread), "task "+good+" output"); out != "There are **7** lines." {
		t.Errorf("the output is %q", out)
	}
	if out := r.ok(at(ann, thread), "task "+good+" prompt"); out != "do good" {
		t.Errorf("the prompt is %q", out)
	}
	has(t, r.ok(at(ann, thread), "task "+good+" progress"), "counting")
	has(t, r.no(at(ann, thread), "task "+good+" outptu"), "did you mean `output`?")
	has(t, r.ok(at(ann, thread), "task "+bad), "failed (error)", "the disk is full")
	list := r.ok(at(ann, thread), "tasks failed")
	has(t, list, bad[:10])
	hasNot(t, list, good[:10])
	has(t, r.ok(at(ann, thread), "tasks over"), good[:10], bad[:10])
	has(t, r.no(at(ann, thread), "retry "+good), "has succeeded; only tasks that failed")
}

// A task that is done again belongs to who wanted that, and has the rights of
// whoever has fewer.
func TestRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	priority := 8
	id, _, err := r.q.Enqueue(t.Context(), task.Draft{
		Profile: task.Expert, Title: "big", Prompt: strings.Repeat("long ", 20_000), Conversation: thread, Requester: ann, Priority: &priority, Storage: "s1",
	})
	if err != nil {
		t.Fatal(err)
	}
	has(t, r.no(at(ann, thread), "retry "+id), "is pending; only tasks that failed or were canceled")
	r.ok(at(ann, thread), "cancel "+id)
	r.audit.take()
	text, a, err := r.run(at(ada, lobby), "retry "+id)
	if err != nil {
		t.Fatal(err)
	}
	got := a.Data.(admin.Retried)
	has(t, text, got.ID, "the same as `"+id[:10]+"`", "where the first was asked for")
	made, err := r.q.Get(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := r.q.Prompt(t.Context(), got.ID)
	if made.Requester.ID != ada.ID || made.Requester.Role != chat.RoleUser || made.Conversation != thread || made.Priority != 8 ||
		made.Profile != task.Expert || made.Title != "big" || made.Storage != "s1" || err != nil || len(prompt) != 100_000 {
		t.Errorf("made %+v (%v)", made, err)
	}
	if acts := r.audit.take(); len(acts) != 1 || !strings.HasSuffix(acts[0], "started "+got.ID) {
		t.Errorf("recorded %q", acts)
	}
	// Twice is once.
	has(t, r.ok(at(ada, lobby), "retry "+id), "open already as `"+got.ID)
	if n := len(r.list(task.Active)); n != 1 {
		t.Errorf("%d tasks are open", n)
	}
}

func (r *rig) list(s []task.Status) []task.Task {
	r.Helper()
	page, err := r.q.List(r.Context(), task.Filter{Status: s}, "", 100)
	if err != nil {
		r.Fatal(err)
	}
	return page.Tasks
}

// Many are canceled only after a confirmation, which covers what there was when
// it was asked for.
func TestCancelMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := at(ann, thread)
	has(t, r.ok(c, "cancel mine"), "There is nothing to cancel.")
	a1, a2, b1 := r.task(ann, thread, "one"), r.task(ann, lobby, "two"), r.task(bob, thread, "three")
	made, err := r.q.Get(t.Context(), a2)
	if err != nil {
		t.Fatal(err)
	}
	text, a, _ := r.run(c, "cancel mine")
	has(t, text, "This cancels 2 tasks.", "`!cancel mine yes`")
	if r.status(a1) != task.Pending || len(a.Buttons) != 1 {
		t.Fatalf("before the confirmation: %s, %+v", r.status(a1), a.Buttons)
	}
	button, _ := admin.ButtonWords(a.Buttons[0].Value)
	// Redis' clock, which times are compared by, has to go on for one tick.
	late := r.task(ann, thread, "late")
	for x, _ := r.q.Get(t.Context(), late); x.CreatedAt.Equal(made.CreatedAt); x, _ = r.q.Get(t.Context(), late) {
		r.ok(c, "cancel "+late)
		late = r.task(ann, thread, "late")
	}
	r.audit.take()
	has(t, r.ok(c, strings.Join(button, " ")), "Canceled 2 tasks.")
	if acts := r.audit.take(); len(acts) != 2 {
		t.Errorf("recorded %q", acts)
	}
	for id, want := range map[string]task.Status{a1: task.Canceled, a2: task.Canceled, b1: task.Pending, late: task.Pending} {
		if s := r.status(id); s != want {
			t.Errorf("%s is %s, want %s", id, s, want)
		}
	}
	has(t, r.ok(c, strings.Join(button, " ")), "nothing to cancel")
	has(t, r.no(c, "cancel mine sure"), "Allowed: yes")
	r.no(c, "cancel mine yes soon")
	has(t, r.ok(c, "cancel here yes"), "Canceled 1 task.")
	if r.status(late) != task.Canceled || r.status(b1) != task.Pending {
		t.Errorf("after cancel here: %s, and another's %s", r.status(late), r.status(b1))
	}
	// Several by name need none, and one that is unknown stops all.
	x, y := r.task(ann, thread, "x"), r.task(ann, thread, "y")
	r.no(c, "cancel "+x+" t00000000")
	if r.status(x) != task.Pending {
		t.Error("something was canceled though an id was wrong")
	}
	r.ok(c, "cancel "+x+" "+y+" "+x)
	if r.status(x) != task.Canceled || r.status(y) != task.Canceled {
		t.Error("two ids did not cancel two tasks")
	}
}

func TestPagesAndIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := at(ann, thread)
	has(t, r.ok(c, "tasks"), "You have no tasks.")
	has(t, r.ok(c, "tasks running"), "You have no tasks that are running.")
	has(t, r.ok(at(ola, thread), "tasks"), "`!tasks all` shows everybody's")
	var ids []string
	for i := range 25 {
		ids = append([]string{r.task(ann, thread, fmt.Sprintf("number %d.", i))}, ids...)
		r.task(bob, thread, fmt.Sprintf("other %d.", i))
	}
	for page, want := range map[int][]string{1: ids[:10], 2: ids[10:20], 3: ids[20:]} {
		text := r.ok(c, fmt.Sprintf("tasks pending %d", page))
		last := -1
		for _, id := range want {
			at := strings.Index(text, id[:10])
			if at <= last {
				t.Errorf("page %d: %s is missing or out of order in\n%s", page, id, text)
			}
			last = at
		}
		if n := strings.Count(text, "number"); n != len(want) {
			t.Errorf("page %d has %d tasks, want %d", page, n, len(want))
		}
		if next := fmt.Sprintf("`!tasks pending %d`", page+1); strings.Contains(text, next) != (page < 3) {
			t.Errorf("page %d: %s", page, text)
		}
	}
	has(t, r.ok(c, "tasks 4"), "There is no page 4.")
	has(t, r.no(c, "tasks 0"), "allowed are 1 to")
	has(t, r.no(c, "tasks runnig"), "did you mean `running`?")
	has(t, r.no(c, "tasks mine all"), "Allowed: mine, here, all")
	big := c
	big.PageSize = 50
	if n := strings.Count(r.ok(big, "tasks"), "number"); n != 25 {
		t.Errorf("a page of 50 has %d", n)
	}
	// A beginning is enough where it is only one of what the caller sees.
	has(t, r.ok(c, "task "+strings.ToUpper(ids[3][:10])), ids[3])
	has(t, r.no(c, "task "+ids[3][:4]), "25 tasks begin with", "Write more")
	has(t, r.no(at(bob, lobby), "task "+ids[3][:10]), "There is no task")
	for _, word := range []string{"t", "x", "../..", "`", "t1m7*", "t\x00", strings.Repeat("t", 5000)} {
		text, _, err := r.run(c, "task "+word)
		if err == nil || len(text) > 300 {
			t.Errorf("task %.20q: %q, %v", word, text, err)
		}
	}
	has(t, r.no(c, "task"), "Which task?")
	has(t, r.no(c, "cancel"), "Which task?")
	has(t, r.no(c, "retry"), "Which task?")
}

// Of tasks that begin alike none is taken for the only one, however long ago the
// others were.
func TestAlikeLongAgo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := at(ann, thread)
	old, next := r.task(ann, thread, "old"), r.task(ann, thread, "next")
	r.now = r.now.Add(time.Hour)
	for i := range 499 {
		r.task(ann, thread, fmt.Sprint(i))
	}
	alike := 0
	for alike < len(old) && old[alike] == next[alike] {
		alike++
	}
	has(t, r.no(c, "cancel "+old[:alike]), "Write more of the id")
	if r.status(old) != task.Pending || r.status(next) != task.Pending {
		t.Error("one of the two was canceled")
	}
	r.ok(c, "cancel "+next[:alike+1])
	if r.status(old) != task.Pending || r.status(next) != task.Canceled {
		t.Errorf("after the cancel of the later: %s, %s", r.status(old), r.status(next))
	}
}

// A watch sees what begins, how it goes, and that it is over, also where many
// tasks came since.
func TestWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := &hanging{began: make(chan string, 100)}
	first := r.task(ann, thread, "first")
	for range 30 {
		r.ok(at(ann, lobby), "cancel "+r.task(ann, thread, "x"))
	}
	r.task(ann, lobby, "of another conversation")
	w := admin.NewWatch(r.q, thread)
	look := func() []admin.Running {
		t.Helper()
		got, err := w.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := look(); len(got) != 0 {
		t.Errorf("before any ran: %+v", got)
	}
	r.work(h.run)
	<-h.began
	<-h.began
	for range 30 {
		r.ok(at(ann, thread), "cancel "+r.task(ann, thread, "y"))
	}
	got := look()
	if len(got) != 1 || got[0].ID != first || got[0].Title != "first" || got[0].Percent == nil || *got[0].Percent != 40 ||
		got[0].Last != "counting | lines[2J of @everyone" || got[0].Started.IsZero() || got[0].Ending {
		t.Errorf("while it runs: %+v", got)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Look(canceled); err == nil {
		t.Error("a look without Redis gave no error")
	}
	if got := look(); len(got) != 1 {
		t.Errorf("after a look that failed: %+v", got)
	}
	r.ok(at(ann, thread), "cancel "+first)
	r.over(first, task.Canceled)
	if got := look(); len(got) != 0 {
		t.Errorf("after its end: %+v", got)
	}
}

// What a task said last stands before what it does, and neither hides the other.
func TestWhatATaskDoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	steps := []struct{ kind, message, want string }{
		{"standard_start", "a", "thinking"},
		{"action_call_start", "exec_shell", "running a command"},
		{"action_call_end", "exec_shell", "thinking"},
		{"progress", "half way", "half way"},
		{"action_call_start", "magic", "half way · magic"},
		{"action_call_end", "magic", "half way · thinking"},
		{"action_call_start", "report_progress", "half way"},
	}
	next, told := make(chan int), make(chan error)
	r.task(ann, thread, "a")
	r.work(func(ctx context.Context, run *task.Run) (task.Outcome, error) {
		for i := range next {
			told <- run.Report(ctx, task.Event{Kind: steps[i].kind, Message: steps[i].message})
		}
		return task.Outcome{}, nil
	})
	watch := admin.NewWatch(r.q, thread)
	for i, c := range steps {
		next <- i
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		list, err := watch.Look(t.Context())
		if err != nil || len(list) != 1 || list[0].Last != c.want {
			t.Errorf("after %s %s: %+v, %v; want %q", c.kind, c.message, list, err, c.want)
		}
	}
	close(next)
}
