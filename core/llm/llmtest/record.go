package llmtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"mimikit/core/llm"
)

// A tape is the stored shape of a recording.
type tape struct {
	SchemaVersion int        `json:"schemaVersion"`
	Exchanges     []recorded `json:"exchanges"`
}

// A recorded exchange. Headers of the request are not kept: they are the key,
// and what no answer depends on.
type recorded struct {
	Hash        string          `json:"hash"`
	Method      string          `json:"method"`
	Path        string          `json:"path"`
	Request     json.RawMessage `json:"request"` // a JSON string where the body is no JSON
	Status      int             `json:"status"`
	ContentType string          `json:"contentType,omitempty"`
	RetryAfter  string          `json:"retryAfter,omitempty"`
	Body        string          `json:"body"`
	Cut         bool            `json:"cut,omitempty"` // the body was not read to its end
}

// A Recorder passes requests on and keeps what went to and fro, secrets
// scrubbed, for a [Replay]. Save writes the recording.
type Recorder struct {
	next  http.RoundTripper
	scrub *llm.Scrubber

	mu   sync.Mutex
	tape tape
}

// NewRecorder records what goes through next; nil is http.DefaultTransport.
// Known secrets are given to the scrubber; nil knows only the common kinds.
func NewRecorder(next http.RoundTripper, scrub *llm.Scrubber) *Recorder {
	if next == nil {
		next = http.DefaultTransport
	}
	if scrub == nil {
		scrub = llm.NewScrubber()
	}
	return &Recorder{next: next, scrub: scrub, tape: tape{SchemaVersion: 1}}
}

// RoundTrip implements http.RoundTripper. An exchange is recorded when its body
// is closed; one that failed before there was an answer is not.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	req, body, err := reread(req)
	if err != nil {
		return nil, err
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kept := recorded{
		Method: req.Method, Path: req.URL.Path, Status: resp.StatusCode,
		ContentType: resp.Header.Get("Content-Type"), RetryAfter: resp.Header.Get("Retry-After"),
	}
	clean := r.scrub.Text(string(body))
	kept.Hash = hash(req.Method, req.URL.Path, clean)
	if kept.Request = json.RawMessage(clean); !json.Valid(kept.Request) {
		kept.Request = json.RawMessage(mustJSON(clean))
	}
	resp.Body = &recordedBody{ReadCloser: resp.Body, done: func(heard []byte, whole bool) {
		kept.Body, kept.Cut = r.scrub.Text(string(heard)), !whole
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tape.Exchanges = append(r.tape.Exchanges, kept)
	}}
	return resp, nil
}

// Save writes what was recorded so far to a file, readable by its owner only.
func (r *Recorder) Save(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := json.MarshalIndent(r.tape, "", "  ")
	if err != nil {
		return fmt.Errorf("save the recording %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("save the recording: %w", err)
	}
	return nil
}

type recordedBody struct {
	io.ReadCloser
	heard bytes.Buffer
	whole bool
	once  sync.Once
	done  func(heard []byte, whole bool)
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.heard.Write(p[:n])
	if errors.Is(err, io.EOF) {
		b.whole = true
	}
	return n, err
}

func (b *recordedBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() { b.done(b.heard.Bytes(), b.whole) })
	return err
}

// A Replay answers requests from a recording, without a network. A request that
// was not recorded, or not as often, is an error that names it: a test that
// drifts from its recording must not pass by chance.
type Replay struct {
	path  string
	scrub *llm.Scrubber

	mu   sync.Mutex
	left map[string][]recorded // :: hash -> answers, the next first
}

// OpenReplay reads a recording. The scrubber must know what the recorder's knew.
func OpenReplay(path string, scrub *llm.Scrubber) (*Replay, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open a recording: %w", err)
	}
	var t tape
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("read the recording %s: %w", path, err)
	}
	if t.SchemaVersion != 1 {
		return nil, fmt.Errorf("read the recording %s: schema version %d, want 1", path, t.SchemaVersion)
	}
	if scrub == nil {
		scrub = llm.NewScrubber()
	}
	r := &Replay{path: path, scrub: scrub, left: map[string][]recorded{}}
	for _, e := range t.Exchanges {
		r.left[e.Hash] = append(r.left[e.Hash], e)
	}
	return r, nil
}

// RoundTrip implements http.RoundTripper.
func (r *Replay) RoundTrip(req *http.Request) (*http.Response, error) {
	req, body, err := reread(req)
	if err != nil {
		return nil, err
	}
	clean := r.scrub.Text(string(body))
	key := hash(req.Method, req.URL.Path, clean)
	r.mu.Lock()
	defer r.mu.Unlock()
	answers, known := r.left[key]
	if len(answers) == 0 {
		why := "is not in the recording"
		if known {
			why = "was asked more often than it was recorded"
		}
		return nil, fmt.Errorf("replay %s: %s %s (hash %s) %s: %.300s", r.path, req.Method, req.URL.Path, key, why, clean)
	}
	e := answers[0]
	r.left[key] = answers[1:]
	h := http.Header{}
	for name, value := range map[string]string{"Content-Type": e.ContentType, "Retry-After": e.RetryAfter} {
		if value != "" {
			h.Set(name, value)
		}
	}
	var content io.Reader = bytes.NewReader([]byte(e.Body))
	if e.Cut {
		content = io.MultiReader(content, brokenOff{})
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)), StatusCode: e.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: io.NopCloser(content), ContentLength: -1, Request: req,
	}, nil
}

// Unused gives the paths and hashes of recorded exchanges that nobody asked for.
func (r *Replay) Unused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, answers := range r.left {
		for _, e := range answers {
			out = append(out, e.Path+" "+e.Hash)
		}
	}
	return out
}

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// reread gives a request whose body can still be read, and the body.
func reread(req *http.Request) (*http.Request, []byte, error) {
	if req.Body == nil {
		return req, nil, nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("read the request's body: %w", err)
	}
	req = req.Clone(req.Context()) // a RoundTripper must leave its request as it was
	req.Body = io.NopCloser(bytes.NewReader(body))
	return req, body, nil
}

// hash names a request. JSON is taken by its meaning, so that the order of
// fields and the white space do not matter.
func hash(method, path, body string) string {
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		body = mustJSON(v)
	}
	sum := sha256.Sum256([]byte(method + "\x00" + path + "\x00" + body))
	return hex.EncodeToString(sum[:8])
}
