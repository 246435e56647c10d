package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"mimikit/core/chat"
)

const (
	talkKept   = 60 * 24 * time.Hour // after anybody last spoke there
	talkRenew  = 24 * time.Hour
	talksKnown = 20_000 // of either half
)

// talks know which conversation a thread, or a message in a place, belongs to. A
// thread among them is one that the bot takes part in. They stand in Notes; what
// was found once is remembered here, since it never changes.
type talks struct {
	notes Notes
	now   func() time.Time

	mu           sync.Mutex
	young, older map[string]talk // :: id of a thread or a message
}

// A talk is a conversation that is known by an id. It is stored; fields are only
// ever added.
type talk struct {
	Conversation string `json:"conversation"` // its key
	// Read says that what was said before the bot came was given with an input.
	Read bool `json:"read,omitempty"`

	c       chat.Conversation
	renewed time.Time
}

func newTalks(n Notes, now func() time.Time) *talks {
	return &talks{notes: n, now: now, young: map[string]talk{}}
}

// find gives the conversation of an id; ok is false when it has none.
func (t *talks) find(ctx context.Context, id string) (c chat.Conversation, read, ok bool, err error) {
	t.mu.Lock()
	x, ok := t.young[id]
	if !ok {
		x, ok = t.older[id]
	}
	t.mu.Unlock()
	if !ok {
		text, err := t.notes.Note(ctx, "discord/talk/"+id)
		if err != nil || text == "" {
			return c, false, false, wrap(err, "find the conversation of "+id)
		}
		if json.Unmarshal([]byte(text), &x) != nil {
			return c, false, false, nil
		}
		if x.c, err = chat.ParseConversation(x.Conversation); err != nil {
			return c, false, false, nil //nolint:nilerr // what somebody else wrote there says nothing to us
		}
	}
	if t.now().Sub(x.renewed) >= talkRenew {
		if err := t.keep(ctx, id, x.c, x.Read); err != nil {
			return c, false, false, err
		}
	}
	return x.c, x.Read, true, nil
}

// TalkOf gives the conversation that a thread, or a message, belongs to by its id; ok
// is false where none is noted.
func TalkOf(ctx context.Context, n Notes, id string) (c chat.Conversation, ok bool, err error) {
	text, err := n.Note(ctx, "discord/talk/"+id)
	if err != nil || text == "" {
		return c, false, wrap(err, "find the conversation of "+id)
	}
	var x talk
	if json.Unmarshal([]byte(text), &x) != nil {
		return c, false, nil
	}
	if c, err = chat.ParseConversation(x.Conversation); err != nil {
		return c, false, nil //nolint:nilerr // what somebody else wrote there says nothing to us
	}
	return c, true, nil
}

// keep remembers an id's conversation, as long as it is looked for.
func (t *talks) keep(ctx context.Context, id string, c chat.Conversation, read bool) error {
	x := talk{Conversation: c.Key(), Read: read, c: c, renewed: t.now()}
	text, err := json.Marshal(x)
	if err == nil {
		err = t.notes.SetNote(ctx, "discord/talk/"+id, string(text), talkKept)
	}
	if err != nil {
		return fmt.Errorf("remember the conversation of %s: %w", id, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.young) >= talksKnown {
		t.young, t.older = map[string]talk{}, t.young
	}
	t.young[id] = x
	return nil
}

// haveRead notes that an input went out with what was said in its thread before.
func (d *Bot) haveRead(ctx context.Context, s *scene) error {
	if !s.unread || s.edit {
		return nil
	}
	return d.talks.keep(ctx, string(s.m.ChannelID), s.talk, true)
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
