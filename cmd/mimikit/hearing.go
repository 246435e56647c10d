package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mimikit/adapters/inbox"
	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/telemetry"
)

// door is where inputs go. A node that is measured by itself asks nobody anything.
func (a *App) door(model *chosenModel) inbox.Door {
	if model != nil && model.alone {
		return a.node
	}
	return hearing{a.node, a.questions, a.cluster.Note}
}

// A hearing is the door to the channels that tells answers from talk.
type hearing struct {
	inbox.Door
	questions *question.Store
	asks      func(ctx context.Context, note string) (text string, err error) // which message asks, and since when
}

// Of when a person may mean a question that is not open any more, or not shown yet.
const (
	skew   = time.Minute     // of the platform's clock and ours
	lately = time.Minute     // who answers may not have seen yet that a question was closed
	hasty  = 3 * time.Second // or means the one that they have just answered
)

// Ingest accepts an input. What answers an open question of its conversation closes
// that in the same script. What may be meant to allow something, and might be meant for
// another question, does neither: whoever said it is told how to say which. Anything
// else is talk.
func (h hearing) Ingest(ctx context.Context, in channel.Input) (channel.Accepted, error) {
	r, err := h.reads(ctx, in)
	switch {
	case err != nil:
		return channel.Accepted{}, err
	case len(r.unsure) > 0:
		return h.askWhich(ctx, in, r.unsure)
	case r.meant == nil:
		return h.Door.Ingest(ctx, in)
	}
	telemetry.Current(ctx).Link(r.meant.Traceparent)
	id, heard, err := h.questions.Answer(ctx, *r.meant, r.answer)
	var closed *question.ClosedError
	switch {
	case err == nil:
		return channel.Accepted{InputID: id, Known: heard}, nil
	case !errors.As(err, &closed) && !errors.Is(err, question.ErrUnknown):
		return channel.Accepted{}, err
	}
	return h.Door.Ingest(ctx, in) // somebody was faster, so it is talk
}

// A reading is what an input was found to say; the zero value is talk.
type reading struct {
	meant  *question.Question // that it answers
	answer question.Answer
	unsure []question.Question // or those that it may be meant for
}

// reads tells whether an input is an answer, and to what.
func (h hearing) reads(ctx context.Context, in channel.Input) (reading, error) {
	v := in.Value
	if in.Stop || v.Kind != "" && v.Kind != chat.KindMessage || !v.Addressed || len(v.Attachments) > 0 || v.TextBlob != "" || strings.TrimSpace(v.Text) == "" {
		return reading{}, nil
	}
	open, err := h.questions.Open(ctx, v.Conversation)
	if err != nil {
		return reading{}, err
	}
	var theirs []question.Question // that the author may answer, and knew of
	for _, q := range open {
		asked := q.CreatedAt.Add(-skew)
		if q.OnlyOptions {
			asked = q.CreatedAt // nobody allows what they have not been shown: rather they say it again
		}
		if q.MayAnswer(v.Author) && !v.At.Before(asked) {
			theirs = append(theirs, q)
		}
	}
	if len(theirs) == 0 {
		return reading{}, nil
	}
	if q, err := h.repliedTo(ctx, v.ReplyTo, theirs); q != nil || err != nil {
		return taken(in, q, true), err
	}
	for _, q := range theirs {
		if _, _, ok := q.Read(v.Text, false); !ok || !q.OnlyOptions {
			continue
		}
		alone, err := h.alone(ctx, q, open, v)
		if err != nil {
			return reading{}, err
		}
		if !alone {
			return reading{unsure: theirs}, nil
		}
		return taken(in, &q, false), nil
	}
	// What no question about a risk takes is for the newest of the others.
	for i, q := range open {
		if q.OnlyOptions {
			continue
		}
		for _, x := range theirs {
			if x.ID == q.ID {
				return taken(in, &q, i == 0 && inPrivate(v.Conversation)), nil
			}
		}
		break
	}
	return reading{}, nil
}

// taken is an input as an answer to q, if it is one. meant says that it can be for
// nothing else, so that any words will do.
func taken(in channel.Input, q *question.Question, meant bool) reading {
	if q == nil {
		return reading{}
	}
	v := in.Value
	text, option, ok := q.Read(v.Text, meant)
	if !ok {
		return reading{}
	}
	return reading{meant: q, answer: question.Answer{
		By: v.Author, Text: text, Option: option, How: question.ByText, At: v.At, Message: v.Message, ReplyTo: v.ReplyTo,
		Dedupe: in.Dedupe, TraceID: in.TraceID, Traceparent: in.Traceparent,
	}}
}

