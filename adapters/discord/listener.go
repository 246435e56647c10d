package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/adapters"
	"mimikit/adapters/discord/gateway"
	"mimikit/core/chat"
)

// errUndecodable is matched when Discord, or whoever pretends to be it, sent what
// cannot be read. It would be no better the next time.
var errUndecodable = errors.New("cannot be read")

// A Listener hears what happens on Discord. It is run once.
type Listener struct{ d *Bot }

var _ adapters.Listener = (*Listener)(nil)

// Run listens on all shards that this node holds, and waits for the others, until
// ctx ends. An error is a [gateway.Fatal]: an operator must do something first.
// While it runs, feedback is shown too, also for what other nodes heard. When ctx
// ends it takes no more events, finishes the interactions under way within the
// grace, and leaves its sessions so that they can be resumed.
func (l *Listener) Run(ctx context.Context, inbox adapters.Inbox) error {
	err := l.d.listen(ctx, inbox)
	if ctx.Err() != nil && !errors.As(err, new(*gateway.Fatal)) {
		return nil
	}
	return err
}

func (d *Bot) listen(ctx context.Context, inbox adapters.Inbox) error {
	closeJobs := d.jobs.open(ctx, d.o.StopGrace)
	defer closeJobs()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		d.keepSynced(ctx)
		return nil
	})
	g.Go(func() error {
		d.keepTyping(ctx)
		return nil
	})
	g.Go(func() error {
		shards, err := d.shardCount(ctx)
		if err != nil {
			return err
		}
		d.shards.begin(shards)
		defer d.shards.begin(0)
		for id := range shards {
			s := gateway.Shard{ID: id, Of: shards}
			g.Go(func() error { return d.hold(ctx, s, inbox) })
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	return g.Wait()
}

// shardCount is how many there are. Until Discord answers it asks again.
func (d *Bot) shardCount(ctx context.Context) (int, error) {
	if d.o.Shards > 0 {
		return d.o.Shards, nil
	}
	n := 1
	err := d.insist(ctx, "ask how many shards there are", func(ctx context.Context) error {
		_, recommended, err := d.start(ctx)
		n = max(recommended, 1)
		return err
	})
	return n, err
}

// insist does something until it succeeds, is fatal, or ctx ends.
func (d *Bot) insist(ctx context.Context, what string, do func(ctx context.Context) error) error {
	for n := 0; ; n++ {
		err := do(ctx)
		var fatal *gateway.Fatal
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &fatal):
			return err
		}
		wait := time.Duration((0.5 + d.o.Chance()/2) * float64(time.Second<<min(n, 5)))
		d.o.Logger.Warn("discord_retry", "what", what, "error", err, "retry_in", wait)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// start asks Discord how a session may begin.
func (d *Bot) start(ctx context.Context) (gateway.Start, int, error) {
	var b struct {
		URL    string `json:"url"`
		Shards int    `json:"shards"`
		Limit  *struct {
			Remaining      int   `json:"remaining"`
			ResetAfter     int64 `json:"reset_after"` // ms
			MaxConcurrency int   `json:"max_concurrency"`
		} `json:"session_start_limit"`
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	err := d.api.do(ctx, request{method: "GET", path: "/gateway/bot", route: "GET /gateway/bot"}, &b)
	var e *apiError
	switch {
	case errors.As(err, &e) && e.Status == http.StatusUnauthorized:
		return gateway.Start{}, 0, &gateway.Fatal{Reason: "Discord does not accept the bot token", Mend: "copy the token from the Bot page of the application at https://discord.com/developers/applications and set it anew"}
	case err != nil:
		return gateway.Start{}, 0, err
	case b.URL == "":
		return gateway.Start{}, 0, errors.New("GET /gateway/bot: the answer names no gateway")
	}
	s := gateway.Start{URL: b.URL, Remaining: 1, MaxConcurrency: 1}
	if b.Limit != nil {
		s.Remaining, s.ResetAfter, s.MaxConcurrency = b.Limit.Remaining, time.Duration(b.Limit.ResetAfter)*time.Millisecond, b.Limit.MaxConcurrency
	}
	return s, b.Shards, nil
}

// hold keeps one shard connected whenever this node has its lease.
func (d *Bot) hold(ctx context.Context, s gateway.Shard, inbox adapters.Inbox) error {
	for {
		var lease Lease
		err := d.insist(ctx, "lease shard "+s.String(), func(ctx context.Context) (err error) {
			lease, err = d.o.Leases.Acquire(ctx, s)
			return err
		})
		if err != nil {
			return err
		}
		d.o.Logger.Info("discord_shard_held", "shard", s.String())
		held, cancel := context.WithCancelCause(ctx)
		watch := make(chan struct{})
		go func() {
			defer close(watch)
			select {
			case <-lease.Lost():
				cancel(errLost)
			case <-held.Done():
			}
		}()
		d.shards.hold(s.ID)
		err = d.connect(held, s, lease.Fence(), inbox)
		d.shards.leave(s.ID)
		cancel(nil)
		<-watch
		lease.Release()
		d.o.Logger.Info("discord_shard_left", "shard", s.String(), "error", err)
		var fatal *gateway.Fatal
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &fatal):
			return err
		}
		// Whoever lost a lease lets the others go first.
		if err := pause(ctx, time.Duration((0.5+d.o.Chance())*float64(time.Second))); err != nil {
			return err
		}
	}
}

var errLost = errors.New("the shard may have passed to another node")

// connect listens on a shard until ctx ends or the connection is over for good.
func (d *Bot) connect(ctx context.Context, s gateway.Shard, fence string, inbox adapters.Inbox) error {
	ctx, cancel := context.WithCancel(ctx)
	gaps := newGaps()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		d.fillGaps(ctx, s, gaps, inbox)
		return nil
	})
	g.Go(func() error {
		defer cancel()
		return gateway.New(gateway.Options{
			Token: d.o.BotToken, Intents: d.o.intents(), Shard: s, Fence: fence, Sessions: d.o.Sessions, Gate: turn{d.o.Budget},
			Start: func(ctx context.Context) (gateway.Start, error) {
				start, _, err := d.start(ctx)
				return start, err
			},
			Lost: gaps.tell, Compress: d.o.Compress, NetDial: d.o.Dial, Rand: d.o.Chance, Logger: d.o.Logger,
			Observe: func(what string) { d.observe(s.ID, what) }, Lookback: max(d.o.CatchUpAge, time.Second),
		}).Run(ctx, func(ctx context.Context, e gateway.Event) error { return d.handle(ctx, inbox, e) })
	})
	return g.Wait()
}

