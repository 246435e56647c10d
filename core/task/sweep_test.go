package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/store/storetest"
)

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
		call, err := r.q.is.Cancel(conv("c"), parent, bob, "")
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

		watch, err := r.q.is.Watch(conv("c"), children[0], "tr1")
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
		time.Sleep(12 * time.Minute)
		if got := r.get(children[0]).Status; got != Canceled {
			t.Errorf("what is watched is %s", got)
		}
		unwatch, err := r.q.is.Unwatch(conv("c"), children[0], "tr1")
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
		r := newRig(t, s, func(o *Options) { o.Issuer.Keys.Partitions = 16 })
		mine := storetest.Another(t, s)
		var n atomic.Int64
		mine.Client.AddHook(counter{&n})
		release := make(chan struct{})
		r.poolOn(r.beside(mine), "n", func(context.Context, *Run) (Outcome, error) {
			<-release
			return Outcome{}, nil
		})
		measure := func(what string, most int64) {
			time.Sleep(time.Minute)
			before := n.Load()
			time.Sleep(4 * time.Minute)
			per := (n.Load() - before) / 4
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
