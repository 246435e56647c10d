package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Attempts are 0 when enqueued, 1 with the first run, and go up before a task is
// enqueued again; the backoff doubles; the last failure is the one that is told.
func TestRetries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		d := draft("c", "x")
		d.Retry = &Retry{MaxAttempts: 2, Backoff: 10 * time.Second}
		id := r.enqueue(d)
		for i, wait := range []time.Duration{10 * time.Second, 20 * time.Second} {
			run := r.run(id)
			if got := run.Task.Attempts; got != i+1 {
				t.Errorf("run %d: attempt %d", i+1, got)
			}
			before := time.Now()
			to := r.settle(run, judge(Outcome{Output: "half", Usage: chat.TaskUsage{Calls: 1, Prompt: 10}}, fmt.Errorf("no luck %d", i), nil, 0))
			got := r.get(id)
			if to != Deferred || got.Status != Deferred || got.Attempts != i+2 || got.Retries != i+1 {
				t.Fatalf("after run %d: %s, %+v", i+1, to, got)
			}
			if got.Output != "" || got.Error != fmt.Sprintf("no luck %d", i) || got.FailureReason != ReasonError {
				t.Errorf("after run %d it says %q, %q, %q", i+1, got.Output, got.Error, got.FailureReason)
			}
			if left := got.DeferUntil.Sub(before); left < wait-2*time.Second || left > wait+2*time.Second {
				t.Errorf("the %d. re-run is in %s, want %s", i+1, left, wait)
			}
			s.Client.ZAdd(t.Context(), r.q.keys.In(0, "t:deferred"), z(0, id)) // time passes
		}
		if to := r.settle(r.run(id), judge(Outcome{Output: "half", Usage: chat.TaskUsage{Calls: 1, Completion: 3}}, errors.New("enough"), ErrTimedOut, time.Minute)); to != Failed {
			t.Errorf("%s", to)
		}
		got := r.get(id)
		if got.Attempts != 3 || got.Error != "not done within 1m0s" || got.FailureReason != ReasonTimeout || got.Output != "half" {
			t.Errorf("%+v", got)
		}
		if want := (chat.TaskUsage{Calls: 3, Prompt: 20, Completion: 3}); got.Usage != want {
			t.Errorf("used %+v, want %+v", got.Usage, want)
		}
		if res := r.told(channel.WorkerResult)[id]; len(res) != 1 || res[0].FailureReason != ReasonTimeout || res[0].Attempts != 3 {
			t.Errorf("told %+v", res)
		}
		n, err := channel.New(channel.Options{Client: s.Client, Blocking: s.Blocking, Keys: r.q.keys, NodeID: "x"})
		if err != nil {
			t.Fatal(err)
		}
		notes, err := n.Feedback(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, f := range notes {
			kinds = append(kinds, string(f.Kind)+": "+f.Message)
			if f.TaskID != id || f.Conversation != d.Conversation || f.Author != ann || f.At.IsZero() {
				t.Errorf("feedback %+v", f)
			}
		}
		if diff := cmp.Diff([]string{"worker_error: not done within 1m0s", "worker_retry: no luck 1", "worker_retry: no luck 0"}, kinds); diff != "" {
			t.Errorf("feedback: %s", diff)
		}
		r.checkClean()
	})
}

// A clean stop costs no attempt; a lapse costs one, and the third ends the task.
func TestBackAndLapse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		id := r.enqueue(draft("c", "x"))
		if to := r.settle(r.run(id), how("back")); to != Pending {
			t.Errorf("%s", to)
		}
		for i := range 2 {
			run := r.run(id)
			if run.Task.Attempts != i+1 {
				t.Errorf("attempt %d, want %d", run.Task.Attempts, i+1)
			}
			if to := r.settle(run, how("lapse")); to != Pending {
				t.Errorf("%s", to)
			}
		}
		// What was cut off from Redis costs nothing, a good while.
		for range 10 {
			if to := r.settle(r.run(id), how("cut")); to != Pending {
				t.Errorf("%s", to)
			}
		}
		if to := r.settle(r.run(id), how("cut")); to != Failed {
			t.Errorf("%s", to)
		}
		got := r.get(id)
		if got.Attempts != 3 || got.Lapses != 3 || got.Retries != 0 || got.FailureReason != ReasonKilled || got.Error == "" {
			t.Errorf("%+v", got)
		}
		if res := r.told(channel.WorkerResult)[id]; len(res) != 1 || res[0].FailureReason != ReasonKilled {
			t.Errorf("told %+v", res)
		}
		r.checkClean()
	})
}

