// Package llm is the one door to language models.
//
// [Model] is an interface of one method. Everything else, an OpenAI-compatible
// endpoint, the offline demo model, and wrappers that retry, fall back or keep
// accounts, is an implementation of it, so a caller never knows which it talks
// to. A caller is promised that Complete returns within its context, that a
// response was finished (a stream that was cut is an error, never a short
// answer), and that every error is an [*Error] sorted by what can be done about
// it. [NewStack] puts the wrappers together in the one order that works.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Model answers one request. Implementations are safe for concurrent use.
//
// Beside an error the Response says what is known of the failed call, because
// it may have cost something: Model, Endpoint, Usage, Cost, Warnings, Took, and
// in Text and ToolCalls what came before it failed, which is void as an answer.
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
	ToolRole  Role = "tool" // the result of a tool call
)

// A Message is one message of a prompt.
type Message struct {
	Role       Role
	Content    string
	ToolCalls  []ToolCall // of an assistant: the tools it called
	ToolCallID string     // of a tool: the call that this is the result of
}

// A Tool is something a model may call.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage // JSON schema of the arguments; empty means none are taken
}

// A ToolCall is a model's wish to call a tool. Nobody has checked it: the name
// may be of no tool, and Arguments are as the model wrote them, JSON text that
// may be broken.
type ToolCall struct{ ID, Name, Arguments string }

// A Schema asks for an answer that is JSON of one shape. Where an endpoint
// cannot hold its model to a schema the model is only told of it, so the answer
// is to be checked all the same.
type Schema struct {
	Name   string // letters, digits, "_" and "-", at most 64
	Schema json.RawMessage
}

// A Request is one model call.
type Request struct {
	Agent        string // which role of ours asks: "teller-digest", "teller", "thinker", …
	Model        string // the model's name; empty means the endpoint's default
	Messages     []Message
	Tools        []Tool  // what the model may call
	Schema       *Schema // when set, the answer is JSON of this shape
	MaxTokens    int     // upper bound of the answer; 0 leaves it to the endpoint
	Conversation string  // conversation key, for fairness and accounting
	TraceID      string

	// Whose account the call goes to: opaque keys, "" where there is none.
	User, Place, Workspace, Task string

	// OnDelta, when set, hears the answer's text as it comes, from one goroutine
	// at a time. OnRestart is called when what it heard is void, because the
	// answer is begun anew; it is not called before the first piece.
	OnDelta   func(text string)
	OnRestart func()

	// Shorten, when set, gives a shorter prompt after the model found the last
	// one too long, for round 1, 2 and 3; nil when there is none.
	Shorten func(round int) []Message
}

// A Response is a finished answer.
type Response struct {
	Text      string
	ToolCalls []ToolCall
	Model     string // the model that answered, as the endpoint names it
	Endpoint  string // where it answered: the base URL, or a model's own name for itself
	Usage     Usage  // of all calls that this answer took, failed ones too
	Cost      int64  // of all calls likewise, in millionths of the currency of the prices; 0 when unpriced
	Finish    string // "stop", "length" or "tool_calls"
	Took      time.Duration
	Warnings  []BudgetWarning // budgets that these calls brought near their end
}

// Usage is what a call used, in tokens as the endpoint counts them.
type Usage struct {
	Prompt, Completion, Cached int  // Cached is the part of Prompt that the endpoint had kept
	Estimated                  bool // the endpoint did not say, and this was counted here
}

// plus adds what another call used.
func (u Usage) plus(v Usage) Usage {
	return Usage{u.Prompt + v.Prompt, u.Completion + v.Completion, u.Cached + v.Cached, u.Estimated || v.Estimated}
}

// known reports whether there is anything in it.
func (u Usage) known() bool { return u.Prompt > 0 || u.Completion > 0 }

// after adds what earlier attempts at the same answer used.
func (r Response) after(earlier Response) Response {
	r.Usage = r.Usage.plus(earlier.Usage)
	r.Cost += earlier.Cost
	r.Warnings = append(earlier.Warnings[:len(earlier.Warnings):len(earlier.Warnings)], r.Warnings...)
	return r
}

// spent is what remains of a failed attempt: what it used, and where.
func (r Response) spent() Response {
	return Response{Model: r.Model, Endpoint: r.Endpoint, Usage: r.Usage, Cost: r.Cost, Warnings: r.Warnings, Took: r.Took}
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
	OverBudget  Kind = 6 // a budget is spent; the cause is a *BudgetError and no model was called
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
	case OverBudget:
		return "over_budget"
	}
	return "unknown"
}

// passing reports whether the same call may succeed later.
func (k Kind) passing() bool { return k == Transient || k == RateLimited }

// An Error is a failed call.
type Error struct {
	Kind       Kind
	RetryAfter time.Duration // how long the endpoint asked to wait; 0 when it did not say
	Began      bool          // the endpoint had begun to answer, so it may charge for it
	Err        error
}

// Error says what failed and how it was sorted.
func (e *Error) Error() string { return fmt.Sprintf("model call (%s): %v", e.Kind, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
