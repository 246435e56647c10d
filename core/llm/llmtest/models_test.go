package llmtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(text string) llm.Request {
	return llm.Request{Agent: "thinker", Messages: []llm.Message{{Role: llm.System, Content: "s"}, {Role: llm.User, Content: text}}}
}

func TestScripted(t *testing.T) {
	t.Parallel()
	m := llmtest.NewScripted(llmtest.Say("one two"), llmtest.Fail(llm.RateLimited, time.Second))
	m.Add(llmtest.Answer{Text: "cut", Finish: "length", Usage: llm.Usage{Prompt: 3}})

	var heard []string
	req := ask("a")
	req.OnDelta = func(s string) { heard = append(heard, s) }
	if res, err := m.Complete(t.Context(), req); err != nil || res.Text != "one two" || res.Finish != "stop" || strings.Join(heard, "|") != "one |two" {
		t.Errorf("first: %+v, %v, heard %q", res, err, heard)
	}
	var e *llm.Error
	if _, err := m.Complete(t.Context(), ask("b")); !errors.As(err, &e) || e.Kind != llm.RateLimited || e.RetryAfter != time.Second {
		t.Errorf("second: %v, want rate_limited after 1s", err)
	}
	if res, err := m.Complete(t.Context(), ask("c")); err != nil || res.Finish != "length" || res.Usage.Prompt != 3 {
		t.Errorf("third: %+v, %v", res, err)
	}
	if _, err := m.Complete(t.Context(), ask("d")); !errors.As(err, &e) || e.Kind != llm.Fatal || !strings.Contains(err.Error(), "request 4") {
		t.Errorf("fourth: %v, want a fatal one that names request 4", err)
	}
	if got := m.Requests(); len(got) != 4 || got[2].Messages[1].Content != "c" {
		t.Errorf("requests = %+v, want all four", got)
	}
}

func TestFunc(t *testing.T) {
	t.Parallel()
	m := llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
		return llm.Response{Text: "for " + req.Agent}, nil
	})
	if res, err := m.Complete(t.Context(), ask("a")); err != nil || res.Text != "for thinker" || len(m.Requests()) != 1 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestEchoAndInstant(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]llm.Model{"hello": llmtest.Echo{}, "ok": llmtest.Instant{}, "set": llmtest.Instant{Text: "set"}} {
		if res, err := m.Complete(t.Context(), ask("hello")); err != nil || res.Text != want {
			t.Errorf("%T: got %+v, %v; want %q", m, res, err, want)
		}
	}
	if _, err := (llmtest.Echo{}).Complete(t.Context(), llm.Request{}); err == nil {
		t.Error("echo of nothing: no error")
	}
}

func TestBlocking(t *testing.T) {
	t.Parallel()
	m := llmtest.NewBlocking("free")
	done := make(chan string)
	go func() {
		res, err := m.Complete(context.Background(), ask("a"))
		if err != nil {
			res.Text = err.Error()
		}
		done <- res.Text
	}()
	if req := <-m.Started(); req.Agent != "thinker" {
		t.Errorf("started %+v", req)
	}
	m.Release()
	m.Release()
	if got := <-done; got != "free" {
		t.Errorf("got %q, want free", got)
	}
}

// A model owes its caller the context's error, and its cause.
func TestModelsEnd(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	for _, m := range []llm.Model{llmtest.NewScripted(llmtest.Say("x")), llmtest.Echo{}, llmtest.Instant{}, llmtest.NewBlocking("x")} {
		_, err := m.Complete(ctx, ask("a"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.Transient || !errors.Is(err, context.Canceled) || !errors.Is(err, stop) {
			t.Errorf("%T: err = %v, want a transient one that wraps the cause", m, err)
		}
	}
}
