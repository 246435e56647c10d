package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/sashabaranov/go-openai"
)

// responsesRequest is the request in the words of the Responses API.
func (o *OpenAI) responsesRequest(model string, req Request, h habits) openai.CreateResponseRequest {
	name, effort := o.effort(model)
	keep := false // by default OpenAI keeps every response for a month
	wire := openai.CreateResponseRequest{Model: name, Stream: true, Store: &keep, MaxOutputTokens: req.MaxTokens}
	if effort != "" {
		wire.Reasoning = &openai.ResponseReasoning{Effort: effort}
	}
	if req.Conversation != "" && !h.noCacheKey {
		wire.PromptCacheKey = cacheKey(req.Conversation)
	}
	for _, t := range req.Tools {
		properties := map[string]any{
			"name": t.Name, "parameters": parameters(t.Schema),
			// Strict is the default of this API, and an error for most schemas.
			"strict": strictable(t.Schema),
		}
		if t.Description != "" {
			properties["description"] = t.Description
		}
		wire.Tools = append(wire.Tools, openai.ResponseTool{Type: openai.ToolTypeFunction, Parameters: properties})
	}
	messages := req.Messages
	if req.Schema != nil {
		switch h.format {
		case schemaFormat:
			wire.Text = &openai.ResponseTextConfig{Format: &openai.ResponseTextFormat{
				Type: "json_schema", Name: req.Schema.Name, Schema: req.Schema.Schema, Strict: strictable(req.Schema.Schema),
			}}
		case objectFormat:
			wire.Text = &openai.ResponseTextConfig{Format: &openai.ResponseTextFormat{Type: "json_object"}}
			messages = told(messages, req.Schema)
		case toldFormat:
			messages = told(messages, req.Schema)
		}
	}
	wire.Input = responsesInput(messages)
	return wire
}

// responsesInput is a prompt as the items of the Responses API: calls and
// results are items of their own there.
func responsesInput(messages []Message) []any {
	type call struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	var items []any
	for _, m := range messages {
		if m.Role == ToolRole {
			items = append(items, openai.ResponseFunctionCallOutput{
				Type: "function_call_output", CallID: m.ToolCallID, Output: cmp.Or(m.Content, "(empty)"),
			})
			continue
		}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			items = append(items, openai.ResponseInputMessage{Type: "message", Role: string(m.Role), Content: cmp.Or(m.Content, "(empty)")})
		}
		for _, c := range m.ToolCalls {
			items = append(items, call{"function_call", c.ID, c.Name, validArguments(c.Arguments)})
		}
	}
	return items
}

// An outputItem is a part of a response: a message or a tool call.
type outputItem struct {
	Type      string    `json:"type"`
	CallID    string    `json:"call_id"`
	Name      string    `json:"name"`
	Arguments looseText `json:"arguments"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// A responseEvent is one event of the Responses API: the fields we read.
type responseEvent struct {
	Type        string      `json:"type"`
	Delta       looseText   `json:"delta"`
	Arguments   looseText   `json:"arguments"`
	OutputIndex int         `json:"output_index"`
	Item        *outputItem `json:"item"`
	Response    *struct {
		Model      string          `json:"model"`
		Status     string          `json:"status"`
		Error      json.RawMessage `json:"error"`
		Output     []outputItem    `json:"output"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Total   int `json:"total_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
	Error json.RawMessage `json:"error"`
}

// addEvent takes one event of a Responses stream. Those it does not know are
// passed over: new kinds come often.
func (a *answer) addEvent(raw []byte) error {
	var e responseEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return &Error{Kind: Transient, Err: fmt.Errorf("the stream holds what is no JSON event: %s", raw)}
	}
	if r := e.Response; r != nil {
		a.model = cmp.Or(r.Model, a.model)
		if u := r.Usage; u != nil {
			a.use(u.Input, u.Output, u.Total, u.Details.Cached)
		}
	}
	switch e.Type {
	case "error":
		if len(e.Error) == 0 || bytes.Equal(e.Error, []byte("null")) {
			raw = wrapped(raw) // code and message stand beside the type
		}
		a.fail(readFault(0, raw))
		return nil
	case "response.failed", "response.cancelled":
		fault := json.RawMessage(`{"message":"the endpoint says no more than that the response failed"}`)
		if e.Response != nil && len(e.Response.Error) > 0 && !bytes.Equal(e.Response.Error, []byte("null")) {
			fault = e.Response.Error
		}
		a.fail(readFault(0, wrapped(fault)))
		return nil
	case "":
		if len(e.Error) > 0 && !bytes.Equal(e.Error, []byte("null")) {
			a.fail(readFault(0, raw))
		}
		return nil
	}
	a.began = true
	switch e.Type {
	case "response.output_text.delta":
		return a.addText(string(e.Delta))
	case "response.refusal.delta":
		return a.addRefusal(string(e.Delta))
	case "response.function_call_arguments.delta":
		return a.addCall(e.OutputIndex, "", "", string(e.Delta))
	case "response.function_call_arguments.done":
		return a.setCall(e.OutputIndex, "", "", string(e.Arguments))
	case "response.output_item.added", "response.output_item.done":
		if i := e.Item; i != nil && i.Type == "function_call" {
			return a.setCall(e.OutputIndex, i.CallID, i.Name, string(i.Arguments))
		}
	case "response.completed", "response.incomplete":
		return a.complete(e)
	}
	return nil
}

// setCall takes a tool call's whole arguments, or none yet, in place of the
// pieces that came before.
func (a *answer) setCall(index int, id, name, arguments string) error {
	c := a.call(index)
	if c == nil {
		return a.addCall(index, id, name, arguments)
	}
	c.id, c.name = cmp.Or(id, c.id), cmp.Or(name, c.name)
	if arguments == "" || arguments == c.arguments.String() {
		return nil
	}
	c.arguments.Reset()
	c.arguments.WriteString(arguments)
	return a.grow(len(arguments))
}

// complete takes the last event. It repeats the whole answer, which is taken
// from it where an endpoint sent no pieces.
func (a *answer) complete(e responseEvent) error {
	reason := "stop"
	if e.Response != nil {
		if e.Response.Status == "incomplete" || e.Type == "response.incomplete" {
			reason = cmp.Or(e.Response.Incomplete.Reason, "length")
		}
		if a.text.Len() == 0 && a.refusal.Len() == 0 && len(a.calls) == 0 {
			if err := a.addOutput(e.Response.Output); err != nil {
				return err
			}
		}
	}
	a.end(reason)
	return nil
}

func (a *answer) addOutput(items []outputItem) error {
	for n, i := range items {
		if i.Type == "function_call" {
			if err := a.addCall(n, i.CallID, i.Name, string(i.Arguments)); err != nil {
				return err
			}
			continue
		}
		if i.Type != "message" {
			continue
		}
		for _, part := range i.Content {
			if err := a.addText(part.Text); err != nil {
				return err
			}
			if err := a.addRefusal(part.Refusal); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrapped puts an error's fields where readFault looks for them.
func wrapped(fields []byte) []byte {
	return append(append([]byte(`{"error":`), fields...), '}')
}
