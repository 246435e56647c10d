package llm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// openAIHost is where parameters can be sent that only OpenAI itself knows.
const openAIHost = "api.openai.com"

// newNames matches the models that know max_completion_tokens only.
var newNames = regexp.MustCompile(`^(o\d|gpt-[5-9])`)

// alias is the model name that go-openai is shown. It refuses requests by the
// beginning of their model's name, which says nothing about the endpoint that
// serves it; the real name is put in by the tap.
const alias = "model-of-the-endpoint"

// chatRequest is the request in the words of chat completions, and the fields
// that are put into its JSON afterwards.
func (o *OpenAI) chatRequest(model string, req Request, h habits) (openai.ChatCompletionRequest, map[string]any) {
	name, effort := o.effort(model)
	wire := openai.ChatCompletionRequest{Model: alias, Stream: true, ReasoningEffort: effort}
	extra := map[string]any{"model": name}
	if !h.plainStream {
		wire.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if o.base.Hostname() == openAIHost && req.Conversation != "" && !h.noCacheKey {
		extra["prompt_cache_key"] = cacheKey(req.Conversation)
	}
	// max_tokens is what compatible servers know; OpenAI itself has deprecated it.
	if h.newMax(o.base.Hostname() == openAIHost || newNames.MatchString(model)) {
		wire.MaxCompletionTokens = req.MaxTokens
	} else {
		wire.MaxTokens = req.MaxTokens //nolint:staticcheck // deprecated by OpenAI, and the only one that compatible servers know
	}
	for _, t := range req.Tools {
		wire.Tools = append(wire.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: parameters(t.Schema),
			Strict: o.base.Hostname() == openAIHost && strictable(t.Schema),
		}})
	}
	messages := req.Messages
	if req.Schema != nil {
		switch h.format {
		case schemaFormat:
			wire.ResponseFormat = &openai.ChatCompletionResponseFormat{
				Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
				JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{
					Name: req.Schema.Name, Schema: req.Schema.Schema, Strict: strictable(req.Schema.Schema),
				},
			}
		case objectFormat:
			wire.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
			messages = told(messages, req.Schema)
		case toldFormat:
			messages = told(messages, req.Schema)
		}
	}
	for _, m := range messages {
		out := openai.ChatCompletionMessage{Role: string(m.Role), Content: m.Content, ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, openai.ToolCall{
				ID: c.ID, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: c.Name, Arguments: validArguments(c.Arguments)},
			})
		}
		if len(out.ToolCalls) == 0 {
			// go-openai leaves empty content out of the JSON, which OpenAI
			// refuses in all messages but those that call tools.
			out.Content = cmp.Or(out.Content, "(empty)")
		}
		wire.Messages = append(wire.Messages, out)
	}
	return wire, extra
}

var efforts = regexp.MustCompile(`^(.+)-(none|minimal|low|medium|high|xhigh)$`)

// effort takes the effort off a model's name, where the endpoint is OpenAI's
// own: elsewhere the name is whatever it is.
func (o *OpenAI) effort(model string) (name, effort string) {
	if m := efforts.FindStringSubmatch(model); m != nil && o.base.Hostname() == openAIHost && newNames.MatchString(model) {
		return m[1], m[2]
	}
	return model, ""
}

// cacheKey keeps the calls of one conversation where its prompt is cached,
// without telling who talks.
func cacheKey(conversation string) string {
	sum := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(sum[:16])
}

// parameters is a tool's schema; a tool that takes nothing has one too.
func parameters(schema json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(schema)) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return schema
}

// validArguments makes JSON of arguments that a model wrote. Some endpoints fail on a
// history in which they are not, for ever and with a 500.
func validArguments(arguments string) string {
	switch {
	case strings.TrimSpace(arguments) == "":
		return "{}"
	case json.Valid([]byte(arguments)):
		return arguments
	}
	b, _ := json.Marshal(map[string]string{"invalid_json": arguments}) // strings can always be written
	return string(b)
}

// A chunk is one event of a chat stream: the fields we read, so that an oddity
// in any other field does not cost an answer.
type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content   looseText `json:"content"`
			Refusal   looseText `json:"refusal"`
			ToolCalls []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function struct {
					Name      string    `json:"name"`
					Arguments looseText `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		CacheHits  int `json:"prompt_cache_hit_tokens"` // DeepSeek's word
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// addChunk takes one event of a chat stream.
func (a *answer) addChunk(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return &Error{Kind: Transient, Err: fmt.Errorf("the stream holds what is no JSON chunk: %s", raw)}
	}
	a.model = cmp.Or(c.Model, a.model)
	if u := c.Usage; u != nil {
		a.use(u.Prompt, u.Completion, u.Total, cmp.Or(u.Details.Cached, u.CacheHits))
	}
	if len(c.Error) > 0 && !bytes.Equal(c.Error, []byte("null")) {
		a.fail(readFault(0, raw))
		return nil
	}
	a.began = true
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		if err := a.addRefusal(string(d.Refusal)); err != nil {
			return err
		}
		if err := a.addText(string(d.Content)); err != nil {
			return err
		}
		for _, t := range d.ToolCalls {
			if err := a.addCall(t.Index, t.ID, t.Function.Name, string(t.Function.Arguments)); err != nil {
				return err
			}
		}
		a.end(choice.FinishReason)
	}
	return nil
}
