package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.terminal(t).Once(t.Context(), "hi"); err != nil {
		t.Fatal(err)
	}
	if got, want := r.out.raw(), "**You** said: hi\n"; got != want {
		t.Errorf("output %q, want the Markdown %q", got, want)
	}
	if e := r.err.raw(); e != "" {
		t.Errorf("error output %q, want none", e)
	}
	m := r.accepted[0]
	id := m.Message
	m.Message, m.At = "", epoch
	want := adapters.Message{
		Conversation: talk, Kind: chat.KindMessage, Text: "hi", Addressed: true, At: epoch,
		Author: chat.Author{ID: "ann", Name: "ann", Role: chat.RoleAdmin},
	}
	if fmt.Sprint(m) != fmt.Sprint(want) || len(id) != 26 {
		t.Errorf("submitted %+v with the id %q, want %+v and a ULID", m, id, want)
	}
}

func TestPipe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.pipe(t, "one\n\n  \ntwo \\\nlines\r\n//three\nlast without an end"); err != nil {
		t.Fatal(err)
	}
	if got, want := r.texts(), "one|two \nlines|/three|last without an end"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	want := "**You** said: one\n\n**You** said: two \nlines\n\n**You** said: /three\n\n**You** said: last without an end\n"
	if got := r.out.raw(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func TestPipeNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.pipe(t, "\n"); err != nil || r.out.raw()+r.err.raw() != "" {
		t.Errorf("%v, %q, %q; want nothing at all", err, r.out.raw(), r.err.raw())
	}
}

// One reply may answer several messages, and a long one comes in parts.
func TestPipeFoldedAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := strings.Repeat("A paragraph.\n\n", 4000) + "The end."
	r.answer = func(m adapters.Message) []chat.Reply {
		if m.Text != "three" {
			return nil
		}
		var ids []string
		for _, m := range r.accepted {
			ids = append(ids, "in-"+m.Message)
		}
		return []chat.Reply{{Kind: chat.ReplyAnswer, Text: text, InputIDs: ids}}
	}
	if err := r.pipe(t, "one\ntwo\nthree\n"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(r.out.raw(), "A paragraph."); n != 4000 || !strings.HasSuffix(r.out.raw(), "The end.\n") {
		t.Errorf("%d of 4000 paragraphs came, and the output ends in %q", n, r.out.raw()[len(r.out.raw())-20:])
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Wait = 50 * time.Millisecond })
	r.answer = nil
	err := r.pipe(t, "one\ntwo\n")
	if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "2 of the messages") || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("%v, want ErrNoAnswer that says of how many and after how long", err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fault = func(_ int, m adapters.Message) error {
		if m.Text == "two" {
			return fmt.Errorf("take message: %w", refused("This is too much."))
		}
		return nil
	}
	err := r.pipe(t, "one\ntwo\nthree\n")
	if err == nil || !strings.Contains(err.Error(), "1 of the messages") {
		t.Errorf("%v, want an error that counts the one refused", err)
	}
	if got := r.err.raw(); got != "This is too much.\n" {
		t.Errorf("error output %q, want the reason", got)
	}
	if got := r.texts(); got != "one|three" {
		t.Errorf("accepted %q, want what comes after a refused one too", got)
	}
}

// While the store is away a message is kept, offered again under its id, and the
// person is told once.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := map[string]bool{}
	r.fault = func(n int, m adapters.Message) error {
		ids[m.Message+m.At.String()] = true
		if n < 3 {
			return errAway
		}
		return nil
	}
	if err := r.pipe(t, "hi\n"); err != nil {
		t.Fatal(err)
	}
	if r.attempts != 4 || len(ids) != 1 || r.texts() != "hi" {
		t.Errorf("%d attempts under %d ids, accepted %q; want 4, 1 and hi", r.attempts, len(ids), r.texts())
	}
	if got := r.err.raw(); strings.Count(got, "The store is away, still trying.") != 1 || !strings.HasSuffix(got, "The store is back.\n") {
		t.Errorf("error output %q, want to be told once that it is away and once that it is back", got)
	}
}

