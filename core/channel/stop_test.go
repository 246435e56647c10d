package channel

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// stops fails the test when the node waits for something that does not come.
func stops(t *testing.T, n *liveNode) {
	t.Helper()
	const patience = time.Minute
	over := make(chan struct{})
	go func() { n.stop(); close(over) }()
	select {
	case <-over:
	case <-time.After(patience):
		t.Errorf("the node had not stopped after %s", patience)
	}
}

// A step that does not hear that it is cut off must not keep the node.
func TestStopDoesNotWaitForADeafStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		thinking, release := make(chan int, 10), make(chan struct{})
		t.Cleanup(func() { close(release) })
		var heard atomic.Bool
		r.think = func(_ context.Context, w *Work, _ *chat.TellerDigest) (string, error) {
			thinking <- w.Attempt
			if !heard.Swap(true) {
				<-release
				return "from the dead", nil
			}
			return "from the living", nil
		}
		a := r.node("a", func(o *Options) { o.StopGrace = 50 * time.Millisecond })
		id := r.ingest(a.Node, r.input("c", "1", "1")).InputID
		<-thinking
		stops(t, a)
		b := r.node("b", nil)
		if n := <-thinking; n != 1 {
			t.Errorf("after a clean stop the start is attempt %d, want 1", n)
		}
		if posts := r.awaitAll([]string{id}); posts[0].Text != "from the living" {
			t.Errorf("posted %q", posts[0].Text)
		}
		r.awaitEmpty(b.Node)
	})
}

// Nor does a Redis that is away keep a node from ending.
func TestStopDoesNotWaitForRedis(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	s := storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{server.Addr()}})
	r := newRig(t, s)
	thinking := make(chan struct{}, 1)
	r.think = func(ctx context.Context, _ *Work, _ *chat.TellerDigest) (string, error) {
		thinking <- struct{}{}
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	n := r.node("a", func(o *Options) { o.StopGrace = 50 * time.Millisecond })
	r.ingest(n.Node, r.input("c", "1", "1"))
	<-thinking
	server.Kill()
	stops(t, n)
	server.Restart()
}

// A stop does not queue behind the turn, whatever else the conversation was sent.
func TestStopPassesAnUnreadableEntry(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		thinking, cut := make(chan struct{}, 1), make(chan error, 1)
		r.think = func(ctx context.Context, _ *Work, d *chat.TellerDigest) (string, error) {
			if d.Summary != "long" {
				return d.Summary, nil
			}
			thinking <- struct{}{}
			select {
			case <-ctx.Done():
				cut <- context.Cause(ctx)
			case <-time.After(time.Minute):
				cut <- errors.New("not cut off")
			}
			return "", errors.New("too late")
		}
		n := r.node("a", nil)
		long := r.ingest(n.Node, r.input("c", "1", "long")).InputID
		<-thinking
		p := r.keys.Partition(key("c"))
		s.Client.XAdd(t.Context(), xadd(r.keys.Stream(p, UserInput), "conv", key("c"), "inputs", "broken", "v", "1", "data", "{"))
		s.Client.HIncrBy(t.Context(), r.keys.Waiting(p), key("c"), 1)
		stop := r.input("c", "2", "stop")
		stop.Value.Kind, stop.Stop = chat.KindStop, true
		stopID := r.ingest(n.Node, stop).InputID
		if err := <-cut; !errors.Is(err, ErrStopped) {
			t.Errorf("the turn ended by: %v", err)
		}
		r.awaitAll([]string{long, "broken", stopID})
		r.awaitEmpty(n.Node)
	})
}
