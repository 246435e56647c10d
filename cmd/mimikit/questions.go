package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"mimikit/adapters/inbox"
	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
)

// newQuestions is where questions are kept and answered.
func (a *App) newQuestions() (*question.Store, error) {
	return question.New(question.Options{
		Issuer: question.Issuer{Tasks: a.queue.Issuer()}, Client: a.store.Client,
		Sent:   func(p int) int64 { return a.node.Sent(p) },
		Saw:    func(ctx context.Context, p int, sent, got int64) bool { return a.node.Saw(ctx, p, sent, got) },
		Closed: a.questionClosed,
		Logger: a.log,
	})
}

const questionKnown = 31 * 24 * time.Hour // a question is open for thirty days at most

// questionShown remembers which message asks a question, so that any node can say
// there how it was answered.
func (a *App) questionShown(r *chat.Reply, messageID string) {
	if r.Question == "" {
		return
	}
	a.show.last.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastIn)
		defer cancel()
		if err := a.cluster.SetNote(ctx, questionNote(r.Question), messageID, questionKnown); err != nil {
			a.log.Warn("question_message_not_noted", "question", r.Question, "error", err)
		}
	})
}

func questionNote(id string) string { return "question/" + id }

// questionClosed puts how a question was answered in the place of its buttons. One
// that was answered with a button is changed with the answer to the press.
func (a *App) questionClosed(id string) {
	if len(a.platforms) == 0 {
		return
	}
	a.show.last.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastIn)
		defer cancel()
		if err := a.editQuestion(ctx, id); err != nil {
			a.log.Warn("question_not_changed", "question", id, "error", err)
		}
	})
}

func (a *App) editQuestion(ctx context.Context, id string) error {
	q, err := a.questions.Get(ctx, id)
	if err != nil {
		return err
	}
	p := a.show.platform(q.Conversation)
	if p == nil || p.edit == nil || q.Status == question.Open || q.How == question.ByButton {
		return nil
	}
	message, err := a.cluster.Note(ctx, questionNote(id))
	if err != nil || message == "" {
		return err
	}
	return p.edit(ctx, q.Conversation, message, q.Text+"\n\n_"+admin.Escape(q.Outcome())+"_", nil)
}

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
	asks      func(ctx context.Context, note string) (messageID string, err error) // which message asks
}

// Ingest accepts an input. What answers the newest open question of its conversation
// closes that in the same script; anything else is talk.
func (h hearing) Ingest(ctx context.Context, in channel.Input) (channel.Accepted, error) {
	q, a, ok, err := h.reads(ctx, in)
	if err != nil {
		return channel.Accepted{}, err
	}
	if ok {
		id, heard, err := h.questions.Answer(ctx, q, a)
		var closed *question.ClosedError
		switch {
		case err == nil:
			return channel.Accepted{InputID: id, Known: heard}, nil
		case !errors.As(err, &closed) && !errors.Is(err, question.ErrUnknown):
			return channel.Accepted{}, err
		}
		// Somebody was faster, so it is talk.
	}
	return h.Door.Ingest(ctx, in)
}

// reads tells whether an input is an answer, and to what.
func (h hearing) reads(ctx context.Context, in channel.Input) (q question.Question, a question.Answer, ok bool, err error) {
	v := in.Value
	if in.Stop || v.Kind != "" && v.Kind != chat.KindMessage || !v.Addressed || len(v.Attachments) > 0 || v.TextBlob != "" || strings.TrimSpace(v.Text) == "" {
		return q, a, false, nil
	}
	q, ok, err = h.questions.Newest(ctx, v.Conversation)
	skew := time.Minute // of the platform's clock and ours
	if q.OnlyOptions {
		skew = 0 // nobody allows what they have not been shown: rather they say it again
	}
	if err != nil || !ok || !q.MayAnswer(v.Author) || v.At.Before(q.CreatedAt.Add(-skew)) {
		return q, a, false, err
	}
	meant := inPrivate(v.Conversation)
	if !meant && v.ReplyTo != "" && h.asks != nil {
		message, err := h.asks(ctx, questionNote(q.ID))
		if err != nil {
			return q, a, false, err
		}
		meant = message == v.ReplyTo
	}
	text, option, ok := q.Read(v.Text, meant)
	return q, question.Answer{
		By: v.Author, Text: text, Option: option, How: question.ByText, At: v.At, Message: v.Message, ReplyTo: v.ReplyTo,
		Dedupe: in.Dedupe, TraceID: in.TraceID, Traceparent: in.Traceparent,
	}, ok, nil
}

// inPrivate reports whether a conversation is one person's with the bot.
func inPrivate(c chat.Conversation) bool { return c.Platform == "console" || admin.Direct(c) }

// pressed answers a question with a button, in the place where it was asked. known
// says that the button is one of a question. note tells all who see the question
// how it was answered, in the place of its buttons.
func (a *App) pressed(ctx context.Context, who chat.Author, in chat.Conversation, value string) (said, note string, known bool, err error) {
	id, n, known := question.Pressed(value)
	if !known {
		return "", "", false, nil
	}
	q, err := a.questions.Get(ctx, id)
	switch {
	case errors.Is(err, question.ErrUnknown), err == nil && (q.Conversation.PlaceKey() != in.PlaceKey() || n < 0 || n >= len(q.Options)):
		return staleButton, "", true, nil
	case err != nil:
		return "", "", true, err
	}
	option := q.Options[n]
	_, _, err = a.questions.Answer(ctx, q, question.Answer{By: who, Text: option, Option: option, How: question.ByButton, At: time.Now()})
	var closed *question.ClosedError
	switch {
	case errors.As(err, &closed):
		how := closed.Error()
		return "You are late: " + admin.Escape(how) + ".", how, true, nil
	case errors.Is(err, question.ErrNotAsked):
		a.notAsked(ctx, who, q)
		return "This question is for " + admin.Escape(q.For()) + ".", "", true, nil
	case err != nil:
		return "", "", true, err
	}
	return "You answered: " + admin.Escape(option) + ".", cmp.Or(who.Name, who.ID) + " answered: " + option, true, nil
}
