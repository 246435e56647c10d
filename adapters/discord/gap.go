package discord

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/discord/gateway"
	"mimikit/core/chat"
)

// Bounds of what is fetched after a session was lost.
const (
	liveFor   = 14 * 24 * time.Hour // a place is live for as long after something was heard there
	gapMargin = time.Minute         // before the time until which all is stored
	gapPlaces = 500                 // of one shard
)

// lately are the conversations that were noted as live not long ago by this node.
type lately struct {
	mu           sync.Mutex
	young, older map[chat.Conversation]time.Time
}

const (
	latelyFor  = 10 * time.Minute
	latelyMost = 20_000 // of either half
)

func newLately() *lately { return &lately{young: map[chat.Conversation]time.Time{}} }

func (l *lately) fresh(c chat.Conversation, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.young[c]
	if !ok {
		at, ok = l.older[c]
	}
	return ok && now.Sub(at) < latelyFor
}

func (l *lately) note(c chat.Conversation, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.young) >= latelyMost {
		l.young, l.older = map[chat.Conversation]time.Time{}, l.young
	}
	l.young[c] = now
}

// gaps hold the newest time since which events may be missing.
type gaps struct {
	mu    sync.Mutex
	since time.Time
	done  func()
	wake  chan struct{}
}

func newGaps() *gaps { return &gaps{wake: make(chan struct{}, 1)} }

// tell is gateway.Options.Lost.
func (g *gaps) tell(since time.Time, filled func()) {
	g.mu.Lock()
	g.since, g.done = since, filled
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// fillGaps fetches what may be missing whenever something may be, until ctx ends.
func (d *Bot) fillGaps(ctx context.Context, s gateway.Shard, g *gaps, inbox adapters.Inbox) {
	for {
		select {
		case <-g.wake:
		case <-ctx.Done():
			return
		}
		g.mu.Lock()
		since, done := g.since, g.done
		g.mu.Unlock()
		if d.o.CatchUpAge > 0 {
			begin := d.o.Now()
			places, n, err := d.fill(ctx, s, since.Add(-gapMargin), inbox)
			if err != nil {
				return // it stays known that they are missing
			}
			if n > 0 {
				d.o.Logger.Info("discord_gap_filled", "shard", s.String(), "since", since, "messages", n)
			}
			if d.o.Hooks.CatchUp != nil {
				d.o.Hooks.CatchUp(places, n, d.o.Now().Sub(begin))
			}
		}
		done()
	}
}

// fill submits what was said in live places since a time, however long that takes.
// It gives up only with ctx. What it has done it may be asked to do again.
func (d *Bot) fill(ctx context.Context, s gateway.Shard, since time.Time, inbox adapters.Inbox) (places, n int, err error) {
	var all []Live
	err = d.insist(ctx, "list live places", func(ctx context.Context) (err error) {
		all, err = d.o.Places.Live(ctx, d.o.Now().Add(-liveFor), gapPlaces*s.Of)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	for _, p := range all {
		if ShardOf(p.Conversation.Workspace, s.Of) != s.ID {
			continue
		}
		if places++; places > gapPlaces {
			d.o.Logger.Warn("discord_gap_too_wide", "shard", s.String(), "places", gapPlaces)
			break
		}
		got, err := d.fillPlace(ctx, p.Conversation, since, inbox)
		if n += got; err != nil {
			return places, n, err
		}
	}
	return places, n, nil
}

// fillPlace submits what was said in one place.
func (d *Bot) fillPlace(ctx context.Context, c chat.Conversation, since time.Time, inbox adapters.Inbox) (n int, err error) {
	channel, _ := target(c)
	after := idAt(since) // goes on with each page, so that a failure costs one page
	for after != "" {
		if n >= d.o.CatchUpMost {
			d.o.Logger.Warn("discord_gap_too_long", "channel", channel, "messages", n)
			break
		}
		err := d.insist(ctx, "fetch missed messages", func(ctx context.Context) error {
			got, next, err := d.fillPage(ctx, channel, c.Workspace, after, since, inbox)
			n += got
			after = next
			return err
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// fillPage submits the messages after one. next is that after which to go on, as
// far as it came; "" when there are no more.
func (d *Bot) fillPage(ctx context.Context, channel, guild, after string, since time.Time, inbox adapters.Inbox) (n int, next string, err error) {
	short, cancel := context.WithTimeout(ctx, time.Minute)
	page, err := d.list(short, channel, url.Values{"after": {after}})
	cancel()
	var e *apiError
	switch {
	case errors.As(err, &e) && e.Status != 429 && e.Status < 500 && e.Status != 401:
		d.o.Logger.Info("discord_place_gone", "channel", channel, "error", err)
		return 0, "", nil
	case err != nil:
		return 0, after, err
	}
	for i := range page {
		m := &page[i]
		m.GuildID = snowflake(guild) // Discord leaves it out here
		if err := d.missed(ctx, m, since, inbox); err != nil {
			return n, after, err
		}
		after = string(m.ID)
		n++
	}
	if len(page) < pageSize {
		return n, "", nil
	}
	return n, after, nil
}

// missed takes a message that was fetched. What was edited meanwhile may have been
// heard in its old words, so its edit is taken too.
func (d *Bot) missed(ctx context.Context, m *message, since time.Time, inbox adapters.Inbox) (err error) {
	defer d.survive("missed message", &err)
	o, err := d.take(ctx, inbox, m, false)
	if err == nil && m.Edited != nil {
		if at, parseErr := time.Parse(time.RFC3339Nano, *m.Edited); parseErr == nil && !at.Before(since) {
			o, err = d.take(ctx, inbox, m, true)
		}
	}
	switch {
	case errors.Is(err, errIgnored):
		o, err = Ignored, nil
	case err != nil:
		o = Unstored
	}
	d.told("missed message", o)
	return err
}

const pageSize = 100

// list gives a page of a channel's messages, the oldest first.
func (d *Bot) list(ctx context.Context, channel string, q url.Values) ([]message, error) {
	var page []message
	q.Set("limit", strconv.Itoa(pageSize))
	err := d.api.do(ctx, request{method: "GET", path: "/channels/" + channel + "/messages", route: "GET /channels/" + channel + "/messages", query: q}, &page)
	if err != nil {
		return nil, err
	}
	page = slices.DeleteFunc(page, func(m message) bool { return m.ID == "" })
	for i := range page {
		page[i].ChannelID = snowflake(channel)
	}
	slices.SortFunc(page, func(a, b message) int { return compareIDs(string(a.ID), string(b.ID)) })
	return page, nil
}
