package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/store/storetest"
)

// bubble runs a test on fake time, on a miniredis of its own.
func bubble(t *testing.T, f func(t *testing.T, r *rig), change ...func(*Options)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := storetest.MiniRaw(t)
		t.Cleanup(func() { time.Sleep(time.Second) }) // a subscription that is closed looks up only then
		f(t, newRig(t, s, change...))
	})
}

// until waits on fake time until a task has a status, at most so long, and says how
// long it took.
func (r *rig) until(id string, want Status, most time.Duration) time.Duration {
	r.t.Helper()
	began := time.Now()
	for {
		got := r.get(id)
		if got.Status == want {
			switch {
			case Over(want):
				return got.CompletedAt.Sub(began)
			case want == Running:
				return got.StartedAt.Sub(began)
			}
			return time.Since(began)
		}
		if time.Since(began) > most {
			r.t.Fatalf("after %s the task is %s, want %s: %+v", most, got.Status, want, got)
		}
		time.Sleep(max(10*time.Millisecond, time.Since(began)/100))
	}
}

func echo(_ context.Context, r *Run) (Outcome, error) { return Outcome{Output: r.Task.Prompt}, nil }

// hang works until its context ends, and says why it did.
func hang(ctx context.Context, _ *Run) (Outcome, error) {
	<-ctx.Done()
	return Outcome{Output: "half"}, ctx.Err()
}

// What is enqueued runs at once, nobody having looked; what is deferred when it is
// due; what fails, again after its backoff.
func TestPoolRuns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var tries atomic.Int32
		r.pool("n", func(ctx context.Context, run *Run) (Outcome, error) {
			if run.Task.Title == "fails" && tries.Add(1) < 3 {
				return Outcome{}, errors.New("no luck")
			}
			return echo(ctx, run)
		})
		synctest.Wait()
		id := r.enqueue(draft("c", "now"))
		if took := r.until(id, Succeeded, time.Second); took > 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		later := draft("c", "later")
		later.DeferUntil = time.Now().Add(20 * time.Minute)
		id = r.enqueue(later)
		if took := r.until(id, Succeeded, time.Hour); took < 20*time.Minute || took > 20*time.Minute+time.Second {
			t.Errorf("what was to wait 20 minutes took %s", took)
		}
		fails := draft("c", "fails")
		fails.Retry = &Retry{MaxAttempts: 2, Backoff: 5 * time.Second}
		id = r.enqueue(fails)
		if took := r.until(id, Succeeded, time.Hour); took < 14900*time.Millisecond || took > 17*time.Second {
			t.Errorf("two backoffs of 5 s and 10 s took %s", took)
		}
		if got := r.get(id); got.Attempts != 3 || got.Error != "" || got.FailureReason != "" {
			t.Errorf("%+v", got)
		}
	})
}

