package thinker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// TriggerStore reads triggers; a *trigger.Store is one.
type TriggerStore interface {
	List(ctx context.Context, f trigger.Filter, from string, limit int) (trigger.Page, error)
	Find(ctx context.Context, prefix string, c *chat.Conversation) (trigger.Trigger, error)
	Count(ctx context.Context, c chat.Conversation) (int, error)
}

// TriggerOptions are the parts of what actions do to triggers. Both are needed.
type TriggerOptions struct {
	Issuer *trigger.Issuer
	Store  TriggerStore
}

// schedule is the action. The model is told when the trigger fires, so that it can
// tell people, and notices a time or a zone that was not meant.
func (o TaskOptions) schedule(ctx context.Context, t action.Turn, a action.NewTrigger) (action.Outcome, error) {
	a.Profile = cmp.Or(a.Profile, task.Standard)
	if err := o.runs(a.Profile); err != nil {
		return action.Outcome{}, err
	}
	bound, err := o.bound(ctx, t)
	if err != nil {
		return action.Outcome{}, err
	}
	condition, err := o.condition(ctx, t.Conversation, a.Condition)
	if err != nil {
		return action.Outcome{}, err
	}
	made, call, err := o.Triggers.Issuer.Create(trigger.Draft{
		Type: trigger.Type(a.Type), Title: a.Title, Prompt: a.Prompt, Profile: a.Profile, Priority: &a.Priority,
		Timeout: seconds(a.Timeout), Retry: retry(a.Retry), Conversation: t.Conversation, Requester: t.OnBehalfOf,
		Interval: time.Duration(a.Interval) * time.Second, Cron: a.Cron, Zone: a.Zone, RunAt: a.RunAt, NextRunAt: a.NextRunAt,
		Condition: condition, Cooldown: time.Duration(a.Cooldown) * time.Second, Storage: cmp.Or(bound, o.Storage), TraceID: t.TraceID, Traceparent: t.Traceparent,
	})
	if err != nil {
		return action.Outcome{}, action.Mistakef("%v", err)
	}
	now, err := current(ctx)
	if err != nil {
		return action.Outcome{}, err
	}
	have, err := o.Triggers.Store.Count(ctx, t.Conversation)
	if err != nil {
		return action.Outcome{}, err
	}
	if have += len(now.so.scheduled) - len(now.so.removed); have >= trigger.MaxPerConversation {
		with := ""
		if n := len(now.so.scheduled); n > 0 {
			with = fmt.Sprintf(", %d of this turn among them", n)
		}
		return action.Outcome{}, action.Mistakef("%q was not set up: this conversation has %d triggers already%s, and no more are allowed; one must be canceled first", made.Title, have, with)
	}
	if twin, err := o.sameTrigger(ctx, made, now.so); err != nil || twin.ID != "" {
		return action.Outcome{Answer: "There is the same trigger already, " + twin.ID + ": it fires " + twin.Fires() + ". No second one was set up."}, err
	}
	when := made.Fires()
	now.so.scheduled = append(now.so.scheduled, made)
	return action.Outcome{
		Answer: fmt.Sprintf("Set up as %s. It fires %s.", made.ID, when),
		Effects: []any{Effect{
			Said: fmt.Sprintf("I have set this up: %s (`%s`). It fires %s.", made.Title, made.ID, when),
			Into: func(c *Commit) error {
				c.Effects.Calls = append(c.Effects.Calls, call)
				o.bind(c, bound)
				return nil
			},
		}},
	}, nil
}

