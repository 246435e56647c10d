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
	"encoding/json"
	"errors"
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
	MaxAttempts int           // posts of one part that certainly failed (default 10)
	GiveUpAfter time.Duration // how long a reply is tried (default 1 h)

	Logger *slog.Logger
	// Posted is told of every post and Looked of every look-up, for metrics. They may be nil.
	Posted func(platform string, outcome Outcome, took time.Duration)
	Looked func(platform string, found bool, err error)
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
	opt.MaxAttempts = cmp.Or(opt.MaxAttempts, 10)
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
		Failed: o.failed,
		// Crashes in the middle of a post are counted here, refusals of the
		// platform in the progress.
		MaxAttempts: 10,
	}
}

// progress is how far the posting of one reply has come. It is stored; fields
// are only ever added.
type progress struct {
	Done     []string `json:"done,omitempty"` // message ids of the parts posted
	Posting  bool     `json:"posting,omitempty"`
	Until    int64    `json:"until,omitempty"`    // unix ms (Redis time) until which the attempt may take effect
	Failures int      `json:"failures,omitempty"` // of the next part, certainly not posted
	Since    int64    `json:"since,omitempty"`    // unix ms of the first attempt
}

func (o *Outbox) step(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	reply, ok := w.Entries[0].Value.(*chat.Reply)
	if !ok {
		return channel.Effects{}, &channel.GiveUp{Why: fmt.Sprintf("a reply was expected, got %T", w.Entries[0].Value), Quiet: true}
	}
	d := delivery{o: o, w: w, reply: reply, start: time.Now()}
	if err := d.recall(ctx); err != nil {
		return channel.Effects{}, err
	}
	poster := o.opt.Posters[reply.Conversation.Platform]
	if poster == nil {
		err := fmt.Errorf("this node has no connection to %q", reply.Conversation.Platform)
		return channel.Effects{}, d.failed(ctx, &adapters.PostError{Kind: adapters.Misconfig, RetryAfter: 30 * time.Second, Err: err})
	}
	parts := poster.Split(*reply)
	for len(d.p.Done) < len(parts) {
		if err := d.post(ctx, poster, parts[len(d.p.Done)]); err != nil {
			return channel.Effects{}, err
		}
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
		Text: "I had an answer for you but could not post it: " + reason +
			".\nThe text is kept. An admin can see it with `mimikit dead list` and send it again.",
	}
	if reply != nil {
		notice.ID, notice.ReplyTo = "n-"+reply.ID, reply.ReplyTo
	}
	return channel.Effects{Publish: []channel.Publish{{
		To: channel.TellerReply, Value: notice, Kind: string(chat.ReplyNotice), Stage: "notice",
	}}}
}

// A delivery is one run of the step for one reply.
type delivery struct {
	o     *Outbox
	w     *channel.Work
	reply *chat.Reply
	start time.Time // our clock, when w.Now was Redis'
	p     progress
}

// now is Redis' time.
func (d *delivery) now() time.Time { return d.w.Now.Add(time.Since(d.start)) }

// recall reads how far an earlier run has come.
func (d *delivery) recall(ctx context.Context) error {
	if !d.w.Fresh {
		v, err := d.w.Field(ctx, channel.PostTable, d.reply.ID)
		if err != nil {
			return err
		}
		if v != "" {
			if err := json.Unmarshal([]byte(v), &d.p); err != nil {
				// Without its record any part may have been posted: look each up.
				d.o.opt.Logger.Error("post_record_damaged", "reply", d.reply.ID, "record", v, "error", err)
				d.p = progress{Posting: true}
			}
		}
	}
	if d.p.Since == 0 {
		d.p.Since = d.now().UnixMilli()
	}
	return nil
}

// remember commits how far this run has come.
func (d *delivery) remember(ctx context.Context) error {
	data, err := json.Marshal(d.p)
	if err != nil {
		return fmt.Errorf("encode the post record of %s: %w", d.reply.ID, err)
	}
	return d.w.Mark(ctx, channel.Put{Table: channel.PostTable, Field: d.reply.ID, Value: string(data)})
}

// post brings one part onto the platform, or says why not and when again.
func (d *delivery) post(ctx context.Context, poster adapters.Poster, part adapters.Part) error {
	if wait := time.UnixMilli(d.p.Until).Sub(d.now()); d.p.Posting && wait > 0 {
		return &channel.Later{After: wait, Why: "an earlier attempt to post may still take effect"}
	}
	if d.p.Posting || d.w.Suspect {
		id, err := d.lookup(ctx, poster, part)
		if err != nil {
			return d.failed(ctx, &adapters.PostError{Kind: adapters.UnknownPost, Err: err})
		}
		if id != "" {
			d.done(id)
			return nil
		}
	}
	d.p.Posting, d.p.Until = true, d.now().Add(d.o.opt.LookupAfter).UnixMilli()
	if err := d.remember(ctx); err != nil {
		return err
	}
	id, err := d.call(ctx, poster, part)
	if err != nil {
		return d.failed(ctx, err)
	}
	d.done(id)
	return nil
}

