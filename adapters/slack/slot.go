package slack

import (
	"context"
	"errors"
	"sync"
	"time"

	"mimikit/adapters"
)

// sockets are all connections of this process, so that none outlives it.
type sockets struct {
	mu      sync.Mutex
	all     map[*socket]struct{}
	readers sync.WaitGroup
}

func (a *sockets) add(s *socket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[*socket]struct{}{}
	}
	a.all[s] = struct{}{}
}

func (a *sockets) drop(s *socket) {
	s.close()
	a.mu.Lock()
	delete(a.all, s)
	a.mu.Unlock()
}

func (a *sockets) list() []*socket {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := make([]*socket, 0, len(a.all))
	for s := range a.all {
		left = append(left, s)
	}
	return left
}

// stopReading ends all readers.
func (a *sockets) stopReading() {
	for _, s := range a.list() {
		s.stopReading()
	}
}

// close closes what is left and waits for whoever reads it.
func (a *sockets) close() {
	for _, s := range a.list() {
		a.drop(s)
	}
	a.readers.Wait()
}

const (
	// A session that ends sooner counts as a failure, so that a server which
	// accepts and closes is not called without a pause.
	shortSession = 10 * time.Second
	// Slack closes a socket this long after its warning at the latest; what it
	// still sends until then is taken.
	lastWords = 15 * time.Second
	maxWait   = 30 * time.Second
	// After a fault that only a person can mend there is no use in hurrying.
	brokenWait = time.Minute
)

// hold keeps one slot and one socket in it, until ctx ends.
func (l *Listener) hold(ctx context.Context, inbox adapters.Inbox, all *sockets) {
	for ctx.Err() == nil {
		slot, err := l.b.o.Slots.Acquire(ctx)
		if err != nil {
			if ctx.Err() == nil {
				l.b.o.Logger.Warn("slack_slot_not_acquired", "error", err)
				_ = pause(ctx, l.spread(maxWait))
			}
			continue
		}
		l.keep(ctx, slot, inbox, all)
		slot.Release()
	}
}

// keep keeps a socket open while the slot is ours.
func (l *Listener) keep(ctx context.Context, slot Slot, inbox adapters.Inbox, all *sockets) {
	var old *socket
	failures := 0
	for {
		s, err := l.connect(ctx, inbox, all)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			l.notOpen(err)
			failures++
			if l.rest(ctx, slot, err, failures) {
				continue
			}
			break
		}
		l.changed(Opened)
		if old != nil {
			l.retire(old, all)
			old = nil
		}
		reason := l.watch(ctx, slot, s)
		if reason == stopping {
			s.stopReading() // what it delivered is acknowledged before it is closed
			return
		}
		if reason == slotLost {
			all.drop(s)
			return
		}
		if l.b.o.Now().Sub(s.begun) >= shortSession && s.fault() == nil {
			failures = 0
		} else {
			failures++
		}
		if reason == replacing {
			old = s
			l.changed(Replaced)
		} else {
			all.drop(s)
			l.dropped(s)
		}
		if failures > 0 && !l.rest(ctx, slot, s.fault(), failures) {
			break
		}
	}
	if old != nil && ctx.Err() == nil {
		all.drop(old) // the slot is another node's now
	}
}

// connect opens a socket, begins to read it, and waits for its hello.
func (l *Listener) connect(ctx context.Context, inbox adapters.Inbox, all *sockets) (*socket, error) {
	s, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	all.add(s)
	all.readers.Go(func() {
		s.listen(func(e envelope) { l.take(ctx, s, inbox, e) })
		l.count(s, false)
	})
	all.readers.Go(s.ping)
	t := time.NewTimer(handshake)
	defer t.Stop()
	select {
	case <-s.hello:
		l.count(s, true)
		select {
		case <-s.done: // already
			l.count(s, false)
		default:
		}
		return s, nil
	case <-s.leaving:
		if err = s.fault(); err == nil {
			err = errNoHello
		}
	case <-s.done:
		err = s.err
	case <-t.C:
		err = errNoHello
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	all.drop(s)
	return nil, err
}

// count counts a socket among those that bring events, or no more.
func (l *Listener) count(s *socket, open bool) {
	switch {
	case !s.counted.CompareAndSwap(!open, open):
	case !open:
		l.open.Add(-1)
	case l.open.Add(1) == 1:
		l.catchUpSoon()
	}
}

// An ending is why a socket is no longer watched.
type ending int

const (
	stopping ending = iota + 1
	slotLost
	replacing // Slack announced that it will close it, or it is old
	broken
)

func (l *Listener) watch(ctx context.Context, slot Slot, s *socket) ending {
	// Ages differ, so that not all sockets are replaced at once.
	age := time.NewTimer(l.b.o.MaxSession - time.Duration(l.b.o.Chance()*float64(l.b.o.MaxSession)/5))
	defer age.Stop()
	select {
	case <-ctx.Done():
		return stopping
	case <-slot.Lost():
		return slotLost
	case <-s.done:
		return broken
	case <-s.leaving:
		if s.fault() != nil {
			return broken
		}
		return replacing
	case <-age.C:
		return replacing
	}
}

// fault is why Slack does not want a socket; nil when it only wants another one
// in its place.
func (s *socket) fault() error {
	switch why, _ := s.why.Load().(string); why {
	case "", "warning", "refresh_requested":
		return nil
	case "link_disabled":
		return errSwitchedOff
	default:
		return errors.New("the socket is closed by Slack: " + why)
	}
}

// retire reads a replaced socket to its end, which Slack sets, and closes it.
func (l *Listener) retire(s *socket, all *sockets) {
	l.count(s, false)
	all.readers.Go(func() {
		t := time.NewTimer(lastWords)
		defer t.Stop()
		select {
		case <-s.done:
		case <-t.C:
		case <-l.work.Done():
		}
		all.drop(s)
	})
}

// rest waits before the next try, and reports whether there is to be one.
func (l *Listener) rest(ctx context.Context, slot Slot, err error, failures int) bool {
	wait := min(time.Second<<min(failures-1, 5), maxWait)
	var pe *adapters.PostError
	if errors.As(err, &pe) {
		if pe.Kind == adapters.Misconfig {
			wait = brokenWait
		}
		wait = max(wait, pe.RetryAfter)
	}
	if errors.Is(err, errSwitchedOff) {
		wait = brokenWait
	}
	t := time.NewTimer(l.spread(wait))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-slot.Lost():
		return false
	case <-ctx.Done():
		return false
	}
}

func (l *Listener) notOpen(err error) {
	l.changed(NotOpen)
	var pe *adapters.PostError
	if errors.Is(err, errSwitchedOff) || errors.As(err, &pe) && pe.Kind == adapters.Misconfig {
		l.b.o.Logger.Error("slack_socket_not_open", "error", err)
		return
	}
	l.b.o.Logger.Warn("slack_socket_not_open", "error", err)
}

func (l *Listener) dropped(s *socket) {
	err := s.fault()
	select {
	case <-s.done:
		if err == nil {
			err = s.err
		}
	default: // Slack says why before it closes
	}
	if errors.Is(err, errDeaf) {
		l.changed(Deaf)
	} else {
		l.changed(Dropped)
	}
	l.b.o.Logger.Warn("slack_socket_dropped", "error", err)
}

func (l *Listener) changed(c SocketChange) {
	if l.b.o.Hooks.Socket != nil {
		l.b.o.Hooks.Socket(c)
	}
}
