package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/question"
	"mimikit/core/task"
)

// approver is the mark of who watches a task that asks whether it may do something, so
// that its end is heard of and the question taken back.
const approver = "approval"

// ask puts what a task must know: a planner's question to who asked for the plan, and
// whether another task may do something to who decides that. No time of the task runs
// while it waits.
func (s *Supervisor) ask(ctx context.Context, r chat.TaskResult) (channel.Effects, error) {
	if r.Question == nil {
		return channel.Effects{}, &channel.GiveUp{Why: "the task waits without a question"}
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
	d, err := s.draft(is, r)
	if err != nil {
		return channel.Effects{}, err
	}
	q, call, post, err := is.Create(d)
	if err != nil {
		return s.unasked(r, err.Error())
	}
	calls := []channel.Call{call}
	if r.Profile != task.Planner {
		watch, err := s.tasks.Watch(r.Conversation, r.ID, approver)
		if err != nil {
			return channel.Effects{}, err
		}
		calls = append(calls, watch)
	}
	line := history.Encode(chat.Line{ID: "r-" + q.ID, Role: chat.LineAssistant, Text: q.Words(), At: q.CreatedAt})
	return channel.Effects{Publish: []channel.Publish{post}, Calls: calls, History: []string{line}}, nil
}

// draft is the question of a task that waits.
func (s *Supervisor) draft(is *question.Issuer, r chat.TaskResult) (question.Draft, error) {
	id, err := is.OfTask(r.Conversation, r.ID, r.Question.ID)
	d := question.Draft{
		ID: id, Conversation: r.Conversation, Text: r.Question.Question, Options: r.Question.Options, Default: r.Question.Default,
		AskedTo: r.Requester, TaskID: r.ID, TaskQuestion: r.Question.ID, TraceID: r.TraceID, Traceparent: r.Traceparent,
	}
	if err != nil || r.Profile == task.Planner {
		return d, err
	}
	d.OnlyOptions, d.Timeout = true, cmp.Or(s.o.Approvals.Timeout, question.DefaultTimeout)
	role := s.o.Approvals.By
	if role == 0 && (r.Requester.ID == "" || r.Requester.Bot) {
		role = chat.RoleOperator // nobody else is there whom it could be put to
	}
	if role > 0 {
		d.AskedTo, d.AskedRole = chat.Author{}, role
		d.Text += " Only " + question.Question{AskedRole: role}.For() + " can answer."
	}
	return d, nil
}

// unasked is for a question that cannot be put. A plan is given up, and its end as
// canceled told like any; another task goes on with the default, which lets it do
// nothing.
func (s *Supervisor) unasked(r chat.TaskResult, why string) (channel.Effects, error) {
	var call channel.Call
	var err error
	if r.Profile == task.Planner || r.Question.Default == "" {
		call, err = s.tasks.Cancel(r.Conversation, r.ID, r.Requester, "the task would have to know this: "+r.Question.Question+" ("+why+")")
	} else {
		s.log.Warn("approval_not_asked", "task_id", r.ID, "reason", why, "conversation", r.Conversation.Key(), "trace_id", r.TraceID)
		call, err = s.tasks.Answer(r.Conversation, r.ID, r.Question.ID, r.Question.Default, chat.Author{ID: "supervisor", Name: "supervisor", Role: chat.RoleUser, Bot: true})
	}
	return channel.Effects{Calls: []channel.Call{call}}, err
}

// withdraw takes back the question of a task that does not wait any more.
func (s *Supervisor) withdraw(ctx context.Context, r chat.TaskResult) ([]channel.Call, error) {
	if s.o.Questions == nil {
		return nil, nil
	}
	t, err := s.o.Tasks.Get(ctx, r.ID)
	switch {
	case errors.Is(err, task.ErrUnknown), err == nil && t.Question == nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	var calls []channel.Call
	what := "plan"
	if r.Profile != task.Planner {
		what = "task"
		unwatch, err := s.tasks.Unwatch(r.Conversation, r.ID, approver)
		if err != nil {
			return nil, err
		}
		calls = append(calls, unwatch)
	}
	if t.Answer != "" {
		return calls, nil
	}
	is := s.o.Questions.Issuer()
	id, err := is.OfTask(r.Conversation, r.ID, t.Question.ID)
	if err != nil {
		return nil, err
	}
	call, err := is.Withdraw(r.Conversation, id, "the "+what+" is "+string(r.Status))
	if err == nil && s.o.Closing != nil {
		s.o.Closing(id)
	}
	return append(calls, call), err
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
