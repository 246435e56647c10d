package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// The metadata by which our messages are found again.
const (
	replyEvent    = "mimikit_reply"
	progressEvent = "mimikit_progress"
)

// postPatience is how long a post waits for the rate budget itself, rather than
// being handed back.
const postPatience = 2 * time.Second

// A Poster shows replies. Each call is one attempt; see [adapters.Poster].
type Poster struct {
	api    *api
	status *StatusLine

	mu       sync.Mutex
	progress map[string]*progressing // :: conversation and id → what is shown
	streams  map[string]*Stream      // :: conversation and reply → what this process shows of it
}

var _ adapters.Poster = (*Poster)(nil)

// Post shows one part and returns the time stamp that is its id, or, of a file,
// the file's id. Its errors are [adapters.PostError].
func (p *Poster) Post(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	id, err := p.show(ctx, c, part)
	if err != nil {
		return "", fmt.Errorf("post part %d of reply %s: %w", part.Index+1, part.ReplyID, err)
	}
	switch last := part.Index == part.Count-1; {
	case last && part.ReplyTo != "":
		p.status.ended(c, part.ReplyTo, part.Kind != chat.ReplyNotice)
	case last: // the turn is over all the same; whoever still works says so again
		p.status.over(c)
	default:
		p.status.posted(c)
	}
	return id, nil
}

func (p *Poster) show(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	if isFile(part) {
		if p.api.o.Streaming {
			p.closeStream(streamKey(c, part.ReplyID))
			if err := p.uncover(ctx, c, part.ReplyID, streamKey(c, part.ReplyID)); err != nil {
				return "", err
			}
		}
		return p.upload(ctx, c, part)
	}
	d := Draw{Method: "chat.postMessage", Place: c.Place, Priority: Final}
	if part.Kind == chat.ReplyQuestion {
		d.Priority = Question
	}
	if p.api.o.Streaming && part.Index == 0 {
		if id, err := p.settle(ctx, c, part); id != "" || err != nil {
			return id, err
		}
	}
	about := stamped(part)
	id, err := p.message(ctx, d, c, about, slack.MsgOptionBlocks(blocks(part.Text, part.Buttons)...), slack.MsgOptionText(fallback(part.Text), false))
	switch code(err) {
	case "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long":
		// Certainly not posted. Plain words are better than none.
		p.api.o.Logger.Warn("slack_blocks_refused", "reply", part.ReplyID, "part", part.Index, "error", err)
		return p.message(ctx, d, c, about, slack.MsgOptionText(escape(part.Text), false))
	}
	return id, err
}

// stamped is the metadata by which a part is found again.
func stamped(part adapters.Part) slack.MsgOption {
	return slack.MsgOptionMetadata(slack.SlackMetadata{
		EventType: replyEvent, EventPayload: map[string]any{"reply_id": part.ReplyID, "part": part.Index},
	})
}

// message posts one message.
func (p *Poster) message(ctx context.Context, d Draw, c chat.Conversation, options ...slack.MsgOption) (id string, err error) {
	options = append(options, slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	if c.Thread != "" {
		options = append(options, slack.MsgOptionTS(c.Thread))
	}
	err = p.api.call(ctx, d, postPatience, func(ctx context.Context) (err error) {
		if _, id, err = p.api.sdk.PostMessageContext(ctx, c.Place, options...); err == nil && id == "" {
			err = errNoAnswer
		}
		return err
	})
	return id, err
}

var errNoAnswer = errors.New("the answer does not say which message it became")

// upload shows a part as a file. Only the last of the three steps shows anything,
// so only its outcome may be unknown.
func (p *Poster) upload(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	name := fileName(part)
	var at *slack.GetUploadURLExternalResponse
	err := p.api.call(ctx, Draw{Method: "files.getUploadURLExternal", Priority: Final}, postPatience, func(ctx context.Context) (err error) {
		at, err = p.api.sdk.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: name, FileSize: len(part.Text)})
		return err
	})
	if err == nil {
		err = p.api.call(ctx, Draw{Method: "upload", Priority: Final}, postPatience, func(ctx context.Context) error {
			return p.api.sdk.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: at.UploadURL, Content: part.Text, Filename: name})
		})
	}
	if err != nil {
		return "", unseen(err)
	}
	err = p.api.call(ctx, Draw{Method: "files.completeUploadExternal", Place: c.Place, Priority: Final}, postPatience, func(ctx context.Context) error {
		_, err := p.api.sdk.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
			Files: []slack.FileSummary{{ID: at.FileID, Title: "Reply"}}, Channel: c.Place, ThreadTimestamp: c.Thread,
		})
		return err
	})
	return at.FileID, err
}

