package llm_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/llm"
)

func TestFindOllama(t *testing.T) {
	t.Parallel()
	model := func(name, at, rest string) string {
		return `{"name":"` + name + `","modified_at":"` + at + `"` + rest + `}`
	}
	const older, newer, newest = "2026-01-01T10:00:00.5-07:00", "2026-02-01T10:00:00Z", "2026-03-01T10:00:00Z"
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"newest", model("a:latest", older, "") + "," + model("b:7b", newer, ""), 200, "b:7b"},
		{"no embeddings", model("chat", older, "") + "," + model("nomic-embed-text", newer, "") + "," +
			model("x", newest, `,"details":{"family":"nomic-bert","families":["nomic-bert"]}`), 200, "chat"},
		{"by capability", model("chat-embed", older, `,"capabilities":["completion","tools"]`) + "," +
			model("vec", newer, `,"capabilities":["embedding"]`), 200, "chat-embed"},
		{"no cloud", model("chat", older, "") + "," + model("big-cloud", newer, `,"remote_host":"https://ollama.com:443"`), 200, "chat"},
		{"same time", model("b", older, "") + "," + model("a", older, ""), 200, "a"},
		{"only embeddings", model("mxbai-embed-large", older, ""), 200, ""},
		{"none", "", 200, ""},
		{"nonsense", "][", 200, ""},
		{"not Ollama", model("a", older, ""), 404, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if got := r.URL.String(); got != "http://127.0.0.1:11434/api/tags" {
					t.Errorf("asked %s", got)
				}
				return &http.Response{StatusCode: tt.status, Body: io.NopCloser(strings.NewReader(`{"models":[` + tt.body + `]}`))}, nil
			})}
			if got, ok := llm.FindOllama(t.Context(), "", client); got != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, tt.want)
			}
		})
	}
}

func TestFindOllamaPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		if _, ok := llm.FindOllama(t.Context(), "http://127.0.0.1:11434/", client); ok || time.Since(start) != 300*time.Millisecond {
			t.Errorf("ok = %v after %v, want false after 300ms", ok, time.Since(start))
		}
	})
}

func TestFindOllamaAbsent(t *testing.T) {
	t.Parallel()
	if model, ok := llm.FindOllama(t.Context(), "http://127.0.0.1:1", nil); ok {
		t.Errorf("found %q where nothing listens", model)
	}
}
