package slack

import (
	"context"
	"sync"
)

// pending bounds the events that are held in memory. Beyond it sockets are not
// read, so that Slack keeps the rest.
const pending = 2000

// lanes run work that belongs together one after the other, in the order in which
// it came, and all else at the same time. A lane has a goroutine only while it
// has work.
type lanes struct {
	crew *crew
	room chan struct{}

	mu    sync.Mutex
	queue map[string][]func() // :: key → what is to be done; there while its goroutine runs
}

func newLanes(c *crew, room int) *lanes {
	return &lanes{crew: c, room: make(chan struct{}, room), queue: map[string][]func(){}}
}

// do adds work to a lane. It waits for room, and reports whether there was any
// before ctx ended.
func (l *lanes) do(ctx context.Context, key string, work func()) bool {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, runs := l.queue[key]
	if !runs && !l.crew.send(func() { l.run(key) }) {
		<-l.room
		return false
	}
	l.queue[key] = append(l.queue[key], work)
	return true
}

func (l *lanes) run(key string) {
	for {
		l.mu.Lock()
		q := l.queue[key]
		if len(q) == 0 {
			delete(l.queue, key)
			l.mu.Unlock()
			return
		}
		work := q[0]
		l.queue[key] = q[1:]
		l.mu.Unlock()
		work()
		<-l.room
	}
}

// A crew is a number of goroutines that can be waited for while others still try
// to add to them.
type crew struct {
	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

// send runs f beside the caller, unless the crew is closed.
func (c *crew) send(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.all.Go(f)
	return true
}

// join makes the caller one of the crew until it calls leave.
func (c *crew) join() (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false
	}
	c.all.Add(1)
	return c.all.Done, true
}

// close lets nobody in any more and waits for those who are there.
func (c *crew) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.all.Wait()
}

// A memento remembers the newest keys that were added, about most of them.
type memento struct {
	most int

	mu       sync.Mutex
	now, old map[string]struct{}
}

func newMemento(most int) *memento {
	return &memento{most: most, now: map[string]struct{}{}, old: map[string]struct{}{}}
}

func (m *memento) has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, a := m.now[key]
	_, b := m.old[key]
	return a || b
}

func (m *memento) add(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.now) >= m.most/2 {
		m.now, m.old = map[string]struct{}{}, m.now
	}
	m.now[key] = struct{}{}
}
