package llmtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"mimikit/core/llm"
)

// A Behavior is what the server does with one valid request.
type Behavior func(x *Exchange)

// Answers is the good case: it answers text, streamed by words where that is
// asked for, in one piece where it is not.
func Answers(text string) Behavior { return AnswersWith(text, "stop") }

// AnswersWith is Answers with another finish reason, such as "length" or "content_filter".
func AnswersWith(text, finish string) Behavior {
	return func(x *Exchange) { x.answer(text, finish, nil) }
}

// CallsTools answers with tool calls, after text if there is any.
func CallsTools(text string, calls ...llm.ToolCall) Behavior {
	return func(x *Exchange) { x.answer(text, "tool_calls", calls) }
}

// answer sends a whole answer. Each word of text and each tool call counts as a
// token.
func (x *Exchange) answer(text, finish string, calls []llm.ToolCall) {
	tokens := len(strings.Fields(text)) + len(calls)
	stream := x.Call.Chat.Stream
	if r := x.Call.Responses; r != nil {
		stream = r.Stream
	}
	switch {
	case stream:
		if x.Call.Responses == nil {
			x.chunk(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
		}
		x.Text(text)
		for i, c := range calls {
			x.ToolCall(i, c)
		}
		x.Finish(finish, tokens)
	case x.Call.Responses != nil:
		x.wholeResponse(text, finish, calls, tokens)
	default:
		message := map[string]any{"role": "assistant", "content": text, "refusal": nil}
		var wire []any
		for _, c := range calls {
			wire = append(wire, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
		}
		if wire != nil {
			message["tool_calls"] = wire
		}
		body := x.base()
		body["object"] = "chat.completion"
		body["choices"] = []any{map[string]any{"index": 0, "logprobs": nil, "finish_reason": finish, "message": message}}
		if !x.noUsage {
			body["usage"] = x.usage(tokens)
		}
		writeJSON(x.w, http.StatusOK, body)
	}
}

// WithoutUsage does as next but reports no usage, as many small servers do.
func WithoutUsage(next Behavior) Behavior {
	return func(x *Exchange) {
		x.noUsage = true
		next(x)
	}
}

// ResponsesOnly serves the model by the Responses API and refuses it elsewhere,
// in OpenAI's words.
func ResponsesOnly(next Behavior) Behavior {
	return func(x *Exchange) {
		if x.Call.Responses == nil {
			writeError(x.w, http.StatusNotFound, "invalid_request_error", "",
				"This model is only supported in v1/responses and not in v1/chat/completions.")
			return
		}
		next(x)
	}
}

// ChatOnly is a server that has no Responses API.
func ChatOnly(next Behavior) Behavior {
	return func(x *Exchange) {
		if x.Call.Responses != nil {
			writeError(x.w, http.StatusNotFound, "invalid_request_error", "unknown_url", "Unknown request URL: POST /v1/responses.")
			return
		}
		next(x)
	}
}

// WithoutFormats refuses the named types of structured output, such as
// "json_schema".
func WithoutFormats(next Behavior, types ...string) Behavior {
	return func(x *Exchange) {
		f := x.Call.Chat.ResponseFormat
		if r := x.Call.Responses; r != nil {
			f = r.Text.Format
		}
		if f != nil && slices.Contains(types, f.Type) {
			writeError(x.w, http.StatusBadRequest, "invalid_request_error", "",
				fmt.Sprintf("Invalid parameter: 'response_format' of type '%s' is not supported with this model.", f.Type))
			return
		}
		next(x)
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

// BreaksOff streams text and then an error in the stream: in the way of
// OpenRouter, an error object beside the finish reason "error", or the
// Responses API's response.failed.
func BreaksOff(text string) Behavior {
	return func(x *Exchange) {
		x.Text(text)
		if x.Call.Responses != nil {
			x.failResponse("server_error", "Provider disconnected")
			return
		}
		event := x.base()
		event["error"] = map[string]any{"code": 502, "message": "Provider disconnected"}
		event["choices"] = []any{map[string]any{"index": 0, "delta": map[string]any{"content": ""}, "finish_reason": "error"}}
		x.Event(event)
		x.Raw("data: [DONE]\n\n")
	}
}

// FinishError streams text and ends with the bare finish reason "error".
func FinishError(text string) Behavior { return AnswersWith(text, "error") }

// ErrorEvent streams text and then {"error": ...} with v as its value, or the
// Responses API's event of that name.
func ErrorEvent(text string, v any) Behavior {
	return func(x *Exchange) {
		x.Text(text)
		if fields, ok := v.(map[string]any); ok && x.Call.Responses != nil {
			x.event("error", map[string]any{"code": fields["code"], "message": fields["message"], "param": nil})
			return
		}
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
		x.Refusal(reason)
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
