package llm_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// both runs f once for each API, against a server of its own.
func both(t *testing.T, f func(t *testing.T, s *llmtest.Server, m *llm.OpenAI)) {
	for _, api := range []llm.API{llm.ChatAPI, llm.ResponsesAPI} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			f(t, s, open(t, s, func(o *llm.Options) { o.API = api }))
		})
	}
}

var lookUp = llm.Tool{
	Name: "search_memory", Description: "Search what is remembered.",
	Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","maximum":9007199254740993}},"required":["query"],"additionalProperties":false}`),
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *llmtest.Server, m *llm.OpenAI) {
		want := []llm.ToolCall{
			{ID: "call_1", Name: "search_memory", Arguments: `{"query":"the moon"}`},
			{ID: "call_2", Name: "list_tasks", Arguments: `{"broken": tru`},
			{ID: "call_3", Name: "list_tasks", Arguments: ``},
		}
		s.Next(llmtest.CallsTools("let me look", want...))
		req := ask("what of the moon?")
		req.Tools = []llm.Tool{lookUp, {Name: "list_tasks"}}
		var heard string
		req.OnDelta = func(text string) { heard += text }
		got, err := m.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.ToolCalls); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
		if got.Text != "let me look" || heard != got.Text || got.Finish != "tool_calls" {
			t.Errorf("got %+v, heard %q", got, heard)
		}
		if want := (llm.Usage{Prompt: 6, Completion: 6, Cached: 3}); got.Usage != want {
			t.Errorf("usage = %+v, want %+v", got.Usage, want)
		}

		// The calls go back as the model made them, but as JSON in any case.
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.Assistant, Content: got.Text, ToolCalls: got.ToolCalls},
			llm.Message{Role: llm.ToolRole, ToolCallID: "call_1", Content: "it is round"},
			llm.Message{Role: llm.ToolRole, ToolCallID: "call_2", Content: "arguments are no JSON"},
			llm.Message{Role: llm.ToolRole, ToolCallID: "call_3"},
		)
		s.Next(llmtest.Answers("round"))
		if got, err = m.Complete(t.Context(), req); err != nil || got.Text != "round" || got.Finish != "stop" || got.ToolCalls != nil {
			t.Fatalf("second: %+v, %v", got, err)
		}
		body := string(s.Calls()[1].Body)
		for _, want := range []string{
			`"(empty)"`, `"it is round"`, string(lookUp.Schema), // as it stands: order matters, and no float holds its number
			jsonString(`{"query":"the moon"}`), jsonString(`{}`), jsonString(`{"invalid_json":"{\"broken\": tru"}`),
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the second request lacks %s:\n%s", want, body)
			}
		}
	})
}