// A lapse that was seen from outside counts only while the run has stayed silent.
func TestLapseNeedsSilence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		id := r.enqueue(draft("c", "x"))
		run := r.run(id)
		v, err := r.q.look(t.Context(), 0, looker{id: "me"}, allClasses)
		if err != nil || len(v.runs) != 1 || !v.sweep {
			t.Fatalf("%+v, %v", v, err)
		}
		if _, err := r.q.shows(t.Context(), 0, time.Second, []*Run{run}); err != nil {
			t.Fatal(err)
		}
		silent := how("lapse")
		silent.beats = v.runs[0].count
		if to, err := r.q.settle(t.Context(), 0, v.runs[0].token, id, silent); err != nil || to != "alive" {
			t.Errorf("%s, %v", to, err)
		}
		if to := r.settle(run, how("succeed")); to != Succeeded {
			t.Errorf("%s", to)
		}
		if to, err := r.q.look(t.Context(), 0, looker{id: "another"}, nil); err != nil || to.sweep {
			t.Errorf("another sweeps as well: %+v, %v", to, err)
		}
	})
}

// What another run has is not touched by the one before: no checkpoint, no event,
// no end.
func TestFence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		ctx := t.Context()
		id := r.enqueue(draft("c", "x"))
		old := r.run(id)
		if err := old.SaveCheckpoint(ctx, []byte("old")); err != nil {
			t.Fatal(err)
		}
		if err := old.Report(ctx, Event{Kind: "a", Percent: new(10), Message: "m"}); err != nil {
			t.Fatal(err)
		}
		r.settle(old, how("lapse"))
		run := r.run(id)
		for what, err := range map[string]error{"checkpoint": old.SaveCheckpoint(ctx, []byte("stale")), "event": old.Report(ctx, Event{Kind: "stale"})} {
			if !errors.Is(err, ErrLapsed) {
				t.Errorf("%s of the old run: %v", what, err)
			}
		}
		if !errors.Is(context.Cause(old.Context()), ErrLapsed) {
			t.Errorf("the old run goes on: %v", context.Cause(old.Context()))
		}
		if got, err := run.Checkpoint(ctx); string(got) != "old" || err != nil {
			t.Errorf("the checkpoint is %q, %v", got, err)
		}
		if to, err := r.q.settle(ctx, 0, old.token, id, how("lapse")); err != nil || to != Pending {
			t.Errorf("the same end again: %s, %v", to, err)
		}
		if _, err := r.q.settle(ctx, 0, "1-x-1", id, how("succeed")); !errors.Is(err, errNotOurs) {
			t.Errorf("the end of a stranger: %v", err)
		}
		if err := run.Report(ctx, Event{Kind: "b"}); err != nil {
			t.Fatal(err)
		}
		events, err := r.q.Progress(ctx, id, 10)
		if err != nil || len(events) != 2 || events[0].Kind != "a" || *events[0].Percent != 10 || events[1].Kind != "b" || events[1].Attempt != 2 {
			t.Errorf("events %+v, %v", events, err)
		}
		if err := run.SaveCheckpoint(ctx, make([]byte, MaxCheckpoint+1)); err == nil || errors.Is(err, ErrLapsed) {
			t.Errorf("a large checkpoint: %v", err)
		}
		if err := run.Report(ctx, Event{Kind: "b", Message: strings.Repeat("x", MaxEvent)}); err == nil {
			t.Error("a large event was taken")
		}
		for range KeepEvents + 5 {
			if err := run.Report(ctx, Event{Kind: "many"}); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Client.LLen(ctx, progressKey(r.q.keys, 0, id)).Val(); n != KeepEvents {
			t.Errorf("%d events are kept", n)
		}
		r.settle(run, how("succeed"))
		r.checkClean()
	})
}

