package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// created is the time that answers bear, in Unix seconds: fixed, so that two
// runs send the same bytes.
const created = 1_790_000_000

// A Behavior is what the server does with one valid chat request.
type Behavior func(x *Exchange)

// An Exchange is one request on its way, for behaviours written in a test.
type Exchange struct {
	Call Call

	w    http.ResponseWriter
	gone <-chan struct{}
	quit <-chan struct{}
	open bool // the stream has begun
}

// Writer is the answer's writer.
func (x *Exchange) Writer() http.ResponseWriter { return x.w }

// Wait waits for d, or for ever when d is 0; it ends early, with false, when
// the client is gone or the server closes.
func (x *Exchange) Wait(d time.Duration) bool {
	var after <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-after:
		return true
	case <-x.gone:
	case <-x.quit:
	}
	return false
}

// Raw sends a piece of a stream as it stands and at once.
func (x *Exchange) Raw(s string) {
	if !x.open {
		x.open = true
		x.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		x.w.WriteHeader(http.StatusOK)
	}
	_, _ = io.WriteString(x.w, s) // fails when the client is gone, which is its own affair
	http.NewResponseController(x.w).Flush()
}

// Event sends one data line with v as JSON.
func (x *Exchange) Event(v any) { x.Raw("data: " + mustJSON(v) + "\n\n") }

// Delta sends one chunk with a piece of text.
func (x *Exchange) Delta(text string) { x.chunk(map[string]any{"content": text}, nil) }

// Text sends text as chunks of a word each.
func (x *Exchange) Text(text string) {
	if text == "" {
		return
	}
	for _, word := range strings.SplitAfter(text, " ") {
		x.Delta(word)
	}
}

// Finish sends the finish reason, the usage if it was asked for, and [DONE].
func (x *Exchange) Finish(reason string, completion int) {
	x.chunk(map[string]any{}, reason)
	if o := x.Call.Chat.StreamOptions; o != nil && o.IncludeUsage {
		event := x.base()
		event["choices"] = []any{}
		event["usage"] = x.usage(completion)
		x.Event(event)
	}
	x.Raw("data: [DONE]\n\n")
}

func (x *Exchange) chunk(delta map[string]any, finish any) {
	event := x.base()
	event["choices"] = []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
	if o := x.Call.Chat.StreamOptions; o != nil && o.IncludeUsage {
		event["usage"] = nil
	}
	x.Event(event)
}

func (x *Exchange) base() map[string]any {
	return map[string]any{
		"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": created, "model": x.Call.Chat.Model,
		"service_tier": "default", "system_fingerprint": "fp_test",
	}
}

// usage counts words for tokens.
func (x *Exchange) usage(completion int) map[string]any {
	prompt := 0
	for _, m := range x.Call.Chat.Messages {
		prompt += len(strings.Fields(*m.Content))
	}
	return map[string]any{
		"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
		"prompt_tokens_details": map[string]any{"cached_tokens": prompt / 2, "audio_tokens": 0},
	}
}

// Answers is the good case: it answers text, streamed by words where that is
// asked for, in one piece where it is not.
func Answers(text string) Behavior { return AnswersWith(text, "stop") }

