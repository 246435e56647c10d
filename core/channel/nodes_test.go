package channel

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// eventually waits up to 20 s for a condition that only another process' or
// node's state can tell.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s for %s", what)
		}
		wait := time.NewTimer(5 * time.Millisecond)
		<-wait.C
	}
}

func TestNodesShareFairly(t *testing.T) { storetest.Each(t, nodesShareFairly) }

func nodesShareFairly(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	a := r.node("a", nil)
	eventually(t, "a to own everything", func() bool { return a.owned.Load() == 4 })
	b := r.node("b", nil)
	eventually(t, "two each", func() bool { return a.owned.Load() == 2 && b.owned.Load() == 2 })
	if a.Ready() != nil || b.Ready() != nil {
		t.Errorf("not ready: %v, %v", a.Ready(), b.Ready())
	}
	a.stop()
	eventually(t, "b to own everything", func() bool { return b.owned.Load() == 4 })
	if err := a.Ready(); err == nil {
		t.Error("a node that stopped says it is ready")
	}
}

func TestMovingPartitionsLosesAndDoublesNothing(t *testing.T) {
	storetest.Each(t, movingPartitionsLosesAndDoublesNothing)
}

func movingPartitionsLosesAndDoublesNothing(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	a := r.node("a", nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var ids []string
	for c := range 4 {
		wg.Go(func() {
			for i := range 100 {
				id := r.ingest(a.Node, r.input(fmt.Sprintf("c%d", c), fmt.Sprint(i), fmt.Sprint(i))).InputID
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			}
		})
	}
	for i := range 4 {
		n := r.node(fmt.Sprintf("n%d", i), nil)
		eventually(t, "the new node to own something", func() bool { return n.owned.Load() > 0 })
		n.stop()
	}
	wg.Wait()
	checkOrder(t, r.awaitAll(ids))
	r.awaitEmpty(a.Node)
}

func TestCleanStopCostsNoAttempt(t *testing.T) { storetest.Each(t, cleanStopCostsNoAttempt) }

func cleanStopCostsNoAttempt(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	thinking := make(chan int, 10)
	var first atomic.Bool
	r.think = func(ctx context.Context, w *Work, d *chat.TellerDigest) (string, error) {
		thinking <- w.Attempt
		if !first.Swap(true) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return "second", nil
	}
	a := r.node("a", func(o *Options) { o.StopGrace = 10 * time.Millisecond })
	id := r.ingest(a.Node, r.input("c", "1", "x")).InputID
	if n := <-thinking; n != 1 {
		t.Errorf("first start is attempt %d", n)
	}
	a.stop()
	b := r.node("b", nil)
	if n := <-thinking; n != 1 {
		t.Errorf("after a clean stop the start is attempt %d, want 1", n)
	}
	r.awaitAll([]string{id})
	r.awaitEmpty(b.Node)
}

func TestLostWritesAreFoundAndCounted(t *testing.T) { storetest.Each(t, lostWritesAreFoundAndCounted) }

func lostWritesAreFoundAndCounted(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	var lost atomic.Int64
	suspects := make(chan bool, 10)
	r.post = func(_ context.Context, w *Work, _ *chat.Reply) error { suspects <- w.Suspect; return nil }
	n := r.node("a", func(o *Options) { o.Hooks.Lost = func(c int64) { lost.Add(c) } })
	r.awaitAll([]string{r.ingest(n.Node, r.input("c", "1", "1")).InputID})
	if <-suspects {
		t.Error("posts are suspect although nothing was lost")
	}
	r.awaitEmpty(n.Node)
	// Redis comes back with an older state.
	p := r.keys.Partition(key("c"))
	if err := s.Client.DecrBy(t.Context(), r.keys.Commits(p), 10).Err(); err != nil {
		t.Fatal(err)
	}
	r.awaitAll([]string{r.ingest(n.Node, r.input("c", "2", "2")).InputID})
	if !<-suspects {
		t.Error("after a loss posts are not suspect")
	}
	if got := lost.Load(); got < 5 || got > 20 {
		// An answer from before the loss that is read after it was found makes
		// it be found, and counted, once more.
		t.Errorf("%d commits counted as lost, want about 10", got)
	}
}

func TestStreamsGoneAreMadeAgain(t *testing.T) { storetest.Each(t, streamsGoneAreMadeAgain) }

func streamsGoneAreMadeAgain(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	n := r.node("a", nil)
	r.awaitAll([]string{r.ingest(n.Node, r.input("c", "1", "1")).InputID})
	for p := range r.keys.Partitions {
		for _, road := range roads {
			s.Client.Del(t.Context(), r.keys.Stream(p, road.name))
		}
	}
	r.awaitAll([]string{r.ingest(n.Node, r.input("c", "2", "2")).InputID})
}

func TestPartitionsAreFixed(t *testing.T) { storetest.Each(t, partitionsAreFixed) }

func partitionsAreFixed(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	r.node("a", nil)
	opt := r.options(s, "b")
	opt.Keys.Partitions = 8
	n, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "set it to 4") {
		t.Errorf("another number of partitions: %v", err)
	}
	if err := n.Join(t.Context()); err == nil || !strings.Contains(err.Error(), "set it to 4") {
		t.Errorf("join with another number of partitions: %v", err)
	}
	fresh := newRig(t, s) // another prefix
	if n, err = New(fresh.options(s, "c")); err != nil {
		t.Fatal(err)
	}
	if err := n.Join(t.Context()); err == nil || !strings.Contains(err.Error(), "no node has run") {
		t.Errorf("join where no node was: %v", err)
	}
	if made := s.Client.Exists(t.Context(), fresh.keys.Meta()).Val(); made != 0 {
		t.Error("whoever only looks has written")
	}
}

