package llm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestFallback(t *testing.T) {
	t.Parallel()
	fail := func(k llm.Kind) llmtest.Answer { return llmtest.Fail(k, 0) }
	say := llmtest.Say("ok")
	tests := []struct {
		name    string
		answers []llmtest.Answer // one for each link
		asked   int
		kind    llm.Kind // 0 for an answer
		opts    llm.FallbackOptions
	}{
		{"first", []llmtest.Answer{say, say}, 1, 0, llm.FallbackOptions{}},
		{"transient", []llmtest.Answer{fail(llm.Transient), say}, 2, 0, llm.FallbackOptions{}},
		{"rate limited", []llmtest.Answer{fail(llm.RateLimited), say}, 2, 0, llm.FallbackOptions{}},
		{"too long", []llmtest.Answer{fail(llm.TooLong), say}, 2, 0, llm.FallbackOptions{}},
		{"fatal", []llmtest.Answer{fail(llm.Fatal), fail(llm.Fatal), say}, 3, 0, llm.FallbackOptions{}},
		{"refused", []llmtest.Answer{fail(llm.Refused), say}, 2, 0, llm.FallbackOptions{}},
		{"a refusal kept", []llmtest.Answer{fail(llm.Refused), say}, 1, llm.Refused, llm.FallbackOptions{KeepRefusals: true}},
		{"over budget", []llmtest.Answer{fail(llm.OverBudget), say}, 1, llm.OverBudget, llm.FallbackOptions{}},
		{"over budget on the way", []llmtest.Answer{fail(llm.Transient), fail(llm.OverBudget), say}, 2, llm.OverBudget, llm.FallbackOptions{}},
		{"all", []llmtest.Answer{fail(llm.TooLong), fail(llm.Transient)}, 2, llm.TooLong, llm.FallbackOptions{}},
		{"no link", nil, 0, llm.Fatal, llm.FallbackOptions{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var links []llm.Link
			asked := 0
			for i, a := range tt.answers {
				m := llmtest.NewScripted(a)
				links = append(links, llm.Link{Name: string(rune('a' + i)), Ask: "m", Model: llmtest.NewFunc(func(ctx context.Context, req llm.Request) (llm.Response, error) {
					asked++
					return m.Complete(ctx, req)
				})})
			}
			got, err := llm.Fallback(tt.opts, links...).Complete(t.Context(), ask("hi"))
			if tt.kind == 0 && (err != nil || got.Text != "ok") {
				t.Errorf("got %+v, %v", got, err)
			}
			if tt.kind != 0 {
				if e := kindOf(t, err); e.Kind != tt.kind {
					t.Errorf("err = %v, want %v", err, tt.kind)
				}
			}
			if asked != tt.asked {
				t.Errorf("%d links asked, want %d", asked, tt.asked)
			}
		})
	}
}

