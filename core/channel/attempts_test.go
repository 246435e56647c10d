package channel

import (
	"context"
	"errors"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// A message that comes while the one before it fails is not given up with it.
func TestPoisonTakesNoneWithIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		failed := make(chan struct{}, 10)
		loops := r.loops()
		for i := range loops {
			if loops[i].Name == "digest" {
				step := loops[i].Step
				loops[i].MaxAttempts = 2
				loops[i].Step = func(ctx context.Context, w *Work) (Effects, error) {
					for _, e := range w.Entries {
						if e.Value.(*chat.UserInput).Text == "poison" {
							failed <- struct{}{}
							return Effects{}, errors.New("no luck")
						}
					}
					return step(ctx, w)
				}
			}
		}
		n := r.node("a", func(o *Options) { o.Loops = loops })
		poison := r.ingest(n.Node, r.input("c", "1", "poison")).InputID
		<-failed
		fine := r.ingest(n.Node, r.input("c", "2", "fine")).InputID
		for _, p := range r.awaitAll([]string{poison, fine}) {
			for _, id := range p.InputIDs {
				if want := map[string]chat.ReplyKind{poison: chat.ReplyNotice, fine: chat.ReplyAnswer}[id]; p.Kind != want {
					t.Errorf("%q was answered with %q (%s), want %q", id, p.Kind, p.Text, want)
				}
			}
		}
		r.awaitEmpty(n.Node)
	})
}

// What is published, and what arrives, while a node hands back was counted as
// started ahead, and is not started there.
func TestHandBackCostsNoAttempt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		digesting, goOn, attempts := make(chan struct{}, 1), make(chan struct{}), make(chan int, 10)
		first := true
		loops := r.loops()
		for i := range loops {
			step := loops[i].Step
			switch loops[i].Name {
			case "digest":
				loops[i].Step = func(ctx context.Context, w *Work) (Effects, error) {
					if first {
						first = false
						digesting <- struct{}{}
						<-goOn // it ends within the grace
					}
					return step(ctx, w)
				}
			case "think":
				loops[i].Step = func(ctx context.Context, w *Work) (Effects, error) {
					attempts <- w.Attempt
					return step(ctx, w)
				}
			}
		}
		a := r.node("a", func(o *Options) { o.Loops = loops })
		id := r.ingest(a.Node, r.input("c", "1", "1")).InputID
		<-digesting
		over := make(chan struct{})
		go func() { a.stop(); close(over) }()
		p := r.keys.Partition(key("c"))
		eventually(t, "the others to be handed back", func() bool {
			for q := range r.keys.Partitions {
				if token := s.Client.HGet(t.Context(), r.keys.Lease(q), "token").Val(); q != p && token != "" {
					return false
				}
			}
			return true
		})
		close(goOn)
		<-over
		if left := s.Client.HGetAll(t.Context(), r.keys.Table(p, Attempts)).Val(); len(left) > 0 {
			t.Errorf("a clean stop left counted starts: %v", left)
		}
		b := r.node("b", func(o *Options) { o.Loops = loops })
		if n := <-attempts; n != 1 {
			t.Errorf("after a clean stop the start is attempt %d, want 1", n)
		}
		r.awaitAll([]string{id})
		r.awaitEmpty(b.Node)
	})
}

// A start that Redis refuses to count was none.
func TestRefusedStartCostsNoAttempt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		r.keys.Partitions = 1
		thinking, goOn := make(chan int, 10), make(chan struct{})
		r.think = func(_ context.Context, w *Work, d *chat.TellerDigest) (string, error) {
			thinking <- w.Attempt
			if w.Attempt == 1 {
				<-goOn
				return "", errors.New("once")
			}
			return d.Summary, nil
		}
		n := r.node("a", nil)
		id := r.ingest(n.Node, r.input("c", "1", "1")).InputID
		<-thinking
		active := r.keys.Active(0)
		s.Client.Del(t.Context(), active)
		s.Client.Set(t.Context(), active, "not ours", 0)
		close(goOn)
		wait := time.NewTimer(2 * time.Second) // several refusals
		<-wait.C
		s.Client.Del(t.Context(), active)
		if posts := r.awaitAll([]string{id}); posts[0].Kind != chat.ReplyAnswer {
			t.Fatalf("answered with %q (%s)", posts[0].Kind, posts[0].Text)
		}
		if n := <-thinking; n != 2 {
			t.Errorf("the second start is attempt %d, want 2", n)
		}
	})
}
