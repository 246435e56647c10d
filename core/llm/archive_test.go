package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// Tokens are put together here, so that no scanner takes this file for a leak.
var leaks = map[string]string{
	"OpenAI":      "sk-" + "proj-AbCdEfGhIjKlMnOpQrStUv",
	"Slack bot":   "xox" + "b-123456789012-abcdefGHIJ",
	"Slack app":   "xapp" + "-1-A0B1C2-123-abcdef",
	"GitHub":      "ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789",
	"GitHub fine": "github_pat" + "_11ABCDEFG0abcdefghijkl_mnop",
	"AWS":         "AKIA" + "IOSFODNN7EXAMPLE",
	"bearer":      "Bearer " + "abc.def-ghi_jkl",
	"Discord":     "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
	"JWT":         "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl",
	"PEM":         "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n7bq+/=\n-----END RSA PRIVATE KEY-----",
	"PEM in JSON": "-----BEGIN " + `PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n7bq+/=\n-----END PRIVATE KEY-----`,
	"PEM, cut":    "-----BEGIN " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n7bq",
	"configured":  `hunter2"quoted`,
	"in JSON":     `hunter2\"quoted`,
}

func TestScrubber(t *testing.T) {
	t.Parallel()
	s := llm.NewScrubber(`hunter2"quoted`, "a", "")
	for name, secret := range leaks {
		tail := " and on."
		if name == "PEM, cut" {
			tail = ""
		}
		got := s.Text("take " + secret + tail)
		if !strings.Contains(got, "[secret]") || !strings.HasPrefix(got, "take ") || !strings.HasSuffix(got, tail) {
			t.Errorf("%s: %q", name, got)
		}
		if body := secret[min(len(secret), 12):]; len(body) > 6 && strings.Contains(got, body[:7]) && name != "PEM" && name != "PEM in JSON" && name != "PEM, cut" {
			t.Errorf("%s: %q tells of it", name, got)
		}
		if strings.Contains(got, "MIIE") || strings.Contains(got, "7bq") {
			t.Errorf("%s: %q holds the key", name, got)
		}
	}
	for _, plain := range []string{
		"", "a task-list of risk-takers", "the bearer of news", "Bearer of it", "sk-learn", "version 1.2.3-rc.4", "xoxo",
		"slack/T012/C345/1700000000.123456", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	} {
		if got := s.Text(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

type archivedCall struct {
	SchemaVersion                      int
	Time                               time.Time
	Agent, TraceID, Conversation, Task string
	Endpoint, Model, AnsweredAs        string
	TookMs, FirstMs, CostMicros        int64
	Usage                              struct{ Prompt, Completion, Cached int }
	Error                              *struct{ Kind, Text string }
	Response                           struct {
		Text, Finish string
		ToolCalls    []struct{ ID, Name, Arguments string }
	}
	Request struct {
		Schema   string
		Tools    []string
		Messages []struct{ Role, Content string }
	}
	Cut string
}

// files gives the archive's files by their path below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, _ := filepath.Glob(filepath.Join(dir, "*", ".*"))
	if len(hidden) > 0 {
		t.Errorf("unfinished files: %v", hidden)
	}
	return found
}

func readCall(t *testing.T, path string) (c archivedCall, size int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c, len(data)
}

func TestArchive(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data", "llm")
	clock := time.Date(2026, 11, 21, 23, 59, 59, 123e6, time.FixedZone("", 3600))
	m := llm.Archive(llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
		clock = clock.Add(2 * time.Second)
		req.OnDelta("the")
		clock = clock.Add(time.Second)
		return llm.Response{
			Text: "the key is " + leaks["OpenAI"], ToolCalls: []llm.ToolCall{{ID: "c", Name: "f", Arguments: `{"k":"` + leaks["in JSON"] + `"}`}},
			Model: "m-2026", Endpoint: "http://e/v1", Usage: llm.Usage{Prompt: 5, Completion: 3, Cached: 2}, Cost: 17, Finish: "tool_calls",
		}, nil
	}), llm.ArchiveOptions{Dir: dir, Scrubber: llm.NewScrubber(leaks["configured"]), Now: func() time.Time { return clock }, ID: func() string { return "id/1" }})
	req := ask("<what> is " + leaks["Slack bot"])
	req.Agent, req.Model, req.Conversation, req.TraceID, req.Task = "teller digest", "m", "slack/T/C/1", "tr", "t1"
	req.Tools, req.Schema, req.OnDelta = []llm.Tool{{Name: "f"}}, verdict, func(string) {}
	got, err := m.Complete(t.Context(), req)
	if err != nil || !strings.Contains(got.Text, leaks["OpenAI"]) {
		t.Errorf("got %+v, %v; want the answer unscrubbed", got, err)
	}
	found := files(t, dir)
	if want := filepath.Join(dir, "2026-11-21", "225959.123-teller-digest-id-1.json"); len(found) != 1 || found[0] != want {
		t.Fatalf("files %v, want %s", found, want)
	}
	for path, mode := range map[string]os.FileMode{found[0]: 0o600, filepath.Dir(found[0]): 0o700 | os.ModeDir, dir: 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
	c, _ := readCall(t, found[0])
	if c.SchemaVersion != 1 || c.Agent != "teller digest" || c.TraceID != "tr" || c.Conversation != "slack/T/C/1" || c.Task != "t1" ||
		c.Endpoint != "http://e/v1" || c.Model != "m" || c.AnsweredAs != "m-2026" || c.TookMs != 3000 || c.FirstMs != 2000 || c.CostMicros != 17 ||
		c.Usage.Cached != 2 || c.Response.Text != "the key is sk-[secret]" || c.Response.Finish != "tool_calls" || c.Error != nil || c.Cut != "" ||
		c.Response.ToolCalls[0].Arguments != `{"k":"[secret]"}` || c.Request.Messages[1].Content != "<what> is xoxb-[secret]" || c.Request.Schema != "verdict" || !slices.Equal(c.Request.Tools, []string{"f"}) {
		t.Errorf("archived %+v", c)
	}
	raw, _ := os.ReadFile(found[0])
	if !strings.Contains(string(raw), "<what>") {
		t.Error("people have to read \\u003c")
	}
}

func TestArchiveFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := llm.Archive(llmtest.NewScripted(llmtest.Answer{Usage: llm.Usage{Prompt: 9}, Err: &llm.Error{Kind: llm.TooLong, Err: errors.New("refused with " + leaks["AWS"])}}), llm.ArchiveOptions{Dir: dir})
	if _, err := m.Complete(t.Context(), ask("hi")); kindOf(t, err).Kind != llm.TooLong {
		t.Error(err)
	}
	c, _ := readCall(t, files(t, dir)[0])
	if c.Error == nil || c.Error.Kind != "too_long" || strings.Contains(c.Error.Text, leaks["AWS"]) || c.Usage.Prompt != 9 {
		t.Errorf("archived %+v, error %+v", c, c.Error)
	}

	// A call never fails because it could not be kept.
	var lost []error
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m = llm.Archive(llmtest.Instant{}, llm.ArchiveOptions{Dir: file, OnError: func(err error) { lost = append(lost, err) }})
	if got, err := m.Complete(t.Context(), ask("hi")); err != nil || got.Text != "ok" || len(lost) != 1 || !strings.Contains(lost[0].Error(), "archive a call of thinker") {
		t.Errorf("got %+v, %v; lost %v", got, err, lost)
	}
}

