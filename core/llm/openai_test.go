package llm_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// open returns a model that calls s; edit may change its options.
func open(t *testing.T, s *llmtest.Server, edit func(*llm.Options)) *llm.OpenAI {
	t.Helper()
	opts := llm.Options{BaseURL: s.URL(), Key: llmtest.Key, Model: "test-model", Transport: s.Transport()}
	if edit != nil {
		edit(&opts)
	}
	m, err := llm.NewOpenAI(opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(text string) llm.Request {
	return llm.Request{Agent: "thinker", Messages: []llm.Message{
		{Role: llm.System, Content: "be brief"}, {Role: llm.User, Content: text},
	}}
}

func kindOf(t *testing.T, err error) *llm.Error {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("err = %v (%T), want an *llm.Error", err, err)
	}
	return e
}

func TestOpenAIAnswers(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Next(llmtest.Answers("one two three"))
	var heard []string
	req := ask("count to three")
	req.MaxTokens = 99
	req.OnDelta = func(text string) { heard = append(heard, text) }

	got, err := open(t, s, func(o *llm.Options) { o.Headers = map[string]string{"X-Title": "Mimikit"} }).Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Response{Text: "one two three", Model: "test-model", Finish: "stop", Usage: llm.Usage{Prompt: 5, Completion: 3, Cached: 2}}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(llm.Response{}, "Took", "Endpoint")); d != "" {
		t.Errorf("response (-want +got):\n%s", d)
	}
	if got.Took <= 0 {
		t.Errorf("Took = %v, want more than 0", got.Took)
	}
	if d := cmp.Diff([]string{"one ", "two ", "three"}, heard); d != "" {
		t.Errorf("deltas (-want +got):\n%s", d)
	}
	call := s.Calls()[0]
	if c := call.Chat; !c.Stream || c.StreamOptions == nil || !c.StreamOptions.IncludeUsage || c.MaxTokens != 99 || c.MaxCompletionTokens != 0 {
		t.Errorf("request = %s, want a stream with usage and max_tokens 99", call.Body)
	}
	if got := call.Header.Get("X-Title"); got != "Mimikit" {
		t.Errorf("X-Title = %q, want Mimikit", got)
	}
}

// The wire fields that depend on the model and on what a message holds.
func TestOpenAIWire(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	m := open(t, s, func(o *llm.Options) { o.API = llm.ChatAPI })
	for _, name := range []string{"gpt-5-mini", "o3", "gpt-6-sol"} {
		req := ask("hi")
		req.Model, req.MaxTokens = name, 7
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant}, llm.Message{Role: llm.User, Content: "and?"})
		if _, err := m.Complete(t.Context(), req); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := s.Calls()[len(s.Calls())-1].Chat
		if c.Model != name || c.MaxTokens != 0 || c.MaxCompletionTokens != 7 {
			t.Errorf("%s: request = %+v, want max_completion_tokens 7 only", name, c)
		}
		if got := *c.Messages[2].Content; got != "(empty)" {
			t.Errorf("%s: empty content went out as %q, want (empty)", name, got)
		}
	}
}

func TestOpenAIFinishLength(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Next(llmtest.AnswersWith("half a", "length"))
	got, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
	if err != nil || got.Finish != "length" || got.Text != "half a" {
		t.Errorf("got %+v, %v; want the text with finish length", got, err)
	}
}

func TestOpenAIKeepalives(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Next(llmtest.Keepalives(400, "awake"))
	got, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
	if err != nil || got.Text != "awake" {
		t.Errorf("got %+v, %v; want awake", got, err)
	}
}

// An endpoint that refuses stream_options is asked again without, once, and
// later calls leave them out from the start.
func TestOpenAIOldServer(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Default = llmtest.OldServer(llmtest.Answers("hello"))
	m := open(t, s, nil)
	for want := 2; want <= 3; want++ {
		got, err := m.Complete(t.Context(), ask("hi"))
		if err != nil || got.Text != "hello" || got.Usage != (llm.Usage{}) {
			t.Fatalf("got %+v, %v; want hello and no usage", got, err)
		}
		if n := len(s.Calls()); n != want {
			t.Fatalf("%d requests, want %d", n, want)
		}
	}
}

func TestOpenAIFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		does  llmtest.Behavior
		kind  llm.Kind
		after time.Duration
		says  string // must stand in the error's text
	}{
		{"429 seconds", llmtest.RateLimited("7"), llm.RateLimited, 7 * time.Second, "429"},
		{"429 no header", llmtest.RateLimited(""), llm.RateLimited, 0, "Rate limit reached"},
		{"429 fraction", llmtest.RateLimited("0.5"), llm.RateLimited, 500 * time.Millisecond, ""},
		{"429 too far off", llmtest.RateLimited("99999999999999999"), llm.RateLimited, 24 * time.Hour, ""},
		{"429 past date", llmtest.RateLimited("Mon, 02 Jan 2006 15:04:05 GMT"), llm.RateLimited, 0, ""},
		{"429 nonsense", llmtest.RateLimited("soon"), llm.RateLimited, 0, ""},
		{"no quota", llmtest.NoQuota(), llm.Fatal, 0, "billing"},
		{"429 request too large", llmtest.Fails(429, "tokens", "rate_limit_exceeded", "Request too large for gpt-4o on tokens per min"), llm.TooLong, 0, ""},
		{"500", llmtest.Fails(500, "server_error", "", "The server had an error"), llm.Transient, 0, "The server had an error"},
		{"503 HTML", llmtest.HTML(503), llm.Transient, 0, "503 Service Unavailable: an HTML page"},
		{"200 HTML", llmtest.HTML(200), llm.Transient, 0, "text/html"},
		{"408", llmtest.Fails(408, "", "", "slow"), llm.Transient, 0, ""},
		{"409", llmtest.Fails(409, "", "", "busy"), llm.Transient, 0, ""},
		{"400", llmtest.Fails(400, "invalid_request_error", "", "bad temperature"), llm.Fatal, 0, "bad temperature"},
		{"403", llmtest.Fails(403, "", "", "country not supported"), llm.Fatal, 0, "country"},
		{"403 flagged", llmtest.Fails(403, "", "", "Your input was flagged"), llm.Refused, 0, "flagged"},
		{"404 model", llmtest.Fails(404, "invalid_request_error", "model_not_found", "no such model"), llm.Fatal, 0, "model_not_found"},
		{"413", llmtest.Fails(413, "", "", "payload"), llm.TooLong, 0, ""},
		{"too long", llmtest.TooLong(), llm.TooLong, 0, "8192"},
		{"too long, llama.cpp", llmtest.Fails(400, "exceed_context_size_error", "", "the request exceeds the available context size"), llm.TooLong, 0, ""},
		{"policy", llmtest.Fails(400, "image_generation_user_error", "content_policy_violation", "rejected"), llm.Refused, 0, ""},
		{"error is a string", raw(400, `{"error":"model \"x\" not found"}`), llm.Fatal, 0, `model "x" not found`},
		{"error is a detail", raw(422, `{"detail":[{"loc":["body"],"msg":"bad field"}]}`), llm.Fatal, 0, "bad field"},
		{"error in a list", raw(400, `[{"error":{"code":400,"message":"API key not valid"}}]`), llm.Fatal, 0, "API key not valid"},
		{"error on top", raw(400, `{"object":"error","message":"bad","type":"invalid_request_error","code":1}`), llm.Fatal, 0, "bad"},
		{"200 error JSON", raw(200, `{"error":{"message":"overloaded","code":529}}`), llm.Transient, 0, "overloaded"},
		{"200 plain JSON", raw(200, `{"choices":[{"message":{"content":"hi"}}]}`), llm.Transient, 0, "application/json"},
		{"cut", llmtest.Cut("half an"), llm.Transient, 0, "without a finish reason"},
		{"cut at once", llmtest.Cut(""), llm.Transient, 0, "without a finish reason"},
		{"dropped", llmtest.Drops("half an"), llm.Transient, 0, ""},
		{"finish error", llmtest.FinishError("half an"), llm.Transient, 0, "broke off"},
		{"breaks off", llmtest.BreaksOff("half an"), llm.Transient, 0, "Provider disconnected"},
		{"error event", llmtest.ErrorEvent("half", map[string]any{"message": "slow down", "type": "rate_limit_error"}), llm.RateLimited, 0, "slow down"},
		{"error event, number", llmtest.ErrorEvent("", map[string]any{"message": "no", "code": 429}), llm.RateLimited, 0, "429"},
		{"error event, string", llmtest.ErrorEvent("half", "out of memory"), llm.Transient, 0, "out of memory"},
		{"error event, request", llmtest.ErrorEvent("", map[string]any{"message": "no", "type": "invalid_request_error"}), llm.Fatal, 0, ""},
		{"error after keepalives", keptError, llm.Transient, 0, "boom"},
		{"nonsense", llmtest.Nonsense("half an"), llm.Transient, 0, "no JSON chunk"},
		{"empty", llmtest.Answers(""), llm.Transient, 0, "answered nothing"},
		{"blank", llmtest.Answers("  \n"), llm.Transient, 0, "answered nothing"},
		{"content filter", llmtest.AnswersWith("half", "content_filter"), llm.Refused, 0, "content_filter"},
		{"refusal", llmtest.Refuses("I cannot help with that"), llm.Refused, 0, "I cannot help"},
		{"too much", llmtest.Answers(strings.Repeat(strings.Repeat("x", 8191)+" ", 129)), llm.Transient, 0, "1048576 bytes"},
		{"endless line", func(x *llmtest.Exchange) { x.Raw("data: " + strings.Repeat("x", 5<<20)) }, llm.Transient, 0, "a line of the stream"},
		{"redirect", llmtest.Redirects("http://elsewhere.test/v2"), llm.Fatal, 0, "http://elsewhere.test/v2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			s.Next(tt.does)
			_, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
			e := kindOf(t, err)
			if e.Kind != tt.kind || e.RetryAfter != tt.after {
				t.Errorf("sorted as %v after %v, want %v after %v: %v", e.Kind, e.RetryAfter, tt.kind, tt.after, err)
			}
			if !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 800 {
				t.Errorf("err = %v, want %q in it and at most 800 bytes", err, tt.says)
			}
			if n := len(s.Calls()); n != 1 {
				t.Errorf("%d requests, want 1: retries are a wrapper's", n)
			}
		})
	}
}

