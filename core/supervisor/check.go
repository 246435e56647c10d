package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// CheckPlan says why a plan could not be carried out, in words for the planner's
// model; nil when it could. What cannot be seen now, because Redis does not answer,
// is no fault of the plan's; it is looked at again when the plan is carried out.
func (s *Supervisor) CheckPlan(ctx context.Context, p action.Plan, c chat.Conversation, requester chat.Author) error {
	if err := p.Check(); err != nil {
		return err
	}
	refusal, err := s.refusal(ctx, p, c)
	if refusal != nil {
		return refusal
	}
	if err != nil {
		s.log.Warn("plan_not_checked", "conversation", c.Key(), "error", err)
	}
	now := s.now()
	_, _, err = s.carryOut(p, chat.TaskResult{ID: s.tasks.Derive(c, now, "check"), Conversation: c, Requester: requester, CompletedAt: now}, "any")
	return err
}

// refusal says what stands in the way of a plan in its conversation; err, that it could
// not be seen. What it names of other conversations would never be heard of there. A
// commit leaves out triggers that are too many and says so to nobody, and what they
// were to start would never be.
func (s *Supervisor) refusal(ctx context.Context, p action.Plan, c chat.Conversation) (refusal, err error) {
	if len(p.Triggers) == 0 {
		return nil, nil
	}
	have, err := s.o.Triggers.Count(ctx, c)
	if err != nil {
		return nil, err
	}
	if have+len(p.Triggers) > trigger.MaxPerConversation {
		return fmt.Errorf("this conversation has %d triggers already, and %d more would be over the %d that are allowed", have, len(p.Triggers), trigger.MaxPerConversation), nil
	}
	own := known(p)
	for i, t := range p.Triggers {
		for _, id := range outside(t.Condition, own) {
			there, err := s.belongs(ctx, c, id)
			if err != nil {
				return nil, err
			}
			if !there {
				return fmt.Errorf("triggers[%d]: condition: taskId %q is no name of this plan and no id of a task or trigger of this conversation", i, id), nil
			}
		}
	}
	return nil, nil
}

// outside lists what a condition names besides the tasks and triggers of its plan,
// each once.
func outside(c *action.Condition, own map[string]bool) (ids []string) {
	if c == nil {
		return nil
	}
	if c.Params != nil && c.Params.TaskID != "" && !own[c.Params.TaskID] {
		ids = append(ids, c.Params.TaskID)
	}
	for i := range c.Conditions {
		for _, id := range outside(&c.Conditions[i], own) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// belongs reports whether there is a task or trigger of that id in a conversation.
func (s *Supervisor) belongs(ctx context.Context, c chat.Conversation, id string) (bool, error) {
	if trigger.IsID(id) {
		if _, _, err := trigger.ParseID(id); err != nil {
			return false, nil //nolint:nilerr // what is no id names nothing
		}
		there, err := s.o.Triggers.Exists(ctx, c, []string{id})
		return there[id], err
	}
	if _, _, err := task.ParseID(id); err != nil {
		return false, nil //nolint:nilerr // likewise
	}
	t, err := s.o.Tasks.Get(ctx, id)
	if errors.Is(err, task.ErrUnknown) {
		return false, nil
	}
	return err == nil && t.Conversation == c, err
}
