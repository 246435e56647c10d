package slack

import (
	"context"
	"slices"
	"sync"
	"time"

	"mimikit/core/chat"
)

// A Memory is what nodes share, for a deployment of one process and for tests. It
// forgets everything when the process ends.
type Memory struct {
	now func() time.Time

	mu      sync.Mutex
	threads map[chat.Conversation]*participation
	heard   map[chat.Conversation]string   // :: conversation → time stamp
	claims  map[string]time.Time           // :: key → until when
	notes   map[string]note                // :: key → text
	marks   map[chat.Conversation][]string // :: conversation → messages
	buckets map[string]*bucket             // :: method or place → what is left
	swept   time.Time
}

type participation struct{ read bool }

type note struct {
	text  string
	until time.Time
}

var (
	_ Threads = (*Memory)(nil)
	_ Places  = (*Memory)(nil)
	_ Claims  = (*Memory)(nil)
	_ Notes   = (*Memory)(nil)
	_ Marks   = (*Memory)(nil)
	_ Budget  = (*Memory)(nil)
)

// NewMemory makes an empty Memory. now may be nil.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{
		now: now, threads: map[chat.Conversation]*participation{}, heard: map[chat.Conversation]string{},
		claims: map[string]time.Time{}, notes: map[string]note{}, marks: map[chat.Conversation][]string{}, buckets: map[string]*bucket{},
	}
}

// Part implements [Threads].
func (m *Memory) Part(_ context.Context, c chat.Conversation) (joined, read bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.threads[c]
	return p != nil, p != nil && p.read, nil
}

// Join implements [Threads].
func (m *Memory) Join(_ context.Context, c chat.Conversation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.threads[c] == nil {
		m.threads[c] = &participation{}
	}
	return nil
}

// MarkRead implements [Threads].
func (m *Memory) MarkRead(_ context.Context, c chat.Conversation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.threads[c] = &participation{read: true}
	return nil
}

// Heard implements [Places].
func (m *Memory) Heard(_ context.Context, c chat.Conversation, ts string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if after(ts, m.heard[c]) {
		m.heard[c] = ts
	}
	return nil
}

// Live implements [Places].
func (m *Memory) Live(_ context.Context, since time.Time, most int) ([]Live, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var live []Live
	for c, ts := range m.heard {
		if at, ok := stampTime(ts); ok && !at.Before(since) {
			live = append(live, Live{Conversation: c, Heard: ts})
		}
	}
	slices.SortFunc(live, func(a, b Live) int {
		switch {
		case after(a.Heard, b.Heard):
			return -1
		case after(b.Heard, a.Heard):
			return 1
		}
		return 0
	})
	return live[:min(len(live), most)], nil
}

// Claim implements [Claims].
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

// Note implements [Notes].
func (m *Memory) Note(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.notes[key]; m.now().Before(n.until) {
		return n.text, nil
	}
	return "", nil
}

// SetNote implements [Notes].
func (m *Memory) SetNote(_ context.Context, key, text string, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	m.notes[key] = note{text: text, until: m.now().Add(ttl)}
	return nil
}

// Mark implements [Marks].
func (m *Memory) Mark(_ context.Context, c chat.Conversation, ts string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.marks[c], ts) {
		m.marks[c] = append(m.marks[c], ts)
	}
	return nil
}

// Unmark implements [Marks].
func (m *Memory) Unmark(_ context.Context, c chat.Conversation, upTo string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone, kept []string
	for _, ts := range m.marks[c] {
		if upTo == "" || !after(ts, upTo) {
			gone = append(gone, ts)
		} else {
			kept = append(kept, ts)
		}
	}
	if len(kept) == 0 {
		delete(m.marks, c)
	} else {
		m.marks[c] = kept
	}
	return gone, nil
}

// sweep forgets what has run out, at most once a minute.
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

// Slots makes a number of slots for one process.
func (m *Memory) Slots(n int) Slots {
	s := make(slots, n)
	for range n {
		s <- struct{}{}
	}
	return s
}

type slots chan struct{}

func (s slots) Acquire(ctx context.Context) (Slot, error) {
	select {
	case <-s:
		return slot{s}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type slot struct{ all slots }

func (s slot) Lost() <-chan struct{} { return nil }

func (s slot) Release() { s.all <- struct{}{} }
