package channel

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// A dead letter that cannot be replayed stays one.
func TestRefusedReplayKeepsTheDeadLetter(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		n, err := New(r.options(s, "a"))
		if err != nil {
			t.Fatal(err)
		}
		p := r.keys.Partition(key("c"))
		id := s.Client.XAdd(t.Context(), xadd(r.keys.Dead(p), deadFrom, string(UserInput), deadGroup, "teller",
			deadReason, "x", deadCount, "1", deadEntry, "1-1", deadAt, "x", "conv", key("c"), "v", "1", "data", "{}")).Val()
		for _, foreign := range []string{r.keys.Stream(p, UserInput), r.keys.Waiting(p)} {
			s.Client.Set(t.Context(), foreign, "not ours", 0)
			if err := n.Replay(t.Context(), DeadID{p, id}); err == nil {
				t.Errorf("replayed although %s is not ours", foreign)
			}
			s.Client.Del(t.Context(), foreign)
		}
		if err := n.Replay(t.Context(), DeadID{p, id}); err != nil {
			t.Errorf("replay after the refused ones: %v", err)
		}
		if got := s.Client.HGet(t.Context(), r.keys.Waiting(p), key("c")).Val(); got != "1" {
			t.Errorf("%s inputs wait, want 1", got)
		}
	})
}

// What is replayed is said after every stop that there was.
func TestReplayedEntryIsNotStopped(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		var calls atomic.Int64
		r.think = func(_ context.Context, _ *Work, d *chat.TellerDigest) (string, error) {
			if calls.Add(1) <= 3 {
				return "", errors.New("no luck")
			}
			return d.Summary, nil
		}
		n := r.node("a", nil)
		r.awaitAll([]string{r.ingest(n.Node, r.input("c", "1", "1")).InputID})
		stop := r.input("c", "2", "stop")
		stop.Value.Kind, stop.Stop = chat.KindStop, true
		r.awaitAll([]string{r.ingest(n.Node, stop).InputID})
		dead, err := n.Dead(t.Context(), 10)
		if err != nil || len(dead) != 1 {
			t.Fatalf("dead letters: %v, %v", dead, err)
		}
		if err := n.Replay(t.Context(), dead[0].ID); err != nil {
			t.Fatal(err)
		}
		r.await("the answer", func(p []chat.Reply) bool { return len(p) == 3 })
		r.awaitEmpty(n.Node)
		if got := calls.Load(); got != 4 {
			t.Errorf("the step was run %d times after the replay, want once", got-3)
		}
	})
}
