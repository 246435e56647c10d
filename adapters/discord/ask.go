package discord

import (
	"context"
	"fmt"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// ask takes the wish to talk about a message, from its Apps menu. It is
// acknowledged beside, so that a slow store does not cost the three seconds, and
// told of what became of it once it is stored.
func (d *Bot) ask(ctx context.Context, inbox adapters.Inbox, i *interaction) (Outcome, error) {
	id, _, err := d.who(ctx)
	if err != nil {
		return Unstored, err
	}
	target := i.Data.Resolved.Messages[string(i.Data.TargetID)]
	if target == nil || target.ID == "" {
		return Unreadable, fmt.Errorf("%w: a wish about a message that is not there", errUndecodable)
	}
	said := make(chan Answer, 1)
	d.beside(i, func(ctx context.Context, i *interaction) {
		if !d.acknowledge(ctx, i, deferred(discordgo.InteractionResponseDeferredChannelMessageWithSource)) {
			return
		}
		select {
		case a := <-said:
			d.tell(ctx, i, a, true)
		case <-ctx.Done():
		}
	})
	tell := func(text string) { said <- Answer{Text: text} }
	failed := func(err error) (Outcome, error) {
		tell("I could not take this yet and try again by myself.")
		return Unstored, err
	}
	call, err := d.aboutMessage(ctx, i, target)
	if err != nil {
		return failed(err)
	}
	if why := d.o.Refuse(i.person(), call.Conversation); why != "" {
		tell(why)
		return Ignored, nil
	}
	author := target.Author.name(target.nick())
	m := adapters.Message{
		Conversation: call.Conversation, Kind: chat.KindMessage, Message: call.ID, ReplyTo: string(target.ID), FilesOf: string(target.ID),
		Author: call.Author, Addressed: true, At: call.At,
		Text:        "Please help me with this message by " + author + ".",
		Attachments: []chat.Attachment{quote("the message that this is about", target, id)},
	}
	for _, a := range target.Attachments {
		m.Attachments = append(m.Attachments, chat.Attachment{ID: string(a.ID), Name: a.Filename, MediaType: a.ContentType, Size: a.Size, URL: a.URL})
	}
	o, err := d.submit(ctx, inbox, m, nil)
	if reason, refused := refusal(err); refused {
		tell(reason)
		return Refused, nil
	}
	if err != nil {
		return failed(err)
	}
	where := "here"
	if t := call.Conversation.Thread; isID(t) {
		where = "in <#" + t + ">"
		d.jobs.do(laneFeedback, 10*time.Second, func(ctx context.Context) {
			d.openIfMissing(ctx, call.Conversation, target.Content)
		})
	}
	tell("I am on it; the answer comes " + where + ".")
	return o, nil
}

// aboutMessage finds where to talk about a message: in its own thread, where one
// can be.
func (d *Bot) aboutMessage(ctx context.Context, i *interaction, target *message) (Caller, error) {
	call, err := d.caller(ctx, i)
	if err != nil {
		return call, err
	}
	c, err := d.talk(ctx, i, target)
	if err != nil {
		return call, err
	}
	if i.GuildID != "" && c.Thread == "" {
		canOpen := i.Channel != nil && i.Channel.canOpen() && spoken(target.Type)
		if c.Thread = chainMark + string(target.ID); d.o.Mode == OpenThread && canOpen {
			c.Thread = string(target.ID)
		}
	}
	call.Conversation = c
	if i.GuildID == "" {
		return call, nil
	}
	key := string(target.ID)
	if c.Thread == string(i.ChannelID) {
		key = c.Thread
	}
	_, _, known, err := d.talks.find(ctx, key)
	if err == nil && !known {
		err = d.talks.keep(ctx, key, c, key != string(i.ChannelID))
	}
	return call, err
}
