package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// bubble runs a test on fake time, on a miniredis of its own.
func bubble(t *testing.T, f func(t *testing.T, r *rig), change ...func(*Options)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := storetest.MiniRaw(t)
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
		deaf := r.q.Issuer
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
		call, err := r.q.cancel(p, id, "", bob, "")
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
		time.Sleep(20 * time.Minute)
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
		var last string
		for i := range 12 {
			d := draft(fmt.Sprintf("c%d", i), fmt.Sprint(i))
			if i%2 == 0 {
				d.Profile = Expert
			}
			last = r.enqueue(d)
		}
		time.Sleep(30 * time.Second)
		if n := p.Running(); n != 4 {
			t.Errorf("%d run, want 4", n)
		}
		began := time.Now()
		r.until(last, Succeeded, time.Hour)
		time.Sleep(6 * time.Minute) // six experts, one after the other
		st, err := r.q.Stats(t.Context())
		if err != nil || st.ByStatus[Succeeded] != 12 {
			t.Errorf("after %s: %v, %v", time.Since(began), st, err)
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

// The cancel that a commit left half done is finished by a sweeper at once, and
// what ended long ago is forgotten, except what is watched.
func TestPoolSweeps(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.pool("a", nil, func(o *PoolOptions) { o.Runners = map[string]Runner{} })
		r.pool("b", nil, func(o *PoolOptions) { o.Runners = map[string]Runner{} })
		synctest.Wait()
		parent := r.enqueue(draft("c", "parent"))
		var children []string
		for i := range 130 {
			d := draft("c", fmt.Sprint(i))
			d.ParentTaskID = parent
			children = append(children, r.enqueue(d))
		}
		call, err := r.q.Issuer.Cancel(conv("c"), parent, bob, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.q.perform(t.Context(), call, parent); err != nil {
			t.Fatal(err)
		}
		if took := r.until(children[129], Canceled, time.Minute); took > time.Second {
			t.Errorf("it took %s", took)
		}
		time.Sleep(time.Minute)
		if keys := r.keysLike("t:cascade"); len(keys) > 0 {
			t.Errorf("left: %v", keys)
		}

		watch, err := r.q.Watch(conv("c"), children[0], "tr1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.q.perform(t.Context(), watch, children[0]); err != nil {
			t.Fatal(err)
		}
		long := draft("c", "long")
		long.Prompt = strings.Repeat("x", chat.MaxText+1)
		run := r.run(r.enqueue(long))
		if err := run.Report(t.Context(), Event{Kind: "e"}); err != nil {
			t.Fatal(err)
		}
		r.settle(run, judge(Outcome{Output: long.Prompt}, nil, nil, 0))
		time.Sleep(8 * time.Minute)
		if st, err := r.q.Stats(t.Context()); err != nil || st.ByStatus[Canceled] != 131 || st.ByStatus[Succeeded] != 1 {
			t.Errorf("%v, %v", st, err)
		}
		time.Sleep(4 * time.Minute)
		st, err := r.q.Stats(t.Context())
		if err != nil || st.ByStatus[Canceled] != 1 || st.ByStatus[Succeeded] != 0 {
			t.Errorf("%v, %v", st, err)
		}
		time.Sleep(25 * time.Minute)
		if got := r.get(children[0]).Status; got != Canceled {
			t.Errorf("what is watched is %s", got)
		}
		unwatch, err := r.q.Unwatch(conv("c"), children[0], "tr1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.q.perform(t.Context(), unwatch, children[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := r.q.Get(t.Context(), children[0]); !errors.Is(err, ErrUnknown) {
			t.Errorf("what is watched no more: %v", err)
		}
		for _, k := range r.keysLike("t:") {
			if !strings.HasSuffix(k, "t:claims") && !strings.HasSuffix(k, "t:sweeper") && !strings.HasSuffix(k, "t:order") {
				t.Errorf("left: %s", k)
			}
		}
	}, func(o *Options) { o.Retention = 10 * time.Minute })
}

// A counter counts the commands that a client sends.
type counter struct{ n *atomic.Int64 }

func (counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// An idle node asks little of Redis, and one that runs tasks little more.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := storetest.MiniRaw(t)
		r := newRig(t, s, func(o *Options) { o.Keys.Partitions = 16 })
		mine := storetest.Another(t, s)
		var n atomic.Int64
		mine.Client.AddHook(counter{&n})
		release := make(chan struct{})
		r.poolOn(r.beside(mine), "n", func(context.Context, *Run) (Outcome, error) {
			<-release
			return Outcome{}, nil
		})
		measure := func(what string, most int64) {
			time.Sleep(5 * time.Minute)
			before := n.Load()
			time.Sleep(10 * time.Minute)
			per := (n.Load() - before) / 10
			t.Logf("%s, 16 partitions: %d commands a minute", what, per)
			if per > most {
				t.Errorf("%s: %d commands a minute, want at most %d", what, per, most)
			}
		}
		measure("idle", 100)
		for i := range 5 {
			d := draft(fmt.Sprint(i), fmt.Sprint(i))
			d.Timeout = new(time.Duration(0))
			r.enqueue(d)
		}
		measure("three runs and two waiting", 250)
		close(release)
	})
}

// Two nodes, and others that are killed in the middle: every task ends once.
func TestManyTasksAndKills(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		total, kills := 500, 6
		if s.Volatile() {
			total, kills = 120, 3
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
		r.pool("a", runner("a"), many)
		b := r.poolOn(r.beside(storetest.Another(t, s)), "b", runner("b"), many)
		murders := make(chan int, 1)
		go func() {
			killed := 0
			defer func() { murders <- killed }()
			for range kills {
				s := storetest.Another(t, r.s)
				f := newFlaky(1, 0, 0, s)
				brief := func(o *Options) { o.CallTimeout = 300 * time.Millisecond }
				v := r.poolOn(r.beside(s, quiet, brief), "victim", runner("victim"), func(o *PoolOptions) { o.Grace = time.Millisecond })
				for v.Running() == 0 {
					time.Sleep(5 * time.Millisecond)
					if st, err := r.q.Stats(context.Background()); err == nil && st.Open() == 0 {
						return
					}
				}
				f.kill()
				killed++
			}
		}()
		var ids []string
		for i := range total {
			d := draft(fmt.Sprintf("c%d", i%17), fmt.Sprintf("task %d", i))
			d.Priority, d.Retry = new(i%11), &Retry{MaxAttempts: 1, Backoff: time.Millisecond}
			ids = append(ids, r.enqueue(d))
			if i == total/2 {
				b.stop()
				b = r.poolOn(r.beside(storetest.Another(t, r.s)), "b2", runner("b2"), many)
			}
		}
		r.awaitOver()
		if n := <-murders; n == 0 {
			t.Error("nobody was killed; the test proves nothing")
		}
		told := r.told(channel.WorkerResult)
		for _, id := range ids {
			got := r.get(id)
			if got.Status != Succeeded || len(told[id]) != 1 {
				t.Errorf("%s: %s with %d results: %s", got.Title, got.Status, len(told[id]), got.Error)
			}
		}
		r.checkClean()
	})
}