// AnswersWith is Answers with another finish reason, such as "length" or "content_filter".
func AnswersWith(text, finish string) Behavior {
	return func(x *Exchange) {
		words := len(strings.Fields(text))
		if x.Call.Chat.Stream {
			x.chunk(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
			x.Text(text)
			x.Finish(finish, words)
			return
		}
		body := x.base()
		body["object"] = "chat.completion"
		body["choices"] = []any{map[string]any{
			"index": 0, "logprobs": nil, "finish_reason": finish,
			"message": map[string]any{"role": "assistant", "content": text, "refusal": nil},
		}}
		body["usage"] = x.usage(words)
		writeJSON(x.w, http.StatusOK, body)
	}
}

// Slow answers text with a pause before each word.
func Slow(text string, pause time.Duration) Behavior {
	return func(x *Exchange) {
		words := strings.SplitAfter(text, " ")
		for _, word := range words {
			if !x.Wait(pause) {
				return
			}
			x.Delta(word)
		}
		x.Finish("stop", len(words))
	}
}

// Keepalives answers text after n comment lines, as proxies send while a model thinks.
func Keepalives(n int, text string) Behavior {
	return func(x *Exchange) {
		x.Raw(strings.Repeat(": keepalive\n\n", n))
		Answers(text)(x)
	}
}

// Fails answers with a status and OpenAI's error JSON.
func Fails(status int, kind, code, message string) Behavior {
	return func(x *Exchange) { writeError(x.w, status, kind, code, message) }
}

// RateLimited answers 429; retryAfter is the header's text, in seconds or as a
// date, and no header is sent when it is empty.
func RateLimited(retryAfter string) Behavior {
	return func(x *Exchange) {
		if retryAfter != "" {
			x.w.Header().Set("Retry-After", retryAfter)
		}
		writeError(x.w, http.StatusTooManyRequests, "requests", "rate_limit_exceeded",
			"Rate limit reached for requests. Please try again later.")
	}
}

// NoQuota answers 429 as OpenAI does when the account has no money left.
func NoQuota() Behavior {
	return Fails(http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota",
		"You exceeded your current quota, please check your plan and billing details.")
}

// TooLong answers 400 as OpenAI does when the prompt is over the window.
func TooLong() Behavior {
	return Fails(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded",
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.")
}

// HTML answers with a status and a page, as a proxy in front of a dead endpoint does.
func HTML(status int) Behavior {
	return func(x *Exchange) {
		x.w.Header().Set("Content-Type", "text/html")
		x.w.WriteHeader(status)
		fmt.Fprintf(x.w, "<html><head><title>%d</title></head><body>nginx</body></html>\n", status)
	}
}

// Hangs sends no header until the client gives up.
func Hangs() Behavior { return func(x *Exchange) { x.Wait(0) } }

// HangsAfter streams text and then nothing until the client gives up.
func HangsAfter(text string) Behavior {
	return func(x *Exchange) {
		x.Text(text)
		x.Wait(0)
	}
}

// Cut streams text and ends in good order, without finish reason and [DONE].
func Cut(text string) Behavior { return func(x *Exchange) { x.Text(text) } }

// Drops streams text and then drops the connection.
func Drops(text string) Behavior {
	return func(x *Exchange) {
		x.Text(text)
		panic(http.ErrAbortHandler)
	}
}

// BreaksOff streams text and then an error in the stream, in the way of
// OpenRouter: an error object beside the finish reason "error".
func BreaksOff(text string) Behavior {
	return func(x *Exchange) {
		x.Text(text)
		event := x.base()
		event["error"] = map[string]any{"code": 502, "message": "Provider disconnected"}
		event["choices"] = []any{map[string]any{"index": 0, "delta": map[string]any{"content": ""}, "finish_reason": "error"}}
		x.Event(event)
		x.Raw("data: [DONE]\n\n")
	}
}

// FinishError streams text and ends with the bare finish reason "error".
func FinishError(text string) Behavior { return AnswersWith(text, "error") }

// ErrorEvent streams text and then {"error": ...} with v as its value.
func ErrorEvent(text string, v any) Behavior {
	return func(x *Exchange) {
		x.Text(text)
		x.Event(map[string]any{"error": v})
	}
}

// Nonsense streams text and then a line of data that is no JSON.
func Nonsense(text string) Behavior {
	return func(x *Exchange) {
		x.Text(text)
		x.Raw("data: {\"choices\": [[[ oops\n\n")
	}
}

// Refuses answers with OpenAI's refusal in place of content.
func Refuses(reason string) Behavior {
	return func(x *Exchange) {
		x.chunk(map[string]any{"role": "assistant", "refusal": reason}, nil)
		x.Finish("stop", 0)
	}
}

// OldServer knows streaming but refuses stream_options; otherwise it does as next.
func OldServer(next Behavior) Behavior {
	return func(x *Exchange) {
		if x.Call.Chat.StreamOptions != nil {
			writeError(x.w, http.StatusBadRequest, "invalid_request_error", "", "Unrecognized request argument supplied: stream_options")
			return
		}
		next(x)
	}
}

// Redirects answers with a temporary redirect to another place.
func Redirects(to string) Behavior {
	return func(x *Exchange) {
		x.w.Header().Set("Location", to)
		x.w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("test endpoint: event %v: %v", v, err))
	}
	return string(b)
}
