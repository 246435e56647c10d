package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxFaultBody = 64 << 10 // bytes kept of an answer that is no stream of events
	maxEventLine = 4 << 20  // bytes of one event; the last one of a response repeats the whole answer
)

var errRedirect = errors.New("the endpoint redirects")

// refuseRedirect keeps the key and the prompt at the host that was configured.
func refuseRedirect(r *http.Request, _ []*http.Request) error {
	return fmt.Errorf("%w to %s://%s%s; set the base URL to where it really is", errRedirect, r.URL.Scheme, r.URL.Host, r.URL.Path)
}

// An idleTimer cancels a call when nothing has come for limit. All but the
// cancel happens in the goroutine of the call.
type idleTimer struct {
	limit  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (i *idleTimer) touch() {
	if i.timer == nil {
		limit := i.limit
		i.timer = time.AfterFunc(limit, func() {
			i.cancel(fmt.Errorf("silent for %v: %w", limit, context.DeadlineExceeded))
		})
		return
	}
	i.timer.Reset(i.limit)
}

func (i *idleTimer) stop() { i.timer.Stop() }

// A tap is the transport of one call. go-openai loses status and headers of a
// failed stream, so they are noted here as they pass.
type tap struct {
	next    http.RoundTripper
	headers http.Header
	touch   func()
	patch   map[string]any // fields put into the request's JSON, since go-openai has none for them

	sent       bool
	sentBody   []byte
	status     int
	mediaType  string
	retryAfter time.Duration
	fault      []byte  // the body of an answer with status 400 and above
	events     *events // the body of any other
}

// RoundTrip implements http.RoundTripper.
func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	t.sent = true
	r = r.Clone(r.Context()) // a RoundTripper must leave its request as it was
	for name, values := range t.headers {
		r.Header[name] = values
	}
	if err := t.rewrite(r); err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	t.touch()
	t.status = resp.StatusCode
	t.mediaType, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	t.retryAfter = retryAfter(resp.Header, time.Now())
	if t.retryAfter == 0 && resp.StatusCode == http.StatusTooManyRequests {
		t.retryAfter = limitReset(resp.Header, time.Now())
	}
	body := &touching{ReadCloser: resp.Body, touch: t.touch}
	if resp.StatusCode < 400 {
		t.events = &events{ReadCloser: body, in: bufio.NewReader(body)}
		resp.Body = t.events
		return resp, nil
	}
	// go-openai would read an error's body without bound and never close it.
	// When the body breaks off the status still tells enough.
	t.fault, _ = io.ReadAll(io.LimitReader(body, maxFaultBody))
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(t.fault))
	return resp, nil
}

// rewrite puts the fields of patch into the request's body.
func (t *tap) rewrite(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return fmt.Errorf("read the request's own body: %w", err)
	}
	if len(t.patch) > 0 {
		// Only the outermost fields are taken apart: models write JSON in the
		// order of their schema, and that must stay as it is.
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			return fmt.Errorf("rewrite the request: %w", err)
		}
		for name, value := range t.patch {
			if fields[name], err = json.Marshal(value); err != nil {
				return fmt.Errorf("rewrite field %s of the request: %w", name, err)
			}
		}
		if body, err = json.Marshal(fields); err != nil {
			return fmt.Errorf("rewrite the request: %w", err)
		}
	}
	t.sentBody = body
	r.ContentLength = int64(len(body))
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}

// cut says why a stream ended without a finish reason.
func (t *tap) cut() error {
	stray := t.events.stray
	if fault := readFault(0, stray); fault.Message != "" && fault.object {
		return fault
	}
	if len(stray) > 0 {
		return &Error{Kind: Transient, Err: fmt.Errorf("the endpoint sent %s in place of a stream of events: %s", t.mediaType, gist(stray))}
	}
	return &Error{Kind: Transient, Err: errors.New("the stream was cut: it ended without a finish reason")}
}

type touching struct {
	io.ReadCloser
	touch func()
}

func (t *touching) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.touch()
	}
	return n, err
}

// events hands on nothing but the data lines of a stream, each ended with a
// line end. go-openai gathers all other lines without bound and takes them for
// the text of an error, so that a keepalive comment before an error hides it;
// it also drops a last line without its line end.
type events struct {
	io.ReadCloser
	in    *bufio.Reader
	out   []byte // what is left of the line being handed on
	stray []byte // lines that are no part of a stream of events, up to maxFaultBody
	err   error
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		var line []byte
		line, e.err = e.line()
		e.out = e.data(bytes.TrimSpace(line))
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		if len(line)+len(part) > maxEventLine {
			return nil, fmt.Errorf("a line of the stream is over %d bytes, the most that is taken", maxEventLine)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (e *events) data(line []byte) []byte {
	payload, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		if len(line) > 0 && !protocol(line) && len(e.stray)+len(line) < maxFaultBody {
			e.stray = append(append(e.stray, line...), '\n')
		}
		return nil
	}
	payload = bytes.TrimSpace(payload)
	if len(payload) == 0 {
		return nil
	}
	if rest, ok := bytes.CutPrefix(payload, []byte(`{"error"`)); ok {
		// The space keeps go-openai from reading the error itself, which
		// loses errors that are plain strings.
		payload = append([]byte(`{ "error"`), rest...)
	}
	return append(append([]byte("data: "), payload...), '\n')
}

// protocol reports whether a line belongs to server-sent events but carries no data.
func protocol(line []byte) bool {
	for _, prefix := range []string{":", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(line, []byte(prefix)) {
			return true
		}
	}
	return false
}
