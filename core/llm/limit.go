package llm

import (
	"context"
	"sync"
)

// Limit lets at most n calls of model run at once. Those that wait are served
// round-robin by conversation, so one that asks for much delays another by at
// most its turn.
func Limit(model Model, n int) Model {
	return &limited{model: model, free: n, waiting: map[string][]chan struct{}{}}
}

type limited struct {
	model Model

	mu      sync.Mutex
	free    int
	order   []string                   // conversations that wait, next first
	waiting map[string][]chan struct{} // :: conversation -> its calls, oldest first
}

// Complete waits for its turn and then calls the model.
func (l *limited) Complete(ctx context.Context, req Request) (Response, error) {
	if err := l.enter(ctx, req.Conversation); err != nil {
		return Response{}, &Error{Kind: Transient, Err: err}
	}
	defer l.leave()
	return l.model.Complete(ctx, req)
}

func (l *limited) enter(ctx context.Context, conversation string) error {
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
			return context.Cause(ctx)
		}
	}
	// The turn came in the same moment: pass it on.
	l.next()
	return context.Cause(ctx)
}

func (l *limited) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

// next gives the place that became free to the conversation whose turn it is.
func (l *limited) next() {
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
func (l *limited) remove(conversation string, i int) {
	calls := l.waiting[conversation]
	calls = append(calls[:i:i], calls[i+1:]...)
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
