package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// What is held is not begun and costs nothing, others pass it, and it runs once it is
// held no more; nobody is told that it began before.
func TestHeld(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var held atomic.Bool
		var started atomic.Int32
		held.Store(true)
		r.pool("n", echo, func(o *PoolOptions) {
			o.MaxConcurrent = 1
			o.Hooks.Started = func(Task) { started.Add(1) }
			o.Held = func(t Task) time.Duration {
				if held.Load() && t.Conversation == conv("held") {
					return 15 * time.Second
				}
				return 0
			}
		})
		synctest.Wait()
		var waits []string
		for _, title := range []string{"a", "b", "c"} {
			waits = append(waits, r.enqueue(draft("held", title)))
		}
		passes := r.enqueue(draft("free", "d"))
		r.until(passes, Succeeded, 5*time.Second)
		time.Sleep(10*time.Minute + 7*time.Second) // between two times at which they are due
		for _, id := range waits {
			if got := r.get(id); got.Status != Deferred || got.Attempts != 0 || got.Retries != 0 || got.Lapses != 0 || !got.StartedAt.IsZero() || got.DurationMs != 0 {
				t.Errorf("held it is %+v", got)
			}
		}
		if n := started.Load(); n != 1 {
			t.Errorf("%d tasks were said to begin, want the one that was not held", n)
		}
		gone, err := r.q.Cancel(t.Context(), waits[2], ann, "")
		if err != nil || gone.Did != DidEnd {
			t.Errorf("a held task is canceled as %+v: %v", gone, err)
		}
		held.Store(false)
		for _, id := range waits[:2] {
			if took := r.until(id, Succeeded, time.Minute); took > 20*time.Second {
				t.Errorf("it ran %s after it was held no more", took)
			}
			if got := r.get(id); got.Attempts != 1 {
				t.Errorf("it took %d attempts", got.Attempts)
			}
		}
		r.checkClean()
	})
}

// A pool that rests takes nothing, and goes on by itself.
func TestResting(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var rests atomic.Bool
		rests.Store(true)
		r.pool("n", echo, func(o *PoolOptions) { o.Resting = rests.Load })
		synctest.Wait()
		id := r.enqueue(draft("c", "x"))
		time.Sleep(time.Hour)
		if got := r.get(id); got.Status != Pending {
			t.Fatalf("it is %s", got.Status)
		}
		rests.Store(false)
		r.until(id, Succeeded, 3*time.Second)
	})
}

// A repeat of a settling that puts a task off changes nothing; what an earlier run
// came to stays; one that was told to end meanwhile is canceled.
func TestSettleHeld(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		d := draft("c", "x")
		d.Retry = &Retry{MaxAttempts: 1, Backoff: time.Second}
		id := r.enqueue(d)
		r.settle(r.run(id), judge(Outcome{Usage: chat.TaskUsage{Calls: 2}}, errors.New("no luck"), nil, 0))
		s.Client.ZAdd(t.Context(), r.q.keys.In(0, "t:deferred"), z(0, id)) // time passes
		before := r.get(id)
		run := r.run(id)
		for range 2 {
			if to := r.settle(run, judge(Outcome{}, &putOff{time.Hour}, nil, 0)); to != Deferred {
				t.Fatalf("it is %s", to)
			}
		}
		got := r.get(id)
		if got.Attempts != before.Attempts || got.Retries != 1 || got.Error != "no luck" || got.Usage != before.Usage || got.StartedAt != before.StartedAt {
			t.Errorf("it was %+v and is %+v", before, got)
		}
		if left := time.Until(got.DeferUntil); left < 59*time.Minute || left > 61*time.Minute {
			t.Errorf("it is put off for %s", left)
		}
		s.Client.ZAdd(t.Context(), r.q.keys.In(0, "t:deferred"), z(0, id))
		run = r.run(id)
		if _, err := r.q.Cancel(context.WithoutCancel(t.Context()), id, ann, ""); err != nil {
			t.Fatal(err)
		}
		if to := r.settle(run, judge(Outcome{}, &putOff{time.Hour}, nil, 0)); to != Canceled {
			t.Errorf("told to end, it is %s", to)
		}
		r.checkClean()
	})
}

// What was put off goes before what was asked for after it.
func TestHeldKeepsItsAge(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		old := r.enqueue(draft("c", "old"))
		if to := r.settle(r.run(old), judge(Outcome{}, &putOff{time.Hour}, nil, 0)); to != Deferred {
			t.Fatalf("it is %s", to)
		}
		young := r.enqueue(draft("c", "young"))
		s.Client.ZAdd(t.Context(), r.q.keys.In(0, "t:deferred"), z(0, old)) // time passes
		for _, id := range []string{old, young} {
			r.settle(r.run(id), judge(Outcome{Output: "done"}, nil, nil, 0))
		}
		r.checkClean()
	})
}

// However many tasks of a conversation were put off, each that comes back waits for a
// turn as one that was asked for then: nobody waits for all of them.
func TestHeldLeavesTurns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		var old []string
		for _, title := range []string{"a", "b", "c"} {
			old = append(old, r.enqueue(draft("held", title)))
		}
		other := r.enqueue(draft("other", "x"))
		for range 4 {
			run := r.claim(newClaimer(r.q, "n"), 0)
			if to := r.settle(run, judge(Outcome{}, &putOff{time.Hour}, nil, 0)); to != Deferred {
				t.Fatalf("it is %s", to)
			}
		}
		at := time.Now().Add(-time.Hour)
		r.dueAt(old[0], at)
		r.dueAt(other, at.Add(time.Second))
		r.settle(r.run(old[0]), judge(Outcome{Output: "done"}, nil, nil, 0))
		r.dueAt(old[1], at.Add(2*time.Second))
		r.dueAt(old[2], at.Add(3*time.Second))
		for _, id := range []string{other, old[1], old[2]} {
			r.settle(r.run(id), judge(Outcome{Output: "done"}, nil, nil, 0))
		}
		r.checkClean()
	})
}

// dueAt has a deferred task have been due since a time.
func (r *rig) dueAt(id string, at time.Time) {
	r.t.Helper()
	key := stateKey(r.q.keys, 0)
	text, err := r.s.Client.HGet(r.t.Context(), key, id).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	var st map[string]any
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		r.t.Fatal(err)
	}
	st["due"] = fmt.Sprint(at.UnixMilli())
	data, err := json.Marshal(st)
	if err != nil {
		r.t.Fatal(err)
	}
	r.s.Client.HSet(r.t.Context(), key, id, data)
	r.s.Client.ZAdd(r.t.Context(), r.q.keys.In(0, "t:deferred"), z(float64(at.UnixMilli()), id))
}

// A deferred task whose state is damaged stops no other, and takes none along that is
// due with it.
func TestDamagedDeferred(t *testing.T) {
	for _, damaged := range []string{`{"status":null}`, `{"status":true}`, `{"status":{}}`, `{"status":"deferred"}`, `{"status":"deferred","class":null,"conv":"x"}`} {
		t.Run(damaged, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				t.Parallel()
				r := newRig(t, s, one)
				id := r.enqueue(draft("c", "x"))
				r.settle(r.run(id), judge(Outcome{}, &putOff{time.Hour}, nil, 0))
				s.Client.HSet(t.Context(), stateKey(r.q.keys, 0), "damaged", damaged)
				s.Client.ZAdd(t.Context(), r.q.keys.In(0, "t:deferred"), z(0, "damaged"), z(1, id))
				r.settle(r.run(id), judge(Outcome{Output: "done"}, nil, nil, 0))
			})
		})
	}
}
