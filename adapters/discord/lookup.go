package discord

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters"
	"mimikit/core/chat"
)

const (
	lookBefore = 5 * time.Second // a reply was committed: Discord's clock may be behind by as much
	lookPages  = 20
)

// Lookup finds a part among the bot's own messages since the reply was committed.
// An error means that it could not be made sure.
//
// Discord tells a message's nonce when it is made, and not for long after, so a part
// is known by what it says and by the message that it answers; a file, by its name.
// Which part a message is, is noted by whoever hears of it first: who posted it, the
// listener, or a look-up. So of two replies of the same words neither is taken for
// the other, unless the answers to both posts were lost and no listener ran.
func (p *Poster) Lookup(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	id, err := p.d.lookup(ctx, c, part)
	if err != nil {
		return "", fmt.Errorf("look up part %d of reply %s: %w", part.Index+1, part.ReplyID, err)
	}
	return id, nil
}

func (d *Bot) lookup(ctx context.Context, c chat.Conversation, p adapters.Part) (string, error) {
	want, files, err := d.compose(c, p)
	if err != nil {
		return "", err
	}
	bot, _, err := d.who(ctx)
	if err != nil {
		return "", postError(err)
	}
	channel, chain := target(c)
	answers := map[string]bool{"": true, p.ReplyTo: true, chain: true, c.Thread: true}
	match := func(m *message) (bool, error) {
		switch {
		case string(m.Author.ID) != bot,
			m.Reference != nil && (p.Index > 0 || !answers[string(m.Reference.MessageID)]): // only the first part refers
			return false, nil
		}
		says := len(m.Attachments) == 0 && sameWords(m.Content, want.Content)
		if len(files) > 0 {
			says = len(m.Attachments) > 0 && m.Attachments[0].Filename == files[0].name
		}
		if nonce := m.nonce(); nonce != "" || !says {
			return nonce == want.Nonce, nil
		}
		nonce, err := d.o.Notes.Note(ctx, partKey(string(m.ID)))
		return nonce == "" || nonce == want.Nonce, err
	}
	id, err := d.search(ctx, channel, p.At, match)
	if codeOf(err) == discordgo.ErrCodeUnknownChannel && isID(c.Thread) {
		id, err = d.search(ctx, c.Place, p.At, match) // where it is answered without a thread
	}
	if err == nil && id != "" {
		d.noteDown(ctx, id, want.Nonce)
	}
	return id, postError(err)
}

// partKnown is for how long it is known which part a message is: longer than
// anybody tries to post one.
const partKnown = 24 * time.Hour

func partKey(id string) string { return "discord/part/" + id }

// noteDown notes which part a message is. That it fails is no loss by itself.
func (d *Bot) noteDown(ctx context.Context, id, nonce string) {
	if !isID(id) || nonce == "" {
		return
	}
	if err := d.o.Notes.SetNote(ctx, partKey(id), nonce, partKnown); err != nil {
		d.o.Logger.Warn("discord_part_not_noted", "message", id, "error", err)
	}
}

func (d *Bot) search(ctx context.Context, channel string, since time.Time, match func(*message) (bool, error)) (string, error) {
	after := idAt(since.Add(-lookBefore))
	for range lookPages {
		page, err := d.list(ctx, channel, url.Values{"after": {after}})
		if err != nil {
			return "", err
		}
		for i := range page {
			switch ok, err := match(&page[i]); {
			case err != nil:
				return "", err
			case ok:
				return string(page[i].ID), nil
			}
			after = string(page[i].ID)
		}
		if len(page) < pageSize {
			return "", nil
		}
	}
	return "", errors.Join(errTooMany, fmt.Errorf("in channel %s since %s", channel, since))
}

var errTooMany = errors.New("more messages than are looked through")

// sameWords compares texts as Discord keeps them: it takes spaces off ends.
func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}
