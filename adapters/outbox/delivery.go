package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"mimikit/adapters"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/telemetry"
)

// progress is how far the posting of one reply has come. It is stored; fields
// are only ever added.
type progress struct {
	Done     []string `json:"done,omitempty"`     // message ids of the parts posted
	Posting  bool     `json:"posting,omitempty"`  // the next part may have been posted
	Unsure   bool     `json:"unsure,omitempty"`   // a record was lost: any part may have been posted
	Until    int64    `json:"until,omitempty"`    // unix ms (Redis time) until which the attempt may take effect, or the platform is to be left alone
	Failures int      `json:"failures,omitempty"` // attempts at the next part that certainly posted nothing
	Unseen   int      `json:"unseen,omitempty"`   // look-ups of the next part that failed, in a row
	Since    int64    `json:"since,omitempty"`    // unix ms of the first attempt
}

// misconfigPause is how long a reply waits for an operator before it is tried
// again. Waits do not grow: a mended token should be noticed soon.
const misconfigPause = 30 * time.Second

// A delivery is one run of the step for one reply.
type delivery struct {
	o     *Outbox
	w     *channel.Work
	reply *chat.Reply
	// Redis' clock and ours at one moment. Until the first mark they may run
	// behind, so that a marker is waited for too long, and after it ahead, so that
	// a post never outlasts its marker.
	redis, ours time.Time
	p           progress
	ahead       bool // the marker of the first part was committed with the reply
}

// ahead is the marker that is committed together with a reply, since its posting
// mostly begins at once.
func (o *Outbox) ahead(value any, at time.Time) []channel.Put {
	reply, ok := value.(*chat.Reply)
	if !ok || reply == nil || o.opt.Posters[reply.Conversation.Platform] == nil {
		return nil
	}
	data, err := json.Marshal(progress{Posting: true, Until: at.Add(o.opt.LookupAfter).UnixMilli(), Since: at.UnixMilli()})
	if err != nil {
		return nil // unreachable: it is three plain fields
	}
	return []channel.Put{{Table: channel.PostTable, Field: reply.ID, Value: string(data)}}
}

// takeUp takes up the marker that was committed with the reply. One that leaves
// little time, or that must be looked behind, is as good as none: nothing was
// posted under it.
func (d *delivery) takeUp() {
	a := d.w.Ahead
	if len(a.Puts) != 1 || d.w.Suspect || json.Unmarshal([]byte(a.Puts[0].Value), &d.p) != nil {
		return
	}
	d.redis, d.ours = a.At, a.Sent
	if d.ahead = d.left() >= d.o.opt.PostTimeout/2; !d.ahead {
		d.p = progress{Since: d.p.Since}
	}
}

// now is Redis' time.
func (d *delivery) now() time.Time { return d.redis.Add(time.Since(d.ours)) }

