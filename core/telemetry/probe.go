package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A RefusedError says that a collector answered and did not take what was sent.
type RefusedError struct {
	Target string // where it was sent
	Status int    // of HTTP
}

func (e *RefusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s answered %d %s", e.Target, e.Status, http.StatusText(e.Status)))
}

// Probe finds out whether a collector takes what a Tracer with the same options would
// send: it sends a request without any span, once. It gives the address it was sent to,
// and fails with a *RefusedError where somebody answered that does not take it, and
// otherwise where nobody answers within Timeout. Its errors have nothing of Headers.
func Probe(ctx context.Context, o TraceOptions) (target string, err error) {
	if target, err = tracesURL(o.Endpoint); err != nil {
		return "", err
	}
	client := o.Client
	if client == nil {
		client = newClient()
		defer client.CloseIdleConnections()
	}
	positive(&o.Timeout, 10*time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("no answer within %s", o.Timeout))
	defer cancel()
	// A message of protobuf that has nothing in it is empty.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, http.NoBody)
	if err != nil {
		return target, fmt.Errorf("send traces to %s: %w", target, err)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	for name, value := range o.Headers {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if whole := (*url.Error)(nil); errors.As(err, &whole) { // which has the address once more
		err = whole.Err
	}
	if err != nil {
		return target, fmt.Errorf("send traces to %s: %w", target, err)
	}
	defer func() { _ = resp.Body.Close() }() // what it says besides may never end
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return target, &RefusedError{target, resp.StatusCode}
	}
	return target, nil
}
