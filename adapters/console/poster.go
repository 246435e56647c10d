package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
	"mimikit/core/feed"
)

// maxPart bounds the bytes of one part. It is about what a stream entry may
// have; a terminal would take any length.
const maxPart = 32 << 10

// A Poster shows replies in terminals, by way of their feeds. Whether a terminal
// is there at the moment makes no difference to it.
type Poster struct {
	feed *feed.Feed
	now  func() time.Time
}

var (
	_ adapters.Poster   = (*Poster)(nil)
	_ adapters.Feedback = (*Poster)(nil)
)

// NewPoster makes a Poster that appends to a feed.
func NewPoster(f *feed.Feed) *Poster { return &Poster{feed: f, now: time.Now} }

// Split cuts a reply into parts of at most 32 KiB; nearly every reply is one. A
// terminal has no buttons, so they become a numbered list below the last part,
// and whoever answers writes the number or the words.
func (p *Poster) Split(r chat.Reply) []adapters.Part {
	text := r.Text
	if len(r.Buttons) > 0 {
		var b strings.Builder
		b.WriteString(strings.TrimRight(text, "\n") + "\n\n")
		for i, button := range r.Buttons {
			fmt.Fprintf(&b, "%d. %s\n", i+1, button.Label)
		}
		text = b.String()
	}
	texts := split(text, maxPart)
	parts := make([]adapters.Part, len(texts))
	for i, t := range texts {
		parts[i] = adapters.Part{
			ReplyID: r.ID, Index: i, Count: len(texts), Text: t, Kind: r.Kind,
			ReplyTo: r.ReplyTo, At: r.CreatedAt, InputIDs: r.InputIDs,
		}
	}
	parts[len(parts)-1].Buttons = r.Buttons
	return parts
}

// Post appends a part to its conversation's feed and returns the stream id. When
// Redis itself refused it, the error is an [adapters.PostError] that says so;
// any other leaves open whether it was appended.
func (p *Poster) Post(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	kind := feed.KindReply
	if part.Kind == chat.ReplyNotice || part.Kind == chat.ReplyStopped {
		kind = feed.KindNotice
	}
	id, err := p.feed.Append(ctx, c.Key(), feed.Item{
		ID: itemID(part), Kind: kind, Text: part.Text, InputIDs: part.InputIDs, ReplyTo: part.ReplyTo,
		Part: part.Index, Parts: part.Count, At: part.At,
	})
	if errors.Is(err, feed.ErrNotAppended) {
		return "", &adapters.PostError{Kind: adapters.RetryPost, Err: err}
	}
	return id, err
}

// Lookup finds a part in its conversation's feed. One that the cap or the feed's
// age has removed counts as never posted, which takes 500 later replies or 30
// days.
func (p *Poster) Lookup(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	return p.feed.Find(ctx, c.Key(), itemID(part))
}

// Working shows what is being done, until a reply comes, it is called again, or
// two minutes have passed.
func (p *Poster) Working(ctx context.Context, c chat.Conversation, what string) error {
	_, err := p.feed.Append(ctx, c.Key(), feed.Item{Kind: feed.KindStatus, Text: what, At: p.now().UTC()})
	return err
}

func itemID(part adapters.Part) string { return fmt.Sprintf("%s/%d", part.ReplyID, part.Index) }
