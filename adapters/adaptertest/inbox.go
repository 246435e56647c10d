package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// An Inbox takes messages as the real one does, each once, and can be shut. The
// zero Inbox is ready. It is safe for concurrent use.
type Inbox struct {
	mu     sync.Mutex
	shut   bool
	refuse string
	first  map[string]adapters.Message // :: what makes it the same message → as it came first
	taken  []adapters.Message
	stops  int
	offers int
	wrong  []string
}

var _ adapters.Inbox = (*Inbox)(nil)

// A Refusal is a message that is not taken for good, as listeners find it out: by
// the method Refused.
type Refusal string

// Error says that it was refused.
func (r Refusal) Error() string { return "refused: " + string(r) }

// Refused gives the reason for the person.
func (r Refusal) Refused() string { return string(r) }

var errShut = errors.New("the inbox is shut")

// Submit implements [adapters.Inbox].
func (b *Inbox) Submit(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return b.take(ctx, m, false)
}

// Stop implements [adapters.Inbox].
func (b *Inbox) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return b.take(ctx, m, true)
}

func (b *Inbox) take(ctx context.Context, m adapters.Message, stop bool) (adapters.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offers++
	switch {
	case b.shut:
		return adapters.Receipt{}, errShut
	case ctx.Err() != nil:
		return adapters.Receipt{}, context.Cause(ctx)
	case b.refuse != "":
		return adapters.Receipt{}, fmt.Errorf("take message %q: %w", m.Message, Refusal(b.refuse))
	}
	b.inspect(m)
	key := keyOf(m)
	r := adapters.Receipt{InputID: "in-" + key}
	if before, known := b.first[key]; known {
		b.compare(before, m)
		r.Duplicate = true
		return r, nil
	}
	if b.first == nil {
		b.first = map[string]adapters.Message{}
	}
	b.first[key] = m
	b.taken = append(b.taken, m)
	if stop {
		b.stops++
	}
	return r, nil
}

// keyOf names what makes two messages the same one.
func keyOf(m adapters.Message) string {
	if m.Kind == chat.KindDelete && m.Edit == "" {
		m.Edit = "deleted"
	}
	return strings.Join([]string{m.Conversation.Platform, m.Conversation.Workspace, m.Conversation.Place, m.Message, m.Edit}, "|")
}

// inspect notes what no message may lack. It is called with mu held.
func (b *Inbox) inspect(m adapters.Message) {
	switch {
	case m.Conversation.Platform == "", m.Conversation.Place == "":
		b.wrong = append(b.wrong, fmt.Sprintf("message %q has the conversation %q", m.Message, m.Conversation))
	case m.Message == "":
		b.wrong = append(b.wrong, fmt.Sprintf("%q came without an id", m.Text))
	case m.At.IsZero():
		b.wrong = append(b.wrong, fmt.Sprintf("message %q has no time", m.Message))
	case m.Kind == chat.KindEdit && m.Edit == "":
		b.wrong = append(b.wrong, fmt.Sprintf("edit of message %q has no stamp", m.Message))
	case m.Kind != chat.KindDelete && m.Author.ID == "":
		b.wrong = append(b.wrong, fmt.Sprintf("message %q has no author", m.Message))
	case m.Kind != chat.KindDelete && m.Author.Role == 0:
		b.wrong = append(b.wrong, fmt.Sprintf("the author of message %q has no role", m.Message))
	}
}

// compare notes what differs between two sights of one message. It is called with
// mu held.
func (b *Inbox) compare(before, m adapters.Message) {
	if before.Conversation != m.Conversation || !before.At.Equal(m.At) || before.Author.ID != m.Author.ID {
		b.wrong = append(b.wrong, fmt.Sprintf("message %q came as %+v and later as %+v", m.Message, before, m))
	}
}

// Shut makes it store nothing, or something again.
func (b *Inbox) Shut(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = yes
}

// Refuse makes it refuse everything for a reason; "" ends that.
func (b *Inbox) Refuse(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = reason
}

// All lists what was taken, in order, each message once.
func (b *Inbox) All() []adapters.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.taken)
}

// Stops counts the stops among what was taken.
func (b *Inbox) Stops() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stops
}

// Offers counts what was offered, taken or not.
func (b *Inbox) Offers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offers
}

func (b *Inbox) texts() []string {
	var list []string
	for _, m := range b.All() {
		list = append(list, m.Text)
	}
	return list
}

// faults lists what was wrong with messages, whichever check is at work.
func (b *Inbox) faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrong)
}

// has waits until it has n messages, lets time pass in which more could come, and
// gives them.
func (b *Inbox) has(t reporter, r Rig, n int) []adapters.Message {
	t.Helper()
	await(t, r, fmt.Sprintf("%d messages in the inbox", n), func() bool { return len(b.All()) >= n })
	return b.only(t, r, n)
}

// only lets time pass and checks that it has n messages and no others.
func (b *Inbox) only(t reporter, r Rig, n int) []adapters.Message {
	t.Helper()
	r.Pass(settle)
	all := b.All()
	if len(all) != n {
		t.Fatalf("%d messages are in the inbox, want %d: %q", len(all), n, b.texts())
	}
	for _, w := range b.faults() {
		t.Errorf("%s", w)
	}
	return all
}
