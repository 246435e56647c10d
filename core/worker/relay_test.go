package worker

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A modelDouble answers what a relay lets through, and keeps it.
type modelDouble struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
	body  []string
}

func newModelDouble(t *testing.T, answer http.HandlerFunc) *modelDouble {
	t.Helper()
	m := &modelDouble{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		m.asked, m.body = append(m.asked, r), append(m.body, string(body))
		m.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(func() { m.CloseClientConnections(); m.Close() })
	return m
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func openRelay(t *testing.T, end AgentEndpoint) *relay {
	t.Helper()
	r, err := newRelay(end, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// A relayedAnswer is what an agent is told, whole.
type relayedAnswer struct {
	status int
	header http.Header
	body   string
}

// get asks a relay for what lies under a path of the endpoint, and hands each line of the
// answer to line, if that is not nil.
func (r *relay) get(t *testing.T, method, path, token string, line func(string)) relayedAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.Base+path, strings.NewReader("hello"))
	if err != nil {
		t.Error(err)
		return relayedAnswer{}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("X-Agent", "codex")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Error(err)
		return relayedAnswer{}
	}
	defer func() { _ = resp.Body.Close() }()
	out := relayedAnswer{status: resp.StatusCode, header: resp.Header}
	lines := bufio.NewReader(resp.Body)
	for {
		text, err := lines.ReadString('\n')
		out.body += text
		if err != nil {
			return out
		}
		if line != nil {
			line(text)
		}
	}
}

// What an agent asks its model goes to that model with our key, and nothing else does.
func TestRelay(t *testing.T) {
	t.Parallel()
	m := newModelDouble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "later")
	})
	r := openRelay(t, AgentEndpoint{BaseURL: m.URL + "/api/v1/?version=2", Key: "sk-ours", Headers: map[string]string{"x-org": "hunter22", "Host": "model.example"}})
	if !strings.HasPrefix(r.Base, "http://127.0.0.1:") || !strings.HasSuffix(r.Base, strings.TrimPrefix(m.URL, "http:/")+"/api/v1") || len(r.Token) < 20 {
		t.Fatalf("it is at %s with the token %q", r.Base, r.Token)
	}
	if a := r.get(t, "POST", "/responses?client=1", r.Token, nil); a.status != 429 || a.header.Get("Retry-After") != "7" || a.body != "later" {
		t.Errorf("the agent is told %+v", a)
	}
	if len(m.asked) != 1 {
		t.Fatalf("the model was asked %d times", len(m.asked))
	}
	got := m.asked[0]
	if got.URL.Path != "/api/v1/responses" || got.URL.RawQuery != "version=2&client=1" || m.body[0] != "hello" || got.Host != "model.example" {
		t.Errorf("asked for %s of %s with %q", got.URL, got.Host, m.body[0])
	}
	if h := got.Header; h.Get("Authorization") != "Bearer sk-ours" || h.Get("X-Org") != "hunter22" || h.Get("X-Agent") != "codex" || h.Get("X-Forwarded-For") != "" {
		t.Errorf("asked with %v", h)
	}

	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{"POST", "/responses", "", 401},
		{"POST", "/responses", "sk-ours", 401},
		{"POST", "/responses", r.Token + "x", 401},
		{"GET", "/responses", r.Token, 404}, // what others have asked
		{"DELETE", "/responses/resp_1", r.Token, 404},
		{"POST", "/files", r.Token, 404},
		{"GET", "/files", r.Token, 404},
		{"POST", "/responses/../files", r.Token, 404},
		{"POST", "/responses/%2e%2e/files", r.Token, 404},
		{"POST", "//responses", r.Token, 404},
		{"POST", "", r.Token, 404},
	} {
		if a := r.get(t, c.method, c.path, c.token, nil); a.status != c.status {
			t.Errorf("%s %s with %q: %d, want %d", c.method, c.path, c.token, a.status, c.status)
		}
	}
	if len(m.asked) != 1 {
		t.Errorf("the model was asked %d times", len(m.asked))
	}
	if a := r.get(t, "GET", "/models", r.Token, nil); a.status != 429 || len(m.asked) != 2 {
		t.Errorf("models: %d", a.status)
	}
}

