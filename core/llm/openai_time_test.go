package llm_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestOpenAIRetryAfterDate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewMemoryServer(t)
		s.Next(llmtest.RateLimited(time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)))
		_, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
		if e := kindOf(t, err); e.Kind != llm.RateLimited || e.RetryAfter != 90*time.Second {
			t.Errorf("sorted as %v after %v, want rate_limited after 90s", e.Kind, e.RetryAfter)
		}
	})
}

func TestOpenAITime(t *testing.T) {
	t.Parallel()
	gone := errors.New("the person pressed stop")
	tests := []struct {
		name  string
		does  llmtest.Behavior
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		takes time.Duration
		is    []error
		says  string
	}{
		{"hangs before headers", llmtest.Hangs(), nil, llm.DefaultIdle, []error{context.DeadlineExceeded}, "silent for 1m0s"},
		{"hangs in the stream", llmtest.HangsAfter("half an"), nil, llm.DefaultIdle, []error{context.DeadlineExceeded}, "silent for 1m0s"},
		{"trickles for ever", llmtest.Slow(strings.Repeat("drip ", 1000), 20*time.Second), nil, llm.DefaultTimeout, []error{context.DeadlineExceeded}, "no end after 5m0s"},
		{"caller's deadline", llmtest.Hangs(), func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}, 3 * time.Second, []error{context.DeadlineExceeded}, ""},
		{"caller cancels", llmtest.HangsAfter("half"), func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(2*time.Second, func() { cancel(gone) })
			return ctx, func() { cancel(nil) }
		}, 2 * time.Second, []error{context.Canceled, gone}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := llmtest.NewMemoryServer(t)
				s.Next(tt.does)
				ctx := t.Context()
				if tt.ctx != nil {
					c, cancel := tt.ctx(ctx)
					defer cancel()
					ctx = c
				}
				start := time.Now()
				_, err := open(t, s, nil).Complete(ctx, ask("hi"))
				if e := kindOf(t, err); e.Kind != llm.Transient || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("err = %v, want a transient one with %q", err, tt.says)
				}
				for _, is := range tt.is {
					if !errors.Is(err, is) {
						t.Errorf("err = %v, want it to be %v", err, is)
					}
				}
				if took := time.Since(start); took != tt.takes {
					t.Errorf("took %v, want %v", took, tt.takes)
				}
			})
		})
	}
}

// A stream slower than the idle limit in all, but never silent that long, is an answer.
func TestOpenAISlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewMemoryServer(t)
		s.Next(llmtest.Slow("a b c d e", 50*time.Second))
		got, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
		if err != nil || got.Text != "a b c d e" || got.Took != 250*time.Second {
			t.Errorf("got %+v, %v; want all five letters after 250s", got, err)
		}
	})
}

// An endpoint that keeps the stream open, or breaks it, after the finish
// reason has answered all the same.
func TestOpenAIOpenEnd(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(*llmtest.Exchange){
		"hangs": func(x *llmtest.Exchange) { x.Wait(0) },
		"drops": func(*llmtest.Exchange) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := llmtest.NewMemoryServer(t)
				s.Next(func(x *llmtest.Exchange) {
					x.Raw(`data: {"choices":[{"delta":{"content":"done"},"finish_reason":"stop"}]}` + "\n\n")
					after(x)
				})
				got, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
				if err != nil || got.Text != "done" || got.Took > 2*time.Second {
					t.Errorf("got %+v, %v; want done within 2s", got, err)
				}
			})
		})
	}
}