// A long call is cut to the bound, with a note, and no cut leaves half a secret.
func TestArchiveBound(t *testing.T) {
	t.Parallel()
	const bound = 8 << 10
	many := make([]llm.Message, 3000)
	for i := range many {
		many[i] = llm.Message{Role: llm.User, Content: fmt.Sprint("message ", i)}
	}
	big := make([]llm.ToolCall, 500)
	for i := range big {
		big[i] = llm.ToolCall{ID: strings.Repeat("i", 64), Name: "f", Arguments: "{}"}
	}
	for name, c := range map[string]struct {
		messages []llm.Message
		res      llm.Response
		keeps    []string
	}{
		"long texts":    {[]llm.Message{{Content: "begin " + strings.Repeat("é", 1<<20) + " end"}, {Content: "short"}}, llm.Response{Text: strings.Repeat("answer ", 1e5)}, []string{`"begin é`, `é end"`, `"short"`, `bytes cut`}},
		"many secrets":  {[]llm.Message{{Content: strings.Repeat(leaks["AWS"]+" ", 5000)}}, llm.Response{}, []string{"AKIA[secret]"}},
		"many messages": {many, llm.Response{Text: "the answer"}, []string{`"message 0"`, `"message 2999"`, `the answer`, "messages are left out"}},
		"many calls":    {[]llm.Message{{Content: "hi"}}, llm.Response{Text: "the answer", ToolCalls: big}, []string{"the answer", "left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := llm.Archive(llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) { return c.res, nil }), llm.ArchiveOptions{Dir: dir, Max: bound})
			req := llm.Request{Messages: c.messages, Conversation: "conv"}
			if got, err := m.Complete(t.Context(), req); err != nil || got.Text != c.res.Text || len(req.Messages[0].Content) != len(c.messages[0].Content) {
				t.Fatal("the call itself was changed", err)
			}
			found := files(t, dir)
			call, size := readCall(t, found[0])
			raw, _ := os.ReadFile(found[0])
			if size > bound || size < bound/16 && name != "many calls" || call.Cut == "" || call.Conversation != "conv" || !utf8.Valid(raw) {
				t.Errorf("%d bytes, cut %q", size, call.Cut)
			}
			for _, want := range c.keeps {
				if !strings.Contains(string(raw), want) {
					t.Errorf("%q is not in it", want)
				}
			}
			if strings.Contains(string(raw), leaks["AWS"][:12]) {
				t.Error("half a secret is left")
			}
		})
	}
}

// Calls at the same time are files of their own.
func TestArchiveAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := llm.Archive(llmtest.Instant{}, llm.ArchiveOptions{Dir: dir, OnError: func(err error) { t.Error(err) }})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { _, _ = m.Complete(t.Context(), ask("hi")) })
	}
	wg.Wait()
	if n := len(files(t, dir)); n != 50 {
		t.Errorf("%d files, want 50", n)
	}
}

func TestCleanArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	old := now.Add(-2 * time.Hour)
	for path, modified := range map[string]time.Time{
		"2026-10-01/a.json": now, "2026-11-13/a.json": now, "2026-11-14/a.json": now, "2026-11-21/a.json": now,
		"2026-11-21/.unfinished-1": old, "2026-11-21/.unfinished-2": now, "notes/2020-01-01": now, "2020-01-01": now,
	} {
		p := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, nil, 0o600), os.Chtimes(p, modified, modified)); err != nil {
			t.Fatal(err)
		}
	}
	days, err := llm.CleanArchive(dir, 7*24*time.Hour, now)
	if err != nil || days != 2 {
		t.Errorf("%d days removed, %v; want 2", days, err)
	}
	var left []string
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			left = append(left, rel)
		}
		return nil
	})
	if want := []string{"2020-01-01", "2026-11-14/a.json", "2026-11-21/.unfinished-2", "2026-11-21/a.json", "notes/2020-01-01"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	if days, err := llm.CleanArchive(filepath.Join(dir, "none"), time.Hour, now); days != 0 || err != nil {
		t.Errorf("no archive: %d, %v", days, err)
	}
}