// raw answers with a status and a JSON body as it stands.
func raw(status int, body string) llmtest.Behavior {
	return func(x *llmtest.Exchange) {
		x.Writer().Header().Set("Content-Type", "application/json")
		x.Writer().WriteHeader(status)
		_, _ = x.Writer().Write([]byte(body))
	}
}

// keptError sends what hides an error from go-openai: comments and an event name before it.
func keptError(x *llmtest.Exchange) {
	x.Raw(": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\nevent: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n")
}

// A key that the endpoint quotes back is in no error text, not even in part.
func TestOpenAIKeepsSecrets(t *testing.T) {
	t.Parallel()
	const key, header = "sk-wrong-abcdefghijklmnop", "header-secret-qrstuvw"
	for name, does := range map[string]string{"short": "", "at the cut": strings.Repeat("x", 540)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			edit := func(o *llm.Options) { o.Key = key }
			if does != "" {
				s.Next(llmtest.Fails(401, "", "", does+header+header))
				edit = func(o *llm.Options) { o.Headers = map[string]string{"X-Key": "Secret " + header} }
			}
			_, err := open(t, s, edit).Complete(t.Context(), ask("hi"))
			if e := kindOf(t, err); e.Kind != llm.Fatal {
				t.Errorf("kind = %v, want fatal: %v", e.Kind, err)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if s := e.Error(); strings.Contains(s, "sk-wrong") || strings.Contains(s, "header-sec") {
					t.Errorf("error tells a secret: %s", s)
				}
			}
		})
	}
}

func TestOpenAINetwork(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	cause := errors.New("connection refused")
	m := open(t, s, func(o *llm.Options) {
		o.Transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, cause })
	})
	_, err := m.Complete(t.Context(), ask("hi"))
	if e := kindOf(t, err); e.Kind != llm.Transient || !errors.Is(err, cause) {
		t.Errorf("err = %v, want a transient one that wraps the cause", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What can never work is fatal and sends nothing.
func TestOpenAIUnsendable(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	m := open(t, s, func(o *llm.Options) { o.Model = "" })
	for name, req := range map[string]llm.Request{
		"no model":    ask("hi"),
		"no messages": {Model: "m"},
		"no schema":   {Model: "m", Messages: ask("hi").Messages, Tools: []llm.Tool{{Name: "t", Schema: json.RawMessage("{")}}},
	} {
		_, err := m.Complete(t.Context(), req)
		if e := kindOf(t, err); e.Kind != llm.Fatal {
			t.Errorf("%s: err = %v, want a fatal one", name, err)
		}
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

func TestNewOpenAIRefuses(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]llm.Options{
		"scheme":        {BaseURL: "ftp://host/v1"},
		"no host":       {BaseURL: "http:///v1"},
		"no URL":        {BaseURL: "http://[::1"},
		"user":          {BaseURL: "https://me:hunter2@host/v1"},
		"query":         {BaseURL: "https://host/v1?key=hunter2"},
		"key line":      {Key: "sk-hunter2\n"},
		"header name":   {Headers: map[string]string{"a b": "hunter2"}},
		"header value":  {Headers: map[string]string{"A": "hunter2\r\nB: c"}},
		"negative idle": {Idle: -1},
		"negative time": {Timeout: -1},
	} {
		_, err := llm.NewOpenAI(opts)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error tells a secret: %v", name, err)
		}
	}
	if _, err := llm.NewOpenAI(llm.Options{}); err != nil {
		t.Errorf("zero options: %v", err)
	}
}
