package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/cluster"
	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var at = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func each(t *testing.T, f func(t *testing.T, s *store.Store, prefix string)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		f(t, s, storetest.Prefix(t))
	})
}

func node(s *store.Store, prefix string) *cluster.Cluster {
	return cluster.New(cluster.Options{Client: s.Client, Prefix: prefix, Lease: 300 * time.Millisecond})
}

// Of many that want it only as many hold a lease as there are places, and a
// later holder has the greater fence.
func TestLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store, prefix string) {
		var holders [2]atomic.Int32
		var mu sync.Mutex
		var fences []int
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				l, err := node(s, prefix).Acquire(t.Context(), "socket", len(holders))
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders[l.Place()].Add(1); n != 1 {
					t.Errorf("%d hold place %d", n, l.Place())
				}
				mu.Lock()
				n, _ := strconv.Atoi(l.Fence())
				fences = append(fences, n)
				mu.Unlock()
				select {
				case <-l.Lost():
					t.Error("lost though nobody took it")
				case <-time.After(50 * time.Millisecond):
				}
				holders[l.Place()].Add(-1)
				l.Release()
				l.Release()
			})
		}
		all.Wait()
		slices.Sort(fences)
		if len(fences) != 8 || fences[0] != 1 || fences[7] != 8 {
			t.Errorf("fences %v, want 1 to 8", fences)
		}
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store, prefix string) {
		l, err := node(s, prefix).Acquire(t.Context(), "one", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		stop := errors.New("no more")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stop)
		if _, err := node(s, prefix).Acquire(ctx, "one", 1); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
}

// Whoever cannot reach Redis hears that the lease is lost before another has it.
func TestLeaseIsLostBeforeItIsTaken(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	proxy, err := faultproxy.New(server.Addr(), faultproxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	mine := storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{proxy.Addr()}})
	other := storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{server.Addr()}})
	prefix := storetest.Prefix(t)
	l, err := node(mine, prefix).Acquire(t.Context(), "socket", 1)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Block(true)
	taken := make(chan *cluster.Lease, 1)
	go func() {
		l, err := node(other, prefix).Acquire(t.Context(), "socket", 1)
		if err != nil {
			t.Error(err)
		}
		taken <- l
	}()
	next := <-taken
	select {
	case <-l.Lost():
	default:
		t.Error("another has the lease, and the first does not know")
	}
	proxy.Block(false)
	l.Release() // must not free the other's place
	if err := node(mine, prefix).SaveState(t.Context(), "socket", l.Fence(), "old"); !errors.Is(err, cluster.ErrFenced) {
		t.Errorf("the old holder saved: %v", err)
	}
	if err := node(other, prefix).SaveState(t.Context(), "socket", next.Fence(), "new"); err != nil {
		t.Error(err)
	}
	if got, err := node(mine, prefix).State(t.Context(), "socket"); err != nil || got != "new" {
		t.Errorf("state %q, %v", got, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if third, err := node(mine, prefix).Acquire(short, "socket", 1); err == nil {
		t.Errorf("a third holds it too, with fence %s", third.Fence())
	}
	next.Release()
}

func TestMarksMoveForward(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store, prefix string) {
		c := node(s, prefix)
		heard := func(conv, id string, when time.Time) {
			t.Helper()
			if err := c.Heard(t.Context(), "slack", conv, id, when); err != nil {
				t.Fatal(err)
			}
		}
		heard("a", "1700000000.000200", at)
		heard("a", "1700000000.000100", at.Add(time.Hour)) // older, and told late
		heard("b", "9", at.Add(time.Minute))
		heard("b", "10", at.Add(time.Minute))
		heard("c", "99999999999999999999", at.Add(-time.Hour))
		heard("c", "100000000000000000000", at.Add(-time.Hour))
		heard("old", "5", at.Add(-100*24*time.Hour))
		got, err := c.Live(t.Context(), "slack", at.Add(-2*time.Hour), 10)
		want := []cluster.Mark{{"b", "10"}, {"a", "1700000000.000200"}, {"c", "100000000000000000000"}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("live %v, %v; want %v", got, err, want)
		}
		if got, err := c.Live(t.Context(), "slack", at.Add(-2*time.Hour), 1); err != nil || len(got) != 1 || got[0].Conversation != "b" {
			t.Errorf("the newest is %v, %v", got, err)
		}
		heard("d", "1", at) // forgets what is too old
		if all, err := c.Live(t.Context(), "slack", time.UnixMilli(0), 10); err != nil || len(all) != 4 {
			t.Errorf("remembered %v, %v; want 4", all, err)
		}
		if got, err := c.Live(t.Context(), "discord", time.UnixMilli(0), 10); err != nil || len(got) != 0 {
			t.Errorf("another platform has %v, %v", got, err)
		}
		if err := c.Heard(t.Context(), "slack", "a", "x", at); err == nil {
			t.Error("marked with no number")
		}
	})
}