// recall reads how far an earlier run has come.
func (d *delivery) recall(ctx context.Context) error {
	if d.w.Fresh {
		d.takeUp()
	} else {
		v, err := d.w.Field(ctx, channel.PostTable, d.reply.ID)
		if err != nil {
			return err
		}
		if v != "" {
			if err := json.Unmarshal([]byte(v), &d.p); err != nil {
				// Without its record any part may have been posted, and the last one
				// may be on its way: wait for that, and look each up. This is committed,
				// or the next run would wait anew, or trust what this one wrote.
				d.o.opt.Logger.Error("post_record_damaged", "reply", d.reply.ID, "record", v, "error", err)
				d.p = progress{Posting: true, Unsure: true, Since: d.now().UnixMilli()}
				d.p.Until = d.now().Add(d.o.opt.LookupAfter).UnixMilli()
				return d.remember(ctx)
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
	asked := time.Now()
	at, err := d.w.Mark(ctx, channel.Put{Table: channel.PostTable, Field: d.reply.ID, Value: string(data)})
	if err == nil {
		d.redis, d.ours = at, asked
	}
	return err
}

// post brings one part onto the platform, or says why not and when again.
func (d *delivery) post(ctx context.Context, poster adapters.Poster, part adapters.Part) error {
	if !d.ahead {
		if there, err := d.mark(ctx, poster, part); there || err != nil {
			return err
		}
	}
	d.ahead = false
	// The marker's time counts from before the mark was committed, so a slow
	// commit leaves less for the post, or none.
	left := d.left()
	if left <= 0 {
		// Redis is to blame, not the platform, so this is no failure of the part.
		d.p.Posting = false
		return d.again(ctx, errSlowMark, backoff(1))
	}
	id, err := d.call(ctx, left, poster, part)
	if err != nil {
		return d.failed(ctx, err)
	}
	d.done(id)
	return nil
}

// mark commits that the part may be posted from now on. It looks first whether an
// earlier attempt has brought it there already.
func (d *delivery) mark(ctx context.Context, poster adapters.Poster, part adapters.Part) (there bool, err error) {
	if wait := d.untilThen(); wait > 0 {
		why := "the platform is left alone until then"
		if d.p.Posting {
			why = "an earlier attempt to post may still take effect"
		}
		return false, &channel.Later{After: wait, Why: why}
	}
	if d.p.Posting || d.p.Unsure || d.w.Suspect {
		id, err := d.lookup(ctx, poster, part)
		if err != nil {
			return false, d.unseen(ctx, err)
		}
		if id != "" {
			d.done(id)
			return true, nil
		}
		d.p.Unseen = 0
		if d.p.Posting {
			d.p.Posting, d.p.Until = false, 0
			if d.p.Failures++; d.tired(d.p.Failures, d.o.opt.MaxAttempts) {
				return false, d.giveUp(ctx, &adapters.PostError{Kind: adapters.RetryPost, Err: errNotThere}, false)
			}
		}
	}
	d.p.Posting, d.p.Until = true, d.now().Add(d.o.opt.LookupAfter).UnixMilli()
	return false, d.remember(ctx)
}

var (
	errNotThere = errors.New("an attempt whose outcome was unknown is not on the platform")
	errSlowMark = errors.New("the marker took too long to be committed")
)

// left is how long a post may take that begins now.
func (d *delivery) left() time.Duration {
	return d.untilThen() - (d.o.opt.LookupAfter - d.o.opt.PostTimeout)
}

// untilThen is how long the marker, or a wait that was committed, still holds.
func (d *delivery) untilThen() time.Duration { return time.UnixMilli(d.p.Until).Sub(d.now()) }

func (d *delivery) done(messageID string) {
	d.p.Done = append(d.p.Done, messageID)
	d.p.Posting, d.p.Until, d.p.Failures, d.p.Unseen = false, 0, 0, 0
}

// shown tells which message shows the whole reply. Where it cannot be told, the reply
// waits with all its parts posted, but not for ever: it is there to be read.
func (d *delivery) shown(ctx context.Context) error {
	n := len(d.p.Done)
	if d.o.opt.Shown == nil || n == 0 || d.p.Done[n-1] == "" {
		return nil
	}
	err := d.o.opt.Shown(ctx, d.reply, d.p.Done[n-1])
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.o.opt.Logger.Warn("shown_not_told", "reply", d.reply.ID, "message", d.p.Done[n-1], "error", err)
	if d.p.Failures == 0 { // how long it took to post counts no more
		d.p.Since = d.now().UnixMilli()
	}
	if d.p.Failures++; d.tired(d.p.Failures, 0) {
		return nil
	}
	return d.again(ctx, fmt.Errorf("tell which message shows %s: %w", d.reply.ID, err), backoff(d.p.Failures))
}

func (d *delivery) call(ctx context.Context, left time.Duration, poster adapters.Poster, part adapters.Part) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	ctx, span := d.span(ctx, "post", part)
	start := time.Now()
	id, err := poster.Post(ctx, d.reply.Conversation, part)
	outcome := outcomeOf(err)
	if err != nil {
		span.Fail(string(outcome))
	}
	span.End()
	if d.o.opt.Posted != nil {
		d.o.opt.Posted(d.reply.Conversation.Platform, outcome, time.Since(start))
	}
	return id, err
}

// span begins a span of a part. Nothing of its text is in it.
func (d *delivery) span(ctx context.Context, name string, part adapters.Part) (context.Context, *telemetry.Span) {
	return telemetry.Begin(ctx, telemetry.Start{Name: name, Kind: telemetry.Asks, Attrs: []slog.Attr{
		slog.String("mimikit.platform", d.reply.Conversation.Platform), slog.String("mimikit.reply_id", d.reply.ID),
		slog.Int("mimikit.part", part.Index+1), slog.Int("mimikit.parts", part.Count), slog.Int("mimikit.bytes", len(part.Text)),
	}})
}

func outcomeOf(err error) Outcome {
	if err == nil {
		return Posted
	}
	switch kindOf(err) {
	case adapters.RetryPost, adapters.Misconfig:
		return Retry
	case adapters.BadContent, adapters.PlaceGone:
		return GivenUp
	}
	return Unknown
}

func (d *delivery) lookup(ctx context.Context, poster adapters.Poster, part adapters.Part) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.opt.PostTimeout)
	defer cancel()
	ctx, span := d.span(ctx, "lookup", part)
	id, err := poster.Lookup(ctx, d.reply.Conversation, part)
	span.Set(slog.Bool("mimikit.found", id != ""))
	if err != nil {
		span.Fail("lookup")
	}
	span.End()
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

// failed decides what a failed post means: again later, or not at all.
func (d *delivery) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // cut off; the marker tells the next run to look
	}
	switch kind := kindOf(err); kind {
	case adapters.BadContent, adapters.PlaceGone:
		d.p.Posting = false
		return d.giveUp(ctx, err, kind == adapters.PlaceGone)
	case adapters.RetryPost:
		d.p.Posting = false
		if d.p.Failures++; d.tired(d.p.Failures, d.o.opt.MaxAttempts) {
			return d.giveUp(ctx, err, false)
		}
		return d.again(ctx, err, backoff(d.p.Failures))
	case adapters.Misconfig:
		d.p.Posting = false
		// A wrong token is an operator's to mend, so only its age counts.
		if d.old() {
			return d.giveUp(ctx, err, true)
		}
		return d.again(ctx, err, misconfigPause)
	default:
		// The marker stands; the next run waits for its time and looks. It is
		// not given up before that, however old: it may be there.
		return &channel.Later{After: max(d.untilThen(), 0), Why: err.Error()}
	}
}

