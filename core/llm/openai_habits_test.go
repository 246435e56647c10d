package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// paths spells which APIs were asked, in order, with the refusals of unknown paths.
func paths(s *llmtest.Server) string {
	var out []string
	for _, c := range s.Calls() {
		api := "chat"
		if c.Responses != nil {
			api = "responses"
		}
		out = append(out, api)
	}
	return strings.Join(out, " ")
}

// AutoAPI finds the API that serves a model, and remembers it.
func TestAutoAPI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model string
		does  func(llmtest.Behavior) llmtest.Behavior
		want  string // of two calls
	}{
		"chat":                    {"gpt-5", same, "chat chat"},
		"gpt-6":                   {"gpt-6-sol", same, "responses responses"},
		"only by responses":       {"o9-pro", llmtest.ResponsesOnly, "chat responses responses"},
		"gpt-6 at a small server": {"gpt-6-local", llmtest.ChatOnly, "responses chat chat"},
		"another's name of gpt-6": {"openai/gpt-6-sol", same, "chat chat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			s.Default = c.does(llmtest.Answers("hello"))
			m := open(t, s, nil)
			req := ask("hi")
			req.Model, req.Tools = c.model, []llm.Tool{lookUp}
			for range 2 {
				if got, err := m.Complete(t.Context(), req); err != nil || got.Text != "hello" || got.Model != c.model {
					t.Fatalf("got %+v, %v", got, err)
				}
			}
			if got := paths(s); got != c.want {
				t.Errorf("asked %s, want %s", got, c.want)
			}
		})
	}
}

func same(b llmtest.Behavior) llmtest.Behavior { return b }

// A configured API is kept to, and a model that is not there is not looked for
// elsewhere.
func TestAPIStays(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Default = llmtest.ResponsesOnly(llmtest.Answers("hello"))
	_, err := open(t, s, func(o *llm.Options) { o.API = llm.ChatAPI }).Complete(t.Context(), ask("hi"))
	if e := kindOf(t, err); e.Kind != llm.Fatal || !strings.Contains(err.Error(), "v1/responses") {
		t.Errorf("err = %v, want a fatal one with the endpoint's words", err)
	}
	s = llmtest.NewServer(t)
	s.Models = []string{"m"}
	req := ask("hi")
	req.Model = "gpt-6-gone"
	_, err = open(t, s, nil).Complete(t.Context(), req)
	if e := kindOf(t, err); e.Kind != llm.Fatal || !strings.Contains(err.Error(), "model_not_found") {
		t.Errorf("err = %v, want a fatal one: model_not_found", err)
	}
}

var verdict = &llm.Schema{Name: "verdict", Schema: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)}

// Structured output comes in the surest way that the endpoint has, and the way
// is remembered.
func TestSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuses []string
		want    string // the formats asked for in two calls
		answer  string
	}{
		"held to the schema": {nil, "json_schema json_schema", `{"ok":true}`},
		"held to JSON":       {[]string{"json_schema"}, "json_schema json_object json_object", `{"ok":true}`},
		"told":               {[]string{"json_schema", "json_object"}, "json_schema json_object - -", "```json\n{\"ok\":true}\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, s *llmtest.Server, m *llm.OpenAI) {
				s.Default = llmtest.WithoutFormats(llmtest.Answers(c.answer), c.refuses...)
				req := ask("is it?")
				req.Schema = verdict
				for range 2 {
					if got, err := m.Complete(t.Context(), req); err != nil || got.Text != `{"ok":true}` {
						t.Fatalf("got %+v, %v", got, err)
					}
				}
				var formats []string
				for _, call := range s.Calls() {
					f := call.Chat.ResponseFormat
					if call.Responses != nil {
						f = call.Responses.Text.Format
					}
					if f == nil {
						formats = append(formats, "-")
					} else {
						formats = append(formats, f.Type)
					}
					told := strings.Contains(string(call.Body), "named verdict")
					if isSchema := f != nil && f.Type == "json_schema"; told == isSchema {
						t.Errorf("with format %v the schema is told: %v", f, told)
					}
				}
				if got := strings.Join(formats, " "); got != c.want {
					t.Errorf("formats %s, want %s", got, c.want)
				}
				if len(req.Messages) != 2 || req.Messages[1].Content != "is it?" {
					t.Error("the caller's messages were changed")
				}
				req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Content: "hm"})
				if _, err := m.Complete(t.Context(), req); err != nil {
					t.Errorf("after an assistant's message: %v", err)
				}
			})
		})
	}
}

