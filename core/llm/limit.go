package llm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Limiter lets at most so many calls run at once, whatever models they go to.
// Those that wait are served round-robin by conversation, so one that asks for
// much delays another by at most its turn.
type Limiter struct {
	onWait func(req Request, waited time.Duration)

	mu      sync.Mutex
	free    int
	order   []string                   // conversations that wait, next first
	waiting map[string][]chan struct{} // :: conversation -> its calls, oldest first
}

// NewLimiter makes a limiter for n calls, at least 1. onWait, when not nil,
// hears how long each call waited, when its turn comes; one that was given up
// is not heard of.
func NewLimiter(n int, onWait func(req Request, waited time.Duration)) *Limiter {
	return &Limiter{onWait: onWait, free: max(n, 1), waiting: map[string][]chan struct{}{}}
}

// Limit lets at most n calls of model run at once, see [Limiter].
func Limit(model Model, n int) Model { return NewLimiter(n, nil).Model(model) }

// Model wraps a model. All models of one limiter share its places.
func (l *Limiter) Model(next Model) Model { return limited{l, next} }

// Waiting gives how many calls wait now.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, calls := range l.waiting {
		n += len(calls)
	}
	return n
}

type limited struct {
	l    *Limiter
	next Model
}

// Complete waits for its turn and then calls the model.
func (m limited) Complete(ctx context.Context, req Request) (Response, error) {
	start := time.Now()
	if err := m.l.enter(ctx, req.Conversation); err != nil {
		return Response{}, &Error{Kind: Transient, Err: fmt.Errorf("wait for a turn at the model: %w", err)}
	}
	defer m.l.leave()
	if m.l.onWait != nil {
		m.l.onWait(req, time.Since(start))
	}
	return m.next.Complete(ctx, req)
}

func (l *Limiter) enter(ctx context.Context, conversation string) error {
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(l.waiting[conversation]) == 0 {
		l.order = append(l.order, conversation)
	}
	l.waiting[conversation] = append(l.waiting[conversation], turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, t := range l.waiting[conversation] {
		if t == turn {
			l.remove(conversation, i)
			return stopped(ctx)
		}
	}
	// The turn came in the same moment: pass it on.
	l.pass()
	return stopped(ctx)
}

func (l *Limiter) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass()
}

// pass gives the place that became free to the conversation whose turn it is.
func (l *Limiter) pass() {
	if len(l.order) == 0 {
		l.free++
		return
	}
	conversation := l.order[0]
	close(l.waiting[conversation][0])
	l.remove(conversation, 0)
	if len(l.waiting[conversation]) > 0 {
		l.order = append(l.order[1:], conversation) // its next call comes after everybody's
	}
}

// remove takes a waiting call out; a conversation without any leaves the order.
func (l *Limiter) remove(conversation string, i int) {
	calls := l.waiting[conversation]
	if i == 0 {
		calls = calls[1:] // by far the most: the next in turn
	} else {
		calls = append(calls[:i:i], calls[i+1:]...)
	}
	if len(calls) > 0 {
		l.waiting[conversation] = calls
		return
	}
	delete(l.waiting, conversation)
	for j, c := range l.order {
		if c == conversation {
			l.order = append(l.order[:j:j], l.order[j+1:]...)
			return
		}
	}
}
