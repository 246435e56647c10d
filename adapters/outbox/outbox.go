// Package outbox posts committed replies, each part effectively once.
//
// A reply is posted part by part, in order, and a conversation's replies in the
// order in which they were committed. Before a part is posted, the outbox
// commits a marker that says so and until when that attempt may still take
// effect; the platform call is given a deadline that ends before. Whoever finds
// such a marker later, another node or this one after a lost answer, waits until
// then, looks the part up on the platform, and posts it only if it is certainly
// not there. A platform call is never repeated blindly.
//
// A part that the platform will not take, or that could not be posted for long
// enough, is given up: the reply becomes a dead letter and the conversation gets
// a notice in plain words, if it can be reached at all.
package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"mimikit/adapters"
	"mimikit/core/channel"
	"mimikit/core/chat"
)

// Options say how replies are posted. The zero value of a duration or a bound
// means its default.
type Options struct {
	Posters map[string]adapters.Poster // :: platform -> its poster on this node

	PostTimeout time.Duration // bound of one platform call (default 15 s)
	LookupAfter time.Duration // after the start of a post with an unknown outcome (default 20 s); more than PostTimeout
	MaxAttempts int           // posts of one part that certainly failed (default 100, about 45 minutes of refusals)
	GiveUpAfter time.Duration // how long a reply is tried (default 1 h)

	Logger *slog.Logger
	// Posted is told of every post and Looked of every look-up, for metrics. They may be nil.
	Posted func(platform string, outcome Outcome, took time.Duration)
	Looked func(platform string, found bool, err error)
	// Shown is told which message shows the last part of a reply, the one with its
	// buttons, once all of the reply is there to be read, and before the reply is
	// settled: whatever dies in between, it is told, perhaps more than once. A reply of
	// which it could not be told waits. It may be nil.
	Shown func(ctx context.Context, r *chat.Reply, messageID string) error
}

// An Outcome says how a post ended.
type Outcome string

// The outcomes of a post.
const (
	Posted  Outcome = "posted"
	Retry   Outcome = "retry"   // certainly not posted; tried again
	Unknown Outcome = "unknown" // looked up before it is tried again
	GivenUp Outcome = "given_up"
)

// An Outbox posts replies. It holds no state: what it must remember stands in
// the posts table.
type Outbox struct {
	opt Options
}

// New checks the options. It panics when LookupAfter does not exceed
// PostTimeout, since then nothing would be posted once.
func New(opt Options) *Outbox {
	opt.PostTimeout = cmp.Or(opt.PostTimeout, 15*time.Second)
	opt.LookupAfter = cmp.Or(opt.LookupAfter, opt.PostTimeout+5*time.Second)
	opt.MaxAttempts = cmp.Or(opt.MaxAttempts, 100)
	opt.GiveUpAfter = cmp.Or(opt.GiveUpAfter, time.Hour)
	if opt.LookupAfter <= opt.PostTimeout {
		panic(fmt.Sprintf("outbox: LookupAfter %s must be longer than PostTimeout %s", opt.LookupAfter, opt.PostTimeout))
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	return &Outbox{opt: opt}
}

// Loop is the outbox as a loop of the table.
func (o *Outbox) Loop() channel.Loop {
	return channel.Loop{
		Name: "outbox", Lane: channel.LaneDeliver, From: []channel.Name{channel.TellerReply},
		Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
			if e := b.Entries(channel.TellerReply); len(e) > 0 {
				return e[:1], 0
			}
			return nil, 0
		},
		Step:   o.step,
		Ahead:  o.ahead,
		Failed: o.failed,
		// Crashes in the middle of a post are counted here, refusals of the
		// platform in the progress.
		MaxAttempts: 10,
	}
}

func (o *Outbox) step(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	reply, ok := w.Entries[0].Value.(*chat.Reply)
	if !ok {
		return channel.Effects{}, &channel.GiveUp{Why: fmt.Sprintf("a reply was expected, got %T", w.Entries[0].Value), Quiet: true}
	}
	d := delivery{o: o, w: w, reply: reply, redis: w.Now, ours: time.Now()}
	if err := d.recall(ctx); err != nil {
		return channel.Effects{}, err
	}
	poster := o.opt.Posters[reply.Conversation.Platform]
	if poster == nil {
		return channel.Effects{}, d.noPoster(ctx)
	}
	parts := poster.Split(*reply)
	for len(d.p.Done) < len(parts) {
		if err := d.post(ctx, poster, parts[len(d.p.Done)]); err != nil {
			return channel.Effects{}, err
		}
	}
	if err := d.shown(ctx); err != nil {
		return channel.Effects{}, err
	}
	return channel.Effects{Puts: []channel.Put{{Table: channel.PostTable, Field: reply.ID}}}, nil
}

// failed tells the conversation that a reply could not be posted. A notice that
// could not be posted is not answered with another one.
func (o *Outbox) failed(w *channel.Work, reason string) channel.Effects {
	c, err := chat.ParseConversation(w.Conversation)
	reply, _ := w.Entries[0].Value.(*chat.Reply)
	if err != nil || (reply != nil && reply.Kind == chat.ReplyNotice) {
		return channel.Effects{}
	}
	notice := &chat.Reply{
		ID: "n-" + w.Entries[0].ID, Conversation: c, Kind: chat.ReplyNotice, CreatedAt: w.Now,
		InputIDs: w.Entries[0].InputIDs,
		Text: "I had an answer for you but could not post it: " + reason +
			".\nThe text is kept. An admin can see it with `mimikit dead list` and send it again.",
	}
	if reply != nil {
		notice.ID, notice.ReplyTo = "n-"+reply.ID, reply.ReplyTo
	}
	return channel.Effects{Publish: []channel.Publish{{
		To: channel.TellerReply, Value: notice, Kind: string(chat.ReplyNotice), Stage: "notice", InputIDs: notice.InputIDs,
	}}}
}