// A schema that strict mode would refuse is sent without it; the test server
// refuses as OpenAI does.
func TestSchemaNotStrict(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *llmtest.Server, m *llm.OpenAI) {
		for i, schema := range []string{
			`{"type":"object","properties":{"a":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"object"}]}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{},"additionalProperties":false,"$defs":{"x":{"type":"object"}}}`,
		} {
			req := ask("hi")
			req.Schema = &llm.Schema{Name: fmt.Sprint("s", i), Schema: json.RawMessage(schema)}
			if _, err := m.Complete(t.Context(), req); err != nil {
				t.Errorf("%s: %v", schema, err)
			}
			calls := s.Calls()
			if len(calls) != i+1 {
				t.Fatalf("%s: %d requests, want one each", schema, len(calls))
			}
			f := calls[i].Chat.ResponseFormat
			strict := f != nil && f.JSONSchema.Strict
			if r := calls[i].Responses; r != nil {
				strict = r.Text.Format.Strict
			}
			if strict {
				t.Errorf("%s is sent as strict", schema)
			}
		}
	})
}

// Parameters that a server does not take are left out or named otherwise, once.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	refuse := func(param, words string) llmtest.Behavior {
		return func(x *llmtest.Exchange) {
			if strings.Contains(string(x.Call.Body), `"`+param+`"`) {
				llmtest.Fails(http.StatusBadRequest, "invalid_request_error", "unsupported_parameter", words)(x)
				return
			}
			llmtest.Answers("hello")(x)
		}
	}
	for name, c := range map[string]struct {
		does llmtest.Behavior
		api  llm.API
		own  bool // it is asked as OpenAI's own endpoint is
	}{
		"max_tokens":            {refuse("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."), llm.ChatAPI, false},
		"max_completion_tokens": {refuse("max_completion_tokens", "Extra inputs are not permitted: max_completion_tokens"), llm.ChatAPI, true},
		"prompt_cache_key":      {refuse("prompt_cache_key", "Unrecognized request argument: prompt_cache_key"), llm.ResponsesAPI, false},
		"stream_options":        {refuse("stream_options", "Unknown field stream_options"), llm.ChatAPI, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			s.Default = c.does
			m := open(t, s, func(o *llm.Options) {
				o.API = c.api
				if c.own {
					o.BaseURL, o.Transport = llm.DefaultBaseURL, led(s)
				}
			})
			req := ask("hi")
			req.MaxTokens, req.Conversation = 9, "c"
			for _, want := range []int{2, 3} {
				if got, err := m.Complete(t.Context(), req); err != nil || got.Text != "hello" {
					t.Fatalf("got %+v, %v", got, err)
				}
				if n := len(s.Calls()); n != want {
					t.Errorf("%d requests, want %d", n, want)
				}
			}
		})
	}
}

// An endpoint that refuses whatever is sent is not asked for ever.
func TestRefusesEverything(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *llmtest.Server, m *llm.OpenAI) {
		s.Default = llmtest.Fails(http.StatusBadRequest, "invalid_request_error", "",
			"unsupported: stream_options, prompt_cache_key, max_tokens, response_format")
		req := ask("hi")
		req.Conversation, req.MaxTokens, req.Schema = "c", 5, verdict
		_, err := m.Complete(t.Context(), req)
		if e := kindOf(t, err); e.Kind != llm.Fatal {
			t.Errorf("err = %v, want a fatal one", err)
		}
		if n := len(s.Calls()); n < 3 || n > 7 {
			t.Errorf("%d requests, want 3 to 7", n)
		}
	})
}
