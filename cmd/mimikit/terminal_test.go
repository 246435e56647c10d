package main

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// sit starts a command at a terminal of its own. What it writes is in out, what is
// typed goes to in.
func (d *deployment) sit(args ...string) *process {
	d.Helper()
	keys, screen, err := pty.Open()
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	if err := pty.Setsize(keys, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		d.Fatal(err)
	}
	cmd := d.command(args)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	p := &process{T: d.T, cmd: cmd, args: strings.Join(args, " "), in: keys, out: newPage(), err: newPage()}
	p.begin()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(p.out, keys) // ends with an error when nobody has the other side
	}()
	d.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.over
		_ = keys.Close()
		<-read
	})
	return p
}

// seen is the page as words, without what moves the cursor and paints.
func (p *process) seen() string { return strings.ReplaceAll(ansi.Strip(p.out.String()), "\r", "") }

// leave types what ends a talk, which must be clean.
func (p *process) leave(key string) {
	p.Helper()
	if _, err := io.WriteString(p.in, key); err != nil {
		p.Fatal(err)
	}
	if code := p.within(5 * time.Second); code != 0 {
		p.Fatalf("mimikit %s at a terminal: exit code %d after %q\n%s", p.args, code, key, p.seen())
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	enter = "\r"
)

func (p *process) types(text string) {
	p.Helper()
	if _, err := io.WriteString(p.in, text+enter); err != nil {
		p.Fatal(err)
	}
}

// The first minute of `make run`, at a terminal: a greeting that says what this
// is, a sign of work before there can be an answer, the answer, and a clean end.
func TestTerminal(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"ctrl-d": ctrlD, "ctrl-c": ctrlC, "quit": "/quit" + enter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan struct{})
			d := deploy(t, func(x *llmtest.Exchange) {
				select {
				case <-seen:
				case <-t.Context().Done():
				}
				llmtest.Answers("Hello, **Ann**.")(x)
			}, "MIMIKIT_TELLER_DEBOUNCE=1200ms")
			p := d.sit("chat", "--as", "Ann")
			p.out.shows(t, "Mimikit", "test-model", "/help")
			p.types("hi")
			p.out.shows(t, "thinking…")
			if got := p.seen(); strings.Contains(got, "Hello, ") {
				t.Errorf("an answer before the model was asked:\n%s", got)
			}
			close(seen)
			p.out.shows(t, "Hello, ")
			p.leave(key)
			has(t, p.seen(), "hi", "Hello, Ann.")
			if got := p.seen(); strings.Contains(got, "**") {
				t.Errorf("Markdown is not rendered:\n%s", got)
			}
			if pid := d.redisPID(); pid != 0 {
				t.Errorf("redis-server %d is left behind", pid)
			}
			if info, err := os.Stat(d.dir + "/chat-history"); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("what was entered is kept with the rights %v", info.Mode())
			}
		})
	}
}

// A terminal that can do nothing gets no escape sequences.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	d := deploy(t, llmtest.Answers("Hello, **Ann**."), "TERM=dumb")
	p := d.sit("chat")
	p.out.shows(t, "/help")
	p.types("hi")
	p.out.shows(t, "thinking…", "Hello, ")
	p.leave(ctrlD)
	if s := p.out.String(); strings.Contains(s, "\x1b") {
		t.Errorf("escape sequences on a dumb terminal: %q", s)
	}
}

// What the issue shows: kill -9 while it thinks, start again, and the answer is
// there, once.
func TestTerminalKilled(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Four."))
	d.model.Next(llmtest.Hangs())
	p := d.sit("chat", "--talk", "t")
	p.out.shows(t, "/help")
	p.types("two and two?")
	d.thinking(1)
	p.kill()
	p = d.sit("chat", "--talk", "t")
	p.out.shows(t, "Four.")
	d.record(nil).answeredOnce("t", "two and two?", "Four.")
	p.leave(ctrlD)
	if got := p.seen(); strings.Count(got, "Four.") != 1 {
		t.Errorf("the answer is shown more than once:\n%s", got)
	}
	// It was seen, so the next start does not show it again.
	p = d.sit("chat", "--talk", "t")
	p.out.shows(t, "/help")
	p.types("and again?")
	p.out.shows(t, "Four.")
	p.leave(ctrlD)
	if got := p.seen(); strings.Contains(got, "away") || strings.Count(got, "Four.") != 1 {
		t.Errorf("what was seen is shown again:\n%s", got)
	}
	// What was answered while nobody looked is.
	d.serve()
	d.model.Next(llmtest.Answers("While nobody looked."))
	ask := d.start("chat", "--talk", "t")
	ask.say("and once more?")
	d.thinking(4)
	d.record(nil).settled()
	ask.kill()
	p = d.sit("chat", "--talk", "t")
	p.out.shows(t, "While you were away", "While nobody looked.")
	p.leave(ctrlD)
}
