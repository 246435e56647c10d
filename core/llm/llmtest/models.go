// Package llmtest holds models and an endpoint to test against.
//
// They are working parts, not mocks: a test says what they answer and then
// looks at what came of it. [Scripted], [Echo], [Instant] and [Blocking] are
// models; [Server] is an endpoint that speaks OpenAI's chat completions and
// Responses API as its documentation describes them, and can be told, request by
// request, to fail in every way that endpoints are known to fail. [Recorder] and
// [Replay] keep the answers of a real endpoint for tests without one. All are
// safe for concurrent use.
package llmtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mimikit/core/llm"
)

// An Answer is one answer of a [Scripted] model: a text, or an error.
type Answer struct {
	Text      string
	ToolCalls []llm.ToolCall
	Finish    string // when empty "stop", or "tool_calls" with ToolCalls
	Usage     llm.Usage
	Err       error // returned as it is; wrap it in *llm.Error to keep the promise of llm.Model
}

// Say is the answer with this text.
func Say(text string) Answer { return Answer{Text: text} }

// Use is the answer that calls tools.
func Use(calls ...llm.ToolCall) Answer { return Answer{ToolCalls: calls} }

// Fail is the failed call of this kind.
func Fail(kind llm.Kind, retryAfter time.Duration) Answer {
	return Answer{Err: &llm.Error{Kind: kind, RetryAfter: retryAfter, Err: fmt.Errorf("scripted %s", kind)}}
}

// Scripted answers from a list, in order, or by a function, and keeps every
// request. A request beyond the end of the list fails as llm.Fatal.
type Scripted struct {
	mu       sync.Mutex
	answers  []Answer
	by       func(ctx context.Context, req llm.Request) (llm.Response, error)
	requests []llm.Request
}

// NewScripted answers the first request with the first answer, and so on.
func NewScripted(answers ...Answer) *Scripted { return &Scripted{answers: answers} }

// NewFunc answers every request by calling by, from as many goroutines as call Complete.
func NewFunc(by func(ctx context.Context, req llm.Request) (llm.Response, error)) *Scripted {
	return &Scripted{by: by}
}

// Add appends answers to the list.
func (s *Scripted) Add(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// Requests returns what was asked so far, in order of arrival.
func (s *Scripted) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Complete implements llm.Model.
func (s *Scripted) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, req)
	n := len(s.requests)
	by := s.by
	var a Answer
	if by == nil {
		if len(s.answers) == 0 {
			a.Err = &llm.Error{Kind: llm.Fatal, Err: fmt.Errorf("the script has no answer for request %d (agent %q)", n, req.Agent)}
		} else {
			a, s.answers = s.answers[0], s.answers[1:]
		}
	}
	s.mu.Unlock()

	if by != nil {
		return by(ctx, req)
	}
	if err := ended(ctx); err != nil {
		return llm.Response{}, err
	}
	if a.Err != nil {
		return llm.Response{Usage: a.Usage}, a.Err
	}
	res := answer(req, a.Text)
	res.Usage, res.ToolCalls = a.Usage, a.ToolCalls
	if len(a.ToolCalls) > 0 {
		res.Finish = "tool_calls"
	}
	if a.Finish != "" {
		res.Finish = a.Finish
	}
	return res, nil
}

// Echo answers with the content of the last user message.
type Echo struct{}

// Complete implements llm.Model.
func (Echo) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	if err := ended(ctx); err != nil {
		return llm.Response{}, err
	}
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == llm.User {
			return answer(req, m.Content), nil
		}
	}
	return llm.Response{}, &llm.Error{Kind: llm.Fatal, Err: fmt.Errorf("echo: none of %d messages is a user's", len(req.Messages))}
}

// Instant answers every request at once with the same text, "ok" when empty:
// what is left of a turn's time is ours. It is the model of the bench.
type Instant struct{ Text string }

// Complete implements llm.Model.
func (i Instant) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	if err := ended(ctx); err != nil {
		return llm.Response{}, err
	}
	if i.Text == "" {
		i.Text = "ok"
	}
	return answer(req, i.Text), nil
}

// Blocking holds every call until it is released or the call's context ends.
type Blocking struct {
	text    string
	started chan llm.Request
	open    chan struct{}
	once    sync.Once
}

// NewBlocking answers text to every call once it is released. It remembers up
// to 1,024 started calls that nobody took from Started.
func NewBlocking(text string) *Blocking {
	return &Blocking{text: text, started: make(chan llm.Request, 1024), open: make(chan struct{})}
}

// Started gives each request as its call begins to wait.
func (b *Blocking) Started() <-chan llm.Request { return b.started }

// Release lets all waiting and all later calls go. A second Release does nothing.
func (b *Blocking) Release() { b.once.Do(func() { close(b.open) }) }

// Complete implements llm.Model.
func (b *Blocking) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	select {
	case b.started <- req:
	default: // nobody looks; the call itself matters more
	}
	select {
	case <-ctx.Done():
		return llm.Response{}, ended(ctx)
	case <-b.open:
		return answer(req, b.text), nil
	}
}

// ended is the error a model owes a caller whose context is over, nil while it is not.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &llm.Error{Kind: llm.Transient, Err: fmt.Errorf("test model: %w (%w)", ctx.Err(), context.Cause(ctx))}
}

func answer(req llm.Request, text string) llm.Response {
	if req.OnDelta != nil && text != "" {
		for _, word := range strings.SplitAfter(text, " ") {
			req.OnDelta(word)
		}
	}
	model := req.Model
	if model == "" {
		model = "test"
	}
	return llm.Response{Text: text, Model: model, Finish: "stop"}
}
