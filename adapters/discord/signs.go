package discord

import (
	"context"
	"net/url"
	"sync"
	"time"

	"mimikit/core/chat"
)

// Signs on a message.
const (
	signHeard  = "👀"
	signDone   = "✅"
	signFailed = "⚠️"
)

const (
	signTime    = 10 * time.Second
	signsKnown  = 5_000 // of either half
	typingEvery = 8 * time.Second
	typingSeen  = time.Minute // without a word of the node that works
)

// react sets or removes a sign of a conversation's message. It waits for room,
// since signs have a limit of their own, and one that stays would be wrong for ever.
func (d *Bot) react(ctx context.Context, method string, c chat.Conversation, id, sign string) error {
	if id == c.Thread {
		c.Thread = "" // the message that a thread began with stands outside of it
	}
	return d.inChannel(c, func(channel string) error {
		return d.api.do(ctx, request{
			method: method, path: "/channels/" + channel + "/messages/" + id + "/reactions/" + url.PathEscape(sign) + "/@me",
			route: method + " /channels/" + channel + "/messages/reactions",
		}, nil)
	})
}

// signs know which messages have been answered by this node, for a sign that comes
// after the answer.
type signs struct {
	mu           sync.Mutex
	young, older map[chat.Conversation]string // :: conversation → the newest that was answered
}

func newSigns() *signs { return &signs{young: map[chat.Conversation]string{}} }

func (s *signs) answer(c chat.Conversation, upTo string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= signsKnown {
		s.young, s.older = map[chat.Conversation]string{}, s.young
	}
	if compareIDs(upTo, s.young[c]) > 0 {
		s.young[c] = upTo
	}
}

func (s *signs) answered(c chat.Conversation, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	upTo, ok := s.young[c]
	if !ok {
		upTo = s.older[c]
	}
	return compareIDs(id, upTo) <= 0
}

// typists are the channels in which the bot is seen to type.
type typists struct {
	mu  sync.Mutex
	all map[string]typist
}

type typist struct {
	ours  bool // this node works there; else it has only heard something
	until time.Time
	next  time.Time
}

func newTypists() *typists { return &typists{all: map[string]typist{}} }

// showTypes has the bot seen to type in a channel, beside and as long as it is so.
func (d *Bot) showTypes(channel string, ours bool) {
	lasts := typingSeen
	if ours {
		lasts = d.o.StatusLasts
	}
	if now := d.o.Now(); d.typing.begin(channel, ours, now, now.Add(lasts)) {
		d.jobs.do(laneFeedback, signTime, func(ctx context.Context) { d.showTyping(ctx, channel) })
	}
}

func (d *Bot) showTyping(ctx context.Context, channel string) {
	if !d.typing.wanted(channel) {
		return
	}
	err := d.api.do(ctx, request{
		method: "POST", path: "/channels/" + channel + "/typing", route: "POST /channels/" + channel + "/typing", priority: Status,
	}, nil)
	if err != nil {
		d.o.Logger.Debug("discord_typing_not_shown", "channel", channel, "error", err)
		if codeOf(err) != 0 {
			d.typing.stop(channel, true)
		}
	}
}

// begin notes that the bot types, and reports whether Discord must be told now.
func (t *typists) begin(channel string, ours bool, now, until time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.all[channel]
	next := was.next
	tell := !now.Before(next)
	if tell {
		next = now.Add(typingEvery)
	}
	t.all[channel] = typist{ours: ours || was.ours, until: later(was.until, until), next: next}
	return tell
}

// stop ends typing in a channel; without all only where nothing but hearing
// something began it.
func (t *typists) stop(channel string, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if all || !t.all[channel].ours {
		delete(t.all, channel)
	}
}

func (t *typists) wanted(channel string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.all[channel]
	return ok
}

// due are the channels in which typing must be shown again.
func (t *typists) due(now time.Time) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for channel, x := range t.all {
		switch {
		case !now.Before(x.until):
			delete(t.all, channel)
		case !now.Before(x.next):
			x.next = now.Add(typingEvery)
			t.all[channel] = x
			out = append(out, channel)
		}
	}
	return out
}

// keepTyping renews what shows that the bot types, until ctx ends.
func (d *Bot) keepTyping(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, channel := range d.typing.due(d.o.Now()) {
			d.jobs.do(laneFeedback, signTime, func(ctx context.Context) { d.showTyping(ctx, channel) })
		}
	}
}