// The error names every link with its cause, and asks to wait for the soonest.
func TestFallbackJoins(t *testing.T) {
	t.Parallel()
	one, two := errors.New("no key"), errors.New("busy")
	link := func(name string, kind llm.Kind, after time.Duration, err error) llm.Link {
		return llm.Link{Name: name, Ask: "m-" + name, Model: llmtest.NewScripted(llmtest.Answer{Err: &llm.Error{Kind: kind, RetryAfter: after, Err: err}})}
	}
	m := llm.Fallback(llm.FallbackOptions{},
		link("first", llm.RateLimited, 50*time.Second, two), link("second", llm.Fatal, 0, one), link("third", llm.Transient, 9*time.Second, errors.New("cut")))
	_, err := m.Complete(t.Context(), ask("hi"))
	e := kindOf(t, err)
	if e.Kind != llm.RateLimited || e.RetryAfter != 9*time.Second {
		t.Errorf("sorted as %v after %v, want the first's kind and the shortest wait", e.Kind, e.RetryAfter)
	}
	for _, want := range []string{"first/m-first", "busy", "second/m-second", "no key", "third/m-third", "cut"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if !errors.Is(err, one) || !errors.Is(err, two) {
		t.Errorf("the causes are lost in %v", err)
	}
}

// Each link asks by its own name; one that has none asks for what the request
// names, and what was asked already is passed over.
func TestFallbackNames(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
		if req.Model == "third" {
			return llm.Response{Text: "ok", Model: "third-2026", Endpoint: "e", Usage: llm.Usage{Prompt: 1}, Cost: 1}, nil
		}
		req.OnDelta("half")
		return llm.Response{Text: "half", Usage: llm.Usage{Prompt: 10}, Cost: 10}, &llm.Error{Kind: llm.Transient, Err: errors.New("cut")}
	})
	var steps []string
	m := llm.Fallback(llm.FallbackOptions{OnFallback: func(_ llm.Request, from, to llm.Link, err error) {
		steps = append(steps, from.String()+">"+to.String())
	}}, llm.Link{Name: "e", Model: endpoint}, llm.Link{Name: "e", Model: endpoint, Ask: "first"}, llm.Link{Name: "e", Model: endpoint, Ask: "second"}, llm.Link{Name: "e", Model: endpoint, Ask: "third"})
	req := ask("hi")
	req.Model = "first"
	restarts := 0
	req.OnDelta, req.OnRestart = func(string) {}, func() { restarts++ }
	got, err := m.Complete(t.Context(), req)
	if err != nil || got.Model != "third-2026" || got.Endpoint != "e" || got.Usage.Prompt != 21 || got.Cost != 21 {
		t.Errorf("got %+v, %v", got, err)
	}
	if !slices.Equal(steps, []string{"e/first>e/second", "e/second>e/third"}) || restarts != 2 {
		t.Errorf("steps %v with %d restarts", steps, restarts)
	}
}

// A caller that is gone is not answered by another model.
func TestFallbackEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	second := llmtest.NewScripted(llmtest.Say("ok"))
	m := llm.Fallback(llm.FallbackOptions{}, llm.Link{Name: "a", Model: llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
		cancel()
		return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: context.Canceled}
	})}, llm.Link{Name: "b", Model: second})
	if _, err := m.Complete(ctx, ask("hi")); !errors.Is(err, context.Canceled) || len(second.Requests()) != 0 {
		t.Errorf("err = %v, %d calls of the second", err, len(second.Requests()))
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	long := llmtest.Fail(llm.TooLong, 0)
	for _, tt := range []struct {
		name    string
		answers []llmtest.Answer
		has     int // rounds for which there is a shorter prompt
		asked   string
		kind    llm.Kind
	}{
		{"fits", []llmtest.Answer{llmtest.Say("ok")}, 3, "hi", 0},
		{"second round", []llmtest.Answer{long, long, llmtest.Say("ok")}, 3, "hi 1 2", 0},
		{"three rounds at most", []llmtest.Answer{long, long, long, long, llmtest.Say("late")}, 9, "hi 1 2 3", llm.TooLong},
		{"nothing shorter", []llmtest.Answer{long, long}, 1, "hi 1", llm.TooLong},
		{"another failure", []llmtest.Answer{llmtest.Fail(llm.Refused, 0)}, 3, "hi", llm.Refused},
		{"no way to shorten", []llmtest.Answer{long}, -1, "hi", llm.TooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inner := llmtest.NewScripted(tt.answers...)
			req := ask("hi")
			if tt.has >= 0 {
				req.Shorten = func(round int) []llm.Message {
					if round > tt.has {
						return nil
					}
					return ask(string(rune('0' + round))).Messages
				}
			}
			got, err := llm.Shorten(inner).Complete(t.Context(), req)
			if tt.kind == 0 && (err != nil || got.Text != "ok") {
				t.Errorf("got %+v, %v", got, err)
			}
			if tt.kind != 0 && kindOf(t, err).Kind != tt.kind {
				t.Errorf("err = %v, want %v", err, tt.kind)
			}
			var asked []string
			for _, r := range inner.Requests() {
				asked = append(asked, r.Messages[1].Content)
			}
			if s := strings.Join(asked, " "); s != tt.asked {
				t.Errorf("asked %q, want %q", s, tt.asked)
			}
		})
	}
}
