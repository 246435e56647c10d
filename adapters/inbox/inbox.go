// Package inbox is the one door through which what people say comes in. Every
// listener hands it what it saw; the inbox makes of that an input that the rest
// of the program can trust in its shape, and has it stored durably and once.
//
// It promises:
//
//   - A nil error means that the message is in its stream; offering it again
//     changes nothing ([adapters.Inbox]).
//   - The text of an input is valid UTF-8 of at most chat.MaxText bytes without
//     control characters. A longer one is kept whole beside it, first.
//   - A message that is not taken is refused with a [Refusal], which has the
//     reason in words for the person. The listener acknowledges the event and
//     shows them; trying again would not help.
//   - Any other error leaves it open: the listener must not acknowledge, and the
//     same message must be offered again.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"mimikit/adapters"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/telemetry"
)

// A Door stores inputs and publishes replies; a channel.Node is one.
type Door interface {
	Ingest(ctx context.Context, in channel.Input) (channel.Accepted, error)
	Publish(ctx context.Context, commitID string, at time.Time, conversation string, p channel.Publish) error
}

// A BlobStore keeps texts that are too long for a stream. Putting the same text
// under the same id again must be harmless.
type BlobStore interface {
	Put(ctx context.Context, conversation, id, text string) error
}

// An Outcome is what became of a message, for counting.
type Outcome string

// The outcomes.
const (
	Accepted  Outcome = "accepted"
	Duplicate Outcome = "duplicate" // it was accepted before
	Empty     Outcome = "empty"     // refused
	TooLong   Outcome = "too_long"  // refused
	Full      Outcome = "full"      // refused
	Invalid   Outcome = "invalid"   // refused
	Failed    Outcome = "failed"    // open; the listener offers it again
)

// Options of an Inbox. Door and Blobs are needed.
type Options struct {
	Door   Door
	Blobs  BlobStore
	Seen   func(platform string, o Outcome) // told of every message; default: nobody
	Tracer *telemetry.Tracer                // records what becomes of messages; default: nobody does
	Now    func() time.Time                 // default: time.Now
	Logger *slog.Logger                     // default: none
}

// An Inbox implements [adapters.Inbox]. It is safe for concurrent use.
type Inbox struct {
	o Options

	mu     sync.Mutex
	minute int64           // of the notices in told
	told   map[string]bool // :: conversation → got its notice in this minute
}

var _ adapters.Inbox = (*Inbox)(nil)

// New makes an Inbox.
func New(o Options) *Inbox {
	if o.Seen == nil {
		o.Seen = func(string, Outcome) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Inbox{o: o}
}

// Submit stores what somebody did. See the package for what its errors mean.
func (b *Inbox) Submit(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return b.take(ctx, m, m.Kind == chat.KindStop)
}

// Stop stores the wish that the conversation's turn stop, and raises its stop
// number in the same moment, so that the wish does not queue behind that turn.
func (b *Inbox) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	m.Kind = chat.KindStop
	return b.take(ctx, m, true)
}

func (b *Inbox) take(ctx context.Context, m adapters.Message, stop bool) (adapters.Receipt, error) {
	ctx, span := b.received(ctx, m)
	r, outcome, err := b.store(ctx, m, stop)
	b.o.Seen(m.Conversation.Platform, outcome)
	ended(span, r, outcome)
	if err != nil {
		return adapters.Receipt{}, fmt.Errorf("take message %q of %s: %w", m.Message, m.Conversation, err)
	}
	return r, nil
}

func (b *Inbox) store(ctx context.Context, m adapters.Message, stop bool) (adapters.Receipt, Outcome, error) {
	in, whole, refusal := input(m)
	if refusal != nil {
		return adapters.Receipt{}, refusal.outcome, refusal
	}
	dedupe := dedupeKey(in)
	conversation := in.Conversation.Key()
	if whole != "" {
		// First the text, then the entry that names it: a blob nobody names
		// expires, a name without a blob would be a lie.
		in.TextBlob = channel.InputID(dedupe)
		if err := b.o.Blobs.Put(ctx, conversation, in.TextBlob, whole); err != nil {
			return adapters.Receipt{}, Failed, err
		}
	}
	ingest, span := telemetry.Begin(ctx, telemetry.Start{Name: "ingest", Kind: telemetry.Produces, Attrs: ingestAttrs})
	got, err := b.o.Door.Ingest(ingest, channel.Input{
		Value: in, Dedupe: dedupe, At: in.At, Stop: stop, TraceID: traceID(dedupe), Traceparent: span.Traceparent(),
	})
	if err != nil {
		span.Fail("not_stored")
	}
	span.End()
	switch {
	case errors.Is(err, channel.ErrFull):
		b.tellFull(ctx, in)
		return adapters.Receipt{}, Full, refuse(Full, err, fullReason)
	case err != nil:
		return adapters.Receipt{}, Failed, err
	case got.Known:
		return adapters.Receipt{InputID: got.InputID, Duplicate: true}, Duplicate, nil
	}
	return adapters.Receipt{InputID: got.InputID}, Accepted, nil
}

// ID is the id of the input that a message of a conversation becomes, or with its edit
// stamp, or "deleted", a change of it. The conversation's thread does not matter.
func ID(c chat.Conversation, message, edit string) string {
	return channel.InputID(dedupeKey(chat.UserInput{Conversation: c, Message: message, Edit: edit}))
}

// dedupeKey names what happened on the platform. Thread and kind are left out:
// a message is the same one wherever a platform says that it belongs, and an
// edit or a removal is told apart by its stamp.
func dedupeKey(in chat.UserInput) string {
	parts := []string{in.Conversation.Platform, in.Conversation.Workspace, in.Conversation.Place, in.Message, in.Edit}
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

const fullReason = "Too many messages are waiting here already, so I did not take this one. Please send it again in a little while."

// tellFull says in the conversation that messages are being refused, at most
// once a minute, whichever nodes refuse them: the commit id sees to that. It is
// said on the way of replies, since the listener that refuses may have no other
// way to speak. When it cannot be said, the listener's own words must do.
func (b *Inbox) tellFull(ctx context.Context, in chat.UserInput) {
	conversation := in.Conversation.Key()
	minute := b.o.Now().Unix() / 60
	if !b.firstThisMinute(conversation, minute) {
		return
	}
	commit := "full/" + conversation + "/" + strconv.FormatInt(minute, 10)
	at := time.Unix(minute*60, 0).UTC()
	err := b.o.Door.Publish(ctx, commit, at, conversation, channel.Publish{
		To: channel.TellerReply,
		Value: &chat.Reply{
			ID: channel.InputID(commit), Conversation: in.Conversation, Kind: chat.ReplyNotice,
			Text: fullReason, ReplyTo: in.Message, CreatedAt: at,
		},
	})
	if err != nil {
		b.forget(conversation, minute)
		b.o.Logger.Warn("notice of a full conversation not published", "conversation", conversation, "error", err)
	}
}

// firstThisMinute spares Redis a call for each of ten thousand refusals.
func (b *Inbox) firstThisMinute(conversation string, minute int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.minute != minute {
		b.minute, b.told = minute, map[string]bool{}
	}
	first := !b.told[conversation]
	b.told[conversation] = true
	return first
}

func (b *Inbox) forget(conversation string, minute int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.minute == minute {
		delete(b.told, conversation)
	}
}
