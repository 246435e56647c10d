package slack

import (
	"context"
	"errors"
	"fmt"

	"mimikit/core/chat"
)

// platform is how conversations name Slack.
const platform = "slack"

// errUnreadable says that an event is not what Slack documents.
var errUnreadable = errors.New("the event cannot be read")

// sight finds out what an event is about. An error other than errUnreadable
// means that it could not be found out now.
func (l *Listener) sight(ctx context.Context, p post) (*sighting, error) {
	me, err := l.b.api.identity(ctx)
	if err != nil {
		return nil, err
	}
	s := &sighting{said: p, change: isNew, me: me}
	switch p.Subtype {
	case "message_changed":
		err = s.changed(p)
	case "message_deleted":
		err = s.deleted(p)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := stampTime(s.said.TS); !ok || s.said.Channel == "" {
		return nil, fmt.Errorf("%w: message %q in place %q", errUnreadable, s.said.TS, s.said.Channel)
	}
	if t := s.said.ThreadTS; t != "" {
		if _, ok := stampTime(t); !ok {
			return nil, fmt.Errorf("%w: thread %q", errUnreadable, t)
		}
	}
	s.mentioned = p.Type == "app_mention" || mentions(s.said.Text, me.UserID)
	s.newly = s.change == isEdit && s.mentioned && !mentions(s.before.Text, me.UserID)
	return s, l.place(ctx, s, p.ChannelType)
}

// changed looks into a message_changed. A message with replies that was removed
// is changed into a tombstone.
func (s *sighting) changed(p post) error {
	said, err := within(p.Message, p)
	if err != nil {
		return err
	}
	before, err := within(p.Previous, p)
	if err != nil {
		before = post{}
	}
	s.said, s.before, s.change = said, before, isEdit
	if said.Subtype == "tombstone" {
		s.change = isDelete
		s.said = before
		s.said.Channel, s.said.TS, s.said.EventTS = p.Channel, said.TS, p.EventTS
	}
	return nil
}

func (s *sighting) deleted(p post) error {
	before, err := within(p.Previous, p)
	if err != nil {
		return err
	}
	if before.TS == "" {
		before.TS = p.DeletedTS
	}
	before.EventTS = p.EventTS
	s.said, s.change = before, isDelete
	return nil
}

// within reads the message inside an event.
func within(raw []byte, p post) (post, error) {
	if len(raw) == 0 {
		return post{}, fmt.Errorf("%w: %s without its message", errUnreadable, p.Subtype)
	}
	m, err := decodePost(raw)
	if err != nil {
		return m, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	m.Channel, m.ChannelType = p.Channel, p.ChannelType
	return m, nil
}

// place finds out where a message is and whether we take part there. What the
// cheap guards turn away anyhow is not asked about.
func (l *Listener) place(ctx context.Context, s *sighting, said string) error {
	if s.ours(&l.b.o) || s.nobodys(&l.b.o) || s.system(&l.b.o) {
		return nil
	}
	reading, cancel := context.WithTimeout(ctx, l.b.o.Reading)
	defer cancel()
	s.kind = l.b.kinds.of(reading, s.said.Channel, said)
	if s.change == isNew && s.said.ThreadTS == "" {
		return nil // nobody takes part in what has just begun
	}
	var err error
	if s.joined, s.read, err = l.b.o.Threads.Part(ctx, s.conversation()); err != nil {
		return fmt.Errorf("look up the thread of message %s: %w", s.said.TS, err)
	}
	s.joined = s.joined || s.said.ParentUser != "" && s.said.ParentUser == s.me.UserID
	return nil
}

// conversation is where an answer goes. Outside of threads that is the place
// itself where all talk is with us, and else the thread below the message.
func (s *sighting) conversation() chat.Conversation {
	c := chat.Conversation{Platform: platform, Workspace: s.me.TeamID, Place: s.said.Channel, Thread: s.said.ThreadTS}
	if c.Thread == "" && !s.direct() {
		c.Thread = s.said.TS
	}
	return c
}

// inThread reports whether a message answers in a thread.
func (s *sighting) inThread() bool { return s.said.ThreadTS != "" && s.said.ThreadTS != s.said.TS }
