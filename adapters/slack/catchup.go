package slack

import (
	"context"
	"errors"
	"time"

	"mimikit/adapters"
)

const (
	overlap    = 5 * time.Minute // how far before the last mark is read again: marks lag and sockets overtake each other
	liveFor    = 30 * 24 * time.Hour
	liveMost   = 300
	claimWhile = 30 * time.Second // in which no other node reads the same conversation again
)

// catchUpSoon asks that what was missed be read.
func (l *Listener) catchUpSoon() {
	select {
	case l.fetch <- struct{}{}:
	default:
	}
}

func (l *Listener) catchingUp(ctx context.Context, inbox adapters.Inbox) {
	var last time.Time
	for {
		select {
		case <-l.fetch:
			// What this node claimed the last time must be free again, or the gap since
			// would not be read.
			if pause(ctx, claimWhile-l.b.o.Now().Sub(last)) != nil {
				return
			}
			last = l.b.o.Now()
			l.catchUp(ctx, inbox)
		case <-ctx.Done():
			return
		}
	}
}

// catchUp reads what was said in live conversations while nobody may have
// listened, and offers it to the inbox, which knows what it has.
func (l *Listener) catchUp(ctx context.Context, inbox adapters.Inbox) {
	if l.b.o.CatchUpAge < 0 {
		return
	}
	begin := l.b.o.Now()
	live, err := l.b.o.Places.Live(ctx, begin.Add(-liveFor), liveMost)
	if err != nil {
		l.b.o.Logger.Warn("slack_catch_up_failed", "error", err)
		if pause(ctx, l.spread(10*time.Second)) == nil {
			l.catchUpSoon()
		}
		return
	}
	conversations, messages := 0, 0
	for _, c := range live {
		first, err := l.b.o.Claims.Claim(ctx, "slack/catch-up/"+c.Conversation.Key(), claimWhile)
		if err != nil || !first {
			continue
		}
		n, err := l.missed(ctx, inbox, c)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.b.o.Logger.Warn("slack_catch_up_failed", "conversation", c.Conversation.Key(), "error", err)
		}
		conversations++
		messages += n
	}
	if l.b.o.Hooks.CatchUp != nil {
		l.b.o.Hooks.CatchUp(conversations, messages, l.b.o.Now().Sub(begin))
	}
}

// missed reads one conversation and offers what it finds, oldest first. It
// returns how many messages were new.
func (l *Listener) missed(ctx context.Context, inbox adapters.Inbox, c Live) (stored int, err error) {
	list, err := l.since(ctx, c)
	if err != nil {
		return 0, err
	}
	said := string(l.b.kinds.of(ctx, c.Conversation.Place, ""))
	for _, p := range list {
		if ctx.Err() != nil {
			return stored, context.Cause(ctx)
		}
		p.ChannelType = said
		done := make(chan Outcome, 1)
		// In its lane, so that it does not overtake what a socket delivers.
		lane := c.Conversation.Place + "/" + firstOf(p.ThreadTS, p.TS)
		if said == string(direct) {
			lane = c.Conversation.Place
		}
		taken := l.lanes.do(ctx, lane, func() { done <- l.again(inbox, p, c.Heard) })
		if !taken {
			return stored, context.Cause(ctx)
		}
		select {
		case o := <-done:
			if o == Stored {
				stored++
			}
		case <-ctx.Done():
			return stored, context.Cause(ctx)
		}
	}
	return stored, nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// again offers a message that was read back. One that was edited since it was
// stored is offered as the edit too; if that was heard, it is known.
func (l *Listener) again(inbox adapters.Inbox, p post, heard string) Outcome {
	said := &arrival{l: l, inbox: inbox}
	_, o := l.insist(l.work, func(ctx context.Context) (string, Outcome, error) {
		o, err := said.hear(ctx, p)
		return "message", o, err
	})
	if o != Known || p.Edited == nil || after(p.TS, heard) {
		return o
	}
	edit := &arrival{l: l, inbox: inbox}
	_, o = l.insist(l.work, func(ctx context.Context) (string, Outcome, error) {
		o, err := edit.edited(ctx, p)
		return "message", o, err
	})
	return o
}

// edited offers the newest text of a message.
func (a *arrival) edited(ctx context.Context, p post) (Outcome, error) {
	if a.m == nil {
		s, err := a.l.sight(ctx, p)
		if err != nil {
			return Unstored, err
		}
		s.change = isEdit
		if s.joined, s.read, err = a.l.b.o.Threads.Part(ctx, s.conversation()); err != nil {
			return Unstored, err
		}
		if s.judge(&a.l.b.o) != nil {
			return Ignored, nil
		}
		a.understood(s, a.l.understand(ctx, s, "message"))
	}
	return a.l.store(ctx, a.inbox, a.s, *a.m)
}

// since reads a conversation from shortly before its mark, as far back as is
// allowed, the oldest first.
func (l *Listener) since(ctx context.Context, c Live) ([]post, error) {
	from := l.b.o.Now().Add(-l.b.o.CatchUpAge)
	if at, ok := stampTime(c.Heard); ok && at.Add(-overlap).After(from) {
		from = at.Add(-overlap)
	}
	x := extract{place: c.Conversation.Place, thread: c.Conversation.Thread, oldest: stamp(from), limit: 200}
	var list []post
	cursor := ""
	for {
		found, next, err := l.page(ctx, x, cursor)
		if code(err) == "thread_not_found" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if after(x.oldest, p.TS) {
				continue // the root of a thread comes with every first page
			}
			p.Type = "message"
			list = append(list, p)
		}
		cursor = next
		if cursor == "" {
			break
		}
		// A thread is read from its beginning, and what is kept is its end.
		if enough := l.b.o.CatchUpMost; len(list) >= enough && (x.thread == "" || len(list) >= 5*enough) {
			l.b.o.Logger.Warn("slack_catch_up_cut", "conversation", c.Conversation.Key(), "messages", l.b.o.CatchUpMost)
			break
		}
	}
	if x.thread == "" { // a place is read from its end
		for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
	}
	if n := len(list) - l.b.o.CatchUpMost; n > 0 {
		list = list[n:] // the newest
	}
	return list, nil
}

const pageTries = 6

// page reads one page. It waits as long as Slack wants it to, and tries anew what
// failed, since nobody else will.
func (l *Listener) page(ctx context.Context, x extract, cursor string) ([]post, string, error) {
	for n := 1; ; n++ {
		list, next, err := l.b.api.messages(ctx, x, cursor, Question)
		var pe *adapters.PostError
		if !errors.As(err, &pe) || pe.Kind != adapters.RetryPost && pe.Kind != adapters.UnknownPost || n == pageTries {
			return list, next, err
		}
		// A read may be repeated, whatever became of it.
		if perr := pause(ctx, l.spread(max(2*pe.RetryAfter, 2*time.Second))); perr != nil {
			return nil, "", err
		}
	}
}