// unseen marks a failure before anything could be seen.
func unseen(err error) error {
	var pe *adapters.PostError
	if errors.As(err, &pe) && pe.Kind == adapters.UnknownPost {
		return &adapters.PostError{Kind: adapters.RetryPost, RetryAfter: pe.RetryAfter, Err: pe.Err}
	}
	return err
}

// Bounds of a look-up: how much earlier than the reply's own time it begins, since
// clocks differ, and how many pages of 200 messages it reads.
const (
	clocksDiffer = 2 * time.Minute
	lookupPages  = 15
)

// Lookup finds a part among our own messages of its conversation. An error means
// that it could not be made sure.
func (p *Poster) Lookup(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	me, err := p.api.identity(ctx)
	if err != nil {
		return "", fmt.Errorf("look up part %d of reply %s: %w", part.Index+1, part.ReplyID, err)
	}
	since := time.Time{}
	if !part.At.IsZero() {
		since = part.At.Add(-clocksDiffer)
	}
	id := ""
	_, err = p.find(ctx, c, since, func(m post) bool { id = shows(m, me, part); return id != "" })
	if err != nil {
		return "", fmt.Errorf("look up part %d of reply %s: %w", part.Index+1, part.ReplyID, err)
	}
	return id, nil
}

// find reads a conversation since a time, with metadata, for a message of ours. ""
// is that there is none.
func (p *Poster) find(ctx context.Context, c chat.Conversation, since time.Time, is func(post) bool) (string, error) {
	me, err := p.api.identity(ctx)
	if err != nil {
		return "", err
	}
	x := extract{place: c.Place, thread: c.Thread, limit: 200, metadata: true}
	if !since.IsZero() {
		x.oldest = stamp(since)
	}
	cursor := ""
	for range lookupPages {
		list, next, err := p.api.messages(ctx, x, cursor, Final)
		if code(err) == "thread_not_found" {
			return "", nil // what is not there has no replies
		}
		if err != nil {
			return "", err
		}
		for _, m := range list {
			// Anybody could write such metadata, so whose message it is comes first.
			if me.wrote(m) && is(m) {
				return m.TS, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", nil
		}
	}
	return "", fmt.Errorf("%w: %d", errTooMany, lookupPages*200)
}

var errTooMany = errors.New("more messages came after it than are read")

// wrote reports whether a message is ours.
func (i Identity) wrote(m post) bool {
	return m.User == i.UserID || m.BotID != "" && m.BotID == i.BotID
}

// shows gives the id of a message if it is ours and shows a part.
func shows(m post, me Identity, part adapters.Part) string {
	if !me.wrote(m) {
		return ""
	}
	if isFile(part) {
		for _, f := range m.files() {
			if f.Name == fileName(part) {
				return f.ID
			}
		}
		return ""
	}
	if reply, n, ok := m.stampOf(); ok && reply == part.ReplyID && n == part.Index {
		return m.TS
	}
	return ""
}

// Edit changes a message of ours, such as a question that has been answered.
func (p *Poster) Edit(ctx context.Context, c chat.Conversation, messageID, text string, buttons []chat.Button) error {
	return p.edit(ctx, Draw{Method: "chat.update", Place: c.Place, Priority: Question}, c, messageID, text, buttons)
}

func (p *Poster) edit(ctx context.Context, d Draw, c chat.Conversation, ts, text string, buttons []chat.Button) error {
	text = split(guarded(text), maxEdit)[0]
	err := p.api.call(ctx, d, postPatience, func(ctx context.Context) error {
		_, _, _, err := p.api.sdk.UpdateMessageContext(ctx, c.Place, ts,
			slack.MsgOptionBlocks(blocks(text, buttons)...), slack.MsgOptionText(fallback(text), false))
		return err
	})
	if err != nil {
		return fmt.Errorf("edit message %s: %w", ts, err)
	}
	return nil
}
