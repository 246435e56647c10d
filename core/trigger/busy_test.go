package trigger

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// A trigger whose tasks outlast its interval does not pile them up: while one is not
// over, the runs are left out, and counted.
func TestTasksDoNotPileUp(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		tr := r.create(every("c", 10*time.Second))
		_, first := r.look(tr.ID, tr.NextRunAt, nil)
		at := tr.NextRunAt
		for range 50 {
			at = r.get(tr.ID).NextRunAt
			if v, id := r.look(tr.ID, at, nil); v.Fire != nil || !v.Skip || id != "" {
				t.Fatalf("%+v", v)
			}
		}
		got := r.get(tr.ID)
		if len(r.started()) != 1 || got.Fired != 1 || got.Skipped != 50 || !got.LastSkippedAt.Equal(at) || got.LastTaskID != first ||
			!got.LastTriggeredAt.Equal(tr.NextRunAt) || !got.LastRunAt.Equal(tr.NextRunAt) || !got.NextRunAt.Equal(at.Add(10*time.Second)) {
			t.Errorf("%d tasks, %+v", len(r.started()), got)
		}
		if line := got.Line(); !strings.Contains(line, `skipped="50 times because its task was still running"`) {
			t.Errorf("people are told %s", line)
		}
		r.over(tr.ID)
		if v, id := r.look(tr.ID, got.NextRunAt, nil); v.Fire == nil || v.Fire.Slot != slotOf(got.NextRunAt) || id == first {
			t.Errorf("when it was over: %+v", v)
		}
		// A task that is lost, or forgotten, is over.
		k := r.tasks.Keys
		for _, key := range []string{k.In(0, "t:rows"), k.In(0, "t:state"), k.In(0, "t:runs")} {
			if err := s.Client.HDel(t.Context(), key, r.get(tr.ID).LastTaskID).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if v, _ := r.look(tr.ID, r.get(tr.ID).NextRunAt, nil); v.Fire == nil {
			t.Errorf("after its task was lost: %+v", v)
		}
		if got := r.get(tr.ID); got.Fired != 3 || got.Skipped != 50 {
			t.Errorf("%+v", got)
		}
	})
}

func TestSkipsInWords(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "", 1: "once because its task was still running", 7: "7 times because its task was still running"} {
		if got := (Trigger{Skipped: n}).Skips(); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// What comes true while the task of a condition is not over waits for its end, is
// heard of, and is not lost.
func TestConditionsWaitForTheirTask(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		ctx := t.Context()
		now := func() time.Time { return time.Now().Add(time.Second) }
		a, b, c := r.task("c", "a"), r.task("c", "b"), r.task("c", "c")
		tr := r.create(when("c", either(leaf(TaskDone, a), leaf(TaskDone, b), leaf(TaskDone, c))))
		r.end(2)
		v, first := r.look(tr.ID, now(), nil)
		if v.Fire == nil || first == "" {
			t.Fatalf("%+v", v)
		}
		before := r.get(tr.ID)
		v, id := r.look(tr.ID, now(), nil)
		got := r.get(tr.ID)
		if v.Fire != nil || id != "" || v.Behind != first || got.Behind != first || got.Fired != 1 || v.Due.IsZero() || !slices.Contains(r.taskOf(first).WatchedBy, tr.ID) {
			t.Errorf("%+v, %+v", v, got)
		}
		if got.Skipped != 0 || got.State["c.1"] != before.State["c.1"] {
			t.Errorf("it is used up: %+v", got)
		}
		if line := got.Line(); !strings.Contains(line, `waits="for its task `+first+` to end, then it fires"`) {
			t.Errorf("people are told %s", line)
		}
		// It looks now and then, and nothing changes.
		if v, _ := r.look(tr.ID, now(), nil); v.Writes(got) || v.Behind != first {
			t.Errorf("%+v", v)
		}
		r.over(tr.ID)
		if told := r.told(channel.SupervisorEvent); len(told) == 0 || told[len(told)-1].ID != first {
			t.Errorf("the supervisor was told %+v", told)
		}
		if w, err := r.st.Watchers(ctx, conv("c"), first); err != nil || len(w) != 1 || w[0].ID != tr.ID {
			t.Errorf("%v, %v", w, err)
		}
		v, second := r.look(tr.ID, now(), nil)
		got = r.get(tr.ID)
		if v.Fire == nil || v.Fire.Causes[0].TaskID != b || second == first || got.Behind != "" || len(r.taskOf(first).WatchedBy) > 0 {
			t.Errorf("%+v, %+v", v, got)
		}
		if _, err := r.st.Remove(ctx, tr.ID); err != nil {
			t.Fatal(err)
		}
		r.checkClean()
	})
}

