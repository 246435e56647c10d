package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// mostOfCommit bounds, in bytes, what a plan adds to one commit, which is one script
// of at most 1 MiB.
const mostOfCommit = 800 << 10

// planned does what a planner's result says.
func (s *Supervisor) planned(ctx context.Context, w *channel.Work, r chat.TaskResult) (channel.Effects, error) {
	switch r.Status {
	case task.Waiting:
		return s.ask(ctx, r)
	case task.Succeeded:
	default: // a failed or canceled one is told as it is
		withdraw, err := s.withdraw(ctx, r)
		return channel.Effects{Publish: []channel.Publish{tell(r)}, Calls: withdraw}, err
	}
	out, err := s.output(ctx, r)
	if err != nil {
		return channel.Effects{}, err
	}
	plan, err := readPlan(out)
	var fx channel.Effects
	if err == nil {
		var bound string
		if bound, err = w.Field(ctx, channel.Storages, w.Conversation); err != nil {
			return channel.Effects{}, err
		}
		if bound == "" && s.o.Storage != "" {
			bound = s.o.Storage
			fx.Puts = []channel.Put{{Table: channel.Storages, Field: w.Conversation, Value: bound}}
		}
		refusal, problem := s.refusal(ctx, plan, r.Conversation)
		if problem != nil {
			return channel.Effects{}, problem
		}
		var made []trigger.Trigger
		if err = refusal; err != nil {
			// nothing of it is done
		} else if fx.Calls, made, err = s.carryOut(plan, r, bound); err == nil {
			said := r
			said.ResultType, said.OutputSize = "summary", 0
			words, waits := set(plan, made)
			asked, err := s.answered(ctx, r)
			if err != nil {
				return channel.Effects{}, err
			}
			said.Output = history.Cut(asked+words, chat.MaxText)
			if waits {
				fx.Publish = []channel.Publish{tell(said)}
			} else {
				fx.History = []string{history.Encode(history.ResultLine(said))}
			}
		}
	}
	if err != nil {
		s.log.Warn("plan_refused", "task_id", r.ID, "conversation", r.Conversation.Key(), "trace_id", r.TraceID, "error", err)
		return channel.Effects{Publish: []channel.Publish{report(r, "the plan could not be carried out: "+err.Error())}}, nil
	}
	s.log.Info("plan_carried_out", "task_id", r.ID, "tasks", len(plan.Tasks), "triggers", len(plan.Triggers), "conversation", r.Conversation.Key(), "trace_id", r.TraceID)
	return fx, nil
}

// readPlan reads a plan: the arguments of the planner's action done, as JSON. What is
// left out has its default.
func readPlan(out string) (action.Plan, error) {
	var raw struct {
		Tasks    []json.RawMessage `json:"tasks"`
		Triggers []json.RawMessage `json:"triggers"`
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(out)), &raw); err != nil {
		return action.Plan{}, fmt.Errorf("it cannot be read: %w", err)
	}
	var p action.Plan
	for i, data := range raw.Tasks {
		t := action.PlannedTask{Profile: task.Standard, Priority: task.DefaultPriority}
		if err := json.Unmarshal(data, &t); err != nil {
			return p, fmt.Errorf("tasks[%d] cannot be read: %w", i, err)
		}
		p.Tasks = append(p.Tasks, t)
	}
	for i, data := range raw.Triggers {
		t := action.PlannedTrigger{Profile: task.Standard, Priority: task.DefaultPriority}
		if err := json.Unmarshal(data, &t); err != nil {
			return p, fmt.Errorf("triggers[%d] cannot be read: %w", i, err)
		}
		p.Triggers = append(p.Triggers, t)
	}
	return p, p.Check()
}

