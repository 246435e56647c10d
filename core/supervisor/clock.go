package supervisor

import (
	"context"
	"sync"
	"time"

	"mimikit/core/trigger"
)

// A clock knows when each partition is to be looked at. What it knows is a guess:
// Redis decides what is due.
type clock struct {
	mu    sync.Mutex
	parts []hand
	poke  chan struct{} // capacity 1: something was heard
}

type hand struct {
	next   time.Time // when to look
	heard  bool      // look now
	busy   bool      // files of the partition are being looked at
	failed int       // looks in a row
}

// Run fires triggers until ctx is over; then it returns nil when what it is settling
// is settled or given up. A trigger that was taken and not settled is taken again.
func (s *Supervisor) Run(ctx context.Context) error {
	c := &clock{parts: make([]hand, s.o.Triggers.Partitions()), poke: make(chan struct{}, 1)}
	var rest sync.WaitGroup
	rest.Go(func() { s.o.Triggers.Listen(ctx, c.hear) })
	if s.o.Questions != nil {
		rest.Go(func() { s.o.Questions.Listen(ctx, c.hear) })
	}
	for ctx.Err() == nil {
		for p := range c.parts {
			if ctx.Err() == nil && c.due(p, time.Now()) {
				s.lookAt(ctx, c, p, &rest)
			}
		}
		t := time.NewTimer(c.wait(time.Now(), s.o.Look))
		select {
		case <-t.C:
		case <-c.poke:
		case <-ctx.Done():
		}
		t.Stop()
	}
	rest.Wait()
	return nil
}

// hear notes that there may be something due in a partition, or in all (-1).
func (c *clock) hear(p int) {
	c.mu.Lock()
	for i := range c.parts {
		if p < 0 || i == p {
			c.parts[i].heard = true
		}
	}
	c.mu.Unlock()
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// due reports, once, that a partition is to be looked at.
func (c *clock) due(p int, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.parts[p]
	if !h.heard && now.Before(h.next) {
		return false
	}
	h.heard = false
	return true
}

// wait is how long nothing is due, as far as is known.
func (c *clock) wait(now time.Time, most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.parts {
		if h.heard {
			return 0
		}
		most = min(most, h.next.Sub(now))
	}
	return max(most, time.Millisecond)
}

func (c *clock) set(p int, f func(h *hand)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.parts[p])
}

// notLooked has a partition looked at again after a while, the longer the more often
// it failed.
func (s *Supervisor) notLooked(ctx context.Context, c *clock, p int, err error) {
	var failed int
	c.set(p, func(h *hand) {
		h.failed++
		failed = h.failed
		h.next = time.Now().Add(min(time.Second<<min(failed, 5), s.o.Look))
	})
	if ctx.Err() == nil {
		s.log.Warn("partition_not_looked_at", "partition", p, "failed", failed, "error", err)
	}
}

// lookAt takes what is due in a partition. Triggers that look at files are seen to
// aside, so that what the clock fires does not wait for a disk.
func (s *Supervisor) lookAt(ctx context.Context, c *clock, p int, rest *sync.WaitGroup) {
	var storages []string
	c.set(p, func(h *hand) {
		if s.o.Files != nil && !h.busy {
			storages = s.o.Files.Storages()
		}
	})
	taken, err := s.o.Triggers.Take(ctx, p, storages)
	if err != nil {
		s.notLooked(ctx, c, p, err)
		return
	}
	// What was taken is attended to, whatever is the matter with the questions.
	var asked error
	if s.o.Questions != nil {
		var next time.Duration
		if _, next, asked = s.o.Questions.Due(ctx, p); asked == nil && next >= 0 && (taken.Next < 0 || next < taken.Next) {
			taken.Next = next
		}
	}
	now := time.Now()
	var quick, slow []trigger.Trigger
	for _, t := range taken.Triggers {
		if s.o.Held != nil && s.o.Held(t.Conversation) {
			continue // it was claimed, and is taken again after that
		}
		if t.Condition != nil && len(t.Condition.Paths()) > 0 {
			slow = append(slow, t)
		} else {
			quick = append(quick, t)
		}
	}
	c.set(p, func(h *hand) {
		if h.next = now.Add(s.o.Look); asked == nil {
			h.failed = 0
		}
		if taken.Next >= 0 {
			h.next = now.Add(min(s.o.Look, taken.Next))
		}
		h.heard = h.heard || taken.Full
		h.busy = h.busy || len(slow) > 0
	})
	if asked != nil {
		s.notLooked(ctx, c, p, asked)
	}
	if len(slow) > 0 {
		rest.Go(func() {
			s.attend(ctx, slow, taken.Now)
			c.set(p, func(h *hand) { h.busy = false })
			c.hear(p)
		})
	}
	s.attend(ctx, quick, taken.Now)
}
