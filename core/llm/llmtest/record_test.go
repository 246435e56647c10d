package llmtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// model calls the server's URL through a transport of the test's.
func model(t *testing.T, s *llmtest.Server, edit func(*llm.Options)) *llm.OpenAI {
	t.Helper()
	o := llm.Options{BaseURL: s.URL(), Key: llmtest.Key, Model: "test-model"}
	edit(&o)
	m, err := llm.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	token := "xox" + "b-1234567890-abcdef"
	scrub := llm.NewScrubber(secret)
	path := filepath.Join(t.TempDir(), "tape.json")

	s := llmtest.NewServer(t)
	s.Next(llmtest.Answers("first "+secret), llmtest.RateLimited("7"), llmtest.Answers("second"), llmtest.Drops("half"))
	r := llmtest.NewRecorder(s.Transport(), scrub)
	play := func(m llm.Model, text string) string {
		res, err := m.Complete(t.Context(), ask(text))
		if err != nil {
			return "error: " + err.Error()
		}
		return res.Text
	}
	live := model(t, s, func(o *llm.Options) { o.Transport = r })
	prompts := []string{"the token is " + token, "again", "again", "drop"}
	var want []string
	for _, p := range prompts {
		want = append(want, play(live, p))
	}
	if err := r.Save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{secret, token, llmtest.Key} {
		if strings.Contains(string(data), leak) {
			t.Errorf("the recording holds %q", leak)
		}
	}

	replay, err := llmtest.OpenReplay(path, scrub)
	if err != nil {
		t.Fatal(err)
	}
	dead := model(t, s, func(o *llm.Options) { o.Transport = replay })
	for i, p := range prompts {
		got := play(dead, p)
		switch i {
		case 0:
			if got != "first [secret]" {
				t.Errorf("first replay: %q", got)
			}
		case 3:
			if !strings.Contains(got, "unexpected EOF") {
				t.Errorf("a cut answer replayed as %q", got)
			}
		default:
			if got != want[i] {
				t.Errorf("replay %d: %q, want %q", i, got, want[i])
			}
		}
		if i == 1 && len(replay.Unused()) != 2 {
			t.Errorf("unused: %v", replay.Unused())
		}
	}
	if len(replay.Unused()) != 0 {
		t.Errorf("unused: %v", replay.Unused())
	}
	for p, words := range map[string]string{"again": "asked more often", "something else": "not in the recording"} {
		got := play(dead, p)
		if !strings.Contains(got, words) || !strings.Contains(got, "/v1/chat/completions") || !strings.Contains(got, p) {
			t.Errorf("%s: %q", p, got)
		}
	}
}

func TestOpenReplayRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"nonsense": "{", "version": `{"schemaVersion":9}`} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := llmtest.OpenReplay(path, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := llmtest.OpenReplay(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a missing recording: no error")
	}
}
