package discord

import (
	"context"
	"strconv"
	"sync"
	"time"

	"mimikit/adapters/alone"
	"mimikit/adapters/discord/gateway"
)

// A Memory is what nodes share, for a deployment of one process and for tests. It
// forgets everything when the process ends. It is safe for concurrent use.
type Memory struct {
	*alone.Memory
	gateway.LocalSessions

	mu      sync.Mutex
	held    map[gateway.Shard]*hold
	fences  int
	buckets map[Draw]*drawn // :: what is drawn, without a priority → what is left
	swept   time.Time
}

var (
	_ Leases = (*Memory)(nil)
	_ Places = (*Memory)(nil)
	_ Claims = (*Memory)(nil)
	_ Notes  = (*Memory)(nil)
	_ Marks  = (*Memory)(nil)
	_ Budget = (*Memory)(nil)
)

// NewMemory makes an empty Memory. now may be nil.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{Memory: alone.New(now, TimeOf), held: map[gateway.Shard]*hold{}, buckets: map[Draw]*drawn{}}
}

// A hold is the Lease of one process.
type hold struct {
	m     *Memory
	shard gateway.Shard
	fence string
	lost  chan struct{}
	freed chan struct{}
}

// Acquire implements [Leases].
func (m *Memory) Acquire(ctx context.Context, s gateway.Shard) (Lease, error) {
	for {
		m.mu.Lock()
		other := m.held[s]
		if other == nil {
			h := m.take(s)
			m.mu.Unlock()
			return h, nil
		}
		m.mu.Unlock()
		select {
		case <-other.freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take hands a shard out, and lets only its new holder write the session. m.mu is
// held.
func (m *Memory) take(s gateway.Shard) *hold {
	m.fences++
	h := &hold{m: m, shard: s, fence: strconv.Itoa(m.fences), lost: make(chan struct{}), freed: make(chan struct{})}
	m.held[s] = h
	m.Fence(s, h.fence)
	return h
}

// Revoke takes a shard away from its holder, as when that node was cut off.
func (m *Memory) Revoke(s gateway.Shard) {
	m.mu.Lock()
	h := m.held[s]
	m.mu.Unlock()
	if h != nil {
		close(h.lost)
		h.Release()
	}
}

func (h *hold) Fence() string { return h.fence }

func (h *hold) Lost() <-chan struct{} { return h.lost }

func (h *hold) Release() {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.m.held[h.shard] == h {
		delete(h.m.held, h.shard)
		close(h.freed)
	}
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

// sweep forgets the budgets that are as good as new, at most once a minute. m.mu is held.
func (m *Memory) sweep() {
	now := m.Now()
	if now.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = now
	for k, b := range m.buckets {
		if b.refill(now); b.left >= b.size && !now.Before(b.shut) {
			delete(m.buckets, k)
		}
	}
}

// drawn is how many requests may be made at once and how fast they come back.
type drawn struct {
	size, rate float64 // rate is per second
	left       float64
	at         time.Time // when left was true
	shut       time.Time // Discord refuses until then
}

// Draw implements [Budget].
func (m *Memory) Draw(_ context.Context, d Draw, patience time.Duration) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	b := m.bucket(d)
	now := m.Now()
	b.refill(now)
	shut := max(0, b.shut.Sub(now))
	// A bucket of one must serve all: what a priority needs to find is never more
	// than a full bucket.
	lack := min(1+b.size*d.Priority.Reserve(), b.size) - b.left
	if lack <= 0 && shut == 0 {
		b.left--
		return 0, nil
	}
	if d.Priority.drops() {
		return Never, nil
	}
	wait := max(shut, time.Duration(max(lack, 0)/b.rate*float64(time.Second)))
	if wait <= patience {
		b.left-- // may fall below zero: that is the queue
	}
	return wait, nil
}

// Limited implements [Budget].
func (m *Memory) Limited(_ context.Context, d Draw, wait time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.bucket(d)
	b.shut = later(b.shut, m.Now().Add(wait))
	return nil
}

// bucket finds what is left of what is drawn. m.mu is held.
func (m *Memory) bucket(d Draw) *drawn {
	d.Priority = 0
	b := m.buckets[d]
	if b == nil {
		calls, per := d.Rate()
		b = &drawn{size: float64(calls), rate: float64(calls) / per.Seconds(), left: float64(calls), at: m.Now()}
		m.buckets[d] = b
	}
	return b
}

func (b *drawn) refill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.left = min(b.size, b.left+d.Seconds()*b.rate)
		b.at = now
	}
}