// unseen decides what a failed look-up means. A marker stands as it is.
func (d *delivery) unseen(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	kind := kindOf(err)
	d.p.Unseen++
	if kind == adapters.PlaceGone || d.tired(d.p.Unseen, 0) {
		return d.giveUp(ctx, &adapters.PostError{Kind: adapters.UnknownPost, Err: err},
			kind == adapters.PlaceGone || kind == adapters.Misconfig)
	}
	return d.again(ctx, err, backoff(d.p.Unseen))
}

// noPoster waits for a node that is connected to the platform. What that one
// may have posted is not known here, so its marker is left as it is.
func (d *delivery) noPoster(ctx context.Context) error {
	err := fmt.Errorf("this node has no connection to %q", d.reply.Conversation.Platform)
	if d.old() {
		return d.giveUp(ctx, &adapters.PostError{Kind: adapters.Misconfig, Err: err}, true)
	}
	if err := d.remember(ctx); err != nil {
		return err
	}
	return &channel.Later{After: misconfigPause, Why: err.Error()}
}

// again commits how long the platform is left alone, so that a successor keeps
// to it too.
func (d *delivery) again(ctx context.Context, err error, wait time.Duration) error {
	var pe *adapters.PostError
	if errors.As(err, &pe) {
		wait = max(wait, pe.RetryAfter)
	}
	d.p.Until = d.now().Add(wait).UnixMilli()
	if err := d.remember(ctx); err != nil {
		return err
	}
	return &channel.Later{After: wait, Why: err.Error()}
}

// backoff is the wait after the n-th failure in a row: half a second, doubling to 30 s.
func backoff(n int) time.Duration {
	return min(500*time.Millisecond<<min(n-1, 7), 30*time.Second)
}

func (d *delivery) old() bool {
	return d.now().Sub(time.UnixMilli(d.p.Since)) >= d.o.opt.GiveUpAfter
}

// tired reports whether so many failures in a row are enough; most 0 is no
// bound. Age alone is not: when all nodes were down for long, the first failure
// after that is followed by one more try.
func (d *delivery) tired(failures, most int) bool {
	return (most > 0 && failures >= most) || (failures > 1 && d.old())
}

// giveUp leaves the record in place, so that a replay of the dead letter goes on
// where this ended, but forgets what was counted.
func (d *delivery) giveUp(ctx context.Context, err error, quiet bool) error {
	d.p.Failures, d.p.Unseen, d.p.Since = 0, 0, 0
	if !d.p.Posting {
		d.p.Until = 0
	}
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
		return "the platform did not take it, however often I tried"
	}
	return "the platform did not say whether it took it"
}
