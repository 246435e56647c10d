package telemetry_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/telemetry"
)

// Whatever a collector does, whoever asks about it has the answer as soon as it is
// known, is told the address once, and never what was sent as a secret; nor does another
// address hear of it.
func TestProbe(t *testing.T) {
	t.Parallel()
	const secret = "Bearer sesame-0123456789"
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		status int // of the refusal; 0: it takes the request
	}{
		"taken": {func(http.ResponseWriter, *http.Request) {}, 0},
		"taken, and never done": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 0},
		"far too much": {func(w http.ResponseWriter, _ *http.Request) {
			for range 10_000 {
				if _, err := w.Write(make([]byte, 10_000)); err != nil {
					return
				}
			}
		}, 0},
		"sent elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, http.StatusTemporaryRedirect},
		"no status of HTTP": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) }, 599},
		"refused": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusForbidden)
		}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(test.answer))
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			target, err := telemetry.Probe(t.Context(), telemetry.TraceOptions{Endpoint: server.URL, Headers: map[string]string{"Authorization": secret}})
			if target != server.URL+"/v1/traces" {
				t.Errorf("sent to %s", target)
			}
			var refused *telemetry.RefusedError
			if test.status == 0 != (err == nil) || err != nil && (!errors.As(err, &refused) || refused.Status != test.status) {
				t.Fatalf("%v, want status %d", err, test.status)
			}
			if err != nil && (strings.Contains(err.Error(), "sesame") || strings.HasSuffix(err.Error(), " ")) {
				t.Errorf("it says %q", err)
			}
		})
	}
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		for _, o := range []telemetry.TraceOptions{
			{Endpoint: "http://127.0.0.1:1", Headers: map[string]string{"Authorization": secret}},
			{Endpoint: other.URL, Headers: map[string]string{"Authorization": secret + "\n"}},
			{Endpoint: "https://user:sesame@127.0.0.1:1"}, {Endpoint: "https://user:sesame@127.0.0.1:%zz"}, {Endpoint: "ftp://user:sesame@127.0.0.1"},
		} {
			_, err := telemetry.Probe(t.Context(), o)
			if err == nil || strings.Contains(err.Error(), "sesame") || strings.Count(err.Error(), "127.0.0.1:1/") > 1 {
				t.Errorf("it says %v", err)
			}
			if o.Headers != nil {
				continue
			}
			if _, err := telemetry.NewTracer(o); err == nil || strings.Contains(err.Error(), "sesame") {
				t.Errorf("a Tracer says %v", err)
			}
		}
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		if _, err := telemetry.Probe(t.Context(), telemetry.TraceOptions{Endpoint: server.URL, Timeout: 50 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
			t.Errorf("it says %v", err)
		}
	})
	t.Cleanup(func() {
		if n := elsewhere.Load(); n != 0 {
			t.Errorf("another address was asked %d times", n)
		}
	})
}
