package gateway

import (
	"context"
	"sync"
	"time"
)

// identifyEvery is how far apart Discord wants the identifies of one key.
const identifyEvery = 5 * time.Second

// A LocalGate is a Gate of one process.
type LocalGate struct {
	mu   sync.Mutex
	next map[int]time.Time // :: key → when the next may be sent
}

// NewGate makes a Gate for an application that runs in one process.
func NewGate() *LocalGate { return &LocalGate{next: map[int]time.Time{}} }

// Identify waits for the key's turn.
func (g *LocalGate) Identify(ctx context.Context, key int) error {
	now := time.Now()
	g.mu.Lock()
	at := g.next[key]
	if at.Before(now) {
		at = now
	}
	g.next[key] = at.Add(identifyEvery)
	g.mu.Unlock()
	return sleep(ctx, at.Sub(now))
}

// LocalSessions are Sessions of one process, for tests and for a bot that may
// forget. The zero value is ready.
type LocalSessions struct {
	mu     sync.Mutex
	states map[Shard]State
	fences map[Shard]string // the newest fence; "" lets everybody write
}

// Load gives what was saved last.
func (l *LocalSessions) Load(_ context.Context, s Shard) (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.states[s], nil
}

// Save keeps a state, unless Fence has handed the shard to another.
func (l *LocalSessions) Save(_ context.Context, s Shard, fence string, st State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.fences[s]; f != "" && f != fence {
		return ErrFenced
	}
	if l.states == nil {
		l.states = map[Shard]State{}
	}
	l.states[s] = st
	return nil
}

// Fence lets only one token write a shard's state from now on.
func (l *LocalSessions) Fence(s Shard, fence string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fences == nil {
		l.fences = map[Shard]string{}
	}
	l.fences[s] = fence
}
