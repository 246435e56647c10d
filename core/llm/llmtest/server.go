package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Key is the key that [Server] accepts.
const Key = "sk-test-0123456789abcdef"

// A Server is an OpenAI-compatible endpoint: GET /v1/models, POST
// /v1/chat/completions and POST /v1/responses, streamed or not, with the checks
// and the error JSON of OpenAI's documentation. Each valid request takes the
// next behaviour of its script, whichever API it speaks; when there is none it
// is answered with Default.
type Server struct {
	// Default is set before the first request; nil says "ok".
	Default Behavior
	// Models are those the server knows, set before the first request; when
	// empty it answers to any name.
	Models []string

	url       string
	transport *http.Transport
	quit      chan struct{}

	mu     sync.Mutex
	script []Behavior
	calls  []Call
}

// A Call is a request as the server read it.
type Call struct {
	Header    http.Header
	Body      []byte
	Chat      Chat       // of a chat request
	Responses *Responses // of a request of the Responses API; nil for chat
}

// Model is the model that was asked.
func (c Call) Model() string {
	if c.Responses != nil {
		return c.Responses.Model
	}
	return c.Chat.Model
}

// NewServer serves on a loopback port until the test ends.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("test endpoint: %v", err)
	}
	return serve(tb, l, &http.Transport{})
}

// NewMemoryServer serves without a network until the test ends, through its
// Transport only. It can be used inside a testing/synctest bubble, where
// waiting for a silent endpoint takes no time.
func NewMemoryServer(tb testing.TB) *Server {
	tb.Helper()
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return serve(tb, l, &http.Transport{DialContext: l.dial})
}

func serve(tb testing.TB, l net.Listener, transport *http.Transport) *Server {
	s := &Server{url: "http://" + l.Addr().String(), transport: transport, quit: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		s.take(w, r, func(call *Call) (fault, error) {
			err := json.Unmarshal(call.Body, &call.Chat)
			return s.check(call.Chat), err
		})
	})
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) {
		s.take(w, r, func(call *Call) (fault, error) {
			call.Responses = &Responses{}
			err := json.Unmarshal(call.Body, call.Responses)
			return s.checkResponses(*call.Responses), err
		})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "invalid_request_error", "unknown_url",
			fmt.Sprintf("Unknown request URL: %s %s.", r.Method, r.URL.Path))
	})
	server := &http.Server{Handler: s.authenticated(mux)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with ErrServerClosed, which is no news
	}()
	tb.Cleanup(func() {
		close(s.quit) // lets handlers go that hang
		transport.CloseIdleConnections()
		_ = server.Shutdown(context.Background()) // cannot fail without a deadline
		<-done
	})
	return s
}

// URL is the base URL to configure, with /v1 at its end.
func (s *Server) URL() string { return s.url + "/v1" }

// Transport reaches the server. Its idle connections are closed when the test ends.
func (s *Server) Transport() http.RoundTripper { return s.transport }

// Next appends to the script: one behaviour for each coming request.
func (s *Server) Next(behaviors ...Behavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, behaviors...)
}

// Calls returns the valid requests so far, in order of arrival.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !ok:
			writeError(w, http.StatusUnauthorized, "invalid_request_error", "",
				"You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.")
		case key != Key:
			writeError(w, http.StatusUnauthorized, "invalid_request_error", "invalid_api_key",
				"Incorrect API key provided: "+key+". You can find your API key in your account settings.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	names := s.Models
	if len(names) == 0 {
		names = []string{"test-model"}
	}
	list := []model{}
	for _, name := range names {
		list = append(list, model{ID: name, Object: "model", Created: created, OwnedBy: "llmtest"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// take reads a request, refuses it where OpenAI would, and lets the script
// behave.
func (s *Server) take(w http.ResponseWriter, r *http.Request, read func(*Call) (fault, error)) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 32<<20))
	if err != nil {
		return // the client is gone
	}
	call := Call{Header: r.Header.Clone(), Body: body}
	f, err := read(&call)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "", "We could not parse the JSON body of your request.")
		return
	}
	if f.message != "" {
		writeError(w, f.status, "invalid_request_error", f.code, f.message)
		return
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	behave := s.Default
	if behave == nil {
		behave = Answers("ok")
	}
	if len(s.script) > 0 {
		behave, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	behave(&Exchange{w: w, gone: r.Context().Done(), quit: s.quit, Call: call})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails when the client is gone, which is its own affair
}

// writeError writes an error as OpenAI does; an empty code is null.
func writeError(w http.ResponseWriter, status int, kind, code, message string) {
	fields := map[string]any{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		fields["code"] = code
	}
	writeJSON(w, status, map[string]any{"error": fields})
}

// A pipeListener accepts in-memory connections.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "pipe" }
func (memoryAddr) String() string  { return "memory.test" }
