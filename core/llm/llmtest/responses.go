package llmtest

import (
	"net/http"

	"mimikit/core/llm"
)

// event sends one event of the Responses API, response.created before the first.
func (x *Exchange) event(kind string, fields map[string]any) {
	if !x.begun {
		x.begun = true
		x.event("response.created", map[string]any{"response": x.response("in_progress", nil)})
	}
	fields["type"] = kind
	x.Raw("event: " + kind + "\n")
	x.Event(fields)
}

// response is the response object in one of its states.
func (x *Exchange) response(status string, more map[string]any) map[string]any {
	r := map[string]any{
		"id": "resp_test", "object": "response", "created_at": created, "status": status, "model": x.Call.Responses.Model,
		"error": nil, "incomplete_details": nil, "output": []any{}, "usage": nil,
	}
	for k, v := range more {
		r[k] = v
	}
	return r
}

func (x *Exchange) responsesUsage(completion int) any {
	if x.noUsage {
		return nil
	}
	prompt := x.promptWords()
	return map[string]any{
		"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion,
		"input_tokens_details":  map[string]any{"cached_tokens": prompt / 2},
		"output_tokens_details": map[string]any{"reasoning_tokens": 0},
	}
}

func messageItem(text string) map[string]any {
	return map[string]any{
		"type": "message", "id": "msg_test", "status": "completed", "role": "assistant",
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}},
	}
}

func callItem(c llm.ToolCall, arguments, status string) map[string]any {
	return map[string]any{
		"type": "function_call", "id": "fc_" + c.ID, "status": status, "call_id": c.ID, "name": c.Name, "arguments": arguments,
	}
}

func (x *Exchange) responsesToolCall(index int, c llm.ToolCall, pieces []string) {
	x.event("response.output_item.added", map[string]any{"output_index": index, "item": callItem(c, "", "in_progress")})
	for _, p := range pieces {
		x.event("response.function_call_arguments.delta", map[string]any{"item_id": "fc_" + c.ID, "output_index": index, "delta": p})
	}
	x.event("response.function_call_arguments.done", map[string]any{"item_id": "fc_" + c.ID, "output_index": index, "arguments": c.Arguments})
	done := callItem(c, c.Arguments, "completed")
	x.event("response.output_item.done", map[string]any{"output_index": index, "item": done})
	x.output = append(x.output, done)
}

func (x *Exchange) finishResponse(reason string, completion int) {
	kind, body := x.final(reason, completion)
	x.event(kind, map[string]any{"response": body})
}

// final is the last event's name and the response in it, for a finish reason in
// the words of chat completions.
func (x *Exchange) final(reason string, completion int) (string, map[string]any) {
	output := x.output
	if x.text != "" {
		output = append([]any{messageItem(x.text)}, output...)
	}
	if output == nil {
		output = []any{}
	}
	more := map[string]any{"output": output, "usage": x.responsesUsage(completion)}
	switch reason {
	case "length":
		more["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
		return "response.incomplete", x.response("incomplete", more)
	case "content_filter":
		more["incomplete_details"] = map[string]any{"reason": "content_filter"}
		return "response.incomplete", x.response("incomplete", more)
	case "error":
		more["error"] = map[string]any{"code": "server_error", "message": "The server had an error while processing your request: it broke off."}
		return "response.failed", x.response("failed", more)
	}
	return "response.completed", x.response("completed", more)
}

// failResponse ends the stream with response.failed.
func (x *Exchange) failResponse(code, message string) {
	x.event("response.failed", map[string]any{"response": x.response("failed", map[string]any{
		"error": map[string]any{"code": code, "message": message},
	})})
}

// wholeResponse answers in one piece.
func (x *Exchange) wholeResponse(text, finish string, calls []llm.ToolCall, tokens int) {
	x.text = text
	for _, c := range calls {
		x.output = append(x.output, callItem(c, c.Arguments, "completed"))
	}
	_, body := x.final(finish, tokens)
	writeJSON(x.w, http.StatusOK, body)
}
