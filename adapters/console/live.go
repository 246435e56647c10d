package console

import (
	"context"
	"fmt"
	"sync"

	"mimikit/adapters"
	"mimikit/core/feed"
)

// mostMissed bounds how many missed items are shown on start.
const mostMissed = 20

// A live session has a person before it: it takes what they enter at once and
// works on it behind their back.
type live struct {
	*session
	leave context.CancelFunc
	work  sync.WaitGroup

	outgoing sync.Mutex
	messages []adapters.Message // entered and not yet stored, oldest first
	more     chan struct{}      // has something when messages grew; holds one
}

// begin starts a live session that shows things on a screen. The caller must end
// it.
func (t *Terminal) begin(ctx context.Context, s screen) (context.Context, *live) {
	ctx, cancel := context.WithCancel(ctx)
	l := &live{session: t.newSession(s, true), leave: cancel, more: make(chan struct{}, 1)}
	known := make(chan struct{})
	l.work.Go(func() { l.catchUp(ctx, known) })
	l.work.Go(func() {
		// An answer to what is sent now must not be taken for one that was missed.
		select {
		case <-known:
			l.sendOn(ctx)
		case <-ctx.Done():
		}
	})
	if t.o.Tasks != nil {
		l.work.Go(func() { l.watch(ctx) })
	}
	return ctx, l
}

// end stops the session, and reports an error if something that was entered was
// not stored.
func (l *live) end() error {
	l.leave()
	l.work.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsent > 0 {
		return fmt.Errorf("%d of your messages were not stored yet: the store was away; enter them again", l.unsent)
	}
	return nil
}

// enter takes a line that was entered. It never waits. It returns what to show
// as going on at once, before anything is sent, and whether to leave.
func (l *live) enter(ctx context.Context, line string) (begin func(), busy string, leave bool) {
	switch command, text := parse(line); {
	case command == "/quit":
		return func() {}, "", true
	case command != "":
		return func() { l.work.Go(func() { l.command(ctx, command, text) }) }, "", false
	case text == "":
		return func() {}, "", false
	default:
		m := l.message(text)
		return func() { l.push(m) }, thinking, false
	}
}

func (l *live) push(m adapters.Message) {
	l.queue()
	l.outgoing.Lock()
	l.messages = append(l.messages, m)
	l.outgoing.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// sendOn sends what was entered, one after the other, so that it arrives in the
// order in which it was entered.
func (l *live) sendOn(ctx context.Context) {
	for {
		l.outgoing.Lock()
		var m adapters.Message
		some := len(l.messages) > 0
		if some {
			m, l.messages = l.messages[0], l.messages[1:]
		}
		l.outgoing.Unlock()
		switch {
		case some:
			if l.send(ctx, m) != nil {
				return // ctx ended; the message counts as unsent
			}
		default:
			select {
			case <-l.more:
			case <-ctx.Done():
				return
			}
		}
	}
}

// catchUp shows what was missed and then what is said, until ctx ends. It closes
// known when it has read what was missed.
func (l *live) catchUp(ctx context.Context, known chan<- struct{}) {
	var m feed.Missed
	err := l.insist(ctx, func(ctx context.Context) (err error) {
		m, err = l.t.o.Feed.Missed(ctx, l.t.talk.Key(), reader, mostMissed)
		return err
	})
	if err != nil {
		return // ctx ended
	}
	close(known)
	l.showBusy()
	if len(m.Entries) > 0 {
		heading := "**While you were away:**"
		if m.More {
			heading = fmt.Sprintf("**While you were away** (the newest %d):", len(m.Entries))
		}
		l.screen.Note(heading)
		for _, e := range m.Entries {
			l.take(ctx, e)
		}
	}
	l.follow(ctx, m.At)
}

// prompt talks through a terminal that has no line editor.
func (t *Terminal) prompt(ctx context.Context) error {
	screen := t.newLineScreen(true)
	ctx, l := t.begin(ctx, screen)
	lines, stop := t.input(ctx)
	screen.Note(t.welcome())
	for left := false; !left; {
		select {
		case line, more := <-lines:
			if !more {
				left = true
				break
			}
			var begin func()
			var busy string
			begin, busy, left = l.enter(ctx, line)
			screen.Busy(busy)
			begin()
		case <-ctx.Done():
			left = true
		}
	}
	stop()
	return l.end()
}

// welcome is what a person is shown first.
func (t *Terminal) welcome() string {
	if t.o.Greeting == "" {
		return greeting
	}
	return t.o.Greeting + "\n\n" + greeting
}

const greeting = "Write a message and press Enter. `/help` shows what else there is; `/quit` leaves."
