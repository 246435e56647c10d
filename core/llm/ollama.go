package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// DefaultOllama is where Ollama listens when nobody said otherwise.
const DefaultOllama = "http://127.0.0.1:11434"

// ollamaPatience bounds the look for an Ollama: it is done at every start, and
// a server on the same machine answers in a few milliseconds.
const ollamaPatience = 300 * time.Millisecond

// FindOllama looks for an Ollama server and names its newest model that can
// chat. It takes at most 300 ms. ok is false when there is no server, no such
// model, or the server is something else; none of these is an error, since
// nobody asked for an Ollama. An empty baseURL means [DefaultOllama]; a nil
// client means one of its own.
//
// To use what was found, give [NewOpenAI] the base URL baseURL + "/v1".
func FindOllama(ctx context.Context, baseURL string, client *http.Client) (model string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, ollamaPatience)
	defer cancel()
	if client == nil {
		client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(cmp.Or(baseURL, DefaultOllama), "/")+"/api/tags", nil)
	if err != nil {
		return "", false
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	var tags struct {
		Models []ollamaModel `json:"models"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&tags) != nil {
		return "", false
	}
	chat := slices.DeleteFunc(tags.Models, func(m ollamaModel) bool { return !m.chats() })
	if len(chat) == 0 {
		return "", false
	}
	newest := slices.MaxFunc(chat, func(a, b ollamaModel) int {
		// By name where the times are equal, so that every start picks the same.
		return cmp.Or(a.ModifiedAt.Compare(b.ModifiedAt), strings.Compare(b.Name, a.Name))
	})
	return newest.Name, true
}

type ollamaModel struct {
	Name         string    `json:"name"`
	ModifiedAt   time.Time `json:"modified_at"`
	RemoteHost   string    `json:"remote_host"`  // set for models that run in Ollama's cloud
	Capabilities []string  `json:"capabilities"` // of newer servers only
	Details      struct {
		Family   string   `json:"family"`
		Families []string `json:"families"`
	} `json:"details"`
}

// chats reports whether the model can hold a talk on this machine. A cloud
// model is left out: what people say must not leave the machine unasked.
func (m ollamaModel) chats() bool {
	if m.Name == "" || m.RemoteHost != "" {
		return false
	}
	if len(m.Capabilities) > 0 {
		return slices.Contains(m.Capabilities, "completion")
	}
	for _, family := range append(m.Details.Families, m.Details.Family) {
		if strings.Contains(strings.ToLower(family), "bert") { // bert, nomic-bert, xlm-roberta: embeddings all
			return false
		}
	}
	name := strings.ToLower(m.Name)
	return !slices.ContainsFunc([]string{"embed", "minilm", "bge-", "rerank"}, func(s string) bool { return strings.Contains(name, s) })
}
