package llm_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

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