// handle takes one event. Its error says that the event must come again.
func (d *Bot) handle(ctx context.Context, inbox adapters.Inbox, e gateway.Event) (err error) {
	defer d.survive(e.Type, &err)
	o := Unknown
	switch e.Type {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		o, err = d.onMessage(ctx, inbox, e)
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		o, err = d.onRemoval(ctx, inbox, e)
	case "INTERACTION_CREATE":
		o, err = d.interact(ctx, inbox, e.Data)
	default:
		d.learn(e)
	}
	switch {
	case err == nil:
	case errors.Is(err, errIgnored):
		o = Ignored
		d.o.Logger.Debug("discord_event_ignored", "type", e.Type, "reason", err.Error())
		err = nil
	case errors.Is(err, errUndecodable):
		o = Unreadable
		d.o.Logger.Warn("discord_event_undecodable", "type", e.Type, "seq", e.Seq, "error", err)
		err = nil
	default:
		o = Unstored
	}
	d.told(e.Type, o)
	return err
}

// survive is deferred where what strangers write is taken apart. That must not
// panic; should it, one event is not worth all the others.
func (d *Bot) survive(what string, err *error) {
	if p := recover(); p != nil {
		d.told(what, Panicked)
		d.o.Logger.Error("discord_event_panicked", "type", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = nil
	}
}

func (d *Bot) onMessage(ctx context.Context, inbox adapters.Inbox, e gateway.Event) (Outcome, error) {
	m, err := decodeMessage(e.Data)
	if err != nil {
		return Unreadable, fmt.Errorf("%w: %w", errUndecodable, err)
	}
	return d.take(ctx, inbox, m, e.Type == "MESSAGE_UPDATE")
}

// take submits a message that is for the bot.
func (d *Bot) take(ctx context.Context, inbox adapters.Inbox, m *message, edit bool) (Outcome, error) {
	came := d.o.Now()
	s, out, err := d.hear(ctx, m, edit)
	out.Received = came
	if err != nil {
		return Unstored, err
	}
	if d.o.Commands != nil && out.Kind == chat.KindMessage && !out.Author.Bot {
		if words, ok := d.o.Commands.Parse(out.Text, s.mention || m.GuildID == ""); ok {
			return d.command(ctx, s, out, words)
		}
	}
	o, err := d.submit(ctx, inbox, out, m)
	switch reason, refused := refusal(err); {
	case refused:
		d.refused(s, reason)
		return Refused, nil
	case err != nil:
		return o, err
	}
	return o, d.haveRead(ctx, s)
}

// submit stores what was heard. m is the message that it stands in, which is shown
// to be heard; nil when there is none.
func (d *Bot) submit(ctx context.Context, inbox adapters.Inbox, out adapters.Message, m *message) (Outcome, error) {
	store := inbox.Submit
	if out.Kind == chat.KindStop {
		store = inbox.Stop
	}
	if err := d.lives(ctx, out, m); err != nil {
		return Unstored, err
	}
	r, err := store(ctx, out)
	switch {
	case err != nil:
		return Unstored, err
	case r.Duplicate:
		return Known, nil
	}
	if m != nil {
		d.showHeard(out, m)
	}
	return Stored, nil
}

// lives notes where something is heard. It comes before that is stored, since a
// place that is not known to be live would not be looked at after a lost session.
// Where it will be answered is live too: that is where people go on.
func (d *Bot) lives(ctx context.Context, out adapters.Message, m *message) error {
	c := out.Conversation
	place := chat.Conversation{Platform: Platform, Workspace: c.Workspace, Place: c.Place}
	channel, _ := target(c)
	list := []chat.Conversation{place}
	if channel != c.Place {
		list[0] = c
		if m != nil && string(m.ChannelID) != channel {
			list = append(list, place)
		}
	}
	for _, c := range list {
		if d.lately.fresh(c, d.o.Now()) {
			continue // what is fetched begins when the session was lost, wherever
		}
		if err := d.o.Places.Heard(ctx, c, out.Message); err != nil {
			return fmt.Errorf("note that %s is live: %w", c.Key(), err)
		}
		d.lately.note(c, d.o.Now())
	}
	return nil
}

func (d *Bot) onRemoval(ctx context.Context, inbox adapters.Inbox, e gateway.Event) (Outcome, error) {
	var r removal
	if err := json.Unmarshal(e.Data, &r); err != nil {
		return Unreadable, fmt.Errorf("%w: a removal: %w", errUndecodable, err)
	}
	if r.ID != "" {
		r.IDs = append(r.IDs, r.ID)
	}
	if r.ChannelID == "" || len(r.IDs) == 0 {
		return Unreadable, fmt.Errorf("%w: a removal of nothing", errUndecodable)
	}
	o := Ignored
	for _, id := range r.IDs {
		if id == "" {
			continue
		}
		out, err := d.gone(ctx, r, string(id))
		if errors.Is(err, errIgnored) {
			continue
		}
		if err == nil {
			_, err = inbox.Submit(ctx, out)
		}
		if _, refused := refusal(err); err != nil && !refused {
			return Unstored, err
		}
		o = Stored
	}
	return o, nil
}

// refusal gives the reason with which an inbox refused a message for good.
func refusal(err error) (reason string, refused bool) {
	var r interface{ Refused() string }
	if errors.As(err, &r) {
		return r.Refused(), true
	}
	return "", false
}
