package console

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"mimikit/adapters"
)

// sitDown starts a talk through a terminal without a line editor. leave ends the
// input and gives what came of it.
func (r *rig) sitDown(t *testing.T) (keys io.Writer, leave func() error) {
	t.Helper()
	in, w := keyboard(t)
	r.options.In = in
	r.out, r.err = newPage(), newPage()
	r.options.Out, r.options.Err = r.out, r.err
	done := make(chan error, 1)
	term := r.terminal(t)
	go func() { done <- term.prompt(t.Context()) }()
	return w, func() error {
		_ = w.Close()
		return <-done
	}
}

func typed(t *testing.T, keys io.Writer, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if _, err := fmt.Fprintln(keys, l); err != nil {
			t.Fatal(err)
		}
	}
}

// Something visible comes before anything is sent: here nothing can be sent
// until it was seen.
func TestFeedbackFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seen := make(chan struct{})
	r.fault = func(int, adapters.Message) error { <-seen; return nil }
	keys, leave := r.sitDown(t)
	typed(t, keys, "hi")
	r.err.has(t, "· thinking…")
	close(seen)
	r.out.has(t, "**You** said: hi")
	if err := leave(); err != nil {
		t.Error(err)
	}
}

// What is being done is shown when it changes.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.answer = nil
	keys, leave := r.sitDown(t)
	typed(t, keys, "hi")
	r.err.has(t, "· thinking…")
	p := NewPoster(r.feed)
	for _, what := range []string{"reading a\x1b[31m file", "writing\nmore"} {
		if err := p.Working(t.Context(), talk, what); err != nil {
			t.Fatal(err)
		}
	}
	r.err.has(t, "· writing\n")
	r.says(t, "done")
	r.out.has(t, "done")
	if err := leave(); err != nil {
		t.Error(err)
	}
}

// What was said while nobody looked is shown on the next start, once.
func TestMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.says(t, "the first")
	r.says(t, "the second")
	keys, leave := r.sitDown(t)
	r.err.has(t, "While you were away")
	r.out.has(t, "the first\n\nthe second\n")
	typed(t, keys, "hi")
	r.out.has(t, "**You** said: hi")
	if err := leave(); err != nil {
		t.Error(err)
	}
	if m := r.missed(t); m != "" {
		t.Errorf("missed %q after all was shown", m)
	}
	keys, leave = r.sitDown(t)
	typed(t, keys, "again")
	r.out.has(t, "**You** said: again")
	if err := leave(); err != nil {
		t.Error(err)
	}
	if s := r.err.String(); strings.Contains(s, "away") || strings.Contains(r.out.String(), "second") {
		t.Errorf("the second start shows %q and %q, want nothing old", s, r.out)
	}
}

func TestMissedMuch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 30 {
		r.says(t, fmt.Sprintf("number %d.", i))
	}
	_, leave := r.sitDown(t)
	r.err.has(t, "(the newest 20)")
	r.out.has(t, "number 10.", "number 29.")
	if err := leave(); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.out.String(), "number 9.") {
		t.Errorf("more than the newest 20 are shown: %q", r.out)
	}
}

// Commands and stops do not queue behind a message that cannot be sent.
func TestCommandsWhileAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	back := make(chan struct{})
	r.fault = func(int, adapters.Message) error {
		select {
		case <-back:
			return nil
		default:
			return errAway
		}
	}
	keys, leave := r.sitDown(t)
	typed(t, keys, "one", "two")
	r.err.has(t, "still trying. What you wrote", "· the store is away")
	typed(t, keys, "/help", "/stop", "/sotp")
	r.err.has(t, "shows this list", "Asked to stop.", "no command `/sotp`")
	close(back)
	r.err.has(t, "The store is back.")
	r.out.has(t, "said: one", "said: two")
	if err := leave(); err != nil {
		t.Error(err)
	}
	if r.texts() != "one|two" || r.stops != 1 {
		t.Errorf("accepted %q and %d stops, want one, two and 1", r.texts(), r.stops)
	}
}

// What cannot be sent before the person leaves is not passed over in silence.
func TestLeaveUnsent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fault = func(int, adapters.Message) error { return errAway }
	keys, leave := r.sitDown(t)
	typed(t, keys, "one", "two")
	r.err.has(t, "The store is away")
	typed(t, keys, "/quit")
	if err := leave(); err == nil || !strings.Contains(err.Error(), "2 of your messages") {
		t.Errorf("%v, want an error that counts the two", err)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys, leave := r.sitDown(t)
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprint(i))
	}
	typed(t, keys, want...)
	r.out.has(t, "said: 49\n")
	if err := leave(); err != nil {
		t.Error(err)
	}
	if got := r.texts(); got != strings.Join(want, "|") {
		t.Errorf("accepted in the order %s", got)
	}
}

func TestLiveRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fault = func(int, adapters.Message) error { return refused("This is *too* much.") }
	keys, leave := r.sitDown(t)
	typed(t, keys, "hi")
	r.err.has(t, "This is *too* much.")
	if err := leave(); err != nil {
		t.Error(err)
	}
}

func TestLiveEndsWithContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.options.In, _ = keyboard(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	term := r.terminal(t)
	go func() { done <- term.prompt(ctx) }()
	r.err.has(t, "Write a message")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("%v, want none: the person may end it like that", err)
	}
}
