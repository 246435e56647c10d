package mcp

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// bounded adds headers to requests and bounds what answers may hold.
type bounded struct {
	base    *http.Transport
	headers map[string]string
}

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	resp, err := b.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	// A stream of events is bounded event by event, and ends with its call.
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &limited{resp.Body, maxResponse}
	}
	return resp, nil
}

// CloseIdleConnections lets go of what is not in use.
func (b *bounded) CloseIdleConnections() { b.base.CloseIdleConnections() }

// limited is a body that fails when it is too long.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxResponse)
	}
	return n, err
}
