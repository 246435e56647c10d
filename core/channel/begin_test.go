package channel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// begun records what Hooks.Begin was told.
type begun struct {
	mu   sync.Mutex
	all  []string // loop, what it follows from, and how it ended
	open int
}

type beginKey struct{}

func (g *begun) begin(ctx context.Context, loop string, w *Work) (context.Context, func(string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open++
	follows := w.Entries[0].Traceparent
	w.Traceparent = loop + fmt.Sprint(w.Attempt)
	once := false
	return context.WithValue(ctx, beginKey{}, loop), func(outcome string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if once {
			outcome += " again"
		}
		once = true
		g.open--
		g.all = append(g.all, fmt.Sprintf("%s after %s: %s", loop, follows, outcome))
	}
}

func (g *begun) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := slices.Clone(g.all)
	slices.Sort(list)
	return list
}

// Every step is told of once when it begins, and once when it is decided what became of
// it; its loop is given the context, and what it publishes says that it follows from it.
func TestBegin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		var tries sync.Map
		r.think = func(ctx context.Context, w *Work, d *chat.TellerDigest) (string, error) {
			if ctx.Value(beginKey{}) != "think" {
				t.Error("the step was given another context than the hook's")
			}
			_, again := tries.LoadOrStore(w.Conversation, true)
			switch {
			case d.Summary == "hopeless":
				return "", &GiveUp{Why: "it is hopeless"}
			case d.Summary == "slow" && !again:
				return "", errors.New("no luck")
			}
			return d.Summary, nil
		}
		g := &begun{}
		// Nothing may be lost to a busy machine: each step is told of as often as it is run.
		n := r.node("a", func(o *Options) { o.Hooks.Begin, o.Lease, o.CallTimeout = g.begin, 10*time.Minute, time.Minute })
		var ids []string
		for _, text := range []string{"quick", "slow", "hopeless"} {
			in := r.input(text, text, text)
			in.Traceparent = "event"
			ids = append(ids, r.ingest(n.Node, in).InputID)
		}
		r.awaitAll(ids)
		r.awaitEmpty(n.Node)
		n.stop()
		want := []string{
			"deliver after format1: ok", "deliver after format1: ok", "deliver after think1: ok",
			"digest after event: ok", "digest after event: ok", "digest after event: ok",
			"format after think1: ok", "format after think2: ok",
			"think after digest1: dead", "think after digest1: ok", "think after digest1: ok", "think after digest1: retry",
		}
		if got := g.list(); !slices.Equal(got, want) || g.open != 0 {
			t.Errorf("%d are open; told was\n%s\nwant\n%s", g.open, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A step whose owner is done, and that nobody decides on any more, is told of as lost.
func TestBeginIsEndedWithTheOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		thinks, once := make(chan struct{}), sync.Once{}
		r.think = func(ctx context.Context, _ *Work, _ *chat.TellerDigest) (string, error) {
			once.Do(func() { close(thinks) })
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		g := &begun{}
		n := r.node("a", func(o *Options) { o.Hooks.Begin = g.begin })
		r.ingest(n.Node, r.input("c", "1", "1"))
		<-thinks
		p := r.keys.Partition(key("c"))
		if err := s.Client.HSet(t.Context(), r.keys.Lease(p), "token", "9999-another").Err(); err != nil {
			t.Fatal(err)
		}
		storetest.Eventually(t, "the end", func() error {
			if got := g.list(); !slices.Contains(got, "think after digest1: lost") {
				return fmt.Errorf("told was %q", got)
			}
			return nil
		})
	})
}
