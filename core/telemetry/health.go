package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves what an operator's tools ask for:
//
//   - /healthz: 200 while the process can answer at all. It says nothing of
//     Redis or a model: restarting would not mend those.
//   - /readyz: 200 when ready returns nil, else 503 with its error, which must
//     hold no secret.
//   - /metrics: m in the Prometheus formats; empty when m is nil.
//
// ready may be nil, which counts as ready. What notes say stands below "ready", a
// line each: it is worth knowing and no reason to send nobody here.
func Handler(m *Metrics, ready func() error, notes ...func() string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready != nil {
			if err := ready(); err != nil {
				say(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
				return
			}
		}
		said := "ready"
		for _, note := range notes {
			if text := note(); text != "" {
				said += "\n" + text
			}
		}
		say(w, http.StatusOK, said)
	})
	mux.Handle("GET /metrics", m.handler())
	return mux
}

func (m *Metrics) handler() http.Handler {
	if m == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "# nothing is counted") })
	}
	// One series that cannot be collected must not hide the others.
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Registry: m.registry,
		MaxRequestsInFlight: 4, // each asks Redis
	})
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // whoever asked has gone
}

// Bounds of the server: what a slow or hostile client may cost.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 60 * time.Second
	headerBytes   = 16 << 10
	drain         = 3 * time.Second
)

// Serve listens on addr (host:port) until ctx ends, then lets running requests
// finish for at most 3 s. It returns nil after a clean end, and an error at once
// when the address cannot be had.
func Serve(ctx context.Context, addr string, h http.Handler) error {
	l, err := Listen(ctx, addr)
	if err != nil {
		return fmt.Errorf("serve health and metrics (http.listen): %w", err)
	}
	return ServeOn(ctx, l, h)
}

// Listen takes the address, so that a caller learns before anything else starts
// whether it is free, and with port 0 which one it got.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// ServeOn is Serve on a listener, which it closes.
func ServeOn(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended: // only ever an error: nobody has asked it to stop
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), drain, errors.New("requests still ran at the stop"))
	defer cancel()
	err := s.Shutdown(stop)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop serving on %s: %w", l.Addr(), err), s.Close())
	}
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
