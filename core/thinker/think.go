package thinker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/llm"
	"mimikit/prompts"
)

// errSilent is a model that answered nothing.
var errSilent = errors.New("the model answered nothing")

// think asks the primary model and, when it fails or answers nothing, the
// fallback. The error joins what both said.
func (t *Thinker) think(ctx context.Context, w *channel.Work, d prompts.Data) (llm.Response, error) {
	p, err := t.o.Prompts.Compose("thinker", d)
	if err != nil {
		return llm.Response{}, err
	}
	req := llm.Request{
		Agent: "thinker", Model: t.o.ModelName, Messages: p.Messages(),
		Conversation: w.Conversation, TraceID: w.Entries[0].TraceID,
	}
	resp, err := t.ask(ctx, t.o.Model, req)
	if err == nil || t.o.Fallback == nil || ctx.Err() != nil {
		return resp, err
	}
	t.o.Logger.Warn("thinker_fallback", "conversation", w.Conversation, "trace_id", req.TraceID, "model", t.o.FallbackName, "error", err)
	req.Model = t.o.FallbackName
	resp, second := t.ask(ctx, t.o.Fallback, req)
	if second != nil {
		return resp, fmt.Errorf("%w; fallback: %w", err, second)
	}
	return resp, nil
}

// ask makes one call, its answer trimmed.
func (t *Thinker) ask(ctx context.Context, m llm.Model, req llm.Request) (llm.Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.o.Timeout, fmt.Errorf("no answer within %s", t.o.Timeout))
	defer cancel()
	resp, err := m.Complete(ctx, req)
	if err != nil {
		return resp, err
	}
	if resp.Text = strings.TrimSpace(resp.Text); resp.Text == "" {
		return resp, errSilent
	}
	return resp, nil
}

// apology says in plain words why there is no answer and what a person can do.
// It is worded after the primary's failure and carries nothing of the error's
// own text, which may hold addresses or parts of keys.
func apology(err error) string {
	var e *llm.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, errSilent):
		return "I asked the language model, but it answered nothing. What you wrote is kept in this conversation; please ask again, perhaps in other words."
	case errors.Is(err, context.DeadlineExceeded):
		e = &llm.Error{Kind: llm.Transient}
	default:
		e = &llm.Error{}
	}
	switch e.Kind {
	case llm.RateLimited:
		when := "in a few minutes"
		if e.RetryAfter > 0 {
			when = "in " + e.RetryAfter.Round(time.Second).String()
		}
		return "I cannot answer right now: the language model is getting too many requests. What you wrote is kept in this conversation; please ask again " + when + "."
	case llm.Refused:
		return "The language model refused to answer this, so I have no answer for you. Asking it in other words may help."
	case llm.TooLong:
		return "This is more text than the language model can read at once, so I could not answer. Please send less of it, or ask about one part at a time."
	case llm.Transient:
		return "I cannot answer right now: the language model could not be reached or took too long. What you wrote is kept in this conversation; please ask again in a moment."
	case llm.Fatal:
		return "I cannot answer: the language model is not set up correctly, and only an admin can mend that. What you wrote is kept in this conversation; ask again once it is mended."
	}
	return "Something went wrong while I was thinking about this, and I have no answer. What you wrote is kept in this conversation; please ask again."
}
