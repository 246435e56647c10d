package llm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// noted is a RetryOptions whose pauses take no time and are noted.
func noted(chance float64) (llm.RetryOptions, *[]time.Duration) {
	var pauses []time.Duration
	return llm.RetryOptions{
		Rand:  func() float64 { return chance },
		Sleep: func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil },
	}, &pauses
}

func TestRetry(t *testing.T) {
	t.Parallel()
	fail := func(k llm.Kind, after time.Duration) llmtest.Answer { return llmtest.Fail(k, after) }
	ms := time.Millisecond
	tests := []struct {
		name    string
		chance  float64
		answers []llmtest.Answer
		pauses  []time.Duration
		kind    llm.Kind // 0 for an answer
		says    string
	}{
		{"first", 0, []llmtest.Answer{llmtest.Say("ok")}, nil, 0, ""},
		{"twice as long each time", 1, []llmtest.Answer{fail(llm.Transient, 0), fail(llm.RateLimited, 0), fail(llm.Transient, 0), llmtest.Say("ok")},
			[]time.Duration{500 * ms, 1000 * ms, 2000 * ms}, 0, ""},
		{"half of it is chance", 0, []llmtest.Answer{fail(llm.Transient, 0), llmtest.Say("ok")}, []time.Duration{250 * ms}, 0, ""},
		{"as long as asked, at least", 0, []llmtest.Answer{fail(llm.RateLimited, 7*time.Second), llmtest.Say("ok")}, []time.Duration{7 * time.Second}, 0, ""},
		{"and a little more", 1, []llmtest.Answer{fail(llm.Transient, 7*time.Second), llmtest.Say("ok")}, []time.Duration{7700 * ms}, 0, ""},
		{"longer than our patience", 0, []llmtest.Answer{fail(llm.RateLimited, 21*time.Second)}, nil, llm.RateLimited, ""},
		{"bounded", 1, []llmtest.Answer{fail(llm.Transient, 0), fail(llm.Transient, 0), fail(llm.Transient, 0), fail(llm.Transient, 0), llmtest.Say("late")},
			[]time.Duration{500 * ms, 1000 * ms, 2000 * ms}, llm.Transient, "after 4 attempts: scripted transient"},
		{"refused", 0, []llmtest.Answer{fail(llm.Refused, 0)}, nil, llm.Refused, ""},
		{"too long", 0, []llmtest.Answer{fail(llm.TooLong, 0)}, nil, llm.TooLong, ""},
		{"fatal", 0, []llmtest.Answer{fail(llm.Fatal, 0)}, nil, llm.Fatal, ""},
		{"over budget", 0, []llmtest.Answer{fail(llm.OverBudget, 0)}, nil, llm.OverBudget, ""},
		{"fatal after all", 1, []llmtest.Answer{fail(llm.Transient, 0), fail(llm.Fatal, 0)}, []time.Duration{500 * ms}, llm.Fatal, ""},
		{"open breaker", 0, []llmtest.Answer{{Err: &llm.Error{Kind: llm.Transient, RetryAfter: time.Second, Err: llm.ErrOpen}}}, nil, llm.Transient, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts, pauses := noted(tt.chance)
			inner := llmtest.NewScripted(tt.answers...)
			got, err := llm.Retry(inner, opts).Complete(t.Context(), ask("hi"))
			if tt.kind == 0 && (err != nil || got.Text != "ok") {
				t.Errorf("got %+v, %v", got, err)
			}
			if tt.kind != 0 {
				if e := kindOf(t, err); e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("err = %v, want %v with %q", err, tt.kind, tt.says)
				}
			}
			if !slices.Equal(*pauses, tt.pauses) {
				t.Errorf("pauses = %v, want %v", *pauses, tt.pauses)
			}
			if n, want := len(inner.Requests()), len(tt.pauses)+1; n != want {
				t.Errorf("%d calls, want %d", n, want)
			}
		})
	}
}

// What failed attempts used counts, and a half answer that was heard is taken back.
func TestRetryAddsUp(t *testing.T) {
	t.Parallel()
	n := 0
	inner := llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
		n++
		res := llm.Response{Text: "half", Usage: llm.Usage{Prompt: 10 * n, Estimated: n == 1}, Cost: int64(n), Warnings: []llm.BudgetWarning{{Budget: llm.Budget{Limit: int64(n)}}}}
		if n == 2 { // failed before a word came
			return res, &llm.Error{Kind: llm.Transient, Err: errors.New("silent")}
		}
		req.OnDelta("half")
		if n == 3 {
			res.Text = "half and whole"
			req.OnDelta(" and whole")
			return res, nil
		}
		return res, &llm.Error{Kind: llm.Transient, Err: errors.New("cut")}
	})
	opts, _ := noted(0)
	var told []int
	opts.OnRetry = func(_ llm.Request, attempt int, _ time.Duration, _ error) { told = append(told, attempt) }
	req := ask("hi")
	var heard []string
	req.OnDelta = func(s string) { heard = append(heard, s) }
	req.OnRestart = func() { heard = append(heard, "|") }
	got, err := llm.Retry(inner, opts).Complete(t.Context(), req)
	if err != nil || got.Text != "half and whole" || got.Usage != (llm.Usage{Prompt: 60, Estimated: true}) || got.Cost != 6 || len(got.Warnings) != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if s := strings.Join(heard, ""); s != "half|half and whole" {
		t.Errorf("heard %q: want one restart, after the first half", s)
	}
	if !slices.Equal(told, []int{1, 2}) {
		t.Errorf("told of attempts %v", told)
	}

	n = 3
	got, err = llm.Retry(llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{Text: "void", Usage: llm.Usage{Prompt: 5}, Cost: 2}, &llm.Error{Kind: llm.Transient, Err: errors.New("cut")}
	}), opts).Complete(t.Context(), ask("hi"))
	if err == nil || got.Text != "" || got.Usage.Prompt != 20 || got.Cost != 8 {
		t.Errorf("failed for good: %+v, %v; want what four attempts used and no text", got, err)
	}
}

func TestRetryTime(t *testing.T) {
	t.Parallel()
	gone := errors.New("nobody waits")
	synctest.Test(t, func(t *testing.T) {
		// A pause that would outlast the caller is not begun.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		inner := llmtest.NewScripted(llmtest.Fail(llm.RateLimited, 6*time.Second), llmtest.Say("ok"))
		_, err := llm.Retry(inner, llm.RetryOptions{}).Complete(ctx, ask("hi"))
		if e := kindOf(t, err); e.Kind != llm.RateLimited || time.Since(start) != 0 {
			t.Errorf("err = %v after %v, want the rate limit at once", err, time.Since(start))
		}
		// A caller that goes away in the pause is let go at once, with both reasons.
		ctx2, cancel2 := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel2(gone) })
		inner = llmtest.NewScripted(llmtest.Fail(llm.RateLimited, 10*time.Second))
		_, err = llm.Retry(inner, llm.RetryOptions{}).Complete(ctx2, ask("hi"))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, gone) || !strings.Contains(err.Error(), "scripted rate_limited") || time.Since(start) != time.Second {
			t.Errorf("err = %v after %v", err, time.Since(start))
		}
		_ = kindOf(t, err)
		// Nor is anything tried again for a caller that is gone.
		inner = llmtest.NewScripted(llmtest.Say("never"))
		if _, err = llm.Retry(inner, llm.RetryOptions{}).Complete(ctx2, ask("hi")); err == nil || len(inner.Requests()) != 1 {
			t.Errorf("err = %v with %d calls", err, len(inner.Requests()))
		}
	})
}
