package thinker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// TaskStore reads tasks; a *task.Queue is one.
type TaskStore interface {
	List(ctx context.Context, f task.Filter, from string, limit int) (task.Page, error)
	Find(ctx context.Context, prefix string, c *chat.Conversation) (task.Task, error)
}

// TaskOptions are the parts of the actions on tasks. Issuer and Store are needed.
type TaskOptions struct {
	Issuer   *task.Issuer
	Store    TaskStore
	Triggers *TriggerOptions  // nil: there are none
	Profiles []string         // that some node runs, but for the planner's; others are refused in words
	Planner  bool             // some node plans
	Storage  string           // where a conversation's files are kept that has none yet
	Now      func() time.Time // nil means time.Now
}

// TaskActions are create_task, cancel_task and list_tasks; with triggers schedule,
// with a planner delegate. What they change is part of the turn's commit.
func TaskActions(o TaskOptions) []action.Definition {
	if o.Now == nil {
		o.Now = time.Now
	}
	defs := []action.Definition{
		action.Define(action.CreateTask, o.create),
		action.Define(action.CancelTask, o.cancel),
		action.Define(action.ListTasks, o.list),
	}
	if o.Triggers != nil {
		defs = append(defs, action.Define(action.Schedule, o.schedule))
	}
	if o.Planner {
		defs = append(defs, action.Define(action.Delegate, o.delegate))
	}
	return defs
}

func (o TaskOptions) create(ctx context.Context, t action.Turn, a action.NewTask) (action.Outcome, error) {
	if err := o.runs(a.Profile); err != nil {
		return action.Outcome{}, err
	}
	bound, err := o.bound(ctx, t)
	if err != nil {
		return action.Outcome{}, err
	}
	d := task.Draft{
		Profile: a.Profile, Title: a.Title, Prompt: a.Prompt, Conversation: t.Conversation, Requester: t.OnBehalfOf,
		Priority: &a.Priority, DeferUntil: a.DeferUntil, TraceID: t.TraceID, Traceparent: t.Traceparent, Storage: cmp.Or(bound, o.Storage),
		Timeout: seconds(a.Timeout), Retry: retry(a.Retry),
	}
	if twin, err := o.open(ctx, d); err != nil || twin.ID != "" {
		return action.Outcome{Answer: fmt.Sprintf("There is the same task already, %s, and it is %s. No second one was started.", twin.ID, twin.Status)}, err
	}
	made, call, err := o.Issuer.Create(d)
	if err != nil {
		return action.Outcome{}, action.Mistakef("%v", err)
	}
	said := fmt.Sprintf("I have started a task: %s (`%s`).", made.Title, made.ID)
	if made.Status == task.Deferred {
		said = fmt.Sprintf("I have set up a task for %s: %s (`%s`).", made.DeferUntil.UTC().Format("2006-01-02 15:04 UTC"), made.Title, made.ID)
	}
	return action.Outcome{Effects: []any{Effect{Said: said, Into: func(c *Commit) error {
		c.Effects.Calls = append(c.Effects.Calls, call)
		o.bind(c, bound)
		return nil
	}}}}, nil
}

// open finds the task that a draft would repeat. The commit looks again, so this
// only serves to tell the model.
func (o TaskOptions) open(ctx context.Context, d task.Draft) (task.Task, error) {
	page, err := o.Store.List(ctx, task.Filter{Conversation: &d.Conversation, Status: task.Active}, "", 100)
	if err != nil {
		return task.Task{}, err
	}
	for _, t := range page.Tasks {
		if t.Prompt == d.Prompt && t.Title == strings.Join(strings.Fields(d.Title), " ") && t.Profile == d.Profile && t.CancelRequestedAt.IsZero() {
			return t, nil
		}
	}
	return task.Task{}, nil
}

func (o TaskOptions) cancel(ctx context.Context, t action.Turn, a action.Cancellation) (action.Outcome, error) {
	if id := strings.TrimSpace(a.TaskID); o.Triggers != nil && trigger.IsID(id) {
		return o.removeTrigger(ctx, t, id)
	}
	found, err := o.Store.Find(ctx, strings.TrimSpace(a.TaskID), &t.Conversation)
	var several *task.AmbiguousError
	switch {
	case errors.Is(err, task.ErrUnknown):
		return action.Outcome{}, action.Mistakef("task_id: there is no task %q in this conversation; list_tasks shows those there are", a.TaskID)
	case errors.As(err, &several):
		return action.Outcome{}, action.Mistakef("task_id: %v", several)
	case err != nil:
		return action.Outcome{}, err
	case task.Over(found.Status):
		return action.Outcome{Answer: fmt.Sprintf("Task %s is over: %s.", found.ID, found.Status)}, nil
	case t.Rights < chat.RoleOperator && found.Requester.ID != t.OnBehalfOf.ID:
		return action.Outcome{}, action.Mistakef("task_id: %s was asked for by %s; only they and operators may cancel it", found.ID, cmp.Or(found.Requester.Name, found.Requester.ID))
	}
	call, err := o.Issuer.Cancel(t.Conversation, found.ID, t.OnBehalfOf, "asked for in the conversation")
	if err != nil {
		return action.Outcome{}, err
	}
	return action.Outcome{Effects: []any{Effect{
		Said: fmt.Sprintf("I am canceling the task %s (`%s`).", found.Title, found.ID),
		Into: func(c *Commit) error {
			c.Effects.Calls = append(c.Effects.Calls, call)
			return nil
		},
	}}}, nil
}

func (o TaskOptions) list(ctx context.Context, t action.Turn, a action.TaskQuery) (action.Outcome, error) {
	f := task.Filter{Conversation: &t.Conversation}
	switch a.Status {
	case "", "all":
	case "active":
		f.Status = task.Active
	default:
		f.Status = []task.Status{task.Status(a.Status)}
	}
	page, err := o.Store.List(ctx, f, "", a.Limit)
	if err != nil {
		return action.Outcome{}, err
	}
	lines := task.Summarize(page.Tasks, task.SummaryLimits{Min: 1, Max: a.Limit}, o.Now())
	more := page.Next != ""
	if o.Triggers != nil && slices.Contains([]string{"", "all", "active"}, a.Status) {
		triggers, others, err := o.triggerLines(ctx, t.Conversation, a.Limit)
		if err != nil {
			return action.Outcome{}, err
		}
		lines, more = append(lines, triggers...), more || others
	}
	if len(lines) == 0 {
		return action.Outcome{Answer: "There are no such tasks in this conversation."}, nil
	}
	if more {
		lines = append(lines, "There are more.")
	}
	return action.Outcome{Answer: strings.Join(lines, "\n")}, nil
}