func jsonString(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// A call without a word of text is an answer.
func TestToolCallsOnly(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *llmtest.Server, m *llm.OpenAI) {
		s.Next(llmtest.CallsTools("", llm.ToolCall{ID: "c", Name: "list_tasks", Arguments: "{}"}))
		req := ask("tasks?")
		req.Tools = []llm.Tool{{Name: "list_tasks"}}
		got, err := m.Complete(t.Context(), req)
		if err != nil || len(got.ToolCalls) != 1 || got.Text != "" || got.Finish != "tool_calls" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// The ways in which servers send tool calls.
func TestToolCallOddities(t *testing.T) {
	t.Parallel()
	delta := func(s string) string { return `{"choices":[{"delta":{"tool_calls":[` + s + `]}}]}` }
	end := func(reason string) string { return `{"choices":[{"delta":{},"finish_reason":"` + reason + `"}]}` }
	for name, c := range map[string]struct {
		events []string
		want   []llm.ToolCall
	}{
		"whole calls, all with number 0": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			delta(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}`), end("tool_calls"),
		}, []llm.ToolCall{{"a", "f", `{"x":1}`}, {"b", "f", `{"x":2}`}}},
		"id and name in every piece": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`), end("tool_calls"),
		}, []llm.ToolCall{{"a", "f", `{"x":1}`}}},
		"a good end said badly": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), end("stop"),
		}, []llm.ToolCall{{"a", "f", `{}`}}},
		"arguments are an object": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`), end("tool_calls"),
		}, []llm.ToolCall{{"a", "f", `{"x":1}`}}},
		"pieces interleaved": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g"}}`),
			delta(`{"index":1,"function":{"arguments":"{}"}}`), delta(`{"index":0,"function":{"arguments":"[]"}}`), end("tool_calls"),
		}, []llm.ToolCall{{"a", "f", `[]`}, {"b", "g", `{}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			s.Next(events(c.events...))
			got, err := open(t, s, nil).Complete(t.Context(), ask("go"))
			if err != nil || got.Finish != "tool_calls" {
				t.Fatalf("got %+v, %v", got, err)
			}
			if d := cmp.Diff(c.want, got.ToolCalls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

// events streams data lines as they stand.
func events(data ...string) llmtest.Behavior {
	return func(x *llmtest.Exchange) {
		for _, d := range data {
			x.Raw("data: " + d + "\n\n")
		}
	}
}

// Calls without ids get some that differ, within an answer and between two.
func TestToolCallsWithoutIDs(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	m := open(t, s, nil)
	seen := map[string]bool{}
	for _, text := range []string{"first", "second"} {
		s.Next(events(
			`{"choices":[{"delta":{"content":"`+text+`","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`))
		got, err := m.Complete(t.Context(), ask("go"))
		if err != nil || len(got.ToolCalls) != 2 {
			t.Fatalf("got %+v, %v; want two calls", got, err)
		}
		for _, c := range got.ToolCalls {
			if c.ID == "" || seen[c.ID] || c.Name != "f" || c.Arguments != "{}" {
				t.Errorf("call %+v, want an id of its own", c)
			}
			seen[c.ID] = true
		}
	}
}

// Text that comes as a list of parts or as null.
func TestLooseContent(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Next(events(`{"choices":[{"delta":{"content":null,"refusal":null}}]}`,
		`{"choices":[{"delta":{"content":[{"type":"thinking","text":"hm"},{"type":"text","text":"yes"}]},"finish_reason":"stop"}]}`))
	if got, err := open(t, s, nil).Complete(t.Context(), ask("go")); err != nil || got.Text != "yes" {
		t.Errorf("got %+v, %v; want yes", got, err)
	}
}

// Every way in which endpoints count tokens.
func TestUsageWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		usage string
		want  llm.Usage
	}{
		"plain":                 {`{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}`, llm.Usage{Prompt: 5, Completion: 3}},
		"reasoning left out":    {`{"prompt_tokens":5,"completion_tokens":3,"total_tokens":100}`, llm.Usage{Prompt: 5, Completion: 95}},
		"cache hits":            {`{"prompt_tokens":5,"completion_tokens":3,"prompt_cache_hit_tokens":4}`, llm.Usage{Prompt: 5, Completion: 3, Cached: 4}},
		"more cached than sent": {`{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":9}}`, llm.Usage{Prompt: 5, Completion: 3, Cached: 5}},
		"no details":            {`{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":null}`, llm.Usage{Prompt: 5, Completion: 3}},
		"nonsense":              {`{"prompt_tokens":-5,"completion_tokens":-3}`, llm.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			s.Next(events(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":`+c.usage+`}`))
			if got, err := open(t, s, nil).Complete(t.Context(), ask("go")); err != nil || got.Usage != c.want {
				t.Errorf("usage = %+v, %v; want %+v", got.Usage, err, c.want)
			}
		})
	}
}

// What is sent to OpenAI itself and to nobody else.
func TestOpenAIOwn(t *testing.T) {
	t.Parallel()
	strict := llm.Tool{Name: "strict", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":["string","null"]},"in":{"type":"object","properties":{},"additionalProperties":false}},"required":["q","in"],"additionalProperties":false}`)}
	for host, own := range map[string]bool{"https://api.openai.com/v1": true, "": false} {
		for _, api := range []llm.API{llm.ChatAPI, llm.ResponsesAPI} {
			t.Run(string(api)+" "+host, func(t *testing.T) {
				t.Parallel()
				s := llmtest.NewServer(t)
				m := open(t, s, func(o *llm.Options) {
					o.API = api
					if own {
						o.BaseURL, o.Transport = host, led(s)
					}
				})
				req := ask("hi")
				req.Model, req.Conversation, req.MaxTokens = "gpt-5.2-high", "slack/T1/C1/17.3", 50
				req.Tools = []llm.Tool{lookUp, strict}
				if _, err := m.Complete(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				call := s.Calls()[0]
				effort, key, strictly, most := call.Chat.ReasoningEffort, call.Chat.PromptCacheKey, []*bool{}, call.Chat.MaxCompletionTokens
				for _, tool := range call.Chat.Tools {
					strictly = append(strictly, tool.Function.Strict)
				}
				if r := call.Responses; r != nil {
					effort, key, most = r.Reasoning.Effort, r.PromptCacheKey, r.MaxOutputTokens
					for _, tool := range r.Tools {
						strictly = append(strictly, tool.Strict)
					}
					if r.Store == nil || *r.Store {
						t.Error("the response would be stored at the endpoint")
					}
				}
				wantModel, wantEffort := "gpt-5.2-high", ""
				if own {
					wantModel, wantEffort = "gpt-5.2", "high"
				}
				if call.Model() != wantModel || effort != wantEffort || most != 50 {
					t.Errorf("model %q with effort %q and %d tokens, want %q, %q and 50", call.Model(), effort, most, wantModel, wantEffort)
				}
				if sent := key != ""; sent != (own || api == llm.ResponsesAPI) || strings.Contains(key, "C1") {
					t.Errorf("prompt_cache_key = %q", key)
				}
				if is := func(b *bool) bool { return b != nil && *b }; is(strictly[0]) || is(strictly[1]) != (own || api == llm.ResponsesAPI) {
					t.Errorf("strict = %v", strictly)
				}
			})
		}
	}
}

// led is a transport that leads any host to the server.
func led(s *llmtest.Server) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Scheme = "http"
		r.URL.Host = strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/v1")
		return s.Transport().RoundTrip(r)
	})
}
