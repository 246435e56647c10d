package discord

import "sync"

// seenMost bounds the ids that are remembered of either half.
const seenMost = 10_000

// seenIDs know which interactions, and which messages that are commands, were
// taken up by this process.
type seenIDs struct {
	mu         sync.Mutex
	now, older map[string]bool
}

func newSeenIDs() *seenIDs { return &seenIDs{now: map[string]bool{}} }

// first reports whether an id is new, and remembers it.
func (s *seenIDs) first(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now[id] || s.older[id] {
		return false
	}
	if len(s.now) >= seenMost {
		s.now, s.older = map[string]bool{}, s.now
	}
	s.now[id] = true
	return true
}

// forget lets an id be taken up again.
func (s *seenIDs) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, id)
	delete(s.older, id)
}
