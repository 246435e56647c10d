package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/telemetry"
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

// questionShown remembers which message asks a question, and since when, so that any
// node can say there how it was answered, and knows what cannot be an answer. It is
// remembered before the post is settled, since nobody would find the message later.
// Other replies cost nothing here.
func (a *App) questionShown(ctx context.Context, r *chat.Reply, messageID string) error {
	if r.Question == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastIn)
	defer cancel()
	was, err := a.cluster.Note(ctx, questionNote(r.Question))
	if err != nil {
		return err
	}
	if was != messageID { // else a node that died before it settled the post has told
		since := time.Now().UTC().Format(time.RFC3339Nano)
		if err := a.cluster.SetNote(ctx, shownNote(r.Question), since, questionKnown); err != nil {
			return err
		}
		// Last, since where it is, both are.
		if err := a.cluster.SetNote(ctx, questionNote(r.Question), messageID, questionKnown); err != nil {
			return err
		}
	}
	// Whoever read it fast has answered before it was known which message asks.
	a.questionClosed(r.Question)
	return nil
}

func questionNote(id string) string { return "question/" + id }
func shownNote(id string) string    { return "question-shown/" + id }

// questionClosed puts how a question was answered in the place of its buttons, unless
// it is open. One that was answered with a button is changed with the answer to the press.
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

// questionClosing is questionClosed for one that a commit is about to close.
func (a *App) questionClosing(id string) {
	if len(a.platforms) == 0 {
		return
	}
	a.show.last.Go(func() {
		for wait := 50 * time.Millisecond; wait < lastIn; wait *= 2 {
			ctx, cancel := context.WithTimeout(context.Background(), lastIn)
			q, err := a.questions.Get(ctx, id)
			cancel()
			if errors.Is(err, question.ErrUnknown) {
				return // it was never asked
			}
			if err == nil && q.Status != question.Open {
				a.questionClosed(id)
				return
			}
			select {
			case <-time.After(wait):
			case <-a.show.stopped:
				return
			}
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

// pressed answers a question with a button, in the place where it was asked, or in
// App Home, where nobody else is. known says that the button is one of a question.
// note tells all who see the question how it was answered, in the place of its buttons.
func (a *App) pressed(ctx context.Context, who chat.Author, in chat.Conversation, value string) (said, note string, known bool, err error) {
	id, n, known := question.Pressed(value)
	if !known {
		return "", "", false, nil
	}
	q, err := a.questions.Get(ctx, id)
	atHome := in.Place == "" && askedAtHome(q, who, in)
	by := question.ByButton
	if atHome { // the message that asks has buttons, too, and is changed as by a text
		by = question.ByText
	}
	switch {
	case errors.Is(err, question.ErrUnknown), err == nil && (q.Conversation.PlaceKey() != in.PlaceKey() && !atHome || n < 0 || n >= len(q.Options)):
		return staleButton, "", true, nil
	case err != nil:
		return "", "", true, err
	}
	option := q.Options[n]
	ctx, span := a.trace.Start(ctx, telemetry.Start{Name: "answer question", Kind: telemetry.Serves, Parent: q.Traceparent, TraceID: q.TraceID})
	defer span.End()
	_, _, err = a.questions.Answer(ctx, q, question.Answer{By: who, Text: option, Option: option, How: by, At: time.Now(), Traceparent: span.Traceparent()})
	var closed *question.ClosedError
	switch {
	case errors.As(err, &closed):
		return "You are late: " + admin.Escape(closed.Error()) + ".", closed.Question.Outcome(), true, nil
	case errors.Is(err, question.ErrNotAsked):
		a.notAsked(ctx, who, q)
		return "This question is for " + admin.Escape(q.For()) + ".", "", true, nil
	case err != nil:
		return "", "", true, err
	}
	return "You answered: " + admin.Escape(option) + ".", cmp.Or(who.Name, who.ID) + " answered: " + option, true, nil
}
