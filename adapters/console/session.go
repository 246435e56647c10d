package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"mimikit/adapters"
	"mimikit/core/chat"
	"mimikit/core/feed"
)

// A screen is where a session shows things. Its methods are safe for concurrent
// use and may wait for the terminal.
type screen interface {
	// Show shows what was said in the conversation, in Markdown.
	Show(it feed.Item)
	// Note shows the terminal's own words, in Markdown.
	Note(text string)
	// Busy shows in one line what is going on; "" takes the line away.
	Busy(what string)
	// Tasks shows what runs in the background; none takes it away.
	Tasks(running []Task)
}

// reader is the name under which terminals keep their cursor. All terminals of a
// conversation share it: what one has shown is not missed by the next.
const reader = "terminal"

// How long things take. They are bounds on waiting, not promises.
const (
	followBlock = 250 * time.Millisecond // how late a session notices that it ended
	tryFor      = 3 * time.Second        // one attempt to store a message
	longestWait = 2 * time.Second        // between two attempts
	lookBack    = 500                    // items remembered, to match an answer that was quicker than its receipt
)

// A session is the state of one talk: what was entered and not yet stored, what
// was stored and not yet answered, and what was lately said.
type session struct {
	t      *Terminal
	screen screen
	all    bool          // show all that is said, not only answers to what this session sent
	news   chan struct{} // has something whenever an answer came; holds one

	mu      sync.Mutex
	unsent  int             // entered and not yet stored
	waiting map[string]bool // :: input id → no answer yet
	said    []said          // the last items, oldest first
	status  string          // what the feed says is being done
	away    bool            // the store does not answer
	refused int
}

// said is an item and whether it was shown.
type said struct {
	feed.Entry
	shown bool
}

func (t *Terminal) newSession(s screen, all bool) *session {
	return &session{t: t, screen: s, all: all, news: make(chan struct{}, 1), waiting: map[string]bool{}}
}

// follow shows what is said after a stream id until ctx ends.
func (s *session) follow(ctx context.Context, after string) {
	// It ends only with ctx: take never fails.
	_ = s.t.o.Feed.Follow(ctx, s.t.talk.Key(), after, followBlock, func(id string, it feed.Item) error {
		s.take(ctx, feed.Entry{StreamID: id, Item: it})
		return nil
	})
}

// take shows one item of the feed, if it is for this session.
func (s *session) take(ctx context.Context, e feed.Entry) {
	s.mu.Lock()
	if e.Item.Kind == feed.KindStatus {
		s.status = e.Item.Text
		s.mu.Unlock()
		s.showBusy()
		return
	}
	s.status = ""
	show := s.all || slices.ContainsFunc(e.Item.InputIDs, func(id string) bool { return s.waiting[id] })
	if len(s.said) >= lookBack {
		s.said = slices.Delete(s.said, 0, 1)
	}
	s.said = append(s.said, said{e, show})
	s.mu.Unlock()
	if show {
		s.show(ctx, e)
	}
	s.settle(e.Item)
	s.showBusy()
}

func (s *session) show(ctx context.Context, e feed.Entry) {
	s.screen.Show(e.Item)
	if s.all {
		s.setCursor(ctx, e.StreamID)
	}
}

// setCursor records what was shown. When it fails, some of it is shown again at
// the next start, which is better than a terminal that waits.
func (s *session) setCursor(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.t.o.Feed.SetCursor(ctx, s.t.talk.Key(), reader, id); err != nil {
		s.t.o.Logger.Debug("read cursor not kept", "error", err)
	}
}

// settle takes what an item answers off the list of what is waited for.
func (s *session) settle(it feed.Item) {
	if !it.Last() {
		return
	}
	s.mu.Lock()
	for _, id := range it.InputIDs {
		delete(s.waiting, id)
	}
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// accepted waits for the answer to an input, unless it was said already: a reply
// may be quicker than the receipt.
func (s *session) accepted(ctx context.Context, inputID string) {
	s.mu.Lock()
	var late []feed.Entry
	answered := false
	for i, e := range s.said {
		if !slices.Contains(e.Item.InputIDs, inputID) {
			continue
		}
		if !e.shown {
			s.said[i].shown = true
			late = append(late, e.Entry)
		}
		answered = answered || e.Item.Last()
	}
	if !answered {
		s.waiting[inputID] = true
	}
	s.mu.Unlock()
	for _, e := range late {
		s.show(ctx, e)
	}
}

func (s *session) showBusy() { s.screen.Busy(s.busy()) }

// busy says what is going on, "" when nothing is.
func (s *session) busy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.away:
		return "the store is away, still trying…"
	case s.status != "":
		return s.status
	case s.unsent > 0 || len(s.waiting) > 0:
		return thinking
	}
	return ""
}

const thinking = "thinking…"

// message makes a message of a text. Its id is made here, once, so that however
// often it is offered it is one message.
func (s *session) message(text string) adapters.Message {
	now := s.t.o.Now()
	return adapters.Message{
		Conversation: s.t.talk, Kind: chat.KindMessage,
		Message: ulid.MustNewDefault(now).String(),
		Author:  s.t.author, Text: text, Addressed: true, At: now.UTC(),
	}
}

// queue counts a message that is about to be sent.
func (s *session) queue() {
	s.mu.Lock()
	s.unsent++
	s.mu.Unlock()
}

// send stores a message that was queued, however long the store is away, until
// ctx ends. A refusal is shown and is no error.
func (s *session) send(ctx context.Context, m adapters.Message) error {
	var got adapters.Receipt
	err := s.insist(ctx, func(ctx context.Context) (err error) {
		got, err = s.t.o.Inbox.Submit(ctx, m)
		return err
	})
	reason, refused := refusal(err)
	if refused {
		s.screen.Note(reason)
		err = nil
	} else if err == nil {
		s.accepted(ctx, got.InputID)
	}
	s.mu.Lock()
	if err == nil {
		s.unsent--
	}
	if refused {
		s.refused++
	}
	s.mu.Unlock()
	s.showBusy()
	return err
}

// refusal gives the reason when an inbox will not take a message, however often
// it is offered.
func refusal(err error) (reason string, refused bool) {
	var r interface{ Refused() string }
	if errors.As(err, &r) {
		return r.Refused(), true
	}
	return "", false
}

// insist calls try until it succeeds, refuses, or ctx ends. When it has to be
// called again the person is told, once, and once more when it is over.
func (s *session) insist(ctx context.Context, try func(ctx context.Context) error) error {
	for n := 0; ; n++ {
		attempt, cancel := context.WithTimeout(ctx, tryFor)
		err := try(attempt)
		cancel()
		_, refused := refusal(err)
		if err == nil || refused {
			if s.setAway(false) {
				s.screen.Note("The store is back.")
			}
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w; the store did not answer: %w", context.Cause(ctx), err)
		}
		if s.setAway(true) {
			s.t.o.Logger.Debug("message not stored; trying on", "error", err)
			s.screen.Note("The store is away, still trying. What you wrote is kept here until it is stored.")
			s.showBusy()
		}
		pause(ctx, min(100*time.Millisecond<<min(n, 5), longestWait))
	}
}

// setAway reports whether that is new.
func (s *session) setAway(away bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.away != away
	s.away = away
	return changed
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// open counts what is not answered yet and was accepted.
func (s *session) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}
