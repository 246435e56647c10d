package slack

import (
	"context"

	"github.com/slack-go/slack"

	"mimikit/core/chat"
)

// The reactions by which a person sees what became of a message.
const (
	eyes    = "eyes"
	check   = "white_check_mark"
	warning = "warning"
)

// mark reacts to a message that was taken. The mark is remembered first: one
// without a reaction does no harm, a reaction that nobody takes away would.
func (s *StatusLine) mark(ctx context.Context, c chat.Conversation, ts string) {
	if err := s.api.o.Marks.Mark(ctx, c, ts); err != nil {
		s.api.o.Logger.Debug("slack_mark_not_kept", "conversation", c.Key(), "error", err)
		return
	}
	s.react(ctx, c, ts, eyes, true)
}

func (s *StatusLine) unmark(ctx context.Context, c chat.Conversation, o *outcome) {
	list, err := s.api.o.Marks.Unmark(ctx, c, o.upTo)
	if err != nil {
		s.api.o.Logger.Debug("slack_marks_not_read", "conversation", c.Key(), "error", err)
		return
	}
	name := check
	if !o.ok {
		name = warning
	}
	for _, ts := range list {
		s.react(ctx, c, ts, eyes, false)
		s.react(ctx, c, ts, name, true)
	}
}

func (s *StatusLine) react(ctx context.Context, c chat.Conversation, ts, name string, add bool) {
	method, do := "reactions.add", s.api.sdk.AddReactionContext
	if !add {
		method, do = "reactions.remove", s.api.sdk.RemoveReactionContext
	}
	err := s.api.call(ctx, Draw{Method: method, Place: c.Place, Priority: Status}, 0, func(ctx context.Context) error {
		return do(ctx, name, slack.NewRefToMessage(c.Place, ts))
	})
	switch code(err) {
	case "", "already_reacted", "no_reaction":
	default:
		s.api.o.Logger.Debug("slack_reaction_failed", "place", c.Place, "message", ts, "error", err)
	}
}
