// Package llm is the one door to language models.
//
// [Model] is an interface of one method. Everything else, an OpenAI-compatible
// endpoint, the offline demo model, and wrappers that retry or account, is an
// implementation of it, so a caller never knows which it talks to. A caller is
// promised that Complete returns within its context, that a response was
// finished (a stream that was cut is an error, never a short answer), and that
// every error is an [*Error] sorted by what can be done about it.
package llm

import (
	"context"
	"fmt"
	"time"
)

// A Model answers one request. Implementations are safe for concurrent use.
type Model interface {
	Complete(ctx context.Context, req Request) (Response, error)
}

// A Role says who speaks in a prompt.
type Role string

// The roles of prompt messages.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one message of a prompt.
type Message struct {
	Role    Role
	Content string
}

// A Request is one model call.
type Request struct {
	Agent        string // which role of ours asks: "teller-digest", "teller", "thinker", …
	Model        string // the model's name; empty means the endpoint's default
	Messages     []Message
	MaxTokens    int    // upper bound of the answer; 0 leaves it to the endpoint
	Conversation string // conversation key, for fairness and accounting
	TraceID      string
	OnDelta      func(text string) // when set, the answer is streamed to it as it comes; called from one goroutine
}

// A Response is a finished answer.
type Response struct {
	Text   string
	Model  string // the model that answered, as the endpoint names it
	Usage  Usage
	Finish string // "stop" or "length"
	Took   time.Duration
}

// Usage is what a call cost, in tokens as the endpoint counts them.
type Usage struct {
	Prompt, Completion, Cached int
}

// A Kind says what can be done about a failed call.
type Kind int

// The kinds of failure. The zero Kind is invalid.
const (
	RateLimited Kind = 1 // try again after RetryAfter
	Refused     Kind = 2 // the endpoint will not answer this prompt; another prompt may do
	TooLong     Kind = 3 // the prompt is over the model's window; shorten it
	Transient   Kind = 4 // network, overload, a cut stream, a timeout: try again
	Fatal       Kind = 5 // key, model name or request is wrong; nobody but an operator can mend it
)

// String names the kind as logs and metrics spell it.
func (k Kind) String() string {
	switch k {
	case RateLimited:
		return "rate_limited"
	case Refused:
		return "refused"
	case TooLong:
		return "too_long"
	case Transient:
		return "transient"
	case Fatal:
		return "fatal"
	}
	return "unknown"
}

// An Error is a failed call.
type Error struct {
	Kind       Kind
	RetryAfter time.Duration // how long the endpoint asked to wait; 0 when it did not say
	Err        error
}

// Error says what failed and how it was sorted.
func (e *Error) Error() string { return fmt.Sprintf("model call (%s): %v", e.Kind, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
