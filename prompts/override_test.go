package prompts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes a file into an override directory.
func put(t *testing.T, dir, path, text string) {
	t.Helper()
	full := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	t.Run("one file shadows one file, everywhere it is used", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		put(t, dir, "agents/teller/voice.md", "# Voice\n\nSpeak like {{.Bot}} the pirate.\n")
		put(t, dir, ".git/HEAD", "ref")
		put(t, dir, "agents/teller/.voice.md.swp", "x")
		set, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"teller", "thinker"} {
			p, err := set.Compose(agent, Data{Bot: "Mimi", Final: true})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(p.System, "Speak like Mimi the pirate.") || strings.Contains(p.System, "good colleague") {
				t.Errorf("%s does not have the override", agent)
			}
			if !strings.Contains(p.System, "# Rules") {
				t.Errorf("%s lost what was not overridden", agent)
			}
		}
	})
	t.Run("a directory that is linked, as a mounted one is", func(t *testing.T) {
		t.Parallel()
		dir, linked := t.TempDir(), t.TempDir()
		put(t, linked, "agents/thinker/injection.md", "PIRATE {{.Inputs}}")
		if err := os.Symlink(filepath.Join(linked, "agents"), filepath.Join(dir, "agents")); err != nil {
			t.Fatal(err)
		}
		set, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := set.Compose("thinker", plain()); !strings.HasPrefix(p.Latest, "PIRATE <input") {
			t.Errorf("got %q", p.Latest)
		}
	})
	for name, c := range map[string]struct{ path, text, want string }{
		"misspelt file":          {"agents/teller/voise.md", "x", "voise.md is not a prompt; allowed are agents/fold/system.md, "},
		"unknown role":           {"agents/poet/system.md", "x", "poet is not a prompt"},
		"file at the root":       {"voice.md", "x", "voice.md is not a prompt"},
		"another extension":      {"agents/teller/voice.txt", "x", "voice.txt is not a prompt"},
		"template broken":        {"agents/teller/voice.md", "{{if}}", "agents/teller/voice.md: "},
		"unknown field":          {"agents/teller/voice.md", "{{.Clock}}", "agents/teller/voice.md: there is no .Clock; there are .Actions, .Bot, "},
		"unknown template":       {"agents/thinker/system.md", `{{template "teller/vice" .}}`, `agents/thinker/system.md: line 1: it includes "teller/vice"`},
		"field in a branch":      {"agents/thinker/system.md", `{{if not .Final}}{{.Clock}}{{end}}`, "Clock"},
		"field in a dark corner": {"agents/thinker/system.md", `{{if eq .Mode "none"}}{{if .Final}}{{with .Inputs}}{{$.Clock}}{{end}}{{end}}{{end}}`, "there is no .Clock"},
		"field of a field":       {"agents/fold/injection.md", `{{.Limits.Words}}`, "fold/injection.md: "},
		"another's file":         {"agents/planner/rules.md", `{{define "teller/voice"}}x{{end}}`, `"teller/voice", which is a file of its own`},
		"includes itself":        {"agents/teller/voice.md", `{{template "teller/voice" .}}`, "agents/teller/voice.md: "},
		"a file of no role":      {"agents/planner/system.md", "x", "planner/system.md is not a prompt"},
		"not text":               {"agents/thinker/system.md", "\xff\xfe", "not UTF-8"},
		"too large":              {"agents/thinker/system.md", strings.Repeat("x", maxFile+1), "at most 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, c.path, c.text)
			_, err := Open(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
	t.Run("all that is wrong is told at once", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		put(t, dir, "agents/teller/voise.md", "x")
		put(t, dir, "agents/poet/system.md", "x")
		put(t, dir, "agents/fold/system.md", "\xff")
		if err := os.Symlink("nowhere", filepath.Join(dir, "agents/fold/injection.md")); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		for _, want := range []string{"voise.md", "poet", "are not prompts", "not UTF-8", "leads nowhere"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in: %v", want, err)
			}
		}
		dir = t.TempDir()
		put(t, dir, "agents/teller/voice.md", "{{if}}")
		put(t, dir, "agents/fold/system.md", "{{end}}")
		if _, err = Open(dir); err == nil || !strings.Contains(err.Error(), "teller/voice.md") || !strings.Contains(err.Error(), "fold/system.md") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		t.Parallel()
		if _, err := Open(filepath.Join(t.TempDir(), "nope")); err == nil || !strings.Contains(err.Error(), "nope") {
			t.Errorf("got %v", err)
		}
	})
}