// What a runner returns and why its context ended make one verdict.
func TestJudge(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, c := range []struct {
		name       string
		o          Outcome
		err, cause error
		how        string
		said       map[string]string
	}{
		{"done", Outcome{Output: "x"}, nil, nil, "succeed", map[string]string{"output": "x", "resultType": "text"}},
		{"done without words", Outcome{ResultType: "code_change"}, nil, nil, "succeed", map[string]string{"resultType": "code_change"}},
		{"done as the node stops", Outcome{}, nil, ErrStopping, "succeed", map[string]string{}},
		{"done a moment too late", Outcome{}, nil, ErrTimedOut, "succeed", map[string]string{}},
		{"failed", Outcome{}, boom, nil, "fail", map[string]string{"error": "boom", "reason": "error"}},
		{"failed for good", Outcome{}, fmt.Errorf("so: %w", Final(boom)), nil, "final", map[string]string{"error": "so: boom", "reason": "error"}},
		{"too long", Outcome{}, context.DeadlineExceeded, ErrTimedOut, "fail", map[string]string{"error": "not done within 2s", "reason": "timeout"}},
		{"canceled", Outcome{Output: "half"}, context.Canceled, ErrCanceled, "final", map[string]string{"output": "half", "resultType": "text", "error": "context canceled", "reason": "error"}},
		{"stopped", Outcome{}, context.Canceled, ErrStopping, "back", map[string]string{}},
		{"lapsed", Outcome{}, context.Canceled, ErrLapsed, "cut", map[string]string{}},
		{"asks", Outcome{Ask: &chat.TaskQuestion{ID: "q", Question: "?"}}, nil, nil, "ask", map[string]string{"asked": "q", "question": `{"id":"q","question":"?"}`}},
		{"asks and fails", Outcome{Ask: &chat.TaskQuestion{ID: "q"}}, boom, nil, "fail", map[string]string{"error": "boom", "reason": "error"}},
		{"asks too much", Outcome{Ask: &chat.TaskQuestion{ID: "q", Question: strings.Repeat("x", chat.MaxText)}}, nil, nil, "final",
			map[string]string{"error": "its question has 32792 bytes; at most 32768 are allowed", "reason": "error"}},
		{"a broken text", Outcome{Output: "a\xffb"}, nil, nil, "succeed", map[string]string{"output": "a\uFFFDb", "resultType": "text"}},
	} {
		v := judge(c.o, c.err, c.cause, 2*time.Second)
		if v.how != c.how {
			t.Errorf("%s: %s, want %s", c.name, v.how, c.how)
		}
		if diff := cmp.Diff(c.said, v.said); diff != "" && c.how != "back" && c.how != "cut" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// A run lapses when it was seen silent for a lease, and only by looks that were
// close enough together.
func TestWatchForLapses(t *testing.T) {
	t.Parallel()
	w := watch{lease: 12 * time.Second}
	at := func(sec int) time.Time { return epoch.Add(time.Duration(sec) * time.Second) }
	run := func(count string) []beat { return []beat{{"t1", "id", count}, {"t2", "id2", count + "0"}} }
	look := func(sec int, runs []beat, want int) {
		t.Helper()
		if got := w.look(at(sec), runs); len(got) != want {
			t.Errorf("after %d s %v have lapsed, want %d", sec, got, want)
		}
	}
	look(0, run("1"), 0)
	look(6, run("1"), 0)
	look(11, run("2"), 0) // both have shown themselves
	look(17, run("2"), 0)
	look(22, run("2"), 0)
	look(23, append(run("2")[:1], beat{"t2", "id2", "21"}), 1)
	look(24, nil, 0)
	look(30, run("2"), 0) // they are new
	look(36, run("2"), 0)
	w.forget() // an error
	look(42, run("2"), 0)
	look(48, run("2"), 0)
	look(54, run("2"), 2)
	look(60, run("2"), 2) // not done yet
	look(100, run("2"), 0)
	look(106, run("2"), 0)
	look(112, run("2"), 2)
}
