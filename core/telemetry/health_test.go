package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHandler(t *testing.T) {
	t.Parallel()
	var state error
	h := Handler(New(), func() error { return state })
	ask := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	check := func(method, path string, status int, words string) {
		t.Helper()
		if code, body := ask(method, path); code != status || !strings.Contains(body, words) {
			t.Errorf("%s %s: %d %q, want %d %q", method, path, code, body, status, words)
		}
	}
	check("GET", "/readyz", 200, "ready")
	state = errors.New("no partition is held")
	check("GET", "/readyz", 503, "not ready: no partition is held")
	check("GET", "/healthz", 200, "ok") // still: a restart would not mend it
	check("HEAD", "/healthz", 200, "")
	check("POST", "/healthz", 405, "")
	check("GET", "/", 404, "")
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started, finish := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/", Handler(nil, nil))
	mux.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-finish
		_, _ = io.WriteString(w, "done")
	})
	ended := make(chan error, 1)
	go func() { ended <- ServeOn(ctx, l, mux) }()
	base := "http://" + l.Addr().String()
	if code, _ := get(t, base+"/healthz"); code != 200 {
		t.Errorf("/healthz: %d", code)
	}

	// A second server on the same address says which and why.
	if err := Serve(ctx, l.Addr().String(), mux); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("address in use: %v", err)
	}

	// A request that runs at the stop is let finish.
	answer := make(chan string, 1)
	go func() {
		_, body := get(t, base+"/slow")
		answer <- body
	}()
	<-started
	cancel()
	close(finish)
	if body := <-answer; body != "done" {
		t.Errorf("request cut off by the stop: %q", body)
	}
	if err := <-ended; err != nil {
		t.Errorf("clean stop: %v", err)
	}
}

func TestServeTellsABrokenListener(t *testing.T) {
	t.Parallel()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := ServeOn(t.Context(), l, http.NotFoundHandler()); err == nil {
		t.Error("want an error from a closed listener")
	}
}
