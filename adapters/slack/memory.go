package slack

import (
	"context"
	"sync"
	"time"

	"mimikit/adapters/alone"
	"mimikit/core/chat"
)

// A Memory is what nodes share, for a deployment of one process and for tests. It
// forgets everything when the process ends.
type Memory struct {
	*alone.Memory

	mu      sync.Mutex
	threads map[chat.Conversation]*participation
	buckets map[string]*bucket // :: method or place → what is left
}

type participation struct{ read bool }

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
	timeOf := func(ts string) time.Time {
		at, _ := stampTime(ts)
		return at
	}
	return &Memory{Memory: alone.New(now, timeOf), threads: map[chat.Conversation]*participation{}, buckets: map[string]*bucket{}}
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

// Live implements [Places].
func (m *Memory) Live(_ context.Context, since time.Time, most int) ([]Live, error) {
	marks := m.Since(since, most)
	live := make([]Live, len(marks))
	for i, k := range marks {
		live[i] = Live(k)
	}
	return live, nil
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
