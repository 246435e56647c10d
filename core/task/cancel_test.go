package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestCancel(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		cancel := func(id, reason string) Cancellation {
			t.Helper()
			c, err := r.q.Cancel(ctx, id, bob, reason)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		pending := r.enqueue(draft("c", "pending"))
		if c := cancel(pending, "not \"needed\""); c != (Cancellation{Status: Canceled, Did: DidEnd}) {
			t.Errorf("pending: %+v", c)
		}
		res := r.told(channel.WorkerResult)[pending][0]
		if res.Status != Canceled || res.CanceledBy == nil || *res.CanceledBy != bob || res.CancelReason != `not "needed"` || res.Attempts != 0 {
			t.Errorf("told %+v", res)
		}
		if c := cancel(pending, "again"); c != (Cancellation{Status: Canceled, Did: DidOver}) {
			t.Errorf("canceled before: %+v", c)
		}

		running := r.enqueue(draft("c", "running"))
		run := r.run(running)
		if c := cancel(running, "stop"); c != (Cancellation{Status: Running, Did: DidFlag}) {
			t.Errorf("running: %+v", c)
		}
		if c := cancel(running, "stop!"); c != (Cancellation{Status: Running, Did: DidAgain}) {
			t.Errorf("flagged: %+v", c)
		}
		if got := r.get(running); got.CancelRequestedAt.IsZero() || got.CanceledBy != bob || got.CancelReason != "stop" {
			t.Errorf("%+v", got)
		}
		if status, err := r.q.shows(ctx, run.p, r.q.o.CallTimeout, []*Run{run}); err != nil || status[0] != "canceled" {
			t.Errorf("its worker is told %q, %v", status, err)
		}
		if to := r.settle(run, judge(Outcome{Output: "all done"}, nil, nil, 0)); to != Canceled {
			t.Errorf("a run that finishes after the cancel: %s", to)
		}
		if got := r.get(running); got.Output != "all done" || got.Error != "" || got.FailureReason != "" {
			t.Errorf("of a finished run is kept %+v", got)
		}
		if res := r.told(channel.WorkerResult)[running]; len(res) != 1 || res[0].Output != "all done" || res[0].Status != Canceled {
			t.Errorf("told %+v", res)
		}

		if _, err := r.q.Cancel(ctx, NewID(epoch, 1, 1), bob, ""); !errors.Is(err, ErrUnknown) {
			t.Errorf("unknown: %v", err)
		}
		if _, err := r.q.Cancel(ctx, NewID(epoch, 900, 1), bob, ""); !errors.Is(err, ErrUnknown) {
			t.Errorf("of a partition that there is not: %v", err)
		}
		if _, err := r.q.Cancel(ctx, "x", bob, ""); err == nil {
			t.Error("what is no id was taken")
		}
		r.checkClean()
	})
}

// A commit of one conversation cannot cancel the task of another.
func TestCancelKeepsToItsConversation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		id := r.enqueue(draft("c", "x"))
		call, err := r.q.is.Cancel(conv("d"), id, ann, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.q.perform(t.Context(), call, id); err != nil || got[0] != "unknown" {
			t.Errorf("%v, %v", got, err)
		}
		if got := r.get(id); got.Status != Pending || !got.CancelRequestedAt.IsZero() {
			t.Errorf("%+v", got)
		}
		// Nor by way of a child that somebody has given it.
		d := draft("d", "stray")
		d.ParentTaskID = id
		stray := r.enqueue(d)
		if _, err := r.q.Cancel(t.Context(), id, bob, ""); err != nil {
			t.Fatal(err)
		}
		late := draft("d", "stray too")
		late.ParentTaskID = id
		for _, x := range []string{stray, r.enqueue(late)} {
			if got := r.get(x); got.Status != Pending {
				t.Errorf("%s of another conversation is %s", got.Title, got.Status)
			}
		}
		many := Issuer{Keys: channel.Keys{Prefix: "x", Partitions: 1000}}
		if _, err := many.Cancel(conv("d"), many.Derive(conv("c"), epoch), ann, ""); !errors.Is(err, ErrUnknown) {
			t.Errorf("of another partition: %v", err)
		}
	})
}

