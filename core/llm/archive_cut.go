package llm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// eachText replaces every text of a record that a person or a model wrote.
func (r *archived) eachText(f func(string) string) {
	calls := func(list []archivedCall) {
		for i := range list {
			list[i].Name, list[i].Arguments = f(list[i].Name), f(list[i].Arguments)
		}
	}
	r.Response.Text = f(r.Response.Text)
	calls(r.Response.ToolCalls)
	for i := range r.Request.Messages {
		m := &r.Request.Messages[i]
		m.Content = f(m.Content)
		calls(m.ToolCalls)
	}
	if r.Error != nil {
		r.Error.Text = f(r.Error.Text)
	}
}

// cut brings a record under the bound: long texts lose their middle, at first
// those that are far too long and then ever shorter ones; if it is the number
// of messages that is too much, the middle ones go.
func (a *archive) cut(r *archived, whole int) ([]byte, error) {
	for longest := a.o.Max / 2; longest >= 64; longest /= 2 {
		r.eachText(func(s string) string { return middleOut(s, longest) })
		if data, err := r.encoded(whole, 0); err != nil || len(data) <= a.o.Max {
			return data, err
		}
	}
	all := r.Request.Messages
	for keep := len(all) / 2; keep > 0; keep /= 2 {
		r.Request.Messages = slices.Concat(all[:keep/2], all[len(all)-keep+keep/2:])
		if data, err := r.encoded(whole, len(all)-keep); err != nil || len(data) <= a.o.Max {
			return data, err
		}
	}
	// What is left is only names and tool calls; who called, when and what it
	// cost is worth more.
	r.Request, r.Response.ToolCalls = archivedRequest{Messages: []archivedMessage{}}, nil
	return r.encoded(whole, len(all))
}

func (r *archived) encoded(whole, messages int) ([]byte, error) {
	r.Cut = fmt.Sprintf("the call had %d bytes; long texts are cut in their middle", whole)
	if messages > 0 {
		r.Cut += fmt.Sprintf(", and %d messages are left out", messages)
	}
	return r.indented()
}

// middleOut cuts the middle out of a text so that at most n bytes of it are
// left, and says how much was cut. A note that an earlier cut left goes with
// the middle and its figure is lost; the record says how long all was.
func middleOut(s string, n int) string {
	if len(s) <= n+48 { // a cut would save nothing: the note has to be there too
		return s
	}
	head, tail := n/2, len(s)-(n-n/2)
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s[… %d bytes cut …]%s", s[:head], tail-head, s[tail:])
}

// CleanArchive removes the days of an archive that ended longer than keep ago,
// and what a crash left half-written. It touches nothing else in dir. It gives
// the number of days removed, and removes what it can also when something
// fails.
func CleanArchive(dir string, keep time.Duration, now time.Time) (days int, err error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("clean the archive of model calls: %w", err)
	}
	var failed []error
	for _, e := range entries {
		day, err := time.Parse(time.DateOnly, e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if now.Sub(day.AddDate(0, 0, 1)) > keep {
			if err := os.RemoveAll(path); err != nil {
				failed = append(failed, err)
				continue
			}
			days++
			continue
		}
		failed = append(failed, removeUnfinished(path, now)...)
	}
	if len(failed) > 0 {
		return days, fmt.Errorf("clean the archive of model calls: %d failures, the first: %w", len(failed), failed[0])
	}
	return days, nil
}

// removeUnfinished removes files that have been in the making for an hour:
// nobody makes them any more.
func removeUnfinished(dir string, now time.Time) []error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []error{err}
	}
	var failed []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unfinished) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > time.Hour {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !os.IsNotExist(err) {
				failed = append(failed, err)
			}
		}
	}
	return failed
}
