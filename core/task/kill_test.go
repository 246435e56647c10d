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

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// A killed node's task is run again elsewhere after a lease, and its third lapse is
// its end.
func TestPoolFindsLapses(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		id := r.enqueue(draft("c", "x"))
		var kills []func()
		for range 3 {
			s := storetest.Another(t, r.s)
			f := newFlaky(1, 0, 0, s)
			r.poolOn(r.beside(s, quiet), "victim", hang)
			kills = append(kills, f.kill)
			r.until(id, Running, time.Minute)
			if len(kills) == 1 {
				r.pool("watcher", nil, func(o *PoolOptions) { o.Runners = map[string]Runner{} })
			}
			at := r.get(id).Lapses
			f.kill()
			began := time.Now()
			for r.get(id).Lapses == at && time.Since(began) < time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(began); took < 10*time.Second || took > 21*time.Second {
				t.Errorf("the lapse was found after %s", took)
			}
		}
		if got := r.get(id); got.Status != Failed || got.FailureReason != ReasonKilled || got.Attempts != 3 {
			t.Errorf("%+v", got)
		}
	})
}

func quiet(o *Options) { o.Logger = nil }

// A run that cannot show that it lives is told to end before anybody else may think
// so, and an outage of Redis alone lapses nothing of those that live on.
func TestPoolCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := storetest.Another(t, r.s)
		f := newFlaky(1, 0, 0, s)
		ended := make(chan time.Time, 1)
		r.poolOn(r.beside(s, quiet), "cut", func(ctx context.Context, _ *Run) (Outcome, error) {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrLapsed) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			ended <- time.Now()
			return Outcome{}, ctx.Err()
		})
		id := r.enqueue(draft("c", "x"))
		r.until(id, Running, time.Minute)
		began := time.Now()
		f.kill()
		if took := (<-ended).Sub(began); took > r.q.o.Lease*2/3 {
			t.Errorf("the run was told after %s, and may lapse after %s", took, r.q.o.Lease)
		}
		if got := r.get(id); got.Status != Running || got.Lapses != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// While all are cut off from Redis nobody lapses, for nobody could be heard; runs
// end, since they cannot know that, and begin again at no cost.
func TestOutageLapsesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, mini := storetest.MiniRaw(t)
		r := newRig(t, s, quiet, func(o *Options) { o.MaxLapses = 1 })
		release := make(chan struct{})
		r.pool("a", func(ctx context.Context, _ *Run) (Outcome, error) {
			select {
			case <-release:
				return Outcome{Output: "x"}, nil
			case <-ctx.Done():
				return Outcome{}, ctx.Err()
			}
		})
		r.pool("b", nil, func(o *PoolOptions) { o.Runners = map[string]Runner{} })
		id := r.enqueue(draft("c", "x"))
		r.until(id, Running, time.Second)
		for range 5 {
			mini.SetError("LOADING Redis is loading the dataset in memory")
			time.Sleep(12 * time.Second) // more than two thirds of a lease
			mini.SetError("")
			time.Sleep(6 * time.Second)
		}
		if got := r.get(id); got.Status != Running || got.Lapses != 0 || got.Attempts != 1 {
			t.Errorf("%+v", got)
		}
		close(release)
		r.until(id, Succeeded, time.Minute)
	})
}

