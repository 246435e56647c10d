package worker

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"mimikit/core/chat"
)

// What people sent lies in the workspace before the first step, once, and the
// model is told where, and what could not be had.
func TestAttached(t *testing.T) {
	t.Parallel()
	b := newBench(t, Tools{}, calls("respond", map[string]any{"output": "done"}))
	fetched := 0
	good := func(_ context.Context, w io.Writer, most int64) error {
		if most != maxAttached {
			t.Errorf("at most %d bytes are allowed", most)
		}
		fetched++
		_, err := io.WriteString(w, "a,b\n1,2\n")
		return err
	}
	bad := func(context.Context, io.Writer, int64) error {
		return errors.New("https://files.example/secret is gone")
	}
	b.o.Attached = func(_ context.Context, c chat.Conversation) ([]Attached, error) {
		if c != thread {
			t.Errorf("asked for the files of %s", c)
		}
		return []Attached{
			{ID: "F1", Name: "../../numbers.csv", MediaType: "text/csv", Size: 8, From: "Ann", Fetch: good},
			{ID: "F2", Name: "gone.pdf", From: "Ben", Fetch: bad},
		}, nil
	}
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, m := range b.model.Requests()[0].Messages {
		all += m.Content
	}
	for _, want := range []string{"attachments/F1/_.._numbers.csv (text/csv, 8 bytes), sent by Ann", "file not to be had", "gone.pdf, sent by Ben"} {
		if !strings.Contains(all, want) {
			t.Errorf("the model is not told %q:\n%s", want, all)
		}
	}
	if strings.Contains(all, "secret") {
		t.Error("the model is told an address")
	}
	w, err := b.o.Storage.Open(thread.Key())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if p, err := w.Read(t.Context(), "attachments/F1/_.._numbers.csv", 1, 10); err != nil || p.Lines[0] != "a,b" {
		t.Errorf("the file is %+v, %v", p, err)
	}
	b.script(calls("respond", map[string]any{"output": "done"}))
	if _, err := b.do(t.Context()); err != nil || fetched != 1 {
		t.Errorf("fetched %d times, %v; want once", fetched, err)
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a.txt": "a.txt", "": "file", "..": "file", "../x": "_x", "a/b\\c": "a_b_c", "a\x00b\u202e": "a_b_", " .hidden": "hidden", "-rf": "rf", "\xff": "_",
		"Bericht über 2026.pdf": "Bericht über 2026.pdf",
	} {
		if got := fileName(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := fileName(strings.Repeat("x", 200) + strings.Repeat("-", 116) + ".pdf"); got != "pdf" {
		t.Errorf("a cut leaves %q", got)
	}
	if got := fileName(strings.Repeat("é", 200) + ".pdf"); len(got) > 120 || !strings.HasSuffix(got, ".pdf") {
		t.Errorf("a long name became %q", got)
	}
}
