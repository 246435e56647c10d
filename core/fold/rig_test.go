package fold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// A rig is the histories of one test.
type rig struct {
	t      testing.TB
	s      *store.Store
	prefix string
	h      *history.Store
}

func newRig(t testing.TB, s *store.Store) *rig {
	r := &rig{t: t, s: s, prefix: storetest.Prefix(t)}
	r.h = r.histories(s)
	return r
}

func (r *rig) histories(s *store.Store) *history.Store {
	return history.New(s.Client, r.key, slog.New(slog.DiscardHandler))
}

func (r *rig) key(c string) string { return r.prefix + "{0}:h:" + c }

// words of a line: its number and some more, so that it has size tokens or so.
func line(n, size int) chat.Line {
	return chat.Line{
		ID: fmt.Sprintf("i%d", n), Role: chat.LineUser, Author: chat.Author{ID: "U1", Name: "Ann"},
		Text: fmt.Sprintf("#%d", n) + strings.Repeat(" word", max(0, size-3)), At: epoch.Add(time.Duration(n) * time.Second),
	}
}

// say adds lines from..to-1 of size tokens each.
func (r *rig) say(c string, from, to, size int) {
	r.t.Helper()
	var values []string
	for n := from; n < to; n++ {
		values = append(values, history.Encode(line(n, size)))
	}
	if err := r.s.Client.RPush(context.Background(), r.key(c), values).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// past reads everything.
func (r *rig) past(c string) history.Past {
	r.t.Helper()
	p, err := r.h.Read(context.Background(), c, history.Limits{Max: 100000})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// check fails unless the summary and then the lines have the numbers 0..n-1 in
// order, each once, and returns how many are folded. An n of -1 is any number.
func (r *rig) check(c string, n int) int {
	r.t.Helper()
	p := r.past(c)
	got := numbers(p.Summary.Text)
	folded := len(got)
	for _, l := range p.Lines {
		got = append(got, numbers(l.Text)...)
	}
	for i := range got {
		if got[i] != i {
			r.t.Fatalf("%s: %d stands where %d should: %v", c, got[i], i, got)
		}
	}
	if n >= 0 && len(got) != n || int(p.Summary.FoldedLines) != folded {
		r.t.Fatalf("%s: %d of %d lines, %d in a summary of %d", c, len(got), n, folded, p.Summary.FoldedLines)
	}
	return folded
}

// numbers are those after a #.
func numbers(text string) []int {
	var out []int
	for _, part := range strings.Split(text, "#")[1:] {
		var n int
		if _, err := fmt.Sscan(part, &n); err != nil {
			panic(err)
		}
		out = append(out, n)
	}
	return out
}

// join is a Summarize that keeps the numbers of the lines.
func join(_ context.Context, _, previous string, lines []chat.Line) (string, error) {
	var b strings.Builder
	b.WriteString(previous)
	for _, l := range lines {
		for _, n := range numbers(l.Text) {
			fmt.Fprintf(&b, "#%d ", n)
		}
	}
	return b.String(), nil
}

// A model is a Summarize that can be made to fail, and counts.
type model struct {
	mu    sync.Mutex
	fail  error
	calls []call
	then  func(ctx context.Context) // called during each call
}

type call struct {
	at           time.Time
	conversation string
	previous     string
	lines        []chat.Line
}

var errModel = errors.New("the model is away")

func (m *model) summarize(ctx context.Context, conversation, previous string, lines []chat.Line) (string, error) {
	m.mu.Lock()
	m.calls = append(m.calls, call{time.Now(), conversation, previous, lines})
	fail, then := m.fail, m.then
	m.mu.Unlock()
	if then != nil {
		then(ctx)
	}
	if fail != nil {
		return "", fail
	}
	return join(ctx, conversation, previous, lines)
}

func (m *model) called() []call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]call(nil), m.calls...)
}

func (m *model) set(fail error, then func(ctx context.Context)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail, m.then = fail, then
}

// folder makes a small one: more than 10 lines fold, and 4 stay.
func folder(t testing.TB, h Histories, m *model, change ...func(*Options)) *Folder {
	t.Helper()
	o := Options{
		Histories: h, Summarize: m.summarize, Model: "m", Lines: 10, Keep: 4, Longest: 1 << 20,
		Rand: func() uint64 { return 0 }, Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
