package llm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestLimitServesConversationsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		step := make(chan struct{})
		m := llm.Limit(llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
			mu.Lock()
			order = append(order, req.Conversation)
			mu.Unlock()
			<-step
			return llm.Response{Text: "ok"}, nil
		}), 1)
		var wg sync.WaitGroup
		ask := func(conversation string) {
			wg.Go(func() {
				if _, err := m.Complete(t.Context(), llm.Request{Conversation: conversation}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, c := range []string{"a", "a", "a", "a", "b", "c", "b"} {
			ask(c)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := m.Complete(ctx, llm.Request{Conversation: "d"})
			gone <- err
		}()
		synctest.Wait()
		why := errors.New("nobody waits any more")
		cancel(why)
		if err := <-gone; !errors.Is(err, why) {
			t.Errorf("cancelled call: %v", err)
		}
		for range 7 {
			step <- struct{}{}
			synctest.Wait()
		}
		wg.Wait()
		if want := []string{"a", "a", "b", "c", "a", "b", "a"}; !slices.Equal(order, want) {
			t.Errorf("served %v, want %v", order, want)
		}
	})
}

// Five hundred conversations share four places; one of them has a thousand calls
// in line. Nobody else waits longer than their fair share, and the greedy one is
// not starved either.
func TestLimitIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const places, conversations, each, greedy = 4, 500, 3, 1000
		const call = time.Second
		var mu sync.Mutex
		running, most := 0, 0
		waits := map[string][]time.Duration{}
		l := llm.NewLimiter(places, func(req llm.Request, waited time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			waits[req.Conversation] = append(waits[req.Conversation], waited)
		})
		m := l.Model(llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(call)
			mu.Lock()
			running--
			mu.Unlock()
			return llm.Response{Text: "ok"}, nil
		}))
		var wg sync.WaitGroup
		ask := func(conversation string) {
			if _, err := m.Complete(t.Context(), llm.Request{Conversation: conversation}); err != nil {
				t.Error(err)
			}
		}
		for range greedy {
			wg.Go(func() { ask("greedy") })
		}
		synctest.Wait()
		if n := l.Waiting(); n != greedy-places {
			t.Errorf("%d calls wait, want %d", n, greedy-places)
		}
		for i := range conversations {
			wg.Go(func() {
				for range each { // one after the other, as a conversation does
					ask(fmt.Sprint("c", i))
				}
			})
		}
		wg.Wait()

		// In each round everybody who waits is served once.
		fair := (conversations + 1 + places - 1) / places * call
		var longest time.Duration
		for c, w := range waits {
			if c == "greedy" {
				continue
			}
			if len(w) != each {
				t.Errorf("%s was served %d times", c, len(w))
			}
			longest = max(longest, slices.Max(w))
		}
		t.Logf("%d conversations, %d places, calls of %v: longest wait %v, fair share %v (%.2f times)", conversations, places, call, longest, fair, float64(longest)/float64(fair))
		if longest > fair+call {
			t.Errorf("longest wait %v, want at most the fair share of %v and one call", longest, fair)
		}
		// While the others were served each three times, so was the greedy one,
		// and at the end it had all places to itself.
		g := waits["greedy"]
		if len(g) != greedy {
			t.Fatalf("the greedy one was served %d times of %d", len(g), greedy)
		}
		alone := 0
		for _, w := range g {
			if w > fair*each {
				alone++
			}
		}
		t.Logf("greedy: longest wait %v, %d of %d calls after the others were done", slices.Max(g), alone, greedy)
		if served := greedy - alone; served < each || served > 3*each+2*places {
			t.Errorf("the greedy one was served %d times among the others, want about %d", served, each)
		}
		if most != places || l.Waiting() != 0 {
			t.Errorf("%d calls at once, %d still wait", most, l.Waiting())
		}
		if total := time.Duration((greedy+conversations*each)/places) * call; slices.Max(g) > total {
			t.Errorf("the last call waited %v, want no idle place before %v", slices.Max(g), total)
		}
	})
}