// Where there is no key none is sent, and a password in the address is.
func TestRelayWithoutAKey(t *testing.T) {
	t.Parallel()
	m := newModelDouble(t, says("ok"))
	open := openRelay(t, AgentEndpoint{BaseURL: m.URL})
	open.get(t, "POST", "/responses", open.Token, nil)
	named := openRelay(t, AgentEndpoint{BaseURL: strings.Replace(m.URL, "http://", "http://ann:hunter22@", 1)})
	if strings.Contains(named.Base, "hunter22") {
		t.Errorf("the agent is told %s", named.Base)
	}
	named.get(t, "POST", "/responses", named.Token, nil)
	if len(m.asked) != 2 || m.asked[0].Header.Get("Authorization") != "" {
		t.Fatalf("asked %d times, with %v", len(m.asked), m.asked[0].Header)
	}
	if who, password, ok := m.asked[1].BasicAuth(); !ok || who != "ann" || password != "hunter22" {
		t.Errorf("asked with %v", m.asked[1].Header)
	}
	for _, bad := range []string{"ftp://x", "model.example/v1", "http://ann:hunter22@[::1", "https:///v1"} {
		if _, err := newRelay(AgentEndpoint{BaseURL: bad}, slog.Default()); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// What the model says is passed on as it comes; when the relay is closed nothing of it
// is left, the talk with the model included.
func TestRelayStreams(t *testing.T) {
	t.Parallel()
	more, over := make(chan string), make(chan struct{})
	m := newModelDouble(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case s := <-more:
				_, _ = io.WriteString(w, s)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				close(over)
				return
			}
		}
	})
	r, err := newRelay(AgentEndpoint{BaseURL: m.URL}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	came, ended := make(chan string), make(chan relayedAnswer)
	go func() { ended <- r.get(t, "POST", "/responses", r.Token, func(line string) { came <- line }) }()
	for _, line := range []string{"one\n", "two\n", "three\n"} {
		more <- line
		if got := <-came; got != line { // before the next is said
			t.Fatalf("read %q, want %q", got, line)
		}
	}
	r.close()
	<-over
	if a := <-ended; a.body != "one\ntwo\nthree\n" {
		t.Errorf("all that was read is %q", a.body)
	}
	if resp, err := http.Post(r.Base+"/responses", "", nil); err == nil {
		_ = resp.Body.Close()
		t.Error("it still listens")
	}
	r.close() // again is harmless
}

// An endpoint that is not there is told as such, and no address of it.
func TestRelayToNobody(t *testing.T) {
	t.Parallel()
	m := newModelDouble(t, says(""))
	m.Close()
	r := openRelay(t, AgentEndpoint{BaseURL: m.URL, Key: "sk-ours"})
	if a := r.get(t, "POST", "/responses", r.Token, nil); a.status != http.StatusBadGateway || a.body != `{"error":{"message":"the model could not be reached","type":"mimikit"}}` {
		t.Errorf("%+v", a)
	}
}

// walled is an expert within bubblewrap; the test is skipped where there is none.
func walled(t *testing.T, how string, edit func(*ExpertOptions)) *expertBench {
	t.Helper()
	walls := &Walls{}
	if err := walls.try(t.Context()); err != nil {
		if os.Getenv("MIMIKIT_NEED_SANDBOX") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	b := newExpertBench(t, how, func(o *ExpertOptions) {
		o.Walls, o.Network = walls, true
		edit(o)
	})
	b.found = &agentProgram{path: b.o.Command, show: []string{filepath.Dir(b.o.Command)}, version: "fake"}
	return b
}

// Where our walls are the only ones, no command of the agent can look up the key: not
// in a command line, not in an environment, of no process that it sees.
func TestNoKeyInProc(t *testing.T) {
	t.Parallel()
	m := newModelDouble(t, says("from the model"))
	b := walled(t, "looks", func(o *ExpertOptions) {
		o.Endpoint = AgentEndpoint{BaseURL: m.URL, Key: "sk-secret-1234", Headers: map[string]string{"X-Org": "hunter22"}}
		o.Env["OF_THE_AGENT"] = "swordfish"
	})
	out, err := b.do(t.Context())
	if err != nil || out.Output != "200 from the model true false" {
		t.Fatalf("%+v, %v", out, err)
	}
	saw := b.saw("proc")
	for _, leak := range []string{"sk-secret", "hunter22", b.o.Homes} {
		if strings.Contains(saw, leak) {
			t.Errorf("a command sees %q:\n%s", leak, saw)
		}
	}
	// What the agent has been given stands in the agent's own environment and in no other,
	// such as that of the program that keeps it in.
	for _, given := range []string{"OF_THE_AGENT=swordfish", agentKey + "="} {
		if n := strings.Count(saw, given); n != 1 {
			t.Errorf("a command sees %q %d times, want once:\n%s", given, n, saw)
		}
	}
	if h := m.asked[0].Header; h.Get("Authorization") != "Bearer sk-secret-1234" || h.Get("X-Org") != "hunter22" {
		t.Errorf("its model was asked with %v", h)
	}
}

// The token of one run is worth nothing in the next.
func TestTokenOfARun(t *testing.T) {
	t.Parallel()
	m := newModelDouble(t, says("hello"))
	b := newExpertBench(t, "asks", func(o *ExpertOptions) { o.Endpoint.BaseURL = m.URL })
	var tokens []string
	for range 2 {
		out, err := b.do(t.Context())
		if err != nil || out.Output != "200 hello" {
			t.Fatalf("%+v, %v", out, err)
		}
		_, token, _ := strings.Cut(b.saw("env"), agentKey+"=")
		token, _, _ = strings.Cut(token, "\n")
		_, base, _ := strings.Cut(b.saw("args"), `base_url="`)
		base, _, _ = strings.Cut(base, `"`)
		if resp, err := http.Post(base+"/responses", "", nil); err == nil {
			_ = resp.Body.Close()
			t.Error("the relay of a run outlives it")
		}
		tokens = append(tokens, token)
	}
	if tokens[0] == tokens[1] || tokens[0] == "" {
		t.Errorf("tokens %q", tokens)
	}
}