func TestTakingPart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store, prefix string) {
		c := node(s, prefix)
		check := func(wantPart, wantRead bool) {
			t.Helper()
			if part, read, err := c.Part(t.Context(), "slack/T/C/1"); err != nil || part != wantPart || read != wantRead {
				t.Errorf("part %v, read %v, %v; want %v, %v", part, read, err, wantPart, wantRead)
			}
		}
		check(false, false)
		if err := c.Join(t.Context(), "slack/T/C/1"); err != nil {
			t.Fatal(err)
		}
		check(true, false)
		if err := c.MarkRead(t.Context(), "slack/T/C/1"); err != nil {
			t.Fatal(err)
		}
		if err := c.Join(t.Context(), "slack/T/C/1"); err != nil {
			t.Fatal(err)
		}
		check(true, true)
	})
}

func TestMessagesAreUnmarkedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store, prefix string) {
		c := node(s, prefix)
		for i := range 20 {
			if err := c.MarkMessage(t.Context(), "working", "conv", fmt.Sprintf("17.%06d", i)); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		var got []string
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				some, err := c.UnmarkMessages(t.Context(), "working", "conv", "17.000009")
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				got = append(got, some...)
				mu.Unlock()
			})
		}
		all.Wait()
		if len(got) != 10 {
			t.Errorf("unmarked %v, want 10, each once", got)
		}
		if rest, err := c.UnmarkMessages(t.Context(), "working", "conv", ""); err != nil || len(rest) != 10 {
			t.Errorf("the rest is %v, %v", rest, err)
		}
	})
}

func TestNotesAndClaims(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store, prefix string) {
		c := node(s, prefix)
		for i, want := range []bool{true, false, false} {
			if first, err := c.Claim(t.Context(), "x", time.Minute); err != nil || first != want {
				t.Errorf("claim %d: %v, %v", i+1, first, err)
			}
		}
		if text, err := c.Note(t.Context(), "n"); err != nil || text != "" {
			t.Errorf("note %q, %v", text, err)
		}
		for _, text := range []string{"one", "two", ""} {
			if err := c.SetNote(t.Context(), "n", text, time.Minute); err != nil {
				t.Fatal(err)
			}
			if got, err := c.Note(t.Context(), "n"); err != nil || got != text {
				t.Errorf("note %q, %v; want %q", got, err, text)
			}
		}
	})
}

// A budget is one for all nodes: what is granted at once, and the times of what is
// granted later, are those of the rate; lower priorities leave their share.
func TestBudget(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store, prefix string) {
		rate := cluster.Rate{Calls: 10, Per: 10 * time.Second} // one a second, ten at once
		draw := func(name string, reserve float64, patience time.Duration) time.Duration {
			t.Helper()
			wait, err := node(s, prefix).Draw(t.Context(), name, rate, reserve, patience)
			if err != nil {
				t.Fatal(err)
			}
			return wait
		}
		for i := range 3 { // 7 are left, and an edit leaves 7
			if wait := draw("a", 0.7, 0); wait != 0 {
				t.Errorf("edit %d waits %s", i+1, wait)
			}
		}
		if wait := draw("a", 0.7, time.Hour); wait != cluster.Never {
			t.Errorf("an edit that touches the reserve waits %s, want for ever", wait)
		}
		for range 7 {
			if wait := draw("a", 0, 0); wait != 0 {
				t.Errorf("a reply waits %s", wait)
			}
		}
		if wait := draw("a", 0, 100*time.Millisecond); wait <= 100*time.Millisecond || wait > time.Second {
			t.Errorf("without patience: %s, want up to a second, and nothing taken", wait)
		}
		first := draw("a", 0, time.Minute)
		second := draw("a", 0, time.Minute)
		if first > time.Second || second-first < 800*time.Millisecond || second-first > 1200*time.Millisecond {
			t.Errorf("the next two wait %s and %s, want a second apart", first, second)
		}
		if wait := draw("b", 0, 0); wait != 0 {
			t.Errorf("another budget waits %s", wait)
		}
		if err := node(s, prefix).Limited(t.Context(), "b", 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if err := node(s, prefix).Limited(t.Context(), "b", time.Second); err != nil {
			t.Fatal(err)
		}
		if wait := draw("b", 0, time.Minute); wait < 4*time.Second || wait > 5*time.Second {
			t.Errorf("a closed budget waits %s, want about 5 s", wait)
		}
		if _, err := node(s, prefix).Draw(t.Context(), "c", cluster.Rate{}, 0, 0); err == nil {
			t.Error("drew from a budget without a rate")
		}
	})
}

// broken is a connection that first refuses, and is silent after a while.
type broken struct{ silent time.Time }

func (b *broken) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *broken) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *broken) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error {
		if time.Now().Before(b.silent) {
			return errors.New("refused")
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// However Redis fails, a holder hears of it before the lease has run out.
func TestLeaseIsLostInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := storetest.MiniRaw(t)
		const lease = 10 * time.Second
		l, err := cluster.New(cluster.Options{Client: s.Client, Prefix: storetest.Prefix(t), Lease: lease}).Acquire(t.Context(), "socket", 1)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s.Client.AddHook(&broken{silent: began.Add(lease * 7 / 10)})
		<-l.Lost()
		if took := time.Since(began); took >= lease {
			t.Errorf("told after %s, and the lease ran out after %s", took, lease)
		}
	})
}
