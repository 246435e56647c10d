package channel

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Redis is killed in the middle of the work and started again on its data.
func TestRedisKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s := storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{server.Addr()}})
	r := newRig(t, s)
	a, b := r.node("a", nil), r.node("b", nil)
	ids := r.feed(a.Node, 8, 60, func(i int) {
		if i == 20 || i == 40 {
			server.Kill()
			server.Restart()
		}
	})
	checkOrder(t, r.awaitAll(ids))
	r.awaitEmpty(b.Node)
}

// feed offers n inputs in each of c conversations, in order, and returns the ids
// of those accepted. at is called before the i-th of the first conversation.
func (r *rig) feed(node *Node, c, n int, at func(i int)) []string {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var ids []string
	for conv := range c {
		wg.Go(func() {
			for i := range n {
				if conv == 0 {
					at(i)
				}
				ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
				a, err := node.Ingest(ctx, r.input(fmt.Sprintf("c%d", conv), fmt.Sprint(i), fmt.Sprint(i)))
				cancel()
				if err != nil {
					r.t.Errorf("input %d of c%d: %v", i, conv, err)
					return
				}
				mu.Lock()
				ids = append(ids, a.InputID)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ids
}

// A fail-over may lose what the old master acknowledged. Whatever is missing or
// doubled afterwards must have been found out and counted, and nothing hangs.
func TestFailoverLossIsCounted(t *testing.T) {
	t.Parallel()
	set := storetest.Sentinel(t)
	r := newRig(t, set.Store())
	var lost atomic.Int64
	a := r.node("a", func(o *Options) {
		o.Lease = 2 * time.Second
		o.Hooks.Lost = func(n int64) { lost.Add(n) }
	})
	ids := r.feed(a.Node, 8, 40, func(i int) {
		if i == 20 {
			set.KillMaster()
		}
	})
	// Everything accepted after the fail-over is answered, so the line goes on.
	var after []string
	for c := range 8 {
		after = append(after, r.ingest(a.Node, r.input(fmt.Sprintf("c%d", c), "last", "1000")).InputID)
	}
	posts := r.await("the answers after the fail-over", func(p []chat.Reply) bool {
		m := answered(p)
		for _, id := range after {
			if m[id] == 0 {
				return false
			}
		}
		return true
	})
	missing, doubled := 0, 0
	m := answered(posts)
	for _, id := range ids {
		switch {
		case m[id] == 0:
			missing++
		case m[id] > 1:
			doubled += m[id] - 1
		}
	}
	t.Logf("%d inputs: %d missing, %d doubled, %d commits counted as lost", len(ids), missing, doubled, lost.Load())
	if int64(missing+doubled) > lost.Load() {
		t.Errorf("%d missing and %d doubled, but only %d commits counted as lost", missing, doubled, lost.Load())
	}
}
