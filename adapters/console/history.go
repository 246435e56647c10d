package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mostHistory bounds how many entries are kept from one start to the next, and
// longestHistory the bytes of one.
const (
	mostHistory    = 1000
	longestHistory = 4096
)

// A lineHistory is what was entered, kept in a file, one entry a line. It is for
// one goroutine.
type lineHistory struct {
	file    string // "" keeps nothing
	entries []string
	at      int    // which entry is shown; len(entries) is the one being written
	draft   string // what was being written when looking back began
}

// loadHistory reads a history. Without a file it is empty. A file that has grown
// long is shortened.
func loadHistory(file string) (*lineHistory, error) {
	h := &lineHistory{file: file}
	if file == "" {
		return h, nil
	}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, fmt.Errorf("read the history of what was entered: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if e := unescapeEntry(strings.TrimRight(line, "\n")); e != "" {
			h.entries = append(h.entries, e)
		}
	}
	if over := len(h.entries) - mostHistory; over > 0 {
		h.entries = h.entries[over:]
		if err := h.rewrite(); err != nil {
			return h, err
		}
	}
	h.at = len(h.entries)
	return h, nil
}

func (h *lineHistory) rewrite() error {
	var b strings.Builder
	for _, e := range h.entries {
		b.WriteString(escapeEntry(e) + "\n")
	}
	// Written aside first: a full disk must not cost what there was.
	aside := h.file + ".new"
	if err := os.WriteFile(aside, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("shorten the history of what was entered: %w", err)
	}
	if err := os.Rename(aside, h.file); err != nil {
		return fmt.Errorf("shorten the history of what was entered: %w", err)
	}
	return nil
}

// add appends an entry, in memory always and in the file if it can be written.
// What was entered twice in a row, or is very long, is not kept again.
func (h *lineHistory) add(text string) error {
	defer func() { h.at, h.draft = len(h.entries), "" }()
	if n := len(h.entries); text == "" || len(text) > longestHistory || n > 0 && h.entries[n-1] == text {
		return nil
	}
	h.entries = append(h.entries, text)
	if h.file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return fmt.Errorf("keep the history of what was entered: %w", err)
	}
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the history of what was entered: %w", err)
	}
	_, err = f.WriteString(escapeEntry(text) + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep the history of what was entered: %w", err)
	}
	return nil
}

// back gives the entry before the one that is shown; now is what is being
// written.
func (h *lineHistory) back(now string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = now
	}
	h.at--
	return h.entries[h.at], true
}

// forth gives the entry after the one that is shown, in the end what was being
// written.
func (h *lineHistory) forth() (string, bool) {
	if h.at >= len(h.entries) {
		return "", false
	}
	if h.at++; h.at == len(h.entries) {
		return h.draft, true
	}
	return h.entries[h.at], true
}

// An entry of several lines is one line in the file.
var (
	escapeEntry   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace
	unescapeEntry = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace
)