// What waits for the end of its task is left clean by whatever else becomes of it.
func TestWaitingForItsTaskEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		ctx := t.Context()
		r := newRig(t, s, 1)
		files := map[string]FileSight{"a": {Hash: "h0", Exists: true}}
		now := time.Now()
		see := func(id, hash string) (Verdict, string) {
			t.Helper()
			files["a"] = FileSight{Hash: hash, Exists: hash != ""}
			now = now.Add(15 * time.Second)
			return r.look(id, now, files)
		}
		begin := func() (Trigger, string) {
			t.Helper()
			tr := r.create(when("c", leaf(FileChanged, "a")))
			see(tr.ID, "h0")
			_, id := see(tr.ID, "h1")
			if v, _ := see(tr.ID, "h2"); v.Behind != id || id == "" {
				t.Fatalf("%+v", v)
			}
			return r.get(tr.ID), id
		}
		unwatched := func(ids ...string) {
			t.Helper()
			for _, id := range ids {
				if by := r.taskOf(id).WatchedBy; len(by) > 0 {
					t.Errorf("task %s is still watched by %v", id, by)
				}
			}
		}
		// However often it changes meanwhile, it fires once for what is then.
		tr, first := begin()
		see(tr.ID, "h3")
		see(tr.ID, "h4")
		r.over(tr.ID)
		v, second := see(tr.ID, "h4")
		if v.Fire == nil || v.Fire.Slot != "h4" || r.get(tr.ID).Fired != 2 {
			t.Errorf("%+v", v)
		}
		if v, _ := see(tr.ID, "h4"); v.Fire != nil || v.Behind != "" {
			t.Errorf("%+v", v)
		}
		unwatched(first, second)
		// Changed back: there is nothing to fire for.
		tr, first = begin()
		if v, _ := see(tr.ID, "h1"); v.Fire != nil || v.Behind != "" || r.get(tr.ID).Behind != "" {
			t.Errorf("%+v", v)
		}
		unwatched(first)
		// Run out of turn, as soon as that may be: what came true waits for the end of that.
		tr, first = begin()
		r.over(tr.ID)
		second, err := r.st.Run(ctx, tr.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.get(tr.ID); got.Behind != second || !slices.Contains(r.taskOf(second).WatchedBy, tr.ID) {
			t.Errorf("%+v", got)
		}
		unwatched(first)
		if v, _ := see(tr.ID, "h2"); v.Fire != nil || v.Behind != second {
			t.Errorf("%+v", v)
		}
		// Paused and resumed.
		if _, err := r.st.Pause(ctx, tr.ID, bob, ""); err != nil {
			t.Fatal(err)
		}
		r.over(tr.ID)
		if v, _ := see(tr.ID, "h2"); v.Fire != nil || v.Writes(r.get(tr.ID)) {
			t.Errorf("%+v", v)
		}
		if _, err := r.st.Resume(ctx, tr.ID, bob); err != nil {
			t.Fatal(err)
		}
		v, third := see(tr.ID, "h2")
		if v.Fire == nil || v.Fire.Slot != "h2" {
			t.Errorf("%+v", v)
		}
		unwatched(second, third)
		// Cannot be made any more.
		tr, first = begin()
		if err := r.st.Fault(ctx, tr, now, "the profile is gone"); err != nil {
			t.Fatal(err)
		}
		unwatched(first)
		// Removed.
		tr, first = begin()
		if _, err := r.st.Remove(ctx, tr.ID); err != nil {
			t.Fatal(err)
		}
		unwatched(first)
		// Lost: nobody tells of its end, and yet it is found.
		tr, first = begin()
		k := r.tasks.Keys
		s.Client.HDel(ctx, k.In(0, "t:state"), first)
		if due := tr.Judge(now, Sights{Busy: true, Files: files}, 15*time.Second).Due; due.Sub(now) > lostAfter {
			t.Errorf("it is looked at again after %s", due.Sub(now))
		}
		if v, _ := see(tr.ID, "h2"); v.Fire == nil {
			t.Errorf("%+v", v)
		}
	})
}

// Of many who run it at once, one does.
func TestRunAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		tr := r.create(every("c", time.Hour))
		var all sync.WaitGroup
		var mu sync.Mutex
		ran := 0
		for range 20 {
			all.Go(func() {
				var busy *BusyError
				_, err := r.st.Run(t.Context(), tr.ID)
				if err != nil && !errors.As(err, &busy) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					ran++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if got := r.get(tr.ID); ran != 1 || len(r.started()) != 1 || got.Fired != 1 {
			t.Errorf("%d ran it, %d tasks, %+v", ran, len(r.started()), got)
		}
	})
}

// However long tasks take: of each event that a condition waits for comes one firing,
// and never one while the last task is not over.
func TestBusyProperty(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		w := newWorld(t, either(leaf(TaskDone, "t0"), leaf(TaskDone, "t1"), both(leaf(TaskDone, "t2"), leaf(FileExists, "f")), leaf(TaskFailed, "t3"), leaf(FileChanged, "g")))
		for _, id := range []string{"t0", "t1", "t2", "t3"} {
			w.task(id, task.Running)
		}
		w.file("f", "").file("g", "h").fires("")
		w.tr.LastTaskID = "own"
		fired := map[string]int{}
		look := func() {
			w.task("own", task.Running)
			if !w.s.Busy {
				w.task("own", task.Succeeded)
			}
			slot := w.look()
			if slot == "" {
				return
			}
			if w.s.Busy {
				t.Fatalf("seed %d: it fires for %s while its task is not over", seed, slot)
			}
			for _, part := range strings.Split(strings.ReplaceAll(slot, "edge ", "edge_"), " ") {
				fired[part]++
			}
		}
		for range 40 {
			w.s.Busy = rnd.IntN(3) > 0
			switch n := rnd.IntN(8); {
			case n < 4 && !task.Over(w.s.Tasks["t"+string(rune('0'+n))].Status):
				w.task("t"+string(rune('0'+n)), []task.Status{task.Succeeded, task.Failed}[n/3])
			case n == 4:
				w.file("g", []string{"h", "i", "j"}[rnd.IntN(3)])
			}
			look()
		}
		for _, id := range []string{"t0", "t1", "t2"} {
			w.task(id, task.Succeeded)
		}
		w.task("t3", task.Failed).file("f", "there").file("g", "last")
		w.s.Busy = false
		for range 10 {
			look()
		}
		for _, part := range []string{"c.0=t0", "c.1=t1", "c.2.0=t2", "c.3=t3", "c.4=last"} {
			if fired[part] != 1 {
				t.Fatalf("seed %d: for %s it fires %d times: %v", seed, part, fired[part], w.slots)
			}
		}
		if w.look() != "" || w.tr.Behind != "" {
			t.Fatalf("seed %d: it fires again: %v", seed, w.slots)
		}
	}
}
