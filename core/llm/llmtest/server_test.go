package llmtest_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"

	"mimikit/core/llm/llmtest"
)

func client(s *llmtest.Server, key string) *openai.Client {
	c := openai.DefaultConfig(key)
	c.BaseURL = s.URL()
	c.HTTPClient = &http.Client{Transport: s.Transport()}
	return openai.NewClientWithConfig(c)
}

func chat(text string) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{Model: "test-model", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: text}}}
}

// A client that is not ours sees an OpenAI endpoint.
func TestServerWithoutStream(t *testing.T) {
	t.Parallel()
	for _, s := range []*llmtest.Server{llmtest.NewServer(t), llmtest.NewMemoryServer(t)} {
		s.Next(llmtest.Answers("four words of answer"))
		got, err := client(s, llmtest.Key).CreateChatCompletion(t.Context(), chat("two words"))
		if err != nil {
			t.Fatal(err)
		}
		if m := got.Choices[0]; m.Message.Content != "four words of answer" || m.FinishReason != "stop" || got.Usage.TotalTokens != 6 {
			t.Errorf("answer = %+v", got)
		}
		if got, err = client(s, llmtest.Key).CreateChatCompletion(t.Context(), chat("a")); err != nil || got.Choices[0].Message.Content != "ok" {
			t.Errorf("beyond the script: %+v, %v; want ok", got, err)
		}
	}
}

func TestServerStreams(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Next(llmtest.Answers("a b c"))
	req := chat("x")
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	stream, err := client(s, llmtest.Key).CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text string
	var finish openai.FinishReason
	var usage *openai.Usage
	for {
		c, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Usage != nil {
			usage = c.Usage
		}
		for _, choice := range c.Choices {
			text += choice.Delta.Content
			if choice.FinishReason != "" {
				finish = choice.FinishReason
			}
		}
	}
	if text != "a b c" || finish != "stop" || usage == nil || usage.CompletionTokens != 3 {
		t.Errorf("text %q, finish %q, usage %+v", text, finish, usage)
	}
}

func TestServerModels(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Models = []string{"m1", "m2"}
	list, err := client(s, llmtest.Key).ListModels(t.Context())
	if err != nil || len(list.Models) != 2 || list.Models[1].ID != "m2" {
		t.Errorf("models = %+v, %v; want m1 and m2", list, err)
	}
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t)
	s.Models = []string{"test-model", "o3"}
	var e *openai.APIError
	if _, err := client(s, "sk-wrong").ListModels(t.Context()); !errors.As(err, &e) || e.HTTPStatusCode != 401 || e.Code != "invalid_api_key" {
		t.Errorf("wrong key: %v, want 401 invalid_api_key", err)
	}
	if _, err := client(s, "").ListModels(t.Context()); !errors.As(err, &e) || e.HTTPStatusCode != 401 {
		t.Errorf("no key: %v, want 401", err)
	}
	tests := []struct {
		name, body, says string
		status           int
	}{
		{"no JSON", `{`, "parse", 400},
		{"no model", `{"messages":[{"role":"user","content":"x"}]}`, "model", 400},
		{"unknown model", `{"model":"m9","messages":[{"role":"user","content":"x"}]}`, "model_not_found", 404},
		{"no messages", `{"model":"test-model","messages":[]}`, "empty array", 400},
		{"unknown role", `{"model":"test-model","messages":[{"role":"bot","content":"x"}]}`, "'bot'", 400},
		{"no content", `{"model":"test-model","messages":[{"role":"user"}]}`, "got null", 400},
		{"options without stream", `{"model":"test-model","messages":[{"role":"user","content":""}],"stream_options":{}}`, "stream_options", 400},
		{"old limit", `{"model":"o3","max_tokens":5,"messages":[{"role":"user","content":""}]}`, "max_completion_tokens", 400},
	}
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+llmtest.Key)
		resp, err := (&http.Client{Transport: s.Transport()}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status || !strings.Contains(string(body), tt.says) || !strings.Contains(string(body), `"type":"invalid_request_error"`) {
			t.Errorf("%s: %d %s, want %d with %q", tt.name, resp.StatusCode, body, tt.status, tt.says)
		}
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d calls taken, want none", n)
	}
}
