package llm_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func stack(t *testing.T, opts llm.StackOptions) *llm.Stack {
	t.Helper()
	s, err := llm.NewStack(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every real call is archived and booked by itself, with its own figures; the
// caller gets the sum.
func TestStackAddsUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := &book{}
	used := func(n int) llm.Usage { return llm.Usage{Prompt: n, Completion: 1} }
	long := &llm.Error{Kind: llm.TooLong, Err: errors.New("long")}
	cut := &llm.Error{Kind: llm.Transient, Began: true, Err: errors.New("cut")}
	first := llmtest.NewScripted(llmtest.Answer{Usage: used(10), Err: cut}, llmtest.Answer{Err: long}, llmtest.Answer{Usage: used(20), Err: &llm.Error{Kind: llm.Refused, Err: errors.New("no")}})
	second := llmtest.NewScripted(llmtest.Answer{Text: "ok", Usage: used(40)})
	s := stack(t, llm.StackOptions{
		Links:   []llm.Link{{Name: "first", Model: first}, {Name: "second", Model: second, Ask: "cheap"}},
		Limiter: llm.NewLimiter(1, nil), Ledger: b, Archive: &llm.ArchiveOptions{Dir: dir},
		Meter: llm.MeterOptions{Prices: prices(t, llm.Price{Model: "dear", Prompt: 10}, llm.Price{Model: "cheap", Prompt: 1})},
		Retry: llm.RetryOptions{Sleep: func(context.Context, time.Duration) error { return nil }},
	})
	req := ask("a long prompt")
	req.Model = "dear"
	req.Shorten = func(int) []llm.Message { return ask("short").Messages }
	got, err := s.Complete(t.Context(), req)
	if err != nil || got.Text != "ok" || got.Model != "cheap" || got.Usage != (llm.Usage{Prompt: 70, Completion: 3}) || got.Cost != 340 {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := len(files(t, dir)); n != 4 {
		t.Errorf("%d calls archived, want 4", n)
	}
	sum, costs := int64(0), 0
	for _, c := range b.settled {
		sum += c.Cost
		costs += c.Usage.Prompt
	}
	if len(b.settled) != 4 || sum != 340 || costs != 70 || b.settled[3].Model != "cheap" || !b.settled[0].Failed || b.settled[3].Failed {
		t.Errorf("booked %+v", b.settled)
	}
	if got := second.Requests()[0].Messages[1].Content; got != "a long prompt" {
		t.Errorf("the second model was asked %q: it has a window of its own", got)
	}
	if c, _ := readCall(t, files(t, dir)[0]); !strings.HasPrefix(filepath.Base(files(t, dir)[0]), c.Time.Format("150405.000")) || c.CostMicros == 0 && c.Error == nil {
		t.Errorf("archived %+v", c)
	}
}

// A call that waits to be tried again holds no place: another conversation's
// call is made meanwhile.
func TestStackFreesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := false
		s := stack(t, llm.StackOptions{
			Limiter: llm.NewLimiter(1, nil),
			Links: []llm.Link{{Name: "e", Model: llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
				if req.Conversation == "a" && !failed {
					failed = true
					return llm.Response{}, &llm.Error{Kind: llm.RateLimited, RetryAfter: 15 * time.Second, Err: errors.New("429")}
				}
				return llm.Response{Text: "ok"}, nil
			})}},
		})
		start := time.Now()
		var wg sync.WaitGroup
		took := map[string]time.Duration{}
		var mu sync.Mutex
		for _, c := range []string{"a", "b"} {
			wg.Go(func() {
				if _, err := s.Complete(t.Context(), llm.Request{Conversation: c}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				took[c] = time.Since(start)
				mu.Unlock()
			})
			synctest.Wait()
		}
		wg.Wait()
		if took["b"] != 0 || took["a"] < 15*time.Second {
			t.Errorf("took %v, want b at once and a after its pause", took)
		}
	})
}

// An open breaker sends a call to the fallback before it waits in line, and
// budgets end everything without telling the breaker anything.
func TestStackOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		dead := llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: errors.New("connection refused")}
		})
		slow := llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
			time.Sleep(time.Minute)
			return llm.Response{Text: "slow"}, nil
		})
		s := stack(t, llm.StackOptions{
			Links:   []llm.Link{{Name: "dead", Model: dead}, {Name: "alive", Model: llmtest.Instant{}}},
			Limiter: llm.NewLimiter(1, nil), Ledger: b, Breaker: llm.BreakerOptions{Failures: 2}, Retry: llm.RetryOptions{Attempts: 2},
		})
		if got, err := s.Complete(t.Context(), ask("hi")); err != nil || got.Text != "ok" {
			t.Fatalf("got %+v, %v", got, err)
		}
		if h := s.Health(); len(h) != 2 || h[0].Endpoint != "dead" || h[0].State != llm.Open || h[1].State != llm.Closed {
			t.Errorf("health = %+v", h)
		}
		calls := len(b.settled)
		start := time.Now()
		if _, err := s.Complete(t.Context(), ask("hi")); err != nil || time.Since(start) != 0 || len(b.settled) != calls+1 {
			t.Errorf("%v after %v with %d calls: want the fallback at once", err, time.Since(start), len(b.settled)-calls)
		}

		// The same, with the only place taken: the refusal does not stand in line.
		l := llm.NewLimiter(1, nil)
		busy := stack(t, llm.StackOptions{Links: []llm.Link{{Name: "slow", Model: slow}}, Limiter: l})
		only := stack(t, llm.StackOptions{Links: []llm.Link{{Name: "dead", Model: dead}}, Limiter: l, Breaker: llm.BreakerOptions{Failures: 1}})
		if _, err := only.Complete(t.Context(), ask("hi")); err == nil {
			t.Fatal("no error")
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = busy.Complete(t.Context(), ask("hi"))
		}()
		synctest.Wait()
		start = time.Now()
		if _, err := only.Complete(t.Context(), ask("hi")); !errors.Is(err, llm.ErrOpen) || time.Since(start) != 0 {
			t.Errorf("%v after %v, want the open breaker's answer at once", err, time.Since(start))
		}
		<-done

		over := &llm.BudgetError{Budget: llm.Budget{Subject: llm.Subject{Kind: llm.UserSubject, ID: "ann"}}}
		stopped := stack(t, llm.StackOptions{Links: []llm.Link{{Name: "a", Model: dead}, {Name: "b", Model: dead}}, Ledger: &book{refuse: over}, Breaker: llm.BreakerOptions{Failures: 1}})
		_, err := stopped.Complete(t.Context(), ask("hi"))
		var is *llm.BudgetError
		if kindOf(t, err).Kind != llm.OverBudget || !errors.As(err, &is) || is != over {
			t.Errorf("err = %v", err)
		}
		if h := stopped.Health(); len(h) != 1 || h[0].State != llm.Closed {
			t.Errorf("health = %+v, want one breaker asked and closed", h)
		}
	})
}

func TestStackRefuses(t *testing.T) {
	t.Parallel()
	for name, links := range map[string][]llm.Link{
		"none": nil, "no name": {{Model: llmtest.Instant{}}}, "no model": {{Name: "a"}},
	} {
		if _, err := llm.NewStack(llm.StackOptions{Links: links}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
