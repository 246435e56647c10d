package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestExpertIsNotToBeHad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		edit       func(*ExpertOptions)
	}{
		{"no program", "npm install -g @openai/codex", func(o *ExpertOptions) { o.Command = "no-such-codex" }},
		{"no plain program", "worker.expert.command", func(o *ExpertOptions) { o.Agent, o.Command = Plain, "no-such-agent" }},
		{"no bubblewrap", "install bubblewrap", func(o *ExpertOptions) { o.Walls = &Walls{Program: "no-such-bwrap"} }},
		{"its walls fail", "Creating new namespace failed", func(o *ExpertOptions) { o.Env = map[string]string{"FAKE_AGENT": "no-walls"} }},
		{"its walls fail, and ours are none", "Creating new namespace failed", func(o *ExpertOptions) { o.Env = map[string]string{"FAKE_AGENT": "no-walls"}; o.Network = true }},
		{"no such folder", "the absolute path", func(o *ExpertOptions) { o.Walls = &Walls{Program: "sh", ReadOnly: []string{"/no/such"}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newExpertBench(t, "works", c.edit)
			b.found = nil
			if err := b.Available(t.Context()); !errors.Is(err, ErrNoAgent) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if _, err := b.do(t.Context()); !errors.Is(err, ErrNoAgent) {
				t.Errorf("a task ended with %v", err)
			}
		})
	}
	b := newExpertBench(t, "works")
	b.found = nil
	if err := b.Available(t.Context()); err != nil || !strings.Contains(b.Describe(), "codex-cli 0.0.0-fake at ") {
		t.Errorf("%v, %q", err, b.Describe())
	}
}

func TestCleanHomes(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "works")
	old, release, err := b.home("slack/T1/C1/1")
	if err != nil {
		t.Fatal(err)
	}
	used, release2, err := b.home("slack/T1/C1/2")
	if err != nil {
		t.Fatal(err)
	}
	defer release2()
	if err := os.WriteFile(filepath.Join(old, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release()
	now := b.o.Now()
	if n, err := b.Clean(time.Hour, now.Add(time.Minute)); n != 0 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
	// Writing into a folder changes its time.
	if err := os.Chtimes(old, now, now); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Clean(time.Hour, now.Add(2*time.Hour)); n != 1 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
	if exists(old) || !exists(used) {
		t.Errorf("old %v, used %v", exists(old), exists(used))
	}
}

// What an agent gives as its reason is told by what it is, whatever the numbers in its
// addresses.
func TestReasonsOfCodex(t *testing.T) {
	t.Parallel()
	for why, says := range map[string]string{
		"unexpected status 502 Bad Gateway: no, url: http://127.0.0.1:40100/127.0.0.1:40345/v1/responses": "could not be reached",
		"unexpected status 401 Unauthorized: no, url: http://127.0.0.1:50200/x":                           "not set up correctly",
		"http 403, see https://x.example/429":                                                             "not set up correctly",
		"unexpected status 429 Too Many Requests: no, url: http://127.0.0.1:40100/x":                      "too many requests",
		"request req_4017 is odd": "the agent gave up: request req_4017 is odd",
	} {
		a := &codexAccount{state: &agentState{}, clean: func(s string) string { return s }}
		if err := a.failed(why); !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", why, err, says)
		}
	}
}