// sameTrigger finds the trigger that a new one would repeat. Words that are asked
// twice ("every day at nine", once more after a failed turn) are to be one. What this
// turn sets up counts, and what it removes does not.
func (o TaskOptions) sameTrigger(ctx context.Context, t trigger.Trigger, so *soFar) (trigger.Trigger, error) {
	same := func(u trigger.Trigger) bool {
		return u.Prompt == t.Prompt && u.Title == t.Title && u.Profile == t.Profile && u.Type == t.Type && u.When() == t.When() && u.Cooldown == t.Cooldown && !u.Paused()
	}
	if i := slices.IndexFunc(so.scheduled, same); i >= 0 {
		return so.scheduled[i], nil
	}
	from := ""
	for {
		page, err := o.Triggers.Store.List(ctx, trigger.Filter{Conversation: &t.Conversation}, from, 100)
		if err != nil {
			return trigger.Trigger{}, err
		}
		for _, u := range page.Triggers {
			if same(u) && !so.removed[u.ID] {
				return u, nil
			}
		}
		if from = page.Next; from == "" {
			return trigger.Trigger{}, nil
		}
	}
}

// condition translates the condition of an action: the tasks and triggers that it
// names must exist, and may be named by the beginnings of their ids.
func (o TaskOptions) condition(ctx context.Context, in chat.Conversation, c *action.Condition) (*trigger.Condition, error) {
	if c == nil {
		return nil, nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode the condition: %w", err)
	}
	out, err := trigger.ParseCondition(data)
	if err != nil {
		return nil, action.Mistakef("%v", err)
	}
	return out, o.name(ctx, in, out)
}

func (o TaskOptions) name(ctx context.Context, in chat.Conversation, c *trigger.Condition) error {
	for i := range c.Conditions {
		if err := o.name(ctx, in, &c.Conditions[i]); err != nil {
			return err
		}
	}
	if c.Params == nil || c.Params.TaskID == "" {
		return nil
	}
	id, err := o.called(ctx, in, strings.TrimSpace(c.Params.TaskID))
	var several *task.AmbiguousError
	var triggers *trigger.AmbiguousError
	switch {
	case errors.Is(err, task.ErrUnknown), errors.Is(err, trigger.ErrUnknown):
		return action.Mistakef("condition: taskId %q is no task or trigger of this conversation; list_tasks shows those there are", c.Params.TaskID)
	case errors.As(err, &several), errors.As(err, &triggers):
		return action.Mistakef("condition: taskId: %v", err)
	}
	c.Params.TaskID = id
	return err
}

// called gives the whole id of a task or trigger.
func (o TaskOptions) called(ctx context.Context, in chat.Conversation, prefix string) (string, error) {
	if trigger.IsID(prefix) {
		t, err := o.Triggers.Store.Find(ctx, prefix, &in)
		return t.ID, err
	}
	t, err := o.Store.Find(ctx, prefix, &in)
	return t.ID, err
}

// removeTrigger is cancel_task of a trigger: it goes, and with it what it has
// started and still runs.
func (o TaskOptions) removeTrigger(ctx context.Context, t action.Turn, id string) (action.Outcome, error) {
	found, err := o.Triggers.Store.Find(ctx, id, &t.Conversation)
	var several *trigger.AmbiguousError
	switch {
	case errors.Is(err, trigger.ErrUnknown):
		return action.Outcome{}, action.Mistakef("task_id: there is no trigger %q in this conversation; list_tasks shows those there are", id)
	case errors.As(err, &several):
		return action.Outcome{}, action.Mistakef("task_id: %v", several)
	case err != nil:
		return action.Outcome{}, err
	case t.Rights < chat.RoleOperator && found.Requester.ID != t.OnBehalfOf.ID:
		return action.Outcome{}, action.Mistakef("task_id: %s was asked for by %s; only they and operators may cancel it", found.ID, cmp.Or(found.Requester.Name, found.Requester.ID))
	}
	remove, err := o.Triggers.Issuer.Remove(t.Conversation, found.ID)
	if err != nil {
		return action.Outcome{}, err
	}
	now, err := current(ctx)
	if err != nil {
		return action.Outcome{}, err
	}
	calls := []channel.Call{remove}
	if found.LastTaskID != "" {
		last, err := o.Store.Find(ctx, found.LastTaskID, &t.Conversation)
		if err != nil && !errors.Is(err, task.ErrUnknown) {
			return action.Outcome{}, err
		}
		if err == nil && !task.Over(last.Status) {
			cancel, err := o.Issuer.Cancel(t.Conversation, last.ID, t.OnBehalfOf, "asked for in the conversation, with its trigger")
			if err != nil {
				return action.Outcome{}, err
			}
			calls = append(calls, cancel)
		}
	}
	now.so.removed[found.ID] = true
	return action.Outcome{Effects: []any{Effect{
		Said: fmt.Sprintf("I have removed the trigger %s (`%s`). It does not fire any more.", found.Title, found.ID),
		Into: func(c *Commit) error {
			c.Effects.Calls = append(c.Effects.Calls, calls...)
			return nil
		},
	}}}, nil
}

