package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// A shown part is one message that people see.
type shown struct {
	reply string
	index int
}

// A platform is a chat platform in memory. It shows whatever it is sent, as
// often as it is sent: that nothing is shown twice is for the outbox to see to.
//
// It may take a request in at any time up to the client's deadline, also when
// the client has given up long before, and never after it.
type platform struct {
	t testing.TB

	mu      sync.Mutex
	places  map[string][]shown // :: place -> what is shown there, oldest first
	ids     map[shown]string
	tries   map[shown]int // posts
	looks   map[shown]int // look-ups
	changed chan struct{} // closed at every change
	late    sync.WaitGroup

	fate func(p adapters.Part, try int) fate  // nil: everything is shown at once
	look func(p adapters.Part, try int) error // nil: look-ups succeed
}

// A fate is what becomes of one request.
type fate struct {
	never bool          // it is not taken
	after time.Duration // when it is taken
	err   error         // what the client hears, at once; nil: that it was taken
	mute  bool          // the client hears nothing until its deadline
}

func newPlatform(t testing.TB) *platform {
	p := &platform{
		t: t, places: map[string][]shown{}, ids: map[shown]string{}, tries: map[shown]int{}, looks: map[shown]int{}, changed: make(chan struct{}),
	}
	t.Cleanup(p.late.Wait)
	return p
}

// show takes a request in, unless its deadline has passed, and says whether it did.
func (p *platform) show(c chat.Conversation, part adapters.Part, deadline time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !time.Now().Before(deadline) {
		return false
	}
	s := shown{part.ReplyID, part.Index}
	if p.ids[s] != "" {
		p.t.Errorf("part %d of %s is shown a second time", part.Index, part.ReplyID)
	}
	if part.Index > 0 && p.ids[shown{part.ReplyID, part.Index - 1}] == "" {
		p.t.Errorf("part %d of %s is shown before the one that comes before it", part.Index, part.ReplyID)
	}
	p.ids[s] = fmt.Sprintf("%s.%d", part.ReplyID, part.Index)
	p.places[c.Place] = append(p.places[c.Place], s)
	close(p.changed)
	p.changed = make(chan struct{})
	return true
}

func (p *platform) request(part adapters.Part) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := shown{part.ReplyID, part.Index}
	p.tries[s]++
	if p.fate == nil {
		return fate{}
	}
	return p.fate(part, p.tries[s])
}

// in lists what is shown in a place, as reply.part words.
func (p *platform) in(place string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var words []string
	for _, s := range p.places[place] {
		words = append(words, fmt.Sprintf("%s.%d", s.reply, s.index))
	}
	return words
}

// patience is for how long is waited for what happens in its own time, with leases that
// are short for a busy machine.
const patience = 2 * time.Minute

// await waits until a place shows just that many parts, or more.
func (p *platform) await(t testing.TB, place string, parts int) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		p.mu.Lock()
		n, changed := len(p.places[place]), p.changed
		p.mu.Unlock()
		if n >= parts {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("waited %v for %d parts in %s; it shows %v", patience, parts, place, p.in(place))
		}
	}
}

// check compares what a place shows.
func (p *platform) check(t testing.TB, place string, want []string) {
	t.Helper()
	if got := p.in(place); !slices.Equal(got, want) {
		t.Errorf("%s shows %v\nwant %v", place, got, want)
	}
}

// A door is the poster of one node. at is told of the points that a post passes.
type door struct {
	p  *platform
	at func(point string, part int)
}

// Split cuts a text at its bars.
func (d *door) Split(r chat.Reply) []adapters.Part {
	texts := strings.Split(r.Text, "|")
	parts := make([]adapters.Part, len(texts))
	for i, text := range texts {
		parts[i] = adapters.Part{ReplyID: r.ID, Index: i, Count: len(texts), Text: text, Kind: r.Kind}
	}
	return parts
}

var errNoAnswer = errors.New("the answer was lost")

func (d *door) Post(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		d.p.t.Error("a post without a deadline")
	}
	d.at("posting", part.Index)
	f := d.p.request(part)
	switch {
	case f.never:
	case f.after == 0:
		if !d.p.show(c, part, deadline) {
			f.mute = true
		}
	default:
		d.p.late.Go(func() {
			t := time.NewTimer(f.after)
			defer t.Stop()
			<-t.C
			d.p.show(c, part, deadline)
		})
	}
	d.at("posted", part.Index)
	switch {
	case f.mute:
		<-ctx.Done()
		return "", ctx.Err()
	case f.err != nil:
		return "", f.err
	}
	return fmt.Sprintf("%s.%d", part.ReplyID, part.Index), nil
}

func (d *door) Lookup(_ context.Context, _ chat.Conversation, part adapters.Part) (string, error) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	s := shown{part.ReplyID, part.Index}
	d.p.looks[s]++
	if d.p.look != nil {
		if err := d.p.look(part, d.p.looks[s]); err != nil {
			return "", err
		}
	}
	return d.p.ids[s], nil
}

// chance is a source that gives the same for the same words, whatever order
// goroutines come in.
func chance(seed uint64, words ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, words...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