// A cancel reaches all that a task has started and will start, however many, and
// their triggers; a crash half way is made good.
func TestCancelCascades(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		var mu sync.Mutex
		var asked []string
		broken := true
		r := newRig(t, s, func(o *Options) {
			o.Triggers = func(_ context.Context, parent, conversation string, by chat.Author, reason string) error {
				mu.Lock()
				defer mu.Unlock()
				if broken {
					return errors.New("the triggers are away")
				}
				if conversation != conv("c").Key() || by != bob || reason != "all of it" {
					t.Errorf("asked for %s by %v: %s", conversation, by, reason)
				}
				asked = append(asked, parent)
				return nil
			}
		})
		ctx := t.Context()
		child := func(parent, title string) string {
			d := draft("c", title)
			d.ParentTaskID = parent
			return r.enqueue(d)
		}
		plan := draft("c", "plan")
		plan.Profile = Planner
		root := r.enqueue(plan)
		r.settle(r.run(root), how("succeed"))
		var all []string
		for i := range 120 {
			all = append(all, child(root, fmt.Sprintf("child %d", i)))
		}
		grand := child(all[3], "grandchild")
		done := all[0]
		r.settle(r.run(done), how("succeed"))
		busy := r.run(all[1])
		other := r.enqueue(draft("c", "unrelated"))

		// In a commit only some are canceled at once; the rest is durable.
		call, err := r.q.is.Cancel(conv("c"), root, bob, "all of it")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.q.perform(ctx, call, root); err != nil || got[0] != string(DidOver) {
			t.Fatalf("%v, %v", got, err)
		}
		s1, err := r.q.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// On a busy machine the call is sent again, and each cancels some.
		if n := s1.ByStatus[Canceled]; n < 20 {
			t.Errorf("%d were canceled with the commit", n)
		} else if n > 60 {
			t.Logf("%d were canceled at once: the call was repeated", n)
		}
		_, p, _ := ParseID(root)
		if err := r.q.Cascade(ctx, p); err == nil {
			t.Error("the triggers are away, and nothing was said")
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		if err := r.q.Cascade(ctx, p); err != nil {
			t.Fatal(err)
		}
		for _, id := range append(all[2:], grand) {
			if got := r.get(id); got.Status != Canceled || got.CanceledBy != bob {
				t.Errorf("%s is %s", got.Title, got.Status)
			}
		}
		if got := r.get(done).Status; got != Succeeded {
			t.Errorf("what was over is %s", got)
		}
		if got := r.get(busy.Task.ID); got.Status != Running || got.CancelRequestedAt.IsZero() {
			t.Errorf("what runs is %s, canceled at %s", got.Status, got.CancelRequestedAt)
		}
		if got := r.get(other).Status; got != Pending {
			t.Errorf("what has another parent is %s", got)
		}
		// What comes too late is canceled as it is born.
		late := child(root, "late")
		lateGrand := child(grand, "late grandchild")
		for _, id := range []string{late, lateGrand} {
			if got := r.get(id); got.Status != Canceled {
				t.Errorf("%s is %s", got.Title, got.Status)
			}
		}
		if err := r.q.Cascade(ctx, p); err != nil {
			t.Fatal(err)
		}
		want := slices.Sorted(slices.Values(slices.Concat([]string{root, grand, late, lateGrand}, all)))
		mu.Lock()
		got := slices.Sorted(slices.Values(asked))
		mu.Unlock()
		if !slices.Equal(got, want) {
			t.Errorf("the triggers of %d tasks were canceled, want each of %d once", len(got), len(want))
		}
		r.settle(busy, how("back"))
		if _, err := r.q.Cancel(ctx, other, bob, "all of it"); err != nil {
			t.Fatal(err)
		}
		for id, list := range r.told(channel.WorkerResult) {
			if len(list) != 1 {
				t.Errorf("%s has %d results", id, len(list))
			}
		}
		r.checkClean()
		if keys := r.keysLike("t:cascade"); len(keys) > 0 {
			t.Errorf("%v is left", keys)
		}
	})
}