func TestStoreAwayForGood(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Wait = 50 * time.Millisecond })
	r.fault = func(int, adapters.Message) error { return errAway }
	err := r.pipe(t, "hi\n")
	if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, errAway) || !strings.Contains(err.Error(), "could not be stored within 50ms") {
		t.Errorf("%v, want ErrNoAnswer that says what was the matter", err)
	}
}

func TestPipeEndsWithContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.answer = nil
	in, keys := keyboard(t)
	r.options.In = in
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	term := r.terminal(t)
	r.fault = func(int, adapters.Message) error { cancel(errAway); return nil }
	go func() { done <- term.Run(ctx) }()
	_, _ = fmt.Fprintln(keys, "hi")
	if err := <-done; !errors.Is(err, errAway) {
		t.Errorf("%v, want the cause", err)
	}
}

func TestPipeCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.pipe(t, "/help\n/quit\nnever sent\n"); err != nil || r.texts() != "" || !strings.Contains(r.err.raw(), "`/stop`") {
		t.Errorf("/help and /quit: %v, sent %q, error output %q", err, r.texts(), r.err.raw())
	}
	r = newRig(t, func(o *Options) { o.Commands = &orders{answers: map[string]string{"status": "all is **well**"}} })
	if err := r.pipe(t, "/status\n/stop\n"); err != nil || !strings.Contains(r.err.raw(), "all is **well**") || r.stops != 1 {
		t.Errorf("/status and /stop: %v, %q, %d stops", err, r.err.raw(), r.stops)
	}
	for line, want := range map[string]string{"/sotp": "no command `/sotp`", "/a`b": "no command `/a'b`", "/etc/hosts is there": "no command `/etc/hosts`", "/status": "no command `/status`"} {
		r = newRig(t)
		if err := r.pipe(t, line+"\n"); err == nil || !strings.Contains(r.err.raw(), want) || r.texts() != "" {
			t.Errorf("%s: %v, %q, sent %q; want an error and %q", line, err, r.err.raw(), r.texts(), want)
		}
	}
	for err, want := range map[error]string{errAway: errAway.Error(), refused("not *yours*"): "not *yours*"} {
		r = newRig(t, func(o *Options) { o.Commands = &orders{answers: map[string]string{"cancel": ""}, err: err} })
		if err := r.pipe(t, "/cancel t1\n"); err == nil || !strings.Contains(r.err.raw(), want) {
			t.Errorf("a command that fails: %v, %q, want %q", err, r.err.raw(), want)
		}
	}
}

// A script gets the answers to what it sent. What was said to others meanwhile
// is still missed by whoever sits down next, and nothing else is.
func TestPipeLeavesTheRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.pipe(t, "one\n"); err != nil {
		t.Fatal(err)
	}
	if m := r.missed(t); m != "" {
		t.Errorf("missed %q after it was shown", m)
	}
	r.fault = func(int, adapters.Message) error {
		r.says(t, "for another", "in-another")
		return nil
	}
	if err := r.pipe(t, "two\n"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.out.raw(), "for another") {
		t.Errorf("output %q, want the answers alone", r.out.raw())
	}
	if m := r.missed(t); m != "for another|**You** said: two" {
		t.Errorf("missed %q, want all from what was not shown on", m)
	}
	r.fault = nil
	if err := r.pipe(t, "three\n"); err != nil {
		t.Fatal(err)
	}
	if m := r.missed(t); m != "for another|**You** said: two|**You** said: three" {
		t.Errorf("missed %q, want what was missed before, too", m)
	}
}

