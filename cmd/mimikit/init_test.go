package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mimikit/core/store/storetest"
)

// What init writes holds, and holds no secret where none belongs.
func TestInit(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil, "MIMIKIT_LLM_BASE_URL", "MIMIKIT_LLM_KEY", "MIMIKIT_LLM_MODEL")
	dir := filepath.Dir(d.dir)
	file, env := filepath.Join(dir, "mimikit.yaml"), filepath.Join(dir, "mimikit.env")
	lines := []string{
		"Mimi", "y", "http://127.0.0.1:1/v1", "some-model", "sk-it's", "maybe", "y", "xoxb-1", "xapp-1", "n", "y", "", "",
	}
	out, _ := d.run(0, strings.Join(lines, "\n")+"\n", "init", "--dir", dir)
	has(t, out, "What is the bot called? [Mimikit]", "Please answer y or n.", "the settings hold", "mimikit --config "+file+" serve")
	if strings.Contains(out, "sk-") {
		t.Error("a secret is shown")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(text), "name: Mimi\n", "baseURL: http://127.0.0.1:1/v1", "model: some-model", "mode: single", "- localhost:6379")
	if strings.Contains(string(text), "sk-") || strings.Contains(string(text), "xoxb") {
		t.Errorf("a secret is in the settings:\n%s", text)
	}
	secrets, err := os.ReadFile(env)
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(secrets), `MIMIKIT_LLM_KEY='sk-it'\''s'`, "MIMIKIT_SLACK_BOT_TOKEN='xoxb-1'", "MIMIKIT_SLACK_APP_TOKEN='xapp-1'")
	if info, err := os.Stat(env); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secrets' file: %v, %v", info.Mode(), err)
	}
	// They hold for the program as well, with the secrets given.
	out, _ = d.with("MIMIKIT_LLM_KEY=sk-it's", "MIMIKIT_SLACK_BOT_TOKEN=xoxb-1", "MIMIKIT_SLACK_APP_TOKEN=xapp-1").run(0, "", "--config", file, "config", "check")
	has(t, out, "hold")

	_, stderr := d.run(1, "", "init", "--dir", dir)
	has(t, stderr, "is there already", "--force")
	_, stderr = d.run(1, "Mimi\n", "init", "--dir", dir, "--force")
	has(t, stderr, "the answers ended before the questions")
	if again, err := os.ReadFile(file); err != nil || string(again) != string(text) {
		t.Errorf("an unfinished round of questions changed the settings: %v", err)
	}
}

// Answers that do not hold together leave nothing behind, so that they can be given
// again.
func TestInitWritesOnlyWhatHolds(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil, "MIMIKIT_LLM_BASE_URL", "MIMIKIT_LLM_KEY", "MIMIKIT_LLM_MODEL")
	dir := filepath.Dir(d.dir)
	_, stderr := d.run(1, "Mimi\nn\ny\nwrong\nxapp-1\nn\nn\n", "init", "--dir", dir)
	has(t, stderr, "nothing was written", "must begin with xoxb-")
	for _, name := range []string{"mimikit.yaml", "mimikit.env"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

// Ctrl-C ends the questions at once.
func TestInitIsInterrupted(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	p := d.sit("init", "--dir", filepath.Dir(d.dir))
	storetest.Eventually(t, "the first question", func() error {
		if !strings.Contains(p.seen(), "What is the bot called?") {
			return errors.New(p.seen())
		}
		return nil
	})
	if _, err := p.in.Write([]byte(ctrlC)); err != nil {
		t.Fatal(err)
	}
	if code := p.within(5 * time.Second); code != 1 {
		t.Errorf("exit code %d\n%s", code, p.seen())
	}
}
