package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mimikit/prompts"
)

func TestPromptsShow(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil, "MIMIKIT_NAME=Ada")
	for _, agent := range prompts.Agents() {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			out, stderr := d.in(t).run(0, "", "prompts", "show", agent)
			if !strings.HasPrefix(out, "=== system\nYou ") || stderr != "" {
				t.Errorf("output begins %.60q, error output %q", out, stderr)
			}
			has(t, out, "\n=== user\n<")
			if agent != "teller-digest" { // it speaks to nobody
				has(t, out, "Ada")
			}
		})
	}
	for args, c := range map[string]struct{ has, lacks string }{
		"":                              {"You are the thinker of Ada,|# Voice|<summary |<memory>|- `create_task`|=== tools\n|\nschedule: |\"additionalProperties\":false", "@create_task"},
		"--style block":                 {"</MIMIKIT:actions>|@create_task prompt=", "=== tools"},
		"thinker --mode minimal":        {"=== system|<input ", "<history>"},
		"thinker --mode none":           {"=== user\n<input |", "=== system"},
		"worker-standard":               {"\nrespond: |exec_shell", "create_task"},
		"worker-standard --style block": {"only the last|@respond", "=== tools"},
		"worker-expert":                 {"<request ", "=== tools"},
		"planner":                       {"needs_input: |get_history_by_time: ", "create_task"},
		"teller-digest":                 {"@digest_context summary=", "=== tools"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out, _ := d.in(t).run(0, "", append([]string{"prompts", "show"}, strings.Fields(args)...)...)
			has(t, out, strings.Split(c.has, "|")...)
			if strings.Contains(out, c.lacks) {
				t.Errorf("the output has %q:\n%s", c.lacks, out)
			}
		})
	}
	t.Run("a draft for the teller", func(t *testing.T) {
		t.Parallel()
		out, _ := d.in(t).with("MIMIKIT_TELLER_FORMAT=always").run(0, "", "prompts", "show")
		has(t, out, "the teller puts your decision into words")
	})
	for args, want := range map[string]string{
		"poet":                          `"poet": no such agent; there are fold, planner, `,
		"thinker --mode loud":           `"loud"; allowed are full, minimal and none`,
		"worker-expert --mode full":     `"full": it runs in minimal only`,
		"--file teller/voise":           "agents/teller/voice.md",
		"--dir missing":                 "missing",
		"teller --mode full --dir none": "none",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out, stderr := d.in(t).run(1, "", append([]string{"prompts", "show"}, strings.Fields(args)...)...)
			has(t, stderr, want)
			if out != "" {
				t.Errorf("output %q", out)
			}
		})
	}
	_, stderr := d.run(2, "", "prompts", "show", "--style", "xml")
	has(t, stderr, `"native","block"`)
}

// What show prints of a file is the beginning of an override, which check sees.
func TestPromptsOverride(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	voice, stderr := d.run(0, "", "prompts", "show", "--file", "teller/voice")
	has(t, voice, "# Voice")
	has(t, stderr, "agents/teller/voice.md: built in")

	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := put("agents/teller/voice.md", voice+"- Rhyme.\n")
	d = d.with("MIMIKIT_PROMPTS_DIR=" + dir)
	again, stderr := d.run(0, "", "prompts", "show", "--file", "agents/teller/voice.md")
	if again != voice+"- Rhyme.\n" {
		t.Errorf("the override is shown as %q", again)
	}
	has(t, stderr, file)
	out, _ := d.run(0, "", "prompts", "show", "teller")
	has(t, out, "- Rhyme.")

	out, stderr = d.run(0, "", "prompts", "check")
	has(t, out, "agents/teller/voice.md", file, "23 files hold, 1 from "+dir, "Warnings: 0.")
	if stderr != "" || strings.Count(out, dir) != 2 {
		t.Errorf("error output %q, output:\n%s", stderr, out)
	}

	put("agents/thinker/injection.md", "Go on. {{.Environment}}")
	out, stderr = d.run(0, "", "prompts", "check", "--dir", dir)
	has(t, out, "2 from "+dir, "Warnings: 4.")
	has(t, stderr, "warning: thinker is no longer given Inputs (what people said)")

	put("agents/thinker/system.md", "{{.Clock}}")
	put("agents/thinker/sistem.md", "x")
	_, stderr = d.run(1, "", "prompts", "check")
	has(t, stderr, "sistem.md is not a prompt", "agents/thinker/system.md")
	if err := os.Remove(filepath.Join(dir, "agents/thinker/sistem.md")); err != nil {
		t.Fatal(err)
	}
	_, stderr = d.run(1, "", "prompts", "check")
	has(t, stderr, filepath.Join(dir, "agents/thinker/system.md"), "there is no .Clock; there are .Actions, ")
}

// Each call of an agent begins as the one before it did; for all but fold, whose
// lines are always new, that is most of it.
func TestPromptsCheck(t *testing.T) {
	t.Parallel()
	out, stderr := deploy(t, nil).run(0, "", "prompts", "check")
	has(t, out, "FILE", "TOKENS", "built in", "IN COMMON", "no directory shadows them", "Warnings: 0.")
	if stderr != "" {
		t.Errorf("error output %q", stderr)
	}
	rows := regexp.MustCompile(`(?m)^([a-z-]+) +(\d+) +(\d+) +(\d+) +(\d+) %$`).FindAllStringSubmatch(out, -1)
	if len(rows) != len(prompts.Agents()) {
		t.Fatalf("%d agents are measured:\n%s", len(rows), out)
	}
	for _, r := range rows {
		var n [3]int
		for i := range n {
			var err error
			if n[i], err = strconv.Atoi(r[i+2]); err != nil {
				t.Fatal(err)
			}
		}
		stable, whole, common := n[0], n[1], n[2]
		if stable < 100 || common < stable || whole <= common {
			t.Errorf("%s: %d stable, %d in common of %d", r[1], stable, common, whole)
		}
	}
}
