package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"mimikit/adapters"
	"mimikit/core/chat"
	"mimikit/core/feed"
)

// A bot stands in for all that is behind an inbox: it accepts messages and posts
// what its answer says, as a node would.
type bot struct {
	feed *feed.Feed
	// answer gives the replies to a message; nil gives none.
	answer func(m adapters.Message) []chat.Reply
	// fault is asked before anything is accepted; n counts the attempts, from 0.
	fault func(n int, m adapters.Message) error

	mu       sync.Mutex
	attempts int
	accepted []adapters.Message
	stops    int
}

func (b *bot) Submit(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	b.mu.Lock()
	n := b.attempts
	b.attempts++
	b.mu.Unlock()
	if b.fault != nil {
		if err := b.fault(n, m); err != nil {
			return adapters.Receipt{}, err
		}
	}
	b.mu.Lock()
	b.accepted = append(b.accepted, m)
	b.mu.Unlock()
	r := adapters.Receipt{InputID: "in-" + m.Message}
	if b.answer == nil {
		return r, nil
	}
	// Posted before the receipt is given: the harder order for a terminal.
	for i, reply := range b.answer(m) {
		reply.ID, reply.Conversation = fmt.Sprintf("re-%s-%d", m.Message, i), m.Conversation
		if reply.InputIDs == nil {
			reply.InputIDs = []string{r.InputID}
		}
		if err := b.post(ctx, reply); err != nil {
			return adapters.Receipt{}, err
		}
	}
	return r, nil
}

func (b *bot) post(ctx context.Context, r chat.Reply) error {
	p := NewPoster(b.feed)
	for _, part := range p.Split(r) {
		if _, err := p.Post(ctx, r.Conversation, part); err != nil {
			return err
		}
	}
	return nil
}

func (b *bot) Stop(context.Context, adapters.Message) (adapters.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stops++
	return adapters.Receipt{}, nil
}

// texts are the texts that were accepted.
func (b *bot) texts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, m := range b.accepted {
		out = append(out, m.Text)
	}
	return strings.Join(out, "|")
}

// echo answers every message with its text.
func echo(m adapters.Message) []chat.Reply {
	return []chat.Reply{{Kind: chat.ReplyAnswer, Text: "**You** said: " + m.Text, CreatedAt: epoch}}
}

// refused is an error as an inbox gives it.
type refused string

func (r refused) Error() string   { return "refused" }
func (r refused) Refused() string { return string(r) }

// A page collects what is written to it and lets a test wait for something.
type page struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed and replaced with every write
}

func newPage() *page { return &page{more: make(chan struct{})} }

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}

// raw is all that was written; String is the same without escape sequences.
func (p *page) raw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *page) String() string { return strings.ReplaceAll(ansi.Strip(p.raw()), "\r", "") }

// await waits until what was written satisfies a test's wish.
func (p *page) await(t *testing.T, what string, wish func(s string) bool) {
	t.Helper()
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	for {
		p.mu.Lock()
		more := p.more
		p.mu.Unlock()
		if wish(p.String()) {
			return
		}
		select {
		case <-more:
		case <-patience.C:
			t.Fatalf("waited for %s; what was written is\n%s\n(%q)", what, p, p.raw())
		}
	}
}

func (p *page) has(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		p.await(t, fmt.Sprintf("%q", w), func(s string) bool { return strings.Contains(s, w) })
	}
}

// A rig is a terminal and the bot that it talks to.
type rig struct {
	*bot
	out, err *page
	options  Options
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	f := feedOn(t)
	r := &rig{bot: &bot{feed: f, answer: echo}, out: newPage(), err: newPage()}
	r.options = Options{
		Inbox: r.bot, Feed: f, User: "ann", Wait: 20 * time.Second,
		In: strings.NewReader(""), Out: r.out, Err: r.err, Environ: []string{"TERM=xterm-256color"},
	}
	for _, c := range change {
		c(&r.options)
	}
	return r
}

func (r *rig) terminal(t *testing.T) *Terminal {
	t.Helper()
	return New(r.options)
}

// pipe runs a terminal on piped input to its end.
func (r *rig) pipe(t *testing.T, input string) error {
	t.Helper()
	r.options.In = strings.NewReader(input)
	return r.terminal(t).Run(t.Context())
}

// says posts a reply that nobody here asked for.
func (r *rig) says(t *testing.T, text string, inputs ...string) {
	t.Helper()
	err := r.post(t.Context(), chat.Reply{ID: "re-" + text, Conversation: talk, Kind: chat.ReplyAnswer, Text: text, InputIDs: inputs, CreatedAt: epoch})
	if err != nil {
		t.Fatal(err)
	}
}

// missed are the texts that a terminal would show on its next start.
func (r *rig) missed(t *testing.T) string {
	t.Helper()
	m, err := r.feed.Missed(t.Context(), talk.Key(), reader, 100)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range m.Entries {
		out = append(out, e.Item.Text)
	}
	return strings.Join(out, "|")
}

var errAway = errors.New("connection refused")

// keyboard is an input that a test types into.
func keyboard(t *testing.T) (in io.Reader, keys io.WriteCloser) {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r, w
}
