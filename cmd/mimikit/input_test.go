package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// What may come through a pipe, and what becomes of it.
func TestInput(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	const answer = "Noted."
	var wild strings.Builder
	for b := range 256 {
		if b != '\n' && b != '\\' {
			wild.WriteByte(byte(b))
		}
	}
	d := deploy(t, llmtest.Answers(answer))
	d.serve()
	t.Run("name", func(t *testing.T) { t.Parallel(); hostileName(t, d.in(t)) })
	t.Run("lines", func(t *testing.T) { t.Parallel(); manyLines(t, d.in(t)) })
	for _, c := range []struct {
		name, input string
		code        int
		out, err    string
		calls       string // what the model was shown
	}{
		{name: "nothing", input: ""},
		{name: "empty", input: "\n\r\n   \n\t\n"},
		{name: "controls-only", input: "\x00\x01\x1b\x7f\n", code: 1, err: "has no text that I can read"},
		{name: "no-newline", input: "the last line", out: answer, calls: "the last line"},
		{name: "100KiB", input: strings.Repeat("long ", 20<<10) + "\n", out: answer, calls: "long long"},
		{name: "512KiB", input: strings.Repeat("x", 512<<10) + "\n", out: answer, calls: "xxxx"},
		{name: "1MiB", input: strings.Repeat("x", 1<<20) + "\n", code: 1, err: "This message has 1024 KiB; I can take at most 512."},
		{name: "5MiB", input: strings.Repeat("x", 5<<20) + "\n", code: 1, err: "I can take at most 512."},
		{name: "after-1MiB", input: strings.Repeat("x", 1<<20) + "\nshort\n", code: 1, out: answer, err: "1 of the messages were refused", calls: "short"},
		{name: "binary", input: wild.String() + "\n", out: answer, calls: "ABC"},
		{name: "not-utf8", input: "caf\xe9 \xff\xfe na\xc3\xafve\n", out: answer, calls: "na\u00efve"},
		{name: "escapes", input: "\x1b]0;owned\x07\x1b[2Jred \x1b[31mherring\u009b1m\n", out: answer, calls: "red [31mherring"},
		{name: "directions", input: "\u202egnissapsert\u2066 \u0627\u0644\u0639\n", out: answer, calls: "gnissapsert"},
		{name: "continued", input: "one \\\ntwo\n", out: answer, calls: `one \ntwo`},
		{name: "slashes", input: "//not a command\n", out: answer, calls: "/not a command"},
		{name: "command", input: "/sotp\n", code: 1, err: "no command `/sotp`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := d.in(t)
			out, stderr := d.run(c.code, c.input, "chat", "--talk", c.name)
			if strings.TrimSpace(out) != c.out {
				t.Errorf("output %q, want %q", out, c.out)
			}
			has(t, stderr, c.err)
			if c.err == "" && stderr != "" {
				t.Errorf("error output %q, want none", stderr)
			}
			plain(t, out+stderr)
			if c.calls != "" {
				has(t, d.record(nil).history(c.name), strings.ReplaceAll(c.calls, `\n`, "\n"))
			}
			plain(t, d.record(nil).history(c.name))
		})
	}
}

// plain fails the test on what could steer a terminal, and on what is no text.
func plain(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("not UTF-8: %.200q", s)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		t.Errorf("a control character in %.200q", s[i:])
	}
}

// What a model answers can steer a terminal no more than what people write.
func TestHostileAnswer(t *testing.T) {
	t.Parallel()
	hostile := "\x1b]52;c;bWFsaWNlCg==\x07\x1b[2J\u009b31mred\r\x00\x7f\u202eback"
	d := deploy(t, llmtest.Answers(hostile))
	got := d.once("t", "hi")
	plain(t, got)
	has(t, got, "red")
}

// A talk's name comes from the command line and stands in keys, logs and prompts.
func hostileName(t *testing.T, d *deployment) {
	name := "a/b {c}:*\n\x1b[31m\xff名前" + strings.Repeat("long", 100)
	out, stderr := d.run(0, "", "chat", "--as", name, "--talk", name, "--once", "hi")
	if out != "Noted.\n" || stderr != "" {
		t.Errorf("output %q, error output %q", out, stderr)
	}
	plain(t, d.record(nil).history(name))
}

// Many lines at once are all answered, and few calls are made of them.
func manyLines(t *testing.T, d *deployment) {
	const lines = 300
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	before := len(d.model.Calls())
	_, stderr := d.run(0, b.String(), "chat", "--talk", "many")
	if stderr != "" {
		t.Errorf("error output %q, want none", stderr)
	}
	r := d.record(nil)
	r.settled()
	_, answered := r.posted("many")
	if len(answered) != lines {
		t.Errorf("%d of %d were answered", len(answered), lines)
	}
	for id, n := range answered {
		if n != 1 {
			t.Errorf("input %s was answered %d times", id, n)
		}
	}
	if n := len(d.model.Calls()) - before; n > lines/5 {
		t.Errorf("%d calls for %d lines", n, lines)
	}
}
