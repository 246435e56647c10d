package llm

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
)

// habits are what a model at an endpoint was found not to take, so that it is
// asked in a way that works from the start. The zero value is an endpoint that
// takes everything.
type habits struct {
	api         API    // "" is not known
	plainStream bool   // refuses stream_options
	noCacheKey  bool   // refuses prompt_cache_key
	maxTokens   string // the name that it takes; "" is not known
	format      format // of one schema
}

// newMax reports whether max_completion_tokens is the name to use.
func (h habits) newMax(byName bool) bool {
	switch h.maxTokens {
	case maxCompletionTokens:
		return true
	case maxTokens:
		return false
	}
	return byName
}

const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// A habitBook holds the habits of an endpoint's models. Models and schemas are
// named by configuration and code, so there are few.
type habitBook struct {
	mu      sync.Mutex
	models  map[string]habits
	formats map[string]format // :: model NUL schema name -> format
}

func formatKey(model string, s *Schema) string { return model + "\x00" + s.Name }

// of gives what is known.
func (b *habitBook) of(model string, s *Schema) habits {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.models[model]
	if s != nil {
		h.format = b.formats[formatKey(model, s)]
	}
	return h
}

// learn takes from a refusal what to do otherwise. It reports whether another
// request can differ from the one that was refused, which was made as h says.
func (b *habitBook) learn(model string, req Request, api API, h habits, t *tap, configured API) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.models == nil {
		b.models, b.formats = map[string]habits{}, map[string]format{}
	}
	now := b.models[model]
	said := strings.ToLower(string(t.fault))
	auto := configured == "" || configured == AutoAPI
	switch {
	case auto && api == ChatAPI && h.api == "" && onlyResponses(t.status, said):
		now.api = ResponsesAPI
	case auto && api == ResponsesAPI && h.api == "" && noSuchPath(t.status, said):
		now.api = ChatAPI
	case t.status != http.StatusBadRequest && t.status != http.StatusUnprocessableEntity:
		return false
	case api == ChatAPI && !h.plainStream && (strings.Contains(said, "stream_options") || strings.Contains(said, "include_usage")):
		now.plainStream = true
	case !h.noCacheKey && strings.Contains(said, "prompt_cache_key"):
		now.noCacheKey = true
	case api == ChatAPI && req.MaxTokens > 0 && h.maxTokens == "" && contains(said, []string{maxTokens, maxCompletionTokens}) && contains(said, notTaken):
		now.maxTokens = maxCompletionTokens
		if bytes.Contains(t.sentBody, []byte(`"`+maxCompletionTokens+`"`)) {
			now.maxTokens = maxTokens
		}
	case req.Schema != nil && h.format < toldFormat && contains(said, formatWords):
		b.formats[formatKey(model, req.Schema)] = h.format + 1
		return true
	default:
		return false
	}
	b.models[model] = now
	return true
}

var (
	notTaken    = []string{"unsupported", "not supported", "unrecognized", "unknown", "unexpected", "extra", "not permitted", "not allowed"}
	formatWords = []string{"response_format", "json_schema", "json_object", "text.format", "response format", "structured output", "guided", "grammar", "invalid schema"}
)

// onlyResponses reports whether chat completions refused a model that the
// Responses API serves.
func onlyResponses(status int, said string) bool {
	return (status == http.StatusBadRequest || status == http.StatusNotFound) &&
		contains(said, []string{"v1/responses", "/responses", "responses api"})
}

// noSuchPath reports whether an endpoint has no Responses API at all, which
// must not be taken from a model that it does not have.
func noSuchPath(status int, said string) bool {
	switch status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusNotFound:
		return !strings.Contains(said, "model")
	}
	return false
}
