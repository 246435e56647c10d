package llm_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestResponsesAnswers(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Next(llmtest.Answers("one two three"))
	req := ask("count to three")
	req.MaxTokens = 99
	var heard []string
	req.OnDelta = func(text string) { heard = append(heard, text) }
	got, err := open(t, s, func(o *llm.Options) { o.API = llm.ResponsesAPI }).Complete(t.Context(), req)
	if err != nil || got.Text != "one two three" || got.Finish != "stop" || got.Usage != (llm.Usage{Prompt: 5, Completion: 3, Cached: 2}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if strings.Join(heard, "|") != "one |two |three" {
		t.Errorf("heard %q", heard)
	}
	if r := s.Calls()[0].Responses; r == nil || !r.Stream || r.MaxOutputTokens != 99 {
		t.Errorf("request = %s", s.Calls()[0].Body)
	}
}

func TestResponsesFaults(t *testing.T) {
	t.Parallel()
	created := `{"type":"response.created","response":{"model":"m","status":"in_progress"}}`
	tests := []struct {
		name string
		does llmtest.Behavior
		kind llm.Kind
		says string
	}{
		{"429", llmtest.RateLimited("7"), llm.RateLimited, "429"},
		{"no quota", llmtest.NoQuota(), llm.Fatal, "billing"},
		{"500", llmtest.Fails(500, "server_error", "", "The server had an error"), llm.Transient, "had an error"},
		{"503 HTML", llmtest.HTML(503), llm.Transient, "an HTML page"},
		{"200 HTML", llmtest.HTML(200), llm.Transient, "text/html"},
		{"too long", llmtest.TooLong(), llm.TooLong, "8192"},
		{"cut", llmtest.Cut("half an"), llm.Transient, "without a finish reason"},
		{"dropped", llmtest.Drops("half an"), llm.Transient, ""},
		{"failed", llmtest.BreaksOff("half an"), llm.Transient, "Provider disconnected"},
		{"finish error", llmtest.FinishError("half an"), llm.Transient, "broke off"},
		{"error event", llmtest.ErrorEvent("half", map[string]any{"code": "rate_limit_exceeded", "message": "slow down"}), llm.RateLimited, "slow down"},
		{"error event, wrapped", events(created, `{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`), llm.Fatal, "bad"},
		{"error event, long", llmtest.ErrorEvent("", map[string]any{"code": "context_length_exceeded", "message": "too big"}), llm.TooLong, ""},
		{"bare error", events(`{"error":{"message":"overloaded"}}`), llm.Transient, "overloaded"},
		{"failed without a word", events(created, `{"type":"response.failed","response":{"error":null}}`), llm.Transient, "no more than that"},
		{"failed, invalid prompt", events(created, `{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"no"}}}`), llm.Refused, ""},
		{"nonsense", llmtest.Nonsense("half an"), llm.Transient, "no JSON event"},
		{"empty", llmtest.Answers(""), llm.Transient, "answered nothing"},
		{"content filter", llmtest.AnswersWith("half", "content_filter"), llm.Refused, "content_filter"},
		{"refusal", llmtest.Refuses("I cannot help with that"), llm.Refused, "I cannot help"},
		{"no room", llmtest.AnswersWith("", "length"), llm.TooLong, "used up"},
		{"too much", llmtest.Answers(strings.Repeat(strings.Repeat("x", 8191)+" ", 129)), llm.Transient, "1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			s.Next(tt.does)
			_, err := open(t, s, func(o *llm.Options) { o.API = llm.ResponsesAPI }).Complete(t.Context(), ask("hi"))
			if e := kindOf(t, err); e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("err = %v, want %v with %q", err, tt.kind, tt.says)
			}
			if n := len(s.Calls()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// Servers that send only the last event, that send no pieces of arguments, and
// that know events of their own.
func TestResponsesOddities(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"input_tokens":9,"output_tokens":4,"total_tokens":13,"input_tokens_details":{"cached_tokens":8}}`
	for name, c := range map[string]struct {
		events []string
		want   llm.Response
	}{
		"the end only": {[]string{`{"type":"response.completed","response":{"model":"m2","status":"completed",` + usage + `,"output":[
			{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":"hello"}]},
			{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}`},
			llm.Response{Text: "hello", ToolCalls: []llm.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}, Model: "m2", Finish: "tool_calls"}},
		"arguments at the end": {[]string{
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"x\":1}"}`,
			`{"type":"response.completed","response":{"model":"m2","status":"completed",` + usage + `,"output":[]}}`},
			llm.Response{ToolCalls: []llm.ToolCall{{ID: "c", Name: "f", Arguments: `{"x":1}`}}, Model: "m2", Finish: "tool_calls"}},
		"new events": {[]string{
			`{"type":"response.dreaming","output_index":0,"delta":{"a":1}}`, `{"type":"response.output_text.delta","delta":"ok"}`,
			`{"type":"response.incomplete","response":{"model":"m2","status":"incomplete",` + usage + `}}`},
			llm.Response{Text: "ok", Model: "m2", Finish: "length"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			for i, e := range c.events {
				c.events[i] = strings.ReplaceAll(e, "\n", "")
			}
			s.Next(events(c.events...))
			got, err := open(t, s, func(o *llm.Options) { o.API = llm.ResponsesAPI }).Complete(t.Context(), ask("hi"))
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != c.want.Text || got.Model != c.want.Model || got.Finish != c.want.Finish || len(got.ToolCalls) != len(c.want.ToolCalls) ||
				len(got.ToolCalls) > 0 && got.ToolCalls[0] != c.want.ToolCalls[0] || got.Usage != (llm.Usage{Prompt: 9, Completion: 4, Cached: 8}) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Silence ends a response as it ends a chat, and comments do not count as it.
func TestResponsesTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does  llmtest.Behavior
		takes time.Duration
	}{
		"before headers": {llmtest.Hangs(), llm.DefaultIdle},
		"in the stream":  {llmtest.HangsAfter("half"), llm.DefaultIdle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := llmtest.NewMemoryServer(t)
				s.Next(c.does)
				start := time.Now()
				_, err := open(t, s, func(o *llm.Options) { o.API = llm.ResponsesAPI }).Complete(t.Context(), ask("hi"))
				if e := kindOf(t, err); e.Kind != llm.Transient || time.Since(start) != c.takes {
					t.Errorf("err = %v after %v, want a transient one after %v", err, time.Since(start), c.takes)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewMemoryServer(t)
		s.Next(func(x *llmtest.Exchange) {
			for range 5 {
				x.Raw(": still thinking\n\n")
				if !x.Wait(50 * time.Second) {
					return
				}
			}
			llmtest.Answers("done")(x)
		})
		got, err := open(t, s, func(o *llm.Options) { o.API = llm.ResponsesAPI }).Complete(t.Context(), ask("hi"))
		if err != nil || got.Text != "done" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// What the headers and the words of a rate limit say of its end.
func TestRateLimitWaits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name    string
		headers map[string]string
		words   string
		want    time.Duration
	}{
		{"milliseconds", map[string]string{"Retry-After-Ms": "1500", "Retry-After": "2"}, "", 1500 * time.Millisecond},
		{"requests used up", map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "6m0s", "X-Ratelimit-Remaining-Tokens": "5", "X-Ratelimit-Reset-Tokens": "2h"}, "", 6 * time.Minute},
		{"tokens used up", map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "7.66s"}, "", 7660 * time.Millisecond},
		{"both used up", map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1s", "X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "120ms"}, "", time.Second},
		{"Anthropic", map[string]string{"Anthropic-Ratelimit-Requests-Remaining": "0", "Anthropic-Ratelimit-Requests-Reset": at.Add(40 * time.Second).Format(time.RFC3339)}, "", 40 * time.Second},
		{"epoch milliseconds", map[string]string{"X-Ratelimit-Reset": "1795262430000"}, "", 30 * time.Second},
		{"epoch seconds", map[string]string{"X-Ratelimit-Reset": "1795262430"}, "", 30 * time.Second},
		{"delta", map[string]string{"Ratelimit-Reset": "12"}, "", 12 * time.Second},
		{"past", map[string]string{"X-Ratelimit-Reset": "1700000000"}, "", 0},
		{"nonsense", map[string]string{"X-Ratelimit-Reset": "soon", "X-Ratelimit-Remaining-Tokens": "few"}, "", 0},
		{"Retry-After first", map[string]string{"Retry-After": "3", "X-Ratelimit-Reset": "99"}, "", 3 * time.Second},
		{"in words", nil, "Rate limit reached for gpt-4o. Please try again in 1.25s. Visit …", 1250 * time.Millisecond},
		{"in words, ms", nil, "Please try again in 120ms.", 120 * time.Millisecond},
		{"in words, minutes", nil, "Please retry after 2 minutes", 2 * time.Minute},
		{"not a word", nil, "Rate limit reached", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			s.Next(func(x *llmtest.Exchange) {
				x.Writer().Header().Set("Date", at.Format(http.TimeFormat))
				for name, value := range tt.headers {
					x.Writer().Header().Set(name, value)
				}
				llmtest.Fails(429, "requests", "rate_limit_exceeded", tt.words)(x)
			})
			_, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
			if e := kindOf(t, err); e.Kind != llm.RateLimited || e.RetryAfter != tt.want {
				t.Errorf("sorted as %v after %v, want rate_limited after %v", e.Kind, e.RetryAfter, tt.want)
			}
		})
	}
}

// The many words for the same failure.
func TestFaultSpellings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   llm.Kind
	}{
		{400, `{"error":{"message":"input length and max_tokens exceed context limit: 190000 + 20000 > 200000"}}`, llm.TooLong},
		{400, `{"error":{"message":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}}`, llm.TooLong},
		{400, `[{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, llm.TooLong},
		{400, `{"error":{"message":"prompt token count of 70000 exceeds the limit of 64000","code":"model_max_prompt_tokens_exceeded"}}`, llm.TooLong},
		{413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`, llm.TooLong},
		{400, `{"error":{"message":"litellm.ContextWindowExceededError: …","type":"ContextWindowExceededError"}}`, llm.TooLong},
		{400, `{"code":"InvalidParameter","message":"Range of input length should be [1, 98304]"}`, llm.TooLong},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`, llm.TooLong},
		{402, `{"error":{"message":"Insufficient Balance"}}`, llm.Fatal},
		{400, `{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, llm.Fatal},
		{429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`, llm.Fatal},
		{429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}`, llm.RateLimited},
		{400, `{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, llm.Refused},
		{400, `{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}`, llm.Refused},
		{401, `{"error":{"message":"no key"}}`, llm.Fatal},
		{403, `{"error":{"message":"Project does not have access to model"}}`, llm.Fatal},
		{404, `{"error":{"message":"model \"x\" not found, try pulling it first"}}`, llm.Fatal},
		{529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.Transient},
		{499, ``, llm.Transient},
	} {
		s := llmtest.NewServer(t)
		s.Next(raw(c.status, c.body))
		_, err := open(t, s, nil).Complete(t.Context(), ask("hi"))
		if e := kindOf(t, err); e.Kind != c.want {
			t.Errorf("%d %s: sorted as %v, want %v", c.status, c.body, e.Kind, c.want)
		}
	}
}