// The answer to a question counts once, and only while the task waits for it.
func TestAskAndAnswer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		d := draft("c", "plan")
		d.Profile = Planner
		id := r.enqueue(d)
		run := r.run(id)
		if err := run.SaveCheckpoint(ctx, []byte("so far")); err != nil {
			t.Fatal(err)
		}
		q := &chat.TaskQuestion{ID: "q1", Question: "Which \"one\"?", Options: []string{"a", "b"}, Default: "a"}
		if to := r.settle(run, judge(Outcome{Ask: q}, nil, nil, 0)); to != Waiting {
			t.Fatalf("%s", to)
		}
		event := r.told(channel.SupervisorEvent)[id]
		if len(event) != 1 || event[0].Status != Waiting || event[0].Question == nil || event[0].Question.Question != q.Question || len(event[0].Question.Options) != 2 {
			t.Fatalf("the supervisor was told %+v", event)
		}
		if got := r.get(id); got.Question == nil || got.Question.ID != "q1" || got.Answer != "" || !got.CompletedAt.IsZero() {
			t.Errorf("%+v", got)
		}
		if err := r.q.Answer(ctx, conv("c"), id, "q0", "x", ann); !errors.Is(err, ErrClosed) {
			t.Errorf("to another question: %v", err)
		}
		if err := r.q.Answer(ctx, conv("c"), id, "q1", "b", ann); err != nil {
			t.Fatal(err)
		}
		if err := r.q.Answer(ctx, conv("c"), id, "q1", "b", ann); err != nil {
			t.Errorf("the same again: %v", err)
		}
		if err := r.q.Answer(ctx, conv("c"), id, "q1", "a", bob); !errors.Is(err, ErrClosed) {
			t.Errorf("another answer: %v", err)
		}
		run = r.run(id)
		if got := run.Task; got.Answer != "b" || got.AnsweredBy != ann || got.Attempts != 1 {
			t.Errorf("the next run gets %+v", got)
		}
		if got, err := run.Checkpoint(ctx); string(got) != "so far" || err != nil {
			t.Errorf("it goes on from %q, %v", got, err)
		}
		// Of a second question the first answer is not the answer.
		if to := r.settle(run, judge(Outcome{Ask: &chat.TaskQuestion{ID: "q2", Question: "And?"}}, nil, nil, 0)); to != Waiting {
			t.Fatalf("%s", to)
		}
		if got := r.get(id); got.Answer != "" || got.Question.ID != "q2" {
			t.Errorf("%+v", got)
		}
		if err := r.q.Answer(ctx, conv("c"), id, "q1", "b", ann); !errors.Is(err, ErrClosed) {
			t.Errorf("the first question again: %v", err)
		}
		if err := r.q.Answer(ctx, conv("c"), id, "q2", strings.Repeat("x", chat.MaxText+5), ann); err != nil {
			t.Fatal(err)
		}
		r.settle(r.run(id), how("succeed"))
		if err := r.q.Answer(ctx, conv("c"), r.q.is.Derive(conv("c"), epoch), "q", "x", ann); !errors.Is(err, ErrUnknown) {
			t.Errorf("of no task: %v", err)
		}
		r.checkClean()
	})
}

// A task that is canceled while it waits to run again ends by the cancel, and not
// by the failure before it.
func TestCancelBeforeRetry(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		d := draft("c", "x")
		d.Retry = &Retry{MaxAttempts: 1, Backoff: time.Hour}
		id := r.enqueue(d)
		if to := r.settle(r.run(id), how("fail", "error", "no luck", "reason", ReasonError)); to != Deferred {
			t.Fatalf("it is %s", to)
		}
		if got := r.get(id); got.Error != "no luck" || got.FailureReason != ReasonError {
			t.Errorf("%+v", got)
		}
		if _, err := r.q.Cancel(t.Context(), id, bob, "enough"); err != nil {
			t.Fatal(err)
		}
		if got := r.get(id); got.Status != Canceled || got.Error != "" || got.FailureReason != "" || got.CancelReason != "enough" {
			t.Errorf("%+v", got)
		}
		if res := r.told(channel.WorkerResult)[id]; len(res) != 1 || res[0].Error != "" || res[0].FailureReason != "" || res[0].CancelReason != "enough" {
			t.Errorf("told %+v", res)
		}
		r.checkClean()
	})
}