// carryOut spells the tasks and triggers of a plan. Their ids are made of the plan's,
// so that a plan that is carried out again makes the same.
func (s *Supervisor) carryOut(p action.Plan, r chat.TaskResult, storage string) ([]channel.Call, []trigger.Trigger, error) {
	at := r.CompletedAt
	if at.IsZero() {
		at = r.StartedAt
	}
	triggers := s.o.Triggers.Issuer()
	refs := map[string]string{} // :: name within the plan -> id
	taskID := func(i int) string { return s.tasks.Derive(r.Conversation, at, r.ID, "task", strconv.Itoa(i)) }
	triggerID := func(i int) string { return triggers.Derive(r.Conversation, at, r.ID, "trigger", strconv.Itoa(i)) }
	for i, t := range p.Tasks {
		refs[t.Ref] = taskID(i)
	}
	for i, t := range p.Triggers {
		refs[t.Ref] = triggerID(i)
	}
	delete(refs, "")

	var calls []channel.Call
	var made []trigger.Trigger
	internal := steps(p)
	for i, t := range p.Tasks {
		if err := s.runs(t.Profile); err != nil {
			return nil, nil, fmt.Errorf("tasks[%d]: %w", i, err)
		}
		_, call, err := s.tasks.Create(task.Draft{
			ID: taskID(i), Profile: t.Profile, Title: t.Title, Prompt: t.Prompt, Conversation: r.Conversation, Requester: r.Requester,
			Priority: &t.Priority, Timeout: seconds(t.Timeout), Retry: retry(t.Retry), DeferUntil: t.DeferUntil,
			TraceID: r.TraceID, Traceparent: r.Traceparent, ParentTaskID: r.ID, Storage: storage, Internal: internal[t.Ref],
		})
		if err != nil {
			return nil, nil, fmt.Errorf("tasks[%d]: %w", i, err)
		}
		calls = append(calls, call)
	}
	// Tasks stand before the triggers: what is watched must be there.
	for i, t := range p.Triggers {
		if err := s.runs(t.Profile); err != nil {
			return nil, nil, fmt.Errorf("triggers[%d]: %w", i, err)
		}
		c, err := condition(t.Condition, refs)
		if err != nil {
			return nil, nil, fmt.Errorf("triggers[%d]: %w", i, err)
		}
		one, call, err := triggers.Create(trigger.Draft{
			ID: triggerID(i), Type: trigger.Type(t.Type), Title: t.Title, Prompt: t.Prompt, Profile: t.Profile, Priority: &t.Priority,
			Timeout: seconds(t.Timeout), Retry: retry(t.Retry), Conversation: r.Conversation, Requester: r.Requester,
			Interval: time.Duration(t.Interval) * time.Second, Cron: t.Cron, Zone: t.Zone, RunAt: t.RunAt, NextRunAt: t.NextRunAt,
			Condition: c, Cooldown: time.Duration(t.Cooldown) * time.Second, Storage: storage, Internal: internal[t.Ref], ParentTaskID: r.ID, TraceID: r.TraceID, Traceparent: r.Traceparent,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("triggers[%d]: %w", i, err)
		}
		calls, made = append(calls, call), append(made, one)
	}
	size := 0
	for _, c := range calls {
		for _, a := range c.Args {
			size += len(a)
		}
	}
	if size > mostOfCommit {
		return nil, nil, fmt.Errorf("it has %d bytes; at most %d can be started at once", size, mostOfCommit)
	}
	return calls, made, nil
}

// runs refuses a profile that no node runs: its task would wait for ever.
func (s *Supervisor) runs(profile string) error {
	if s.o.Profiles != nil && !slices.Contains(s.o.Profiles, profile) {
		return fmt.Errorf("profile: %q is not to be had here; there is %s", profile, strings.Join(s.o.Profiles, ", "))
	}
	return nil
}

// condition translates a plan's condition, in which names of the plan stand for ids.
func condition(c *action.Condition, refs map[string]string) (*trigger.Condition, error) {
	if c == nil {
		return nil, nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("condition: %w", err)
	}
	out, err := trigger.ParseCondition(data)
	if err != nil {
		return nil, err
	}
	return out, named(out, refs)
}

func named(c *trigger.Condition, refs map[string]string) error {
	if c.Params != nil && c.Params.TaskID != "" {
		id := c.Params.TaskID
		if refs[id] != "" {
			c.Params.TaskID = refs[id]
		} else if _, _, err := task.ParseID(id); err != nil && !trigger.IsID(id) {
			return fmt.Errorf("condition: taskId %q is no name of this plan and no id of a task", id)
		}
	}
	var errs []error
	for i := range c.Conditions {
		errs = append(errs, named(&c.Conditions[i], refs))
	}
	return errors.Join(errs...)
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