// A signal that is lost costs no more than the time between two looks.
func TestPoolWithoutSignals(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.pool("n", echo)
		synctest.Wait()
		deaf := r.q.is
		_, call, err := deaf.Create(draft("c", "x"))
		if err != nil {
			t.Fatal(err)
		}
		call.Args[1] = "nobody:hears" // the signal channel
		id := call.Args[3]
		if _, err := r.q.perform(t.Context(), call, id); err != nil {
			t.Fatal(err)
		}
		if took := r.until(id, Succeeded, time.Hour); took > 10*time.Second+100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

// A cancel reaches a run within a second, and by its heartbeat when the signal is
// lost.
func TestPoolCancels(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var cause atomic.Value
		r.pool("n", func(ctx context.Context, run *Run) (Outcome, error) {
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return Outcome{Output: "half"}, ctx.Err()
		})
		id := r.enqueue(draft("c", "x"))
		r.until(id, Running, time.Second)
		if _, err := r.q.Cancel(t.Context(), id, bob, "enough"); err != nil {
			t.Fatal(err)
		}
		if took := r.until(id, Canceled, time.Minute); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if err, _ := cause.Load().(error); !errors.Is(err, ErrCanceled) {
			t.Errorf("the cause is %v", err)
		}
		if got := r.get(id); got.Output != "half" || got.Error != "" {
			t.Errorf("%+v", got)
		}

		id = r.enqueue(draft("c", "y"))
		r.until(id, Running, time.Second)
		_, p, _ := ParseID(id)
		call, err := r.q.is.cancel(p, id, "", bob, "")
		if err != nil {
			t.Fatal(err)
		}
		call.Args[1] = "nobody:hears"
		if _, err := r.q.perform(t.Context(), call, id); err != nil {
			t.Fatal(err)
		}
		if took := r.until(id, Canceled, time.Minute); took > r.q.o.Lease/4+time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// A run has its timeout, and not a moment of it is lost to waiting.
func TestPoolTimesOut(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.pool("n", hang)
		d := draft("c", "x")
		d.Timeout, d.Retry = new(90*time.Second), &Retry{}
		id := r.enqueue(d)
		r.until(id, Running, time.Second)
		if took := r.until(id, Failed, time.Hour); took < 89*time.Second || took > 91*time.Second {
			t.Errorf("it took %s", took)
		}
		if got := r.get(id); got.FailureReason != ReasonTimeout || got.Output != "half" || got.DurationMs < 89_000 || got.DurationMs > 91_000 {
			t.Errorf("%+v", got)
		}
		d.Title, d.Timeout = "for ever", new(time.Duration(0))
		id = r.enqueue(d)
		r.until(id, Running, time.Second)
		time.Sleep(12 * time.Minute)
		if got := r.get(id); got.Status != Running || got.Attempts != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// A runner that panics, or does not hear its context, harms nobody else.
func TestPoolSurvivesRunners(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		r.q.log = logger(t)
		r.pool("n", func(ctx context.Context, run *Run) (Outcome, error) {
			switch run.Task.Title {
			case "panics":
				panic("boom")
			case "deaf":
				<-release
			}
			return echo(ctx, run)
		}, func(o *PoolOptions) { o.MaxConcurrent = 1 })
		d := draft("c", "panics")
		d.Retry = &Retry{}
		id := r.enqueue(d)
		r.until(id, Failed, time.Minute)
		if got := r.get(id); got.Error != "the worker panicked: boom" || got.FailureReason != ReasonError {
			t.Errorf("%+v", got)
		}
		d.Title = "deaf"
		id = r.enqueue(d)
		r.until(id, Running, time.Minute)
		if _, err := r.q.Cancel(t.Context(), id, bob, ""); err != nil {
			t.Fatal(err)
		}
		if took := r.until(id, Canceled, time.Minute); took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
		r.until(r.enqueue(draft("c", "next")), Succeeded, time.Second)
	})
}

// A clean stop ends within its bound, hands back what runs at no cost, and leaves
// nothing to lapse; the next node goes on from the checkpoint at once.
func TestPoolStops(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		p := r.pool("a", func(ctx context.Context, run *Run) (Outcome, error) {
			if run.Task.Title == "deaf" {
				<-release
			}
			if err := run.SaveCheckpoint(ctx, []byte("half way")); err != nil {
				return Outcome{}, err
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrStopping) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return Outcome{}, ctx.Err()
		})
		hears, deaf := r.enqueue(draft("c", "hears")), r.enqueue(draft("d", "deaf"))
		r.until(hears, Running, time.Second)
		r.until(deaf, Running, time.Second)
		began := time.Now()
		p.stop()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the stop took %s", took)
		}
		for _, id := range []string{hears, deaf} {
			if got := r.get(id); got.Status != Pending || got.Attempts != 1 || got.Lapses != 0 {
				t.Errorf("%+v", got)
			}
		}
		r.pool("b", func(ctx context.Context, run *Run) (Outcome, error) {
			data, err := run.Checkpoint(ctx)
			return Outcome{Output: string(data)}, err
		})
		r.until(hears, Succeeded, time.Second)
		r.until(deaf, Succeeded, time.Second)
		if got := r.get(hears); got.Output != "half way" || got.Attempts != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// A node runs no more than it may, in all and of a profile, and takes the next
// when there is room.
func TestPoolBounds(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		busy, most := map[string]int{}, map[string]int{}
		p := r.pool("n", func(ctx context.Context, run *Run) (Outcome, error) {
			mu.Lock()
			for _, k := range []string{"all", run.Task.Profile} {
				busy[k]++
				most[k] = max(most[k], busy[k])
			}
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			busy["all"]--
			busy[run.Task.Profile]--
			mu.Unlock()
			return Outcome{}, nil
		}, func(o *PoolOptions) { o.MaxConcurrent, o.MaxByProfile = 4, map[string]int{Expert: 1} })
		began := time.Now()
		for i := range 12 {
			d := draft(fmt.Sprintf("c%d", i), fmt.Sprint(i))
			if i%2 == 0 {
				d.Profile = Expert
			}
			r.enqueue(d)
		}
		time.Sleep(30 * time.Second)
		if n := p.Running(); n != 4 {
			t.Errorf("%d run, want 4", n)
		}
		time.Sleep(7 * time.Minute)
		page, err := r.q.List(t.Context(), Filter{Status: []Status{Succeeded}}, "", 100)
		if err != nil || len(page.Tasks) != 12 {
			t.Fatalf("%d have succeeded, %v", len(page.Tasks), err)
		}
		// Six experts, one after the other, and not a moment between them.
		for _, x := range page.Tasks {
			if took := x.CompletedAt.Sub(began); took > 6*time.Minute+time.Second {
				t.Errorf("%s %s ended after %s", x.Profile, x.Title, took)
			}
		}
		if most["all"] != 4 || most[Expert] != 1 {
			t.Errorf("at most ran %v", most)
		}
	})
}

// A task whose storage is not mounted waits until it is.
func TestPoolStorages(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var mounted atomic.Bool
		r.pool("n", echo, func(o *PoolOptions) {
			o.Storages = func() []string {
				if mounted.Load() {
					return []string{"disk1"}
				}
				return nil
			}
		})
		d := draft("c", "x")
		d.Storage = "disk1"
		id := r.enqueue(d)
		time.Sleep(time.Minute)
		if got := r.get(id).Status; got != Pending {
			t.Errorf("it is %s", got)
		}
		mounted.Store(true)
		r.until(id, Succeeded, 11*time.Second)
	})
}
