package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func load(t *testing.T, file string) *lineHistory {
	t.Helper()
	h, err := loadHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func enter(t *testing.T, h *lineHistory, entries ...string) {
	t.Helper()
	for _, e := range entries {
		if err := h.add(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new", "history")
	entries := []string{"one", "two\nlines \\n and \\", "three"}
	h := load(t, file)
	enter(t, h, entries...)
	enter(t, h, "three", "", strings.Repeat("x", longestHistory+1))
	h = load(t, file)
	if fmt.Sprintf("%q", h.entries) != fmt.Sprintf("%q", entries) {
		t.Errorf("kept %q, want %q", h.entries, entries)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its owner only", info.Mode(), err)
	}
	for i, want := range []string{"three", entries[1], "one"} {
		if got, ok := h.back("draft"); got != want || !ok {
			t.Errorf("%d back is %q, %v; want %q", i+1, got, ok, want)
		}
	}
	if got, ok := h.back(""); ok {
		t.Errorf("before the first there is %q", got)
	}
	for i, want := range []string{entries[1], "three", "draft"} {
		if got, ok := h.forth(); got != want || !ok {
			t.Errorf("%d forth is %q, %v; want %q", i+1, got, ok, want)
		}
	}
	if got, ok := h.forth(); ok {
		t.Errorf("after the draft there is %q", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "history")
	h := load(t, file)
	for i := range mostHistory + 5 {
		enter(t, h, fmt.Sprint(i))
	}
	load(t, file)
	h = load(t, file)
	data, err := os.ReadFile(file)
	if err != nil || len(h.entries) != mostHistory || h.entries[0] != "5" || strings.Count(string(data), "\n") != mostHistory {
		t.Errorf("%d entries from %q, %d lines in the file (%v); want %d from 5", len(h.entries), h.entries[0], strings.Count(string(data), "\n"), err, mostHistory)
	}
}

// Without a file, or with one that cannot be written, it works for the talk.
func TestHistoryWithoutFile(t *testing.T) {
	t.Parallel()
	h := load(t, "")
	enter(t, h, "one")
	if got, ok := h.back(""); got != "one" || !ok {
		t.Errorf("back is %q, %v; want one", got, ok)
	}
	dir := t.TempDir() // a folder is no file
	h, err := loadHistory(dir)
	if err == nil {
		t.Error("a folder was read as a history")
	}
	if err := h.add("one"); err == nil {
		t.Error("an entry was written into a folder")
	}
	if got, ok := h.back(""); got != "one" || !ok {
		t.Errorf("back is %q, %v; want one", got, ok)
	}
}
