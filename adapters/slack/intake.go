package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// errNotStored says that an event must come again.
var errNotStored = errors.New("the event could not be stored")

// An arrival is one event on its way into the inbox. It keeps what was found out
// for it, so that a try after a failed one does not ask Slack again.
type arrival struct {
	l     *Listener
	inbox adapters.Inbox
	came  time.Time // when it was tried first
	s     *sighting
	m     *adapters.Message
}

// event handles one callback of the Events API. A nil error means that it may be
// acknowledged; kind is Slack's name for it.
func (a *arrival) event(ctx context.Context, payload json.RawMessage) (kind string, o Outcome, err error) {
	l := a.l
	var c callback
	if err := json.Unmarshal(payload, &c); err != nil {
		return "callback", Unreadable, nil
	}
	if c.Type == "app_rate_limited" {
		l.b.o.Logger.Warn("slack_events_rate_limited", "team", c.TeamID)
		l.catchUpSoon()
		return c.Type, Handled, nil
	}
	p, err := decodePost(c.Event)
	if err != nil {
		return c.Type, Unreadable, nil
	}
	switch p.Type {
	case "message", "app_mention":
		l.b.kinds.told(p.Channel, p.ChannelType)
		o, err = a.hear(ctx, p)
	case "agent_session_stopped":
		o, err = l.stopped(ctx, a.inbox, p)
	case "app_home_opened":
		o = l.homeOpened(p)
	case "app_uninstalled", "tokens_revoked":
		l.b.o.Logger.Error("slack_app_removed", "event", p.Type)
		o = Handled
	default:
		o = Unknown
	}
	return p.Type, o, err
}

// hear handles what somebody said, changed or removed.
func (a *arrival) hear(ctx context.Context, p post) (Outcome, error) {
	l := a.l
	if a.came.IsZero() {
		a.came = l.b.o.Now()
	}
	if a.m == nil {
		s, err := l.sight(ctx, p)
		if errors.Is(err, errUnreadable) {
			return Unreadable, nil
		}
		if err != nil {
			return Unstored, fmt.Errorf("%w: %w", errNotStored, err)
		}
		// What was stored a moment ago is not looked up and stored again: a mention
		// comes twice, and when storing is slow Slack delivers what still waits here
		// anew.
		if s.change == isNew && l.recent.has(s.said.Channel+"/"+s.said.TS) {
			return Known, nil
		}
		if err := s.judge(&l.b.o); err != nil {
			l.heard(s, false)
			l.b.o.Logger.Debug("slack_ignored", "place", s.said.Channel, "message", s.said.TS, "reason", err.Error())
			return Ignored, nil
		}
		a.understood(s, l.understand(ctx, s, p.Type))
	}
	if o, done, err := l.command(ctx, a.s, *a.m); done {
		return o, err
	}
	return l.store(ctx, a.inbox, a.s, *a.m)
}

func (a *arrival) understood(s *sighting, m adapters.Message) {
	m.Received = a.came
	a.s, a.m = s, &m
}

// store offers a message to the inbox. That we take part in its thread is
// remembered first, so that an answer to it which is heard at the same moment
// elsewhere counts.
func (l *Listener) store(ctx context.Context, inbox adapters.Inbox, s *sighting, m adapters.Message) (Outcome, error) {
	takesPart := m.Addressed && m.Conversation.Thread != ""
	if takesPart && !s.joined {
		if err := l.b.o.Threads.Join(ctx, m.Conversation); err != nil {
			return Unstored, fmt.Errorf("%w: join the thread: %w", errNotStored, err)
		}
	}
	submit := inbox.Submit
	if l.wantsStop(m) {
		m.Kind, submit = chat.KindStop, inbox.Stop
	}
	r, err := submit(ctx, m)
	var refusal interface{ Refused() string }
	switch {
	case errors.As(err, &refusal):
		if s.change != isDelete {
			l.whisperOnce(ctx, m, refusal.Refused())
		}
		l.heard(s, true)
		return Refused, nil
	case err != nil:
		return Unstored, fmt.Errorf("%w: %w", errNotStored, err)
	}
	// What comes before a message is read with the first one of a thread. When that
	// failed, the next one tries again.
	if takesPart && (s.read || !s.inThread()) {
		if err := l.b.o.Threads.MarkRead(ctx, m.Conversation); err != nil {
			l.b.o.Logger.Warn("slack_thread_not_marked", "conversation", m.Conversation.Key(), "error", err)
		}
	}
	l.heard(s, true)
	if s.change == isNew {
		l.recent.add(s.said.Channel + "/" + s.said.TS)
	}
	switch {
	case r.Duplicate:
		return Known, nil
	case m.Kind == chat.KindStop:
		l.b.Status.ended(m.Conversation, "", true)
	case m.Addressed && m.Kind == chat.KindMessage:
		l.b.Status.heard(m.Conversation, m.Message)
	}
	return Stored, nil
}

// stopped handles a press of Slack's own Stop button.
func (l *Listener) stopped(ctx context.Context, inbox adapters.Inbox, p post) (Outcome, error) {
	me, err := l.b.api.identity(ctx)
	if err != nil {
		return Unstored, fmt.Errorf("%w: %w", errNotStored, err)
	}
	at, ok := stampTime(p.EventTS)
	if !ok || p.Channel == "" {
		return Unreadable, nil
	}
	c := chat.Conversation{Platform: platform, Workspace: me.TeamID, Place: p.Channel, Thread: p.ThreadTS}
	reading, cancel := context.WithTimeout(ctx, l.b.o.Reading)
	author := l.b.people.author(reading, p.User)
	cancel()
	_, err = inbox.Stop(ctx, adapters.Message{
		Conversation: c, Kind: chat.KindStop, Message: "stop-" + p.EventTS, Author: author, Addressed: true, At: at,
	})
	var refusal interface{ Refused() string }
	if err != nil && !errors.As(err, &refusal) {
		return Unstored, fmt.Errorf("%w: %w", errNotStored, err)
	}
	l.b.Status.ended(c, "", true)
	return Stored, nil
}

// insist tries until an event is stored. It is not acknowledged meanwhile. Slack
// delivers it anew a minute later at best, which is long for a person to wait
// when Redis was away for a second.
func (l *Listener) insist(ctx context.Context, f func(context.Context) (string, Outcome, error)) (string, Outcome) {
	begin := l.b.o.Now()
	for n := 0; ; n++ {
		kind, o, err := f(ctx)
		if err == nil {
			return kind, o
		}
		wait := l.spread(min(100*time.Millisecond<<min(n, 5), 2*time.Second))
		if l.b.o.Now().Add(wait).Sub(begin) > l.b.o.StoreFor || pause(ctx, wait) != nil {
			l.b.o.Logger.Error("slack_event_not_stored", "event", kind, "tries", n+1, "error", err)
			return kind, Unstored
		}
	}
}

// spread makes a wait a little random, so that what failed together does not try
// again together.
func (l *Listener) spread(d time.Duration) time.Duration {
	return d/2 + time.Duration(l.b.o.Chance()*float64(d/2))
}

// told counts an event.
func (l *Listener) told(kind string, o Outcome) {
	if l.b.o.Hooks.Event != nil {
		l.b.o.Hooks.Event(kind, o)
	}
}
