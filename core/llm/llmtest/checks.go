package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Chat is the body of a chat request: the fields that the server heeds.
type Chat struct {
	Model               string         `json:"model"`
	Messages            []Message      `json:"messages"`
	Tools               []Tool         `json:"tools"`
	ResponseFormat      *Format        `json:"response_format"`
	Stream              bool           `json:"stream"`
	StreamOptions       *StreamOptions `json:"stream_options"`
	MaxTokens           int            `json:"max_tokens"`
	MaxCompletionTokens int            `json:"max_completion_tokens"`
	ReasoningEffort     string         `json:"reasoning_effort"`
	PromptCacheKey      string         `json:"prompt_cache_key"`
}

// A Message is a message on the wire.
type Message struct {
	Role       string         `json:"role"`
	Content    *string        `json:"content"`
	ToolCalls  []ChatToolCall `json:"tool_calls"`
	ToolCallID string         `json:"tool_call_id"`
}

// A ChatToolCall is a tool call in the words of chat completions.
type ChatToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// A Tool is a tool on the wire; chat completions put its fields into Function.
type Tool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Strict     *bool           `json:"strict"`
	Function   *Tool           `json:"function"`
}

// A Format asks for structured output. Chat completions put the schema's
// fields into JSONSchema.
type Format struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Schema     json.RawMessage `json:"schema"`
	Strict     bool            `json:"strict"`
	JSONSchema *Format         `json:"json_schema"`
}

// StreamOptions are those of a request.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Responses is the body of a request of the Responses API: the fields that the
// server heeds.
type Responses struct {
	Model           string `json:"model"`
	Input           []Item `json:"input"`
	Tools           []Tool `json:"tools"`
	Stream          bool   `json:"stream"`
	Store           *bool  `json:"store"`
	MaxOutputTokens int    `json:"max_output_tokens"`
	PromptCacheKey  string `json:"prompt_cache_key"`
	Reasoning       struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Text struct {
		Format *Format `json:"format"`
	} `json:"text"`
	MaxTokens int             `json:"max_tokens"` // refused: it is of chat completions
	Messages  json.RawMessage `json:"messages"`   // refused likewise
}

// An Item is a part of the input of the Responses API.
type Item struct {
	Type      string  `json:"type"`
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments"`
	Output    *string `json:"output"`
}

// A fault is a refusal; the zero value is none.
type fault struct {
	status        int
	code, message string
}

