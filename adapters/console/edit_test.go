package console

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// A seat is a person before a real terminal device with the line editor.
type seat struct {
	*page    // what the terminal was sent
	keys     *os.File
	cancel   context.CancelFunc
	done     chan error
	tty      *os.File
	settings *term.State
}

// seat starts a talk with the line editor in a terminal of some size.
func (r *rig) seat(t *testing.T, columns, rows uint16) *seat {
	t.Helper()
	keys, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal devices here: %v", err)
	}
	if err := pty.Setsize(keys, &pty.Winsize{Cols: columns, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	settings, err := term.GetState(tty.Fd())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &seat{page: newPage(), keys: keys, cancel: cancel, done: make(chan error, 1), tty: tty, settings: settings}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s.page, keys) // ends with the device
	}()
	r.options.In, r.options.Out = tty, tty
	terminal := r.terminal(t)
	go func() { s.done <- terminal.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		_ = tty.Close()
		_ = keys.Close()
		<-read
	})
	s.has(t, "leaves.", strings.TrimSpace(promptMark))
	return s
}

func (s *seat) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		t.Fatal(err)
	}
}

// left waits until the talk is over, and checks that the terminal is as it was.
func (s *seat) left(t *testing.T) error {
	t.Helper()
	err := <-s.done
	now, stateErr := term.GetState(s.tty.Fd())
	if stateErr != nil || fmt.Sprint(*now) != fmt.Sprint(*s.settings) {
		t.Errorf("the terminal was left with other settings (%v)", stateErr)
	}
	s.await(t, "the end of bracketed paste", func(string) bool {
		return strings.LastIndex(s.raw(), "\x1b[?2004l") > strings.LastIndex(s.raw(), "\x1b[?2004h")
	})
	return err
}

const (
	ctrlC, ctrlD       = "\x03", "\x04"
	up, down           = "\x1b[A", "\x1b[B"
	pasteOn, pasteOver = "\x1b[200~", "\x1b[201~"
)

func TestEditor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seen := make(chan struct{})
	r.fault = func(int, adapters.Message) error { <-seen; return nil }
	s := r.seat(t, 80, 24)
	s.press(t, "hi\r")
	s.has(t, thinking) // before it is sent
	close(seen)
	s.has(t, "You said: hi")
	if !strings.Contains(s.raw(), "\x1b[1mYou\x1b[0m said: hi") {
		t.Errorf("the reply's Markdown is not rendered: %q", s.raw())
	}
	s.press(t, ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
}

// Ctrl-C takes back what was being written; with nothing written it leaves.
func TestEditorCtrlC(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.seat(t, 80, 24)
	s.press(t, "no"+ctrlC+"yes\r")
	s.has(t, "said: yes")
	s.press(t, ctrlC)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
	if r.texts() != "yes" {
		t.Errorf("sent %q, want yes alone", r.texts())
	}
}

func TestEditorSeveralLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.seat(t, 80, 24)
	tall := strings.Repeat("a line\n", 300)
	for i, c := range []struct{ keys, want string }{
		{`one\` + "\rtwo\r", "one\ntwo"},
		{"a" + pasteOn + "b\r\nc\nd" + pasteOver + "e\r", "ab\nc\nde"},
		{"see " + pasteOn + tall + pasteOver + "!\r", "see " + tall + "!"},
		{"你好x\x7f\r", "你好"},
	} {
		s.press(t, c.keys)
		s.await(t, "the next message", func(string) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.accepted) > i
		})
		if got := r.accepted[i].Text; got != strings.TrimSpace(c.want) {
			t.Errorf("%q sent %q, want %q", c.keys, got, c.want)
		}
	}
	s.has(t, "see [paste 1: 301 lines]!")
	s.press(t, "/quit\r")
	if err := s.left(t); err != nil {
		t.Error(err)
	}
}

// What was entered can be had again, in the next talk too.
func TestEditorHistory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "history")
	r := newRig(t, func(o *Options) { o.HistoryFile = file })
	s := r.seat(t, 80, 24)
	s.press(t, "first\r")
	s.has(t, "said: first")
	s.press(t, "second\r")
	s.has(t, "said: second")
	s.press(t, ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
	s = r.seat(t, 80, 24)
	s.press(t, "draft"+up+up+down+up+" again\r")
	s.has(t, "said: first again")
	s.press(t, up+down+ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
}

func TestEditorMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.says(t, "said in your absence")
	s := r.seat(t, 80, 24)
	s.has(t, "While you were away:", "said in your absence")
	s.press(t, ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
}

// When the program is told to stop, the terminal is given back.
func TestEditorEndsWithContext(t *testing.T) {
	t.Parallel()
	s := newRig(t).seat(t, 80, 24)
	s.cancel()
	if err := s.left(t); err != nil {
		t.Error(err)
	}
}

// However long a reply and small the window, all of it is shown in order.
func TestEditorLongReply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.answer = func(adapters.Message) []chat.Reply {
		var b strings.Builder
		for i := range 200 {
			fmt.Fprintf(&b, "- item %d of a list with a line that is longer than the window is wide\n", i)
		}
		return []chat.Reply{{Kind: chat.ReplyAnswer, Text: b.String()}}
	}
	s := r.seat(t, 40, 6)
	s.press(t, "hi\r")
	s.has(t, "item 199 of")
	s.press(t, ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`item (\d+) of`).FindAllStringSubmatch(s.String(), -1) {
		got = append(got, m[1])
	}
	for i := range got {
		if len(got) != 200 || got[i] != fmt.Sprint(i) {
			t.Fatalf("shown are the items %s, want 0 to 199", got)
		}
	}
}

// Nothing of a reply, a status or a refusal reaches the terminal as a command.
func TestEditorHostile(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;pwned\x07\x1b[2Jsee &#27;]52;c;eA==&#7;me"
	r := newRig(t)
	r.fault = func(_ int, m adapters.Message) error {
		if err := NewPoster(r.feed).Working(t.Context(), talk, evil); err != nil {
			return err
		}
		if m.Text == "no" {
			return refused(evil + " refused")
		}
		return nil
	}
	r.answer = func(adapters.Message) []chat.Reply {
		return []chat.Reply{{Kind: chat.ReplyNotice, Text: evil + " noted"}}
	}
	s := r.seat(t, 80, 24)
	s.press(t, "hi\r")
	s.has(t, "me noted")
	s.press(t, "no\r")
	s.has(t, "me refused")
	s.press(t, ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
	for _, sequence := range []string{"\x1b]", "\x07", "\x1b[2J", "\u009d"} {
		if strings.Contains(s.raw(), sequence) {
			t.Errorf("the terminal was sent %q in %q", sequence, s.raw())
		}
	}
}

// NO_COLOR is about colour: what is bold stays bold.
func TestEditorNoColour(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Environ = append(o.Environ, "NO_COLOR=1") })
	r.answer = func(adapters.Message) []chat.Reply {
		return []chat.Reply{{Kind: chat.ReplyNotice, Text: "**bold** `code` [link](http://x)"}}
	}
	s := r.seat(t, 80, 24)
	s.press(t, "hi\r")
	s.has(t, "bold `code`")
	s.press(t, ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
	if ink := regexp.MustCompile(`\x1b\[[0-9;]*(3|4|9|10)[0-8][;m]`).FindString(s.raw()); ink != "" || !strings.Contains(s.raw(), "\x1b[1mbold") {
		t.Errorf("with NO_COLOR there is %q, and bold: %v", ink, strings.Contains(s.raw(), "\x1b[1mbold"))
	}
}

// A dumb terminal gets no escape sequence at all.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Environ = []string{"TERM=dumb"} })
	keys, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal devices here: %v", err)
	}
	out := newPage()
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(out, keys) }()
	r.options.In, r.options.Out, r.options.Err = tty, tty, tty
	terminal := r.terminal(t)
	done := make(chan error, 1)
	go func() { done <- terminal.Run(t.Context()) }()
	out.has(t, "> ")
	_, _ = io.WriteString(keys, "hi\n")
	out.has(t, "**You** said: hi")
	_, _ = io.WriteString(keys, "/quit\n")
	if err := <-done; err != nil {
		t.Error(err)
	}
	_, _ = tty.Close(), keys.Close()
	<-read
	if strings.Contains(out.raw(), "\x1b") || out.raw() != ansi.Strip(out.raw()) {
		t.Errorf("sent %q", out.raw())
	}
}

// No window is too small to be drawn in.
func TestEditorTinyWindow(t *testing.T) {
	t.Parallel()
	e := newEditor(colour, load(t, ""))
	e.text.SetValue("some 日本 text\nof two lines")
	for _, size := range []int{0, 1, 2, 3, 5, 300, 1} {
		e.Update(tea.WindowSizeMsg{Width: size, Height: size})
		e.Update(busyMsg("reading a long file"))
		e.Update(itemMsg{Text: "| a | b |\n|--|--|\n| one | two |"})
		if e.View().Content == "" {
			t.Errorf("in %d columns and rows nothing is drawn", size)
		}
		for _, lines := range e.queue {
			if n := strings.Count(lines, "\n") + 1; n > max(size/2, 1) && size < 300 {
				t.Errorf("in %d rows, %d lines are printed at once", size, n)
			}
		}
		e.queue = nil
	}
}

// What is entered while nothing can be sent is counted when the person leaves.
func TestEditorLeaveUnsent(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Greeting = "**Mimikit** for a test" })
	r.fault = func(int, adapters.Message) error { return errAway }
	s := r.seat(t, 80, 24)
	s.has(t, "Mimikit for a test")
	s.press(t, "hi\r")
	// Of a line that changes only what is new is drawn: after "thinking" the
	// letters "th" stand there already.
	s.has(t, "still trying. What you wrote", "e store is away")
	s.press(t, ctrlD)
	if err := s.left(t); err == nil || !strings.Contains(err.Error(), "1 of your messages") {
		t.Errorf("%v, want an error that counts the one", err)
	}
}
