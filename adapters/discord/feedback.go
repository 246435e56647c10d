package discord

import (
	"context"
	"errors"
	"strings"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

const (
	commandTime = 5 * time.Minute // of a message that is a command
	claimed     = 26 * time.Hour  // at least as long as Discord or a look back may bring a thing again
	sorry       = "Something went wrong on my side. Please try again in a moment."
)

// A StatusLine shows that the bot works, before there is a reply: it is seen to
// type, and each message gets a reaction, 👀 at first and ✅ or ⚠️ in the end.
//
// Nothing here waits for Discord: it is shown beside while the [Listener] runs. It
// lasts no longer than it is renewed.
type StatusLine struct{ d *Bot }

var _ adapters.Feedback = (*StatusLine)(nil)

// Working notes that this node works for a conversation; with an empty what, that
// it does no more. It returns at once. Call it again while the work goes on: typing
// that is not renewed within Options.StatusLasts ends. What is being done is not
// told, since typing has no words.
func (s *StatusLine) Working(_ context.Context, c chat.Conversation, what string) error {
	channel, _ := target(c)
	if what == "" {
		s.d.typing.stop(channel, true)
		return nil
	}
	s.d.showTypes(channel, true)
	return nil
}

// showHeard shows beside that a message was heard: that the bot is at it, a sign
// on it, and the thread in which it will be answered.
func (d *Bot) showHeard(out adapters.Message, m *message) {
	if out.Kind != chat.KindMessage && out.Kind != chat.KindEdit || !out.Addressed {
		return
	}
	c := out.Conversation
	channel, _ := target(c)
	d.jobs.do(laneFeedback, signTime, func(ctx context.Context) {
		if c.Thread == string(m.ID) {
			d.openIfMissing(ctx, c, m.Content)
		}
		d.showTypes(channel, false)
		// The mark comes first: one without a sign does no harm, a sign that nobody
		// takes away would.
		if err := d.o.Marks.Mark(ctx, c, string(m.ID)); err != nil {
			d.o.Logger.Warn("discord_sign_not_noted", "message", string(m.ID), "error", err)
			return
		}
		if d.signs.answered(c, string(m.ID)) {
			return
		}
		if d.react(ctx, "PUT", c, string(m.ID), signHeard) == nil && d.signs.answered(c, string(m.ID)) {
			_ = d.react(ctx, "DELETE", c, string(m.ID), signHeard) // the answer was faster
		}
	})
}

// showAnswered takes the signs off what an answer answers, and sets the last.
func (d *Bot) showAnswered(c chat.Conversation, p adapters.Part) {
	if p.Index != p.Count-1 || !isID(p.ReplyTo) {
		return
	}
	d.signs.answer(c, p.ReplyTo)
	sign := signDone
	if p.Kind == chat.ReplyNotice {
		sign = signFailed
	}
	d.jobs.do(laneFeedback, time.Minute, func(ctx context.Context) {
		all, err := d.o.Marks.Unmark(ctx, c, p.ReplyTo)
		if err != nil {
			d.o.Logger.Warn("discord_signs_not_taken", "conversation", c.Key(), "error", err)
			return
		}
		for _, id := range all {
			err := d.react(ctx, "DELETE", c, id, signHeard)
			if err == nil {
				err = d.react(ctx, "PUT", c, id, sign)
			}
			if err != nil {
				d.o.Logger.Debug("discord_sign_not_changed", "message", id, "error", err)
			}
		}
	})
}

// refused tells somebody why their message was not taken. What is refused is not
// remembered by whoever refuses it, so it may come here more than once.
func (d *Bot) refused(s *scene, reason string) {
	m, c := s.m, s.talk
	d.jobs.do(laneFeedback, signTime, func(ctx context.Context) {
		first, err := d.o.Claims.Claim(ctx, "discord/refused/"+string(m.ID)+"/"+m.editedAt(), claimed)
		if err != nil || !first {
			return
		}
		if err := d.react(ctx, "PUT", c, string(m.ID), signFailed); err != nil {
			d.o.Logger.Debug("discord_sign_not_changed", "message", string(m.ID), "error", err)
		}
		d.say(ctx, m, "refused", Answer{Text: reason})
	})
}

// command carries out a message that is a command, if nobody has yet.
func (d *Bot) command(ctx context.Context, s *scene, out adapters.Message, words []string) (Outcome, error) {
	m := s.m
	if err := d.lives(ctx, out, m); err != nil {
		return Unstored, err
	}
	first, err := d.o.Claims.Claim(ctx, "discord/command/"+string(m.ID), claimed)
	if err != nil {
		return Unstored, wrap(err, "claim the command of message "+string(m.ID))
	}
	if !first {
		return Known, nil
	}
	who := Caller{Author: out.Author, Conversation: out.Conversation, Message: string(m.ID), ID: string(m.ID), At: out.At}
	run := func(ctx context.Context) {
		a, err := d.perform(s.person, who, func() (Answer, error) { return d.o.Commands.Run(ctx, who, words) })
		d.say(ctx, m, "command", d.outcome(string(m.ID), a, err))
	}
	if !d.jobs.do(laneAct, commandTime, run) {
		short, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		run(short) // rather slow than not at all
	}
	return Handled, nil
}

// outcome is the answer to who asked for something. A failure that is not for them
// to know is logged.
func (d *Bot) outcome(id string, a Answer, err error) Answer {
	if err == nil {
		return a
	}
	var r interface{ Refused() string }
	if errors.As(err, &r) {
		return Answer{Text: "⚠️ " + r.Refused()}
	}
	d.o.Logger.Error("discord_command_failed", "id", id, "error", err)
	return Answer{Text: "⚠️ " + sorry}
}

// say answers a message at once and at most once, where it stands.
func (d *Bot) say(ctx context.Context, m *message, why string, a Answer) {
	rows, shown := components(a.Buttons)
	if !shown {
		a.Text += numbered(a.Buttons)
	}
	if strings.TrimSpace(a.Text) == "" && len(rows) == 0 {
		return
	}
	parts := atMost(renderParts(a.Text), mostTold)
	for n, part := range parts {
		o := outMessage{Content: part, Nonce: nonceOf(why+" "+string(m.ID), n), Enforce: true, Reference: answering(string(m.ID))}
		if n == len(parts)-1 && len(rows) > 0 {
			o.Components = &rows
		}
		if _, err := d.send(ctx, string(m.ChannelID), o, nil, Final); err != nil {
			d.o.Logger.Warn("discord_not_said", "message", string(m.ID), "error", err)
			return
		}
	}
}

// mostTold is how many messages an answer to a command may have.
const mostTold = 5

func atMost(parts []string, most int) []string {
	if len(parts) <= most {
		return parts
	}
	return append(parts[:most-1:most-1], "…there is more than fits here; narrow it down.")
}