// triggerLines tell of the newest triggers of a conversation.
func (o TaskOptions) triggerLines(ctx context.Context, in chat.Conversation, limit int) (lines []string, more bool, err error) {
	page, err := o.Triggers.Store.List(ctx, trigger.Filter{Conversation: &in}, "", limit)
	if err != nil {
		return nil, false, err
	}
	for _, t := range page.Triggers {
		lines = append(lines, t.Line())
	}
	return lines, page.Next != "", nil
}

// delegate is the action: a task of the planner.
func (o TaskOptions) delegate(ctx context.Context, t action.Turn, a action.Delegation) (action.Outcome, error) {
	d := task.Draft{
		Profile: task.Planner, Title: heading(a.Prompt), Prompt: a.Prompt, Conversation: t.Conversation, Requester: t.OnBehalfOf,
		Priority: &a.Priority, Timeout: seconds(a.Timeout), TraceID: t.TraceID, Traceparent: t.Traceparent,
	}
	if twin, err := o.open(ctx, d); err != nil || twin.ID != "" {
		return action.Outcome{Answer: fmt.Sprintf("This is being planned already, by the task %s, which is %s. No second plan was started.", twin.ID, twin.Status)}, err
	}
	made, call, err := o.Issuer.Create(d)
	if err != nil {
		return action.Outcome{}, action.Mistakef("%v", err)
	}
	return action.Outcome{Effects: []any{Effect{
		Said: fmt.Sprintf("I am planning this: %s (`%s`).", made.Title, made.ID),
		Into: func(c *Commit) error {
			c.Effects.Calls = append(c.Effects.Calls, call)
			return nil
		},
	}}}, nil
}

// heading is the beginning of a text, on one line.
func heading(s string) string {
	const most = 80 // characters
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= most {
		return string(r)
	}
	return strings.TrimSpace(string(r[:most])) + "…"
}

// runs refuses a profile that no node runs: its task would wait for ever.
func (o TaskOptions) runs(profile string) error {
	if !slices.Contains(o.Profiles, profile) {
		return action.Mistakef("profile: %q is not to be had here; there is %s", profile, strings.Join(o.Profiles, ", "))
	}
	return nil
}

// bound is the storage that has the conversation's files; "" when none has yet.
func (o TaskOptions) bound(ctx context.Context, t action.Turn) (string, error) {
	now, err := current(ctx)
	if err != nil {
		return "", err
	}
	return now.work.Field(ctx, channel.Storages, t.Conversation.Key())
}

// bind keeps where the conversation's files are, if nowhere yet.
func (o TaskOptions) bind(c *Commit, bound string) {
	put := channel.Put{Table: channel.Storages, Field: c.Turn.Conversation.Key(), Value: o.Storage}
	if bound == "" && o.Storage != "" && !slices.Contains(c.Effects.Puts, put) {
		c.Effects.Puts = append(c.Effects.Puts, put)
	}
}

// seconds is a timeout as an action gives it: 0 means the profile's own.
func seconds(n int) *time.Duration {
	if n == 0 {
		return nil
	}
	return new(time.Duration(n) * time.Second)
}

func retry(r *action.Retry) *task.Retry {
	if r == nil {
		return nil
	}
	return &task.Retry{MaxAttempts: r.MaxAttempts, Backoff: time.Duration(r.Backoff) * time.Second}
}