// repliedTo is the question whose post a message replies to; nil is none.
func (h hearing) repliedTo(ctx context.Context, message string, of []question.Question) (*question.Question, error) {
	if message == "" || h.asks == nil {
		return nil, nil
	}
	for _, q := range of {
		post, err := h.asks(ctx, questionNote(q.ID))
		if err != nil {
			return nil, err
		}
		if post == message {
			return &q, nil
		}
	}
	return nil, nil
}

// alone reports whether bare words can be for no other question than q: it was there to
// be read, none is open beside it, none was when they were said, or shortly before, and
// they reply to nothing else.
func (h hearing) alone(ctx context.Context, q question.Question, open []question.Question, v chat.UserInput) (bool, error) {
	if len(open) > 1 || v.ReplyTo != "" {
		return false, nil
	}
	if seen, err := h.seen(ctx, q, v.At); !seen || err != nil {
		return false, err
	}
	closed, err := h.questions.ClosedSince(ctx, v.Conversation, v.At.Add(-lately))
	if err != nil {
		return false, err
	}
	for _, x := range closed {
		known := x.AnsweredBy.ID == v.Author.ID && x.AnsweredAt.Before(v.At.Add(-hasty))
		if x.ID != q.ID && !known {
			return false, nil
		}
	}
	return true, nil
}

// seen reports whether a question was there to be read at a moment. Its post may wait
// long after it was asked, for a platform that is away or allows no more posts, and
// meanwhile a number is meant for something else.
func (h hearing) seen(ctx context.Context, q question.Question, at time.Time) (bool, error) {
	if h.asks == nil {
		return true, nil
	}
	if post, err := h.asks(ctx, questionNote(q.ID)); post == "" || err != nil {
		return false, err
	}
	shown, err := h.asks(ctx, shownNote(q.ID))
	if err != nil {
		return false, err
	}
	since, err := time.Parse(time.RFC3339Nano, shown)
	return err != nil || !at.Before(since), nil // without a time it was shown by an earlier build
}

// askWhich tells whoever spoke how to say which question they mean. The message was
// heard by that: one that a platform delivers twice is told so once, and is no talk later.
func (h hearing) askWhich(ctx context.Context, in channel.Input, open []question.Question) (channel.Accepted, error) {
	v, commit := in.Value, "which/"+in.Dedupe
	id := channel.InputID(in.Dedupe)
	err := h.Publish(ctx, commit, v.At, v.Conversation.Key(), channel.Publish{
		To: channel.TellerReply, InputIDs: []string{id}, Heard: in.Dedupe, Value: &chat.Reply{
			ID: channel.InputID(commit), Conversation: v.Conversation, Kind: chat.ReplyNotice, Text: whichWords(v, open),
			InputIDs: []string{id}, ReplyTo: v.Message, CreatedAt: v.At.UTC(),
		},
	})
	if err != nil && !errors.Is(err, channel.ErrHeard) {
		return channel.Accepted{}, fmt.Errorf("ask which question is meant: %w", err)
	}
	return channel.Accepted{InputID: id, Known: err != nil}, nil
}

// whichWords names what is open, and how to answer each of it.
func whichWords(v chat.UserInput, open []question.Question) string {
	command := "!answer "
	if v.Conversation.Platform == "console" {
		command = "/answer "
	}
	var b strings.Builder
	fmt.Fprintf(&b, "I took “%s” for no answer. It could allow something, and more than one question is open here, or was until just now, or what is asked was not shown yet when you wrote it. So please say which one you mean:\n", admin.Escape(firstLine(v.Text, 40)))
	for _, q := range open {
		var options []string
		for i, o := range q.Options {
			options = append(options, fmt.Sprintf("%d. %s", i+1, admin.Escape(o)))
		}
		fmt.Fprintf(&b, "\n- %s", admin.Escape(firstLine(q.Text, 100)))
		if len(options) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(options, ", "))
		}
		fmt.Fprintf(&b, ": write `%s%s` and the number or the words", command, q.ID)
	}
	b.WriteString("\n\nWhere a question has buttons, they do as well, and so does a reply to its own message.")
	return b.String()
}

// firstLine is the beginning of a text, of at most so many characters.
func firstLine(s string, most int) string {
	s = strings.TrimSpace(s)
	line, _, more := strings.Cut(s, "\n")
	if r := []rune(line); len(r) > most {
		line, more = string(r[:most]), true
	}
	if more {
		line = strings.TrimRight(line, " .:") + "…"
	}
	return line
}

// inPrivate reports whether a conversation is one person's with the bot.
func inPrivate(c chat.Conversation) bool { return c.Platform == "console" || admin.Direct(c) }
