package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mimikit/core/llm"
)

// created is the time that answers bear, in Unix seconds: fixed, so that two
// runs send the same bytes.
const created = 1_790_000_000

// An Exchange is one request on its way, for behaviours written in a test. Its
// verbs speak the API of the request.
type Exchange struct {
	Call Call

	w       http.ResponseWriter
	gone    <-chan struct{}
	quit    <-chan struct{}
	open    bool // the stream has begun
	noUsage bool
	begun   bool  // of the Responses API: response.created was sent
	output  []any // of the Responses API: the finished items
	text    string
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

// Delta sends a piece of text.
func (x *Exchange) Delta(text string) {
	if x.Call.Responses != nil {
		x.text += text
		x.event("response.output_text.delta", map[string]any{"item_id": "msg_test", "output_index": 0, "content_index": 0, "delta": text})
		return
	}
	x.chunk(map[string]any{"content": text}, nil)
}

// Text sends text in pieces of a word each.
func (x *Exchange) Text(text string) {
	if text == "" {
		return
	}
	for _, word := range strings.SplitAfter(text, " ") {
		x.Delta(word)
	}
}

// Refusal sends a refusal in place of text.
func (x *Exchange) Refusal(reason string) {
	if x.Call.Responses != nil {
		x.event("response.refusal.delta", map[string]any{"item_id": "msg_test", "output_index": 0, "content_index": 0, "delta": reason})
		return
	}
	x.chunk(map[string]any{"role": "assistant", "refusal": reason}, nil)
}

// ToolCall sends the answer's tool call number i, its arguments in two pieces.
func (x *Exchange) ToolCall(i int, c llm.ToolCall) {
	half := len(c.Arguments) / 2
	pieces := []string{c.Arguments[:half], c.Arguments[half:]}
	if x.Call.Responses != nil {
		x.responsesToolCall(i+1, c, pieces)
		return
	}
	piece := func(fields map[string]any) {
		fields["index"] = i
		x.chunk(map[string]any{"tool_calls": []any{fields}}, nil)
	}
	piece(map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}})
	for _, p := range pieces {
		piece(map[string]any{"function": map[string]any{"arguments": p}})
	}
}

// Finish sends the finish reason, the usage where it belongs, and the end.
func (x *Exchange) Finish(reason string, completion int) {
	if x.Call.Responses != nil {
		x.finishResponse(reason, completion)
		return
	}
	x.chunk(map[string]any{}, reason)
	if o := x.Call.Chat.StreamOptions; o != nil && o.IncludeUsage && !x.noUsage {
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

// promptWords counts words for tokens.
func (x *Exchange) promptWords() int {
	n := 0
	count := func(s *string) {
		if s != nil {
			n += len(strings.Fields(*s))
		}
	}
	for _, m := range x.Call.Chat.Messages {
		count(m.Content)
	}
	if r := x.Call.Responses; r != nil {
		for _, i := range r.Input {
			count(i.Content)
			count(i.Output)
		}
	}
	return n
}

func (x *Exchange) usage(completion int) map[string]any {
	prompt := x.promptWords()
	return map[string]any{
		"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
		"prompt_tokens_details": map[string]any{"cached_tokens": prompt / 2, "audio_tokens": 0},
	}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("test endpoint: event %v: %v", v, err))
	}
	return string(b)
}