// Many messages do not fill the conversation.
func TestPipeInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	open, most := []string{}, 0
	r.answer = func(m adapters.Message) []chat.Reply {
		open = append(open, "in-"+m.Message)
		most = max(most, len(open))
		if len(open) < 100 && m.Text != "249" {
			return nil
		}
		reply := chat.Reply{Kind: chat.ReplyAnswer, Text: fmt.Sprintf("%d at once", len(open)), InputIDs: open}
		open = nil
		return []chat.Reply{reply}
	}
	var in strings.Builder
	for i := range 250 {
		fmt.Fprintln(&in, i)
	}
	if err := r.pipe(t, in.String()); err != nil {
		t.Fatal(err)
	}
	if got, want := r.out.raw(), "100 at once\n\n100 at once\n\n50 at once\n"; got != want || most != inFlight {
		t.Errorf("output %q with %d messages in flight, want %q and %d", got, most, want, inFlight)
	}
}

// A line without end does not fill the memory; the inbox has the say on it.
func TestPipeEndlessLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	size := 0
	r.fault = func(_ int, m adapters.Message) error {
		size = len(m.Text)
		return refused("too long")
	}
	if err := r.pipe(t, strings.Repeat("x", 5<<20)+"\n"); err == nil || size != longestLine {
		t.Errorf("%v, and the inbox saw %d bytes; want an error and %d", err, size, longestLine)
	}
}

// What a model writes to a script is harmless too.
func TestPipeHostile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.answer = func(adapters.Message) []chat.Reply {
		return []chat.Reply{{Kind: chat.ReplyAnswer, Text: "a\x1b]0;pwned\x07b\x9b31m"}}
	}
	if err := r.pipe(t, "hi\n"); err != nil {
		t.Fatal(err)
	}
	if got, want := r.out.raw(), "a]0;pwnedb\uFFFD31m\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func TestNewDefaults(t *testing.T) {
	t.Parallel()
	term := New(Options{})
	c := term.Conversation()
	if c.Platform != "console" || c.Workspace != "local" || c.Place == "" || c.Place != term.author.ID || c.Thread != "" || term.author.Role != chat.RoleAdmin {
		t.Errorf("conversation %+v of %+v", c, term.author)
	}
}

// The inputs that a shell gives: a pipe, a file, nothing at all. Each is read to
// its end, and none is read any more when it is over.
func TestPipeFromTheSystem(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("one\ntwo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		open       func() (*os.File, error)
	}{
		{"file", "one|two", func() (*os.File, error) { return os.Open(file) }},
		{"nothing", "", func() (*os.File, error) { return os.Open(os.DevNull) }},
		{"pipe", "one|two", func() (*os.File, error) {
			r, w, err := os.Pipe()
			if err == nil {
				_, err = w.WriteString("one\ntwo")
				err = errors.Join(err, w.Close())
			}
			return r, err
		}},
		{"open pipe", "one", func() (*os.File, error) {
			r, w, err := os.Pipe()
			if err == nil {
				t.Cleanup(func() { _ = w.Close() })
				_, err = w.WriteString("one\n/quit\nnot read\n")
			}
			return r, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t)
			r.options.In = in
			if err := r.terminal(t).Run(t.Context()); err != nil {
				t.Error(err)
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			if r.texts() != c.want {
				t.Errorf("sent %q, want %q", r.texts(), c.want)
			}
		})
	}
}

// Whoever interrupts a pipe is told that answers are missing, and so is the
// script that called it.
func TestInterruptedPipe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	accepted := make(chan struct{})
	r.answer = func(adapters.Message) []chat.Reply {
		close(accepted)
		return nil
	}
	in, out := io.Pipe() // stays open: more may come
	defer out.Close()
	r.options.In = in
	term := r.terminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- term.Run(ctx) }()
	if _, err := io.WriteString(out, "one\n"); err != nil {
		t.Fatal(err)
	}
	<-accepted
	cancel()
	if err := <-over; !errors.Is(err, ErrNoAnswer) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 of the messages") {
		t.Errorf("%v, want that one message has no answer", err)
	}
}
