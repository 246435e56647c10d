package supervisor

import (
	"context"
	"errors"
	"fmt"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/question"
	"mimikit/core/task"
)

// ask puts what the planner must know to who asked for the plan. No time runs while
// it waits.
func (s *Supervisor) ask(ctx context.Context, r chat.TaskResult) (channel.Effects, error) {
	if r.Question == nil {
		return channel.Effects{}, &channel.GiveUp{Why: "the planner waits without a question"}
	}
	if s.o.Questions == nil {
		return s.unasked(r, "nobody can be asked here")
	}
	open, err := s.o.Questions.Open(ctx, r.Conversation)
	if err != nil {
		return channel.Effects{}, err
	}
	if len(open) >= question.MaxOpen {
		return s.unasked(r, fmt.Sprintf("there are %d open questions here already", len(open)))
	}
	is := s.o.Questions.Issuer()
	id, err := is.OfTask(r.Conversation, r.ID, r.Question.ID)
	if err != nil {
		return channel.Effects{}, err
	}
	q, call, post, err := is.Create(question.Draft{
		ID: id, Conversation: r.Conversation, Text: r.Question.Question, Options: r.Question.Options, Default: r.Question.Default,
		AskedTo: r.Requester, TaskID: r.ID, TaskQuestion: r.Question.ID, TraceID: r.TraceID,
	})
	if err != nil {
		return s.unasked(r, err.Error())
	}
	line := history.Encode(chat.Line{ID: "r-" + q.ID, Role: chat.LineAssistant, Text: q.Words(), At: q.CreatedAt})
	return channel.Effects{Publish: []channel.Publish{post}, Calls: []channel.Call{call}, History: []string{line}}, nil
}

// unasked gives up a plan whose question cannot be put. Its end as canceled is told
// like any.
func (s *Supervisor) unasked(r chat.TaskResult, why string) (channel.Effects, error) {
	cancel, err := s.tasks.Cancel(r.Conversation, r.ID, r.Requester, "the planner would have to know this: "+r.Question.Question+" ("+why+")")
	return channel.Effects{Calls: []channel.Call{cancel}}, err
}

// withdraw takes back the question of a planner that does not wait any more.
func (s *Supervisor) withdraw(ctx context.Context, r chat.TaskResult) ([]channel.Call, error) {
	if s.o.Questions == nil {
		return nil, nil
	}
	t, err := s.o.Tasks.Get(ctx, r.ID)
	switch {
	case errors.Is(err, task.ErrUnknown), err == nil && (t.Question == nil || t.Answer != ""):
		return nil, nil
	case err != nil:
		return nil, err
	}
	is := s.o.Questions.Issuer()
	id, err := is.OfTask(r.Conversation, r.ID, t.Question.ID)
	if err != nil {
		return nil, err
	}
	call, err := is.Withdraw(r.Conversation, id, "the plan is "+string(r.Status))
	return []channel.Call{call}, err
}

// answered tells of the last question of a plan and who answered it, for those who
// read the history later; "" when there was none.
func (s *Supervisor) answered(ctx context.Context, r chat.TaskResult) (string, error) {
	t, err := s.o.Tasks.Get(ctx, r.ID)
	if errors.Is(err, task.ErrUnknown) || err == nil && (t.Question == nil || t.Answer == "") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	who := t.AnsweredBy.Name
	if who == "" {
		who = t.AnsweredBy.ID
	}
	return fmt.Sprintf("Asked %q, %s answered %q.\n", history.Cut(t.Question.Question, 500), who, history.Cut(t.Answer, 500)), nil
}
