package thinker

import (
	"context"
	"fmt"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/question"
)

// QuestionStore reads questions; a *question.Store is one.
type QuestionStore interface {
	Open(ctx context.Context, c chat.Conversation) ([]question.Question, error)
}

// QuestionOptions are the parts of ask_user. Both are needed.
type QuestionOptions struct {
	Issuer *question.Issuer
	Store  QuestionStore
}

// QuestionActions are ask_user: the question and its post are part of the turn's
// commit, and its answer is an input of a later turn.
func QuestionActions(o QuestionOptions) []action.Definition {
	return []action.Definition{action.Define(action.AskUser, o.ask)}
}

func (o QuestionOptions) ask(ctx context.Context, t action.Turn, a action.Question) (action.Outcome, error) {
	open, err := o.Store.Open(ctx, t.Conversation)
	if err != nil {
		return action.Outcome{}, err
	}
	now, err := current(ctx)
	if err != nil {
		return action.Outcome{}, err
	}
	if n := len(open) + len(now.so.asked); n >= question.MaxOpen {
		return action.Outcome{}, action.Mistakef("this was not asked: there are %d open questions in this conversation already; no more can be asked before one is answered", n)
	}
	for _, q := range append(open, now.so.asked...) {
		if q.Text == a.Question && q.TaskID == "" {
			return action.Outcome{Answer: fmt.Sprintf("This is asked already, as %s, and nobody has answered yet. It was not asked again.", q.ID)}, nil
		}
	}
	q, call, post, err := o.Issuer.Create(question.Draft{
		Conversation: t.Conversation, Text: a.Question, Options: a.Options, Default: a.Default,
		Timeout: time.Duration(a.Timeout) * time.Second, AskedTo: t.OnBehalfOf, TraceID: t.TraceID, Traceparent: t.Traceparent,
	})
	if err != nil {
		return action.Outcome{}, action.Mistakef("%v", err)
	}
	now.so.asked = append(now.so.asked, q)
	line := history.Encode(chat.Line{ID: "r-" + q.ID, Role: chat.LineAssistant, Text: q.Words(), At: t.Now})
	return action.Outcome{Effects: []any{Effect{
		Said: "I go on when this is answered.",
		Into: func(c *Commit) error {
			c.Effects.Calls = append(c.Effects.Calls, call)
			c.Effects.Publish = append(c.Effects.Publish, post)
			c.Effects.History = append(c.Effects.History, line)
			return nil
		},
	}}}, nil
}