func bad(code, format string, args ...any) fault {
	return fault{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// newNames matches the models that refuse max_tokens.
var newNames = regexp.MustCompile(`^(o\d|gpt-[5-9])`)

// check refuses what OpenAI documents to refuse.
func (s *Server) check(c Chat) fault {
	if f := s.checkModel(c.Model); f.message != "" {
		return f
	}
	if len(c.Messages) == 0 {
		return bad("empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1.")
	}
	words := ""
	open := map[string]bool{} // calls whose results have not come
	for i, m := range c.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return bad("", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. Missing before 'messages[%d]'.", i)
		}
		switch {
		case !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role):
			return bad("invalid_value", "Invalid value: '%s' for 'messages[%d].role'.", m.Role, i)
		case m.Content == nil && len(m.ToolCalls) == 0:
			return bad("", "Invalid value for 'content' of 'messages[%d]': expected a string, got null.", i)
		case m.Role == "tool" && !open[m.ToolCallID]:
			return bad("", "Invalid parameter: 'messages[%d]' with role 'tool' must be a response to a preceding message with 'tool_calls'.", i)
		}
		delete(open, m.ToolCallID)
		for j, t := range m.ToolCalls {
			if t.ID == "" || t.Function.Name == "" || t.Function.Arguments == nil {
				return bad("missing_required_parameter", "Missing required parameter: 'messages[%d].tool_calls[%d]' needs id, name and arguments.", i, j)
			}
			open[t.ID] = true
		}
		if m.Content != nil {
			words += *m.Content + "\n"
		}
	}
	if len(open) > 0 {
		return bad("", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	for i, t := range c.Tools {
		if t.Function == nil {
			return bad("missing_required_parameter", "Missing required parameter: 'tools[%d].function'.", i)
		}
		if f := checkTool(i, *t.Function); f.message != "" {
			return f
		}
	}
	if f := c.ResponseFormat; f != nil {
		if f.JSONSchema != nil {
			f.JSONSchema.Type = f.Type
			f = f.JSONSchema
		}
		if f := checkFormat(*f, "response_format", words); f.message != "" {
			return f
		}
	}
	if c.StreamOptions != nil && !c.Stream {
		return bad("", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if c.MaxTokens > 0 && newNames.MatchString(c.Model) {
		return bad("unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	}
	return fault{}
}

// checkResponses does the same for the Responses API.
func (s *Server) checkResponses(r Responses) fault {
	if f := s.checkModel(r.Model); f.message != "" {
		return f
	}
	switch {
	case r.Messages != nil:
		return bad("unsupported_parameter", "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'.")
	case r.MaxTokens > 0:
		return bad("unsupported_parameter", "Unsupported parameter: 'max_tokens'. In the Responses API, this parameter has moved to 'max_output_tokens'.")
	case len(r.Input) == 0:
		return bad("missing_required_parameter", "Missing required parameter: 'input'.")
	}
	words := ""
	open := map[string]bool{}
	for i, item := range r.Input {
		switch item.Type {
		case "", "message":
			if !slices.Contains([]string{"system", "developer", "user", "assistant"}, item.Role) {
				return bad("invalid_value", "Invalid value: '%s' for 'input[%d].role'.", item.Role, i)
			}
			if item.Content == nil {
				return bad("missing_required_parameter", "Missing required parameter: 'input[%d].content'.", i)
			}
			words += *item.Content + "\n"
		case "function_call":
			if item.CallID == "" || item.Name == "" || item.Arguments == nil {
				return bad("missing_required_parameter", "Missing required parameter: 'input[%d]' needs call_id, name and arguments.", i)
			}
			open[item.CallID] = true
		case "function_call_output":
			if item.Output == nil {
				return bad("missing_required_parameter", "Missing required parameter: 'input[%d].output'.", i)
			}
			if !open[item.CallID] {
				return bad("", "No tool call found for function call output with call_id %s.", item.CallID)
			}
			delete(open, item.CallID)
		default:
			return bad("invalid_value", "Invalid value: '%s' for 'input[%d].type'.", item.Type, i)
		}
	}
	for id := range open {
		return bad("", "No tool output found for function call %s.", id)
	}
	for i, t := range r.Tools {
		if t.Strict == nil { // the default of this API
			yes := true
			t.Strict = &yes
		}
		if f := checkTool(i, t); f.message != "" {
			return f
		}
	}
	if f := r.Text.Format; f != nil {
		return checkFormat(*f, "text.format", words)
	}
	return fault{}
}

func (s *Server) checkModel(name string) fault {
	if name == "" {
		return bad("", "you must provide a model parameter")
	}
	if len(s.Models) > 0 && !slices.Contains(s.Models, name) {
		return fault{http.StatusNotFound, "model_not_found", fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", name)}
	}
	return fault{}
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func checkTool(i int, t Tool) fault {
	if !toolName.MatchString(t.Name) {
		return bad("invalid_value", "Invalid 'tools[%d].name': string does not match pattern.", i)
	}
	var schema struct{ Type string }
	if json.Unmarshal(t.Parameters, &schema) != nil || schema.Type != "object" {
		return bad("invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", t.Name)
	}
	if t.Strict != nil && *t.Strict && !closed(t.Parameters) {
		return bad("invalid_function_parameters", "Invalid schema for function '%s': 'additionalProperties' is required to be supplied and to be false.", t.Name)
	}
	return fault{}
}

func checkFormat(f Format, param, words string) fault {
	switch {
	case f.Type == "json_schema" && !toolName.MatchString(f.Name):
		return bad("missing_required_parameter", "Missing required parameter: '%s.name'.", param)
	case f.Type == "json_schema" && f.Strict && !closed(f.Schema):
		return bad("invalid_json_schema", "Invalid schema for response_format '%s': 'additionalProperties' is required to be supplied and to be false.", f.Name)
	case f.Type == "json_object" && !strings.Contains(strings.ToLower(words), "json"):
		return bad("", "'messages' must contain the word 'json' in some form, to use '%s' of type 'json_object'.", param)
	}
	return fault{}
}

// closed reports whether a schema's own object takes no unknown properties and
// requires all that it has: the part of strict mode that is checked here.
func closed(schema json.RawMessage) bool {
	var v struct {
		AdditionalProperties json.RawMessage
		Properties           map[string]json.RawMessage
		Required             []string
	}
	if json.Unmarshal(schema, &v) != nil || !bytes.Equal(bytes.TrimSpace(v.AdditionalProperties), []byte("false")) {
		return false
	}
	for name := range v.Properties {
		if !slices.Contains(v.Required, name) {
			return false
		}
	}
	return true
}
