package main

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// metricNames are those of docs and package telemetry that a node which answered one
// message must have. Names never change.
var metricNames = []string{
	"mimikit_commit_duration_seconds", "mimikit_commit_steps", "mimikit_commits_total",
	"mimikit_hop_duration_seconds", "mimikit_inputs_total", "mimikit_leases_held", "mimikit_lost_commits_total",
	"mimikit_model_call_duration_seconds", "mimikit_model_tokens_total", "mimikit_post_duration_seconds", "mimikit_posts_total",
	"mimikit_stale_commits_total", "mimikit_step_duration_seconds", "mimikit_steps_ended_total", "mimikit_steps_started_total", "mimikit_takeovers_total",
	"mimikit_waiting_entries", "mimikit_waiting_oldest_seconds", "mimikit_waiting_up",
	"go_goroutines", "process_resident_memory_bytes",
}

func allOwned(url string) func() error {
	return func() error {
		_, body, err := get(url + "/metrics")
		if err == nil && !strings.Contains(body, "\nmimikit_leases_held 16\n") {
			err = errors.New("not yet")
		}
		return err
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Hello."))
	// All partitions are held by a node that nobody sees: so long the next one is
	// not ready.
	first, _ := d.serve()
	first.kill()
	r := d.record(nil)
	for p := range r.keys.Partitions {
		err := r.client.HSet(t.Context(), r.keys.Lease(p), "token", "ghost", "node", "ghost", "until", time.Now().Add(time.Hour).UnixMilli()).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	node, url := d.serving()
	storetest.Eventually(t, "an answer of /healthz", func() error {
		code, body, err := get(url + "/healthz")
		if err == nil && (code != http.StatusOK || body != "ok\n") {
			t.Fatalf("/healthz: %d %q", code, body)
		}
		return err
	})
	code, body, err := get(url + "/readyz")
	if err != nil || code != http.StatusServiceUnavailable || !strings.HasPrefix(body, "not ready: ") {
		t.Errorf("/readyz before: %d %q, %v; want 503 with the reason", code, body, err)
	}
	for p := range r.keys.Partitions {
		if err := r.client.HSet(t.Context(), r.keys.Lease(p), "until", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Eventually(t, "readiness", func() error {
		code, body, err = get(url + "/readyz")
		if err == nil && code != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
	if body != "ready\n" {
		t.Errorf("/readyz after: %q", body)
	}
	storetest.Eventually(t, "all partitions", allOwned(url))
	d.once("t", "hi")
	r.settled()
	// The one who said it joined: its process took the input, the node did all else.
	code, body, err = get(url + "/metrics")
	if err != nil || code != http.StatusOK {
		t.Fatalf("/metrics: %d, %v", code, err)
	}
	have := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(body, -1) {
		have[m[1]] = true
	}
	for _, name := range metricNames {
		if !have[name] && name != "mimikit_inputs_total" {
			t.Errorf("/metrics has no %s", name)
		}
	}
	has(t, body, "\nmimikit_waiting_up 1\n", "\nmimikit_leases_held 16\n", "\nmimikit_takeovers_total 16\n", `mimikit_posts_total{outcome="posted",platform="console"} 1`,
		`mimikit_waiting_entries{channel="user-input",group="teller"} 0`, `mimikit_steps_ended_total{loop="thinker",outcome="done"} 1`)
	for _, never := range []string{"local/t", llmtest.Key} {
		if strings.Contains(body, never) {
			t.Errorf("/metrics tells %q", never)
		}
	}
	if code, _, err = get(url + "/nothing"); err != nil || code != http.StatusNotFound {
		t.Errorf("/nothing: %d, %v", code, err)
	}

	// A port that is taken is said, and names the setting.
	other := deploy(t, nil, "MIMIKIT_HTTP_LISTEN="+strings.TrimPrefix(url, "http://"))
	_, stderr := other.run(1, "", "serve")
	has(t, stderr, "http.listen", "address already in use")
	if pid := other.redisPID(); pid != 0 {
		t.Errorf("redis-server %d is left behind", pid)
	}

	// While Redis does not answer, the process lives and is not ready.
	if err := pauseRedis(d, true); err != nil {
		t.Fatal(err)
	}
	storetest.Eventually(t, "unreadiness", func() error {
		code, body, err = get(url + "/readyz")
		if err == nil && code != http.StatusServiceUnavailable {
			err = errors.New(body)
		}
		return err
	})
	if code, _, err := get(url + "/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz without Redis: %d, %v", code, err)
	}
	if err := pauseRedis(d, false); err != nil {
		t.Fatal(err)
	}
	if got := d.once("t", "again"); got != "Hello." {
		t.Errorf("after the pause the answer is %q", got)
	}
	node.stops(stopSignal, 0)
}

// The check for containers says what /readyz says.
func TestReady(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Hello."))
	node, url := d.serve()
	asks := d.with("MIMIKIT_HTTP_LISTEN=:" + url[strings.LastIndexByte(url, ':')+1:])
	if out, _ := asks.run(0, "", "ready"); out != "ready\n" {
		t.Errorf("a ready node is said to be %q", out)
	}
	node.kill()
	if _, stderr := asks.run(1, "", "ready"); !strings.Contains(stderr, "ask the node whether it is ready") {
		t.Errorf("a dead node: %q", stderr)
	}
	if _, stderr := d.run(1, "", "ready"); !strings.Contains(stderr, "http.listen is off") {
		t.Errorf("a node without a port: %q", stderr)
	}
}
