package discord

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// An outMessage is what is posted. discordgo's type has no nonce.
type outMessage struct {
	Content     string                            `json:"content"`
	Nonce       string                            `json:"nonce,omitempty"`
	Enforce     bool                              `json:"enforce_nonce,omitempty"`
	Allowed     *discordgo.MessageAllowedMentions `json:"allowed_mentions,omitempty"`
	Flags       discordgo.MessageFlags            `json:"flags,omitempty"`
	Reference   *outReference                     `json:"message_reference,omitempty"`
	Components  *[]discordgo.MessageComponent     `json:"components,omitempty"`
	Attachments []outAttachment                   `json:"attachments,omitempty"`
}

type outReference struct {
	MessageID string `json:"message_id"`
	Fail      bool   `json:"fail_if_not_exists"`
}

type outAttachment struct {
	ID       int    `json:"id"`
	Filename string `json:"filename"`
}

// answering refers to a message; when that is gone it is posted all the same.
func answering(id string) *outReference {
	if !isID(id) {
		return nil
	}
	return &outReference{MessageID: id}
}

// noMentions lets nothing that a text contains ping anybody.
func noMentions() *discordgo.MessageAllowedMentions {
	return &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
}

// nonceOf names a part of a reply in the 25 characters that Discord allows.
func nonceOf(reply string, part int) string {
	sum := sha256.Sum256([]byte(reply + "\x00" + strconv.Itoa(part)))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// target is where a conversation's messages go: its thread, or its place; chain is
// the message that a chain of replies in a place began with.
func target(c chat.Conversation) (channel, chain string) {
	if root, ok := strings.CutPrefix(c.Thread, chainMark); ok {
		return c.Place, root
	}
	if c.Thread != "" {
		return c.Thread, ""
	}
	return c.Place, ""
}

// A Poster shows replies. Each call is one attempt; see [adapters.Poster].
type Poster struct{ d *Bot }

var _ adapters.Poster = (*Poster)(nil)

// Split cuts a reply into messages of at most 2,000 characters. One that would be
// more than Options.MaxParts messages is a single part, posted as a file below its
// beginning.
func (p *Poster) Split(r chat.Reply) []adapters.Part {
	text := r.Text
	buttons := r.Buttons
	if _, shown := components(buttons); !shown {
		text, buttons = strings.TrimRight(text, "\n")+numbered(buttons), nil
	}
	texts := renderParts(text)
	if len(texts) > p.d.o.MaxParts {
		texts = []string{text}
	}
	parts := make([]adapters.Part, len(texts))
	for i, t := range texts {
		parts[i] = adapters.Part{
			ReplyID: r.ID, Index: i, Count: len(texts), Text: t, Kind: r.Kind, ReplyTo: r.ReplyTo, At: r.CreatedAt, InputIDs: r.InputIDs,
		}
	}
	parts[len(parts)-1].Buttons = buttons
	return parts
}

// removed stands for the id of a message that was posted and removed since.
const removed = "removed"

// Post shows one part. It opens the conversation's thread when there is none yet;
// where threads cannot be opened it answers in the place. Its errors are
// [adapters.PostError].
func (p *Poster) Post(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	id, err := p.d.post(ctx, c, part)
	if err != nil {
		return "", fmt.Errorf("post part %d of reply %s: %w", part.Index+1, part.ReplyID, err)
	}
	return id, nil
}

func (d *Bot) post(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	channel, chain := target(c)
	m, files, err := d.compose(c, part)
	if err != nil {
		return "", err
	}
	p := Final
	if part.Kind == chat.ReplyQuestion {
		p = Question
	}
	if part.Index == 0 {
		if m.Reference = answering(part.ReplyTo); m.Reference == nil || part.ReplyTo == c.Thread {
			m.Reference = answering(chain)
		}
	}
	id, err := d.send(ctx, channel, m, files, p)
	if codeOf(err) == discordgo.ErrCodeUnknownChannel && isID(c.Thread) && c.Place != "" {
		id, err = d.postFirst(ctx, c, m, files, p)
	}
	if err != nil {
		return "", postError(err)
	}
	d.noteDown(ctx, id, m.Nonce)
	d.typing.stop(channel, true)
	d.showAnswered(c, part)
	return id, nil
}

// compose makes the message of a part.
func (d *Bot) compose(c chat.Conversation, p adapters.Part) (outMessage, []file, error) {
	if !isID(c.Place) {
		return outMessage{}, nil, &adapters.PostError{Kind: adapters.PlaceGone, Err: fmt.Errorf("%q is no channel of Discord", c.Place)}
	}
	m := outMessage{Content: p.Text, Nonce: nonceOf(p.ReplyID, p.Index), Enforce: true}
	rows, shown := components(p.Buttons)
	if !shown {
		return m, nil, &adapters.PostError{Kind: adapters.BadContent, Err: errors.New("the buttons cannot be shown")}
	}
	if len(rows) > 0 {
		m.Components = &rows
	}
	var files []file
	if units(p.Text) > maxUnits {
		name := fileName(p)
		files = []file{{name: name, content: []byte(p.Text)}}
		m.Attachments = []outAttachment{{ID: 0, Filename: name}}
		m.Content = renderParts(p.Text)[0]
		m.Content = cutLines(m.Content, maxUnits-100) + "\n\n*The whole answer is in the file below.*"
	}
	return m, files, nil
}

// fileName carries the part, by which a look-up knows it.
func fileName(p adapters.Part) string { return "answer-" + nonceOf(p.ReplyID, p.Index) + ".md" }

// postFirst posts into a conversation whose thread was not there.
func (d *Bot) postFirst(ctx context.Context, c chat.Conversation, m outMessage, files []file, p Priority) (string, error) {
	err := d.openThread(ctx, c, "")
	switch codeOf(err) {
	case 0:
		if err != nil {
			return "", err
		}
		return d.send(ctx, c.Thread, m, files, p)
	case discordgo.ErrCodeThreadAlreadyCreatedForThisMessage:
		// Somebody was faster; or the thread was removed, and then the conversation
		// is over, which the second attempt finds out.
		return d.send(ctx, c.Thread, m, files, p)
	case discordgo.ErrCodeMissingPermissions, discordgo.ErrCodeCannotExecuteActionOnThisChannelType,
		discordgo.ErrCodeCannotExecuteActionOnSystemMessage, discordgo.ErrCodeMaximumNumberOfActiveThreadsReached:
		if m.Reference == nil {
			m.Reference = answering(c.Thread)
		}
		return d.send(ctx, c.Place, m, files, p)
	case discordgo.ErrCodeUnknownMessage:
		return "", &adapters.PostError{Kind: adapters.PlaceGone, Err: fmt.Errorf("the message that began the conversation is gone: %w", err)}
	}
	return "", err
}

// send posts a message, once. That it was posted before, and removed since, counts
// as posted.
func (d *Bot) send(ctx context.Context, channel string, m outMessage, files []file, p Priority) (string, error) {
	m.Allowed = noMentions()
	m.Flags |= discordgo.MessageFlagsSuppressEmbeds
	var posted message
	err := d.api.do(ctx, request{
		method: "POST", path: "/channels/" + channel + "/messages", route: "POST /channels/" + channel + "/messages", body: m, files: files, priority: p,
		draws: Draw{Method: DrawPost, Place: channel},
	}, &posted)
	if m.Enforce && codeOf(err) == discordgo.ErrCodeUnknownMessage {
		return removed, nil
	}
	return string(posted.ID), err
}