func (d *delivery) done(messageID string) {
	d.p.Done = append(d.p.Done, messageID)
	d.p.Posting, d.p.Until, d.p.Failures = false, 0, 0
}

func (d *delivery) call(ctx context.Context, poster adapters.Poster, part adapters.Part) (string, error) {
	// The marker's time counts from before the mark was committed, so a slow
	// commit leaves less for the post, or none.
	left := time.UnixMilli(d.p.Until).Sub(d.now()) - (d.o.opt.LookupAfter - d.o.opt.PostTimeout)
	if left <= 0 {
		return "", &adapters.PostError{Kind: adapters.RetryPost, Err: errors.New("its marker took too long to be committed")}
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	start := time.Now()
	id, err := poster.Post(ctx, d.reply.Conversation, part)
	d.tell(err, time.Since(start))
	return id, err
}

func (d *delivery) tell(err error, took time.Duration) {
	if d.o.opt.Posted == nil {
		return
	}
	outcome := Posted
	if err != nil {
		switch kindOf(err) {
		case adapters.RetryPost, adapters.Misconfig:
			outcome = Retry
		case adapters.BadContent, adapters.PlaceGone:
			outcome = GivenUp
		default:
			outcome = Unknown
		}
	}
	d.o.opt.Posted(d.reply.Conversation.Platform, outcome, took)
}

func (d *delivery) lookup(ctx context.Context, poster adapters.Poster, part adapters.Part) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.opt.PostTimeout)
	defer cancel()
	id, err := poster.Lookup(ctx, d.reply.Conversation, part)
	if d.o.opt.Looked != nil {
		d.o.opt.Looked(d.reply.Conversation.Platform, id != "", err)
	}
	if err != nil {
		return "", fmt.Errorf("look up part %d of %s: %w", part.Index+1, d.reply.ID, err)
	}
	return id, nil
}

func kindOf(err error) adapters.PostErrorKind {
	var pe *adapters.PostError
	if errors.As(err, &pe) {
		return pe.Kind
	}
	return adapters.UnknownPost
}

// failed decides what a failed call means: again later, or not at all.
func (d *delivery) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // cut off; the marker tells the next run to look
	}
	var retryAfter time.Duration
	var pe *adapters.PostError
	if errors.As(err, &pe) {
		retryAfter = pe.RetryAfter
	}
	old := d.now().Sub(time.UnixMilli(d.p.Since)) >= d.o.opt.GiveUpAfter
	kind := kindOf(err)
	switch kind {
	case adapters.BadContent, adapters.PlaceGone:
		d.p.Posting, d.p.Until = false, 0
		return d.giveUp(ctx, err, kind == adapters.PlaceGone)
	case adapters.RetryPost, adapters.Misconfig:
		d.p.Posting, d.p.Until = false, 0
		d.p.Failures++
		// A wrong token is an operator's to mend, so only its age counts.
		if old || (kind == adapters.RetryPost && d.p.Failures >= d.o.opt.MaxAttempts) {
			return d.giveUp(ctx, err, kind == adapters.Misconfig)
		}
		if err := d.remember(ctx); err != nil {
			return err
		}
		wait := max(retryAfter, min(500*time.Millisecond<<min(d.p.Failures-1, 7), 30*time.Second))
		return &channel.Later{After: wait, Why: err.Error()}
	default:
		if old {
			return d.giveUp(ctx, err, false)
		}
		// The marker stands; the next run waits for its time and looks.
		wait := max(time.UnixMilli(d.p.Until).Sub(d.now()), time.Second)
		return &channel.Later{After: wait, Why: err.Error()}
	}
}

// giveUp leaves the record in place, so that a replay of the dead letter goes on
// where this ended, but forgets what was counted.
func (d *delivery) giveUp(ctx context.Context, err error, quiet bool) error {
	d.p.Failures, d.p.Since = 0, 0
	if err := d.remember(ctx); err != nil {
		return err
	}
	return &channel.GiveUp{Why: plain(err), Quiet: quiet}
}

// plain is the part of an error that a person in the conversation is told; the
// log and the dead letter's record have the rest.
func plain(err error) string {
	switch kindOf(err) {
	case adapters.BadContent:
		return "the platform does not accept this text"
	case adapters.PlaceGone:
		return "the conversation is closed to me"
	case adapters.Misconfig:
		return "my connection to the platform is not set up right"
	case adapters.RetryPost:
		return "the platform refused it again and again"
	}
	return "the platform did not say whether it took it"
}
