package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/term"
	"github.com/muesli/cancelreader"

	"mimikit/core/feed"
)

// longestLine bounds the bytes of a line that is kept in memory (1 MiB). What is
// longer is cut there, which is far beyond what an inbox takes, so it is refused
// with the reason.
const longestLine = 1 << 20

// readLines sends the lines of an input until it ends or ctx does, and closes
// the channel. A line that ends in a backslash goes on with the next.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	r := bufio.NewReaderSize(in, 64<<10)
	var b strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		b.Write(part[:min(len(part), longestLine-min(b.Len(), longestLine))])
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line := strings.TrimRight(b.String(), "\r\n")
		if err == nil && strings.HasSuffix(line, `\`) {
			b.Reset()
			b.WriteString(strings.TrimSuffix(line, `\`) + "\n")
			continue
		}
		if strings.TrimSpace(line) != "" {
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
		b.Reset()
	}
}

// input starts to read lines; the caller must stop it. Where the input can be
// interrupted (a terminal, a pipe), nothing reads from it once stop has returned;
// another is let go, and read until it ends or has one more line.
func (t *Terminal) input(ctx context.Context) (lines <-chan string, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch, done := make(chan string), make(chan struct{})
	read := func(in io.Reader) {
		defer close(done)
		readLines(ctx, in, ch)
	}
	in, err := cancelreader.NewReader(t.o.In)
	if err != nil {
		go read(t.o.In)
		return ch, cancel
	}
	go read(in)
	return ch, func() {
		cancel()
		if in.Cancel() {
			<-done
			_ = in.Close() // of what it was interrupted with; the input stays open
		}
	}
}

// A lineScreen shows things one below the other: what is said on the output, and
// the terminal's own words on the error output, so that a script gets the
// answers and nothing else.
type lineScreen struct {
	mu       sync.Mutex
	out, err io.Writer
	outLook  look
	errLook  look
	width    int
	live     bool // a person looks on: show what is going on, and a prompt
	shown    int  // things on the output
	busy     string
}

// widest is how wide text is set; longer lines are hard to read.
const widest = 100

func (t *Terminal) newLineScreen(live bool) *lineScreen {
	s := &lineScreen{
		out: t.o.Out, err: t.o.Err, live: live, width: 80,
		outLook: lookOf(isTerminal(t.o.Out), t.env), errLook: lookOf(isTerminal(t.o.Err), t.env),
	}
	if f, ok := t.o.Out.(term.File); ok {
		if w, _, err := term.GetSize(f.Fd()); err == nil && w > 0 {
			s.width = min(w, widest)
		}
	}
	return s
}

// Show writes what was said, with an empty line between two.
func (s *lineScreen) Show(it feed.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := ""
	if s.shown++; s.shown > 1 {
		before = "\n"
	}
	_, _ = fmt.Fprintf(s.out, "%s%s\n", before, render(it.Text, s.width, s.outLook))
	s.promptLocked()
}

// Note writes the terminal's own words.
func (s *lineScreen) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintln(s.err, render(text, s.width, s.errLook))
	s.promptLocked()
}

// Busy writes what is going on, if somebody looks on and it is news.
func (s *lineScreen) Busy(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what = firstLine(what); !s.live || what == s.busy {
		return
	}
	if s.busy = what; what != "" {
		_, _ = fmt.Fprintf(s.err, "· %s\n", what)
	}
}

// Tasks shows nothing: what was written here cannot be taken back, and a line a
// second would bury the talk.
func (s *lineScreen) Tasks([]Task) {}

func (s *lineScreen) promptLocked() {
	if s.live {
		_, _ = io.WriteString(s.err, "> ")
	}
}

// firstLine is a clean text's first line.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(clean(s)), "\n")
	return s
}
