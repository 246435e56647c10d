package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// interaction handles a press of a button or a shortcut. Unstored means that it
// must not be acknowledged.
func (l *Listener) interaction(inbox adapters.Inbox, payload json.RawMessage) (kind string, o Outcome) {
	var i interaction
	if json.Unmarshal(payload, &i) != nil || i.Type == "" || i.User.ID == "" {
		return "interactive", Unreadable
	}
	l.b.kinds.named(i.Channel.ID, i.Channel.Name)
	switch {
	case i.Type == "block_actions":
		return i.Type, l.pressed(i)
	case i.Type == "message_action" && i.CallbackID == askAbout:
		ctx, cancel := context.WithTimeout(l.work, answerIn)
		defer cancel()
		o, err := l.asked(ctx, inbox, i)
		if err != nil {
			l.b.o.Logger.Error("slack_event_not_stored", "event", i.Type, "error", err)
			l.later(func(context.Context) { l.respond(i.Response, whispered(Answer{Text: sorry})) })
		}
		return i.Type, o
	}
	return i.Type, Unknown
}

// pressed handles presses of our buttons. Others, such as links, need no answer.
func (l *Listener) pressed(i interaction) Outcome {
	o := Unknown
	for _, a := range i.Actions {
		if !strings.HasPrefix(a.ActionID, pressAction) {
			continue
		}
		o = Handled
		if l.b.o.Commands == nil {
			continue
		}
		place, message, thread := i.place()
		key := strings.Join([]string{"press", place, message, i.User.ID, a.ActionTS, a.ActionID}, "/")
		r := l.inTime(i.Response, key, func(ctx context.Context) (Answer, error) {
			who, err := l.caller(ctx, i.User.ID, place, thread)
			if err != nil {
				return Answer{}, err
			}
			who.Message = message
			ans, err := l.b.o.Commands.Press(ctx, who, a.value())
			if err == nil && ans.Note != "" {
				l.noted(i, ans.Note)
			}
			if place == "" {
				l.publish(ctx, i.User.ID, ans.Text)
				ans.Text = ""
			}
			return ans, err
		})
		if r != nil {
			r.ThreadTS = thread
			l.later(func(context.Context) { l.respond(i.Response, r) })
		}
	}
	return o
}

// place gives where a button was pressed, without a thread where the message is
// not in one. In App Home there is no place.
func (i interaction) place() (place, message, thread string) {
	place, message, thread = i.Container.ChannelID, i.Container.MessageTS, i.Container.ThreadTS
	if place == "" {
		place = i.Channel.ID
	}
	if thread == "" && len(i.RawMessage) > 0 {
		if m, err := decodePost(i.RawMessage); err == nil {
			thread = m.ThreadTS
		}
	}
	return place, message, thread
}

// noted puts a note in the place of a message's buttons. The blocks that stay are
// sent back just as Slack gave them.
func (l *Listener) noted(i interaction, note string) {
	var m struct {
		Text   string            `json:"text"`
		Blocks []json.RawMessage `json:"blocks"`
	}
	if len(i.RawMessage) == 0 || json.Unmarshal(i.RawMessage, &m) != nil {
		return
	}
	var kept []any
	for _, raw := range m.Blocks {
		var b struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &b) == nil && b.Type != "actions" {
			kept = append(kept, raw)
		}
	}
	kept = append(kept, map[string]any{
		"type": "context", "elements": []any{map[string]any{"type": "mrkdwn", "text": escape(shorten(note, 2000))}},
	})
	text := m.Text
	if text == "" {
		text = escape(note)
	}
	l.respondWith(i.Response, map[string]any{"replace_original": true, "text": text, "blocks": kept})
}

// asked handles the shortcut "Ask about this": what a message says becomes the
// matter of a question by whoever chose it.
func (l *Listener) asked(ctx context.Context, inbox adapters.Inbox, i interaction) (Outcome, error) {
	came := l.b.o.Now()
	p, err := decodePost(i.RawMessage)
	if err != nil || i.Channel.ID == "" {
		return Unreadable, nil
	}
	at, ok := stampTime(i.ActionTS)
	if _, said := stampTime(p.TS); !ok || !said {
		return Unreadable, nil
	}
	p.Channel = i.Channel.ID
	me, err := l.b.api.identity(ctx)
	if err != nil {
		return Unstored, err
	}
	if member, err := l.b.kinds.member(ctx, p.Channel); err != nil || !member {
		l.later(func(context.Context) {
			l.respond(i.Response, whispered(Answer{Text: "I am not in this conversation, so I could not answer here. Invite me with `/invite @" + l.b.o.Name + "` and ask again."}))
		})
		return Handled, nil
	}
	s := &sighting{said: p, change: isNew, me: me, kind: l.b.kinds.of(ctx, p.Channel, "")}
	name := l.b.people.namer(ctx)
	m := adapters.Message{
		Conversation: s.conversation(), Kind: chat.KindMessage, Message: "ask-" + i.ActionTS + "-" + i.User.ID, ReplyTo: p.TS, FilesOf: p.TS, At: at, Received: came, Addressed: true,
		Author: l.b.people.author(ctx, i.User.ID), Text: "What about this message?",
	}
	if line := l.line(p, me, name); line != "" {
		m.Attachments = append(m.Attachments, chat.Attachment{
			ID: p.TS, Name: "the message asked about", MediaType: "text/plain", Size: int64(len(line)), Text: line,
		})
	}
	m.Attachments = append(m.Attachments, l.b.Files.attachments(ctx, p)...)
	if m.Conversation.Thread != "" {
		if err := l.b.o.Threads.Join(ctx, m.Conversation); err != nil {
			return Unstored, err
		}
	}
	_, err = inbox.Submit(ctx, m)
	var refusal interface{ Refused() string }
	switch {
	case errors.As(err, &refusal):
		l.later(func(context.Context) { l.respond(i.Response, whispered(Answer{Text: refusal.Refused()})) })
		return Refused, nil
	case err != nil:
		return Unstored, fmt.Errorf("%w: %w", errNotStored, err)
	}
	l.b.Status.heard(m.Conversation, p.TS)
	return Stored, nil
}