func TestBusyConversationDelaysNoOther(t *testing.T) {
	storetest.Each(t, busyConversationDelaysNoOther)
}

// A conversation whose model call does not end holds itself and nothing else.
func busyConversationDelaysNoOther(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	r.keys.Partitions = 1 // all conversations are neighbours
	busy, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.think = func(ctx context.Context, w *Work, d *chat.TellerDigest) (string, error) {
		if w.Conversation == key("busy") {
			once.Do(func() { close(busy) })
			select {
			case <-release:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return d.Summary, nil
	}
	n := r.node("a", func(o *Options) { o.MaxWaiting = 20000 })
	ids := []string{r.ingest(n.Node, r.input("busy", "0", "0")).InputID}
	<-busy
	var wg sync.WaitGroup
	var mu sync.Mutex
	for g := range 50 {
		wg.Go(func() {
			for i := range 40 {
				id := r.ingest(n.Node, r.input("busy", fmt.Sprintf("%d-%d", g, i), "x")).InputID
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var others []string
	for c := range 20 {
		others = append(others, r.ingest(n.Node, r.input(fmt.Sprintf("c%d", c), "1", "1")).InputID)
	}
	r.awaitAll(others)
	close(release)
	r.awaitAll(ids)
	r.awaitEmpty(n.Node)
}

func TestNothingIsHeldForAnIdleConversation(t *testing.T) {
	r := newRig(t, storetest.Mini(t))
	var owners []*owner
	var node *Node
	r.made = func(n *Node) { node = n }
	n := r.node("a", func(o *Options) {
		o.Hooks.Owned = func(int) {
			for _, o := range node.owners {
				owners = append(owners, o)
			}
		}
	})
	var ids []string
	for c := range 50 {
		ids = append(ids, r.ingest(n.Node, r.input(fmt.Sprintf("c%d", c), "1", "1")).InputID)
	}
	r.awaitAll(ids)
	r.awaitEmpty(n.Node)
	n.stop()
	for _, o := range owners {
		if len(o.convs)+len(o.known)+len(o.timers) > 0 {
			t.Errorf("partition %d holds %d conversations, %d entries, %d timers", o.p, len(o.convs), len(o.known), len(o.timers))
		}
	}
}

func TestOnCluster(t *testing.T) {
	t.Parallel()
	s := storetest.Cluster(t)
	r := newRig(t, s)
	r.keys.Partitions = 8
	a, b := r.node("a", nil), r.node("b", nil)
	var ids []string
	for i := range 20 {
		for c := range 8 {
			ids = append(ids, r.ingest([]*Node{a.Node, b.Node}[i%2], r.input(fmt.Sprintf("c%d", c), fmt.Sprint(i), fmt.Sprint(i))).InputID)
		}
	}
	checkOrder(t, r.awaitAll(ids))
	r.awaitEmpty(a.Node)
}

func TestIdleConversationsAreSwept(t *testing.T) { storetest.Each(t, idleConversationsAreSwept) }

func idleConversationsAreSwept(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	n := r.node("a", nil)
	stop := r.input("old", "0", "stop")
	stop.Value.Kind, stop.Stop = chat.KindStop, true
	ids := []string{
		r.ingest(n.Node, r.input("old", "1", "1")).InputID, r.ingest(n.Node, stop).InputID,
		r.ingest(n.Node, r.input("old", "2", "2")).InputID, r.ingest(n.Node, r.input("new", "1", "1")).InputID,
	}
	r.awaitAll(ids)
	r.awaitEmpty(n.Node)
	n.stop()
	for _, conv := range []string{"old", "new"} {
		if s.Client.Exists(t.Context(), r.keys.History(key(conv))).Val() != 1 {
			t.Fatalf("%s has no history", conv)
		}
	}
	old := key("old")
	p := r.keys.Partition(old)
	s.Client.ZAdd(t.Context(), r.keys.Active(p), redis.Z{Score: float64(time.Now().Add(-31 * 24 * time.Hour).UnixMilli()), Member: old})
	r.node("b", nil)
	eventually(t, "the old conversation to be removed", func() bool {
		return s.Client.Exists(t.Context(), r.keys.History(old)).Val() == 0
	})
	if s.Client.HExists(t.Context(), r.keys.Stops(p), old).Val() || s.Client.ZScore(t.Context(), r.keys.Active(p), old).Err() == nil {
		t.Error("something of the old conversation is left")
	}
	if s.Client.Exists(t.Context(), r.keys.History(key("new"))).Val() != 1 {
		t.Error("the new conversation was removed too")
	}
}

func TestPauseBetweenRunsOutlivesTheOwner(t *testing.T) {
	storetest.Each(t, pauseBetweenRunsOutlivesTheOwner)
}

// A pause between runs holds also for the node that takes over.
func pauseBetweenRunsOutlivesTheOwner(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	var seen sync.Map
	loops := r.loops()
	for i := range loops {
		if loops[i].Name == "think" {
			ready, step := loops[i].Ready, loops[i].Step
			loops[i].Ready = func(b *Buffer) ([]*Entry, time.Duration) {
				if !b.LastRun.IsZero() {
					seen.Store(b.Conversation, b.LastRun)
				}
				return ready(b)
			}
			loops[i].Step = func(ctx context.Context, w *Work) (Effects, error) {
				e, err := step(ctx, w)
				e.Puts = append(e.Puts, Put{LastRun, w.Conversation, fmt.Sprint(w.Now.UnixMilli())})
				return e, err
			}
		}
	}
	a := r.node("a", func(o *Options) { o.Loops = loops })
	r.awaitAll([]string{r.ingest(a.Node, r.input("c", "1", "1")).InputID})
	r.awaitEmpty(a.Node)
	a.stop()
	b := r.node("b", func(o *Options) { o.Loops = loops })
	r.awaitAll([]string{r.ingest(b.Node, r.input("c", "2", "2")).InputID})
	if _, ok := seen.Load(key("c")); !ok {
		t.Error("the new owner does not know when the thinker last ran")
	}
}
