package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// A Listener hears what happens in the workspace. In Socket Mode Run opens the
// sockets; over HTTP it makes [Listener.ServeHTTP] ready. It is run once.
type Listener struct {
	b      *Bot
	lanes  *lanes
	recent *memento // messages that this process has stored

	front  crew          // whatever handles events, interactions and requests
	behind crew          // what is done after an event was acknowledged
	spare  chan struct{} // bounds that

	work  context.Context // of whatever runs; outlives Run's by the grace
	inbox atomic.Pointer[adapters.Inbox]

	open        atomic.Int64 // sockets that said hello
	connections atomic.Int64 // of the app, as Slack says
	fetch       chan struct{}

	mu    sync.Mutex
	marks map[chat.Conversation]string // :: conversation → newest message heard and not yet noted
}

var _ adapters.Listener = (*Listener)(nil)

const (
	maxBehind  = 64
	flushEvery = 5 * time.Second
)

func newListener(b *Bot) *Listener {
	l := &Listener{
		b: b, recent: newMemento(20_000), spare: make(chan struct{}, maxBehind),
		fetch: make(chan struct{}, 1), marks: map[chat.Conversation]string{},
	}
	l.lanes = newLanes(&l.front, pending)
	return l
}

// Run listens until ctx ends. It returns an error when the tokens are wrong from
// the beginning; whatever goes wrong later is logged and tried again. When ctx
// ends it takes no more events, finishes those under way within the grace, and
// closes every socket.
func (l *Listener) Run(ctx context.Context, inbox adapters.Inbox) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	l.work = work
	defer stop(nil)
	if err := l.introduce(ctx); err != nil {
		return err
	}
	l.inbox.Store(&inbox)

	var loops sync.WaitGroup
	loops.Go(func() { l.flushing(ctx) })
	loops.Go(func() { l.catchingUp(ctx, inbox) })
	loops.Go(func() { l.b.Status.run(ctx) })
	var sockets sockets
	if l.b.o.Mode == SocketMode {
		for range l.b.o.Sockets {
			loops.Go(func() { l.hold(ctx, inbox, &sockets) })
		}
	} else {
		l.catchUpSoon()
	}
	<-ctx.Done()
	l.inbox.Store(nil)
	loops.Wait()
	sockets.stopReading()
	l.finish(stop)
	sockets.close()
	l.flush(context.WithoutCancel(ctx))
	return nil
}

// introduce finds out who we are, for as long as Slack cannot be reached.
func (l *Listener) introduce(ctx context.Context) error {
	for n := 0; ; n++ {
		_, err := l.b.api.identity(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		var pe *adapters.PostError
		if errors.As(err, &pe) && pe.Kind == adapters.Misconfig {
			return fmt.Errorf("slack: %w", err)
		}
		l.b.o.Logger.Warn("slack_unreachable", "error", err)
		if pause(ctx, l.spread(min(time.Second<<min(n, 5), 30*time.Second))) != nil {
			return nil
		}
	}
}

// finish waits for what is under way, no longer than the grace.
func (l *Listener) finish(stop context.CancelCauseFunc) {
	t := time.AfterFunc(l.b.o.StopGrace, func() { stop(errors.New("the listener is stopping")) })
	defer t.Stop()
	l.front.close()
	l.behind.close()
}

// later runs what may as well be left out: when too much of it is under way, it
// is.
func (l *Listener) later(f func(context.Context)) {
	select {
	case l.spare <- struct{}{}:
	default:
		return
	}
	sent := l.behind.send(func() {
		defer func() { <-l.spare }()
		ctx, cancel := context.WithTimeout(l.work, 10*time.Second)
		defer cancel()
		f(ctx)
	})
	if !sent {
		<-l.spare
	}
}

// A State is how the listener is doing.
type State struct {
	Sockets     int // open ones of this node
	Connections int // of the app, over all nodes, as Slack said last
}

// State tells how the listener is doing.
func (l *Listener) State() State {
	return State{Sockets: int(l.open.Load()), Connections: int(l.connections.Load())}
}

// Ready reports whether events can reach us: at least one socket is proven to
// live, or the HTTP side is being served.
func (l *Listener) Ready() bool {
	if l.b.o.Mode == HTTPMode {
		return l.inbox.Load() != nil
	}
	return l.open.Load() > 0
}

// heard notes how far a conversation was heard. It is written down every few
// seconds: a mark that lags only makes a later look back longer.
func (l *Listener) heard(s *sighting, stored bool) {
	if s.change != isNew {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	note := func(c chat.Conversation) {
		if after(s.said.TS, l.marks[c]) {
			l.marks[c] = s.said.TS
		}
	}
	place := chat.Conversation{Platform: platform, Workspace: s.me.TeamID, Place: s.said.Channel}
	if !s.inThread() {
		note(place)
	}
	if stored {
		note(s.conversation())
	}
}

func (l *Listener) flushing(ctx context.Context) {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			l.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// flush writes the marks down. What cannot be written is kept for the next time.
func (l *Listener) flush(ctx context.Context) {
	l.mu.Lock()
	marks := l.marks
	l.marks = map[chat.Conversation]string{}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, flushEvery)
	defer cancel()
	for c, ts := range marks {
		if err := l.b.o.Places.Heard(ctx, c, ts); err != nil {
			l.b.o.Logger.Warn("slack_mark_not_written", "conversation", c.Key(), "error", err)
			l.mu.Lock()
			if after(ts, l.marks[c]) {
				l.marks[c] = ts
			}
			l.mu.Unlock()
		}
	}
}