// What was counted before an error of Redis does not count.
func TestSweepCountsAnewAfterErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, mini := storetest.MiniRaw(t)
		r := newRig(t, s, one, quiet)
		p, err := NewPool(PoolOptions{Queue: r.q, Node: "n"})
		if err != nil {
			t.Fatal(err)
		}
		run := r.run(r.enqueue(draft("c", "x"))) // of a node that is gone
		sw := &sweeping{watch: watch{lease: r.q.o.Lease}}
		for i, want := range []int{0, 0, 0, 0, 0, 1} { // every 5 s, of a lease of 15 s
			if i == 1 {
				mini.SetError("LOADING for a moment")
			}
			p.sweepPart(t.Context(), 0, sw)
			mini.SetError("")
			if got := r.get(run.Task.ID).Lapses; got != want {
				t.Errorf("after %d s: %d lapses, want %d", i*5, got, want)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// Two nodes, and others that are killed in the middle: every task ends once.
func TestManyTasksAndKills(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		total, kills := 500, 4
		if s.Volatile() {
			total, kills = 60, 1
		}
		r := newRig(t, s, func(o *Options) { o.Lease, o.MaxLapses = 600*time.Millisecond, 1000 })
		f := newFlaky(5, 0.03, 0.03, s)
		t.Cleanup(f.late.Wait)
		var ran, alive sync.Map
		runner := func(node string) Runner {
			return func(ctx context.Context, run *Run) (Outcome, error) {
				if err := run.SaveCheckpoint(ctx, []byte("1")); err != nil {
					return Outcome{}, err
				}
				if node == "victim" {
					<-ctx.Done() // so that a kill finds something
					return Outcome{}, ctx.Err()
				}
				if other, twice := alive.LoadOrStore(run.Task.ID, node); twice {
					t.Errorf("%s runs on %s and %s at the same time", run.Task.ID, other, node)
				}
				defer alive.Delete(run.Task.ID)
				n, _ := ran.LoadOrStore(run.Task.ID, new(atomic.Int32))
				if n.(*atomic.Int32).Add(1) == 1 && run.Task.Priority == 3 {
					return Outcome{}, errors.New("the first try fails")
				}
				return Outcome{Output: "x"}, nil
			}
		}
		many := func(o *PoolOptions) { o.MaxConcurrent = 8 }
		create := func(i int) string {
			d := draft(fmt.Sprintf("c%d", i%17), fmt.Sprintf("task %d", i))
			d.Priority, d.Retry = new(i%11), &Retry{MaxAttempts: 1, Backoff: time.Millisecond}
			return r.enqueue(d)
		}
		victim := func() (*livePool, *flaky) {
			s := storetest.Another(t, r.s)
			f := newFlaky(1, 0, 0, s)
			brief := func(o *Options) { o.CallTimeout = 300 * time.Millisecond }
			return r.poolOn(r.beside(s, quiet, brief), "victim", runner("victim"), func(o *PoolOptions) { o.Grace = time.Millisecond }), f
		}
		// The first is killed for certain, the others where they get hold of something.
		ids := []string{create(0), create(1)}
		v, knife := victim()
		storetest.Eventually(t, "the victim runs a task", func() error {
			if v.Running() == 0 {
				return errors.New("it does not")
			}
			return nil
		})
		knife.kill()
		r.pool("a", runner("a"), many)
		b := r.poolOn(r.beside(storetest.Another(t, s)), "b", runner("b"), many)
		var murders sync.WaitGroup
		murders.Go(func() {
			for range kills {
				v, knife := victim()
				for v.Running() == 0 {
					time.Sleep(5 * time.Millisecond)
					if st, err := r.q.Stats(context.Background()); err == nil && st.Open() == 0 {
						return
					}
				}
				knife.kill()
			}
		})
		for i := 2; i < total; i++ {
			ids = append(ids, create(i))
			if i == total/2 {
				b.stop()
				b = r.poolOn(r.beside(storetest.Another(t, r.s)), "b2", runner("b2"), many)
			}
		}
		var canceled sync.WaitGroup
		for i, id := range ids {
			if i%9 == 0 {
				canceled.Go(func() {
					if _, err := r.q.Cancel(context.Background(), id, bob, "x"); err != nil {
						t.Error(err)
					}
				})
			}
		}
		canceled.Wait()
		r.awaitOver()
		murders.Wait()
		told := r.told(channel.WorkerResult)
		for _, id := range ids {
			got := r.get(id)
			fits := got.Status == Succeeded && got.CancelRequestedAt.IsZero() || got.Status == Canceled && !got.CancelRequestedAt.IsZero() ||
				got.Status == Succeeded && got.CancelRequestedAt.After(got.CompletedAt.Add(-time.Millisecond))
			if !fits || len(told[id]) != 1 || told[id][0].Status != got.Status {
				t.Errorf("%s: %s, canceled at %s, with %d results: %s", got.Title, got.Status, got.CancelRequestedAt, len(told[id]), got.Error)
			}
		}
		r.checkClean()
	})
}

// A deadline is a hook that cuts a node off after so many commands.
type deadline struct {
	left atomic.Int64
	f    *flaky
}

func (*deadline) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*deadline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *deadline) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if d.left.Add(-1) < 0 {
			d.f.kill()
		}
		return next(ctx, cmd)
	}
}

// A node is killed after each of its first commands in turn: what it leaves is
// always finished by another, with one result for each task.
func TestKillAnywhere(t *testing.T) {
	t.Parallel()
	for k := range 36 {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				runner := func(ctx context.Context, run *Run) (Outcome, error) {
					if err := run.SaveCheckpoint(ctx, []byte("1")); err != nil {
						return Outcome{}, err
					}
					if err := run.Report(ctx, Event{Kind: "e"}); err != nil {
						return Outcome{}, err
					}
					switch {
					case run.Task.Title == "fails" && run.Task.Retries == 0:
						return Outcome{}, errors.New("no luck")
					case run.Task.Title == "asks" && run.Task.Answer == "":
						return Outcome{Ask: &chat.TaskQuestion{ID: "q", Question: "?"}}, nil
					}
					time.Sleep(time.Second)
					return Outcome{Output: "x"}, nil
				}
				s := storetest.Another(t, r.s)
				f := newFlaky(1, 0, 0, s)
				d := &deadline{f: f}
				d.left.Store(int64(k))
				s.Client.AddHook(d)
				r.poolOn(r.beside(s, quiet), "victim", runner)
				var ids []string
				for _, title := range []string{"plain", "fails", "asks", "canceled"} {
					ids = append(ids, r.enqueue(draft(title, title)))
				}
				time.Sleep(500 * time.Millisecond)
				if _, err := r.q.Cancel(t.Context(), ids[3], bob, ""); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				f.kill()
				r.pool("heir", runner)
				r.until(ids[2], Waiting, time.Minute)
				if err := r.q.Answer(t.Context(), conv("asks"), ids[2], "q", "a", ann); err != nil {
					t.Fatal(err)
				}
				time.Sleep(15 * time.Second)
				told := r.told(channel.WorkerResult)
				for i, id := range ids {
					want := Succeeded
					if i == 3 {
						want = Canceled
					}
					if got := r.get(id); got.Status != want || len(told[id]) != 1 || got.Lapses > 1 || got.Attempts > 3 {
						t.Errorf("%s: %s after %d attempts, %d lapses, with %d results", got.Title, got.Status, got.Attempts, got.Lapses, len(told[id]))
					}
				}
				if n := len(r.told(channel.SupervisorEvent)[ids[2]]); n != 1 {
					t.Errorf("the supervisor was told %d times of one question", n)
				}
				r.checkClean()
			}, one, func(o *Options) { o.Lease = 3 * time.Second })
		})
	}
}
