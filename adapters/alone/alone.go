// Package alone remembers within one process what the nodes of a deployment otherwise
// share about a platform: what was claimed and noted, how far each conversation was
// heard, and which messages are marked. It is for a deployment of one process and for
// tests, and forgets everything when the process ends. What only one platform shares
// stays with its adapter.
package alone

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"mimikit/core/chat"
)

// Bounds of what one process remembers.
const (
	MostHeard = 10_000 // conversations
	MostMarks = 100    // of one conversation
)

// A Memory is what one process remembers. It is safe for concurrent use.
type Memory struct {
	now    func() time.Time
	timeOf func(id string) time.Time

	mu     sync.Mutex
	heard  map[chat.Conversation]string // :: conversation → id of the newest message
	claims map[string]time.Time         // :: key → until when
	notes  map[string]note
	marks  map[chat.Conversation][]string // :: conversation → messages
	swept  time.Time
}

type note struct {
	text  string
	until time.Time
}

// New makes an empty Memory. now may be nil. timeOf tells when a message was written by
// its id, which grows with that: of two ids of the same length the later one sorts last.
func New(now func() time.Time, timeOf func(id string) time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{
		now: now, timeOf: timeOf, heard: map[chat.Conversation]string{},
		claims: map[string]time.Time{}, notes: map[string]note{}, marks: map[chat.Conversation][]string{},
	}
}

func compare(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// Now is the time by this memory's clock.
func (m *Memory) Now() time.Time { return m.now() }

// Heard notes how far a conversation was heard; an earlier message moves nothing back.
func (m *Memory) Heard(_ context.Context, c chat.Conversation, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if compare(id, m.heard[c]) > 0 {
		m.heard[c] = id
	}
	if len(m.heard) > MostHeard {
		for _, l := range m.since(time.Time{})[MostHeard*9/10:] {
			delete(m.heard, l.Conversation)
		}
	}
	return nil
}

// A Mark is a conversation and the newest message heard in it.
type Mark struct {
	Conversation chat.Conversation
	Heard        string
}

// Since lists the conversations that were heard since a time, at most so many, the
// newest first.
func (m *Memory) Since(since time.Time, most int) []Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.since(since)
	return live[:min(len(live), most)]
}

func (m *Memory) since(since time.Time) []Mark {
	var live []Mark
	for c, id := range m.heard {
		if !m.timeOf(id).Before(since) {
			live = append(live, Mark{c, id})
		}
	}
	slices.SortFunc(live, func(a, b Mark) int { return compare(b.Heard, a.Heard) })
	return live
}

// Claim lets the first who asks do a thing, until ttl is over.
func (m *Memory) Claim(_ context.Context, key string, ttl time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	if until, taken := m.claims[key]; taken && m.now().Before(until) {
		return false, nil
	}
	m.claims[key] = m.now().Add(ttl)
	return true, nil
}

// Note reads what was noted; "" when nothing was, or not any more.
func (m *Memory) Note(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.notes[key]; m.now().Before(n.until) {
		return n.text, nil
	}
	return "", nil
}

// SetNote notes a text for so long.
func (m *Memory) SetNote(_ context.Context, key, text string, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	m.notes[key] = note{text: text, until: m.now().Add(ttl)}
	return nil
}

// Mark remembers a message that bears a mark. Of a conversation only the newest marks
// are remembered.
func (m *Memory) Mark(_ context.Context, c chat.Conversation, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.marks[c]
	if !slices.Contains(all, id) {
		all = append(all, id)
	}
	m.marks[c] = all[max(len(all)-MostMarks, 0):]
	return nil
}

// Unmark forgets the marked messages up to one, or with "" all, and gives them.
func (m *Memory) Unmark(_ context.Context, c chat.Conversation, upTo string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone, kept []string
	for _, id := range m.marks[c] {
		if upTo == "" || compare(id, upTo) <= 0 {
			gone = append(gone, id)
		} else {
			kept = append(kept, id)
		}
	}
	if m.marks[c] = kept; kept == nil {
		delete(m.marks, c)
	}
	return gone, nil
}

// sweep forgets what has run out, at most once a minute. m.mu is held.
func (m *Memory) sweep() {
	now := m.now()
	if now.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = now
	for k, until := range m.claims {
		if !now.Before(until) {
			delete(m.claims, k)
		}
	}
	for k, n := range m.notes {
		if !now.Before(n.until) {
			delete(m.notes, k)
		}
	}
}
