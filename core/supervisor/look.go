package supervisor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"mimikit/core/task"
	"mimikit/core/trigger"
)

// settleWithin bounds the settling of one trigger. What is not settled by then is
// taken again.
const settleWithin = 10 * time.Second

// An asking is a trigger whose condition is to be put to a model.
type asking struct {
	t trigger.Trigger
	v trigger.Verdict
}

// attend looks at triggers that were taken, and settles them.
func (s *Supervisor) attend(ctx context.Context, list []trigger.Trigger, now time.Time) {
	var asks []asking
	for _, t := range list {
		if ctx.Err() != nil {
			return
		}
		v, err := s.safely(ctx, t, now)
		switch {
		case err == nil:
			if len(v.Ask) > 0 {
				asks = append(asks, asking{t, v})
			}
		case errors.Is(err, trigger.ErrLate), errors.Is(err, trigger.ErrUnknown):
			// Somebody else was first, or it has changed and is looked at again.
		case ctx.Err() == nil:
			s.log.Warn("trigger_not_settled", "trigger_id", t.ID, "conversation", t.Conversation.Key(), "trace_id", t.TraceID, "error", err)
		}
	}
	s.askAll(ctx, asks, now)
}

// safely keeps a trigger that nobody thought of from taking the others down.
func (s *Supervisor) safely(ctx context.Context, t trigger.Trigger, now time.Time) (v trigger.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("trigger_panicked", "trigger_id", t.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("look at trigger %s: it panicked: %v", t.ID, p)
		}
	}()
	return s.one(ctx, t, now)
}

// one looks at a trigger and settles it, except for what is to be asked.
func (s *Supervisor) one(ctx context.Context, t trigger.Trigger, now time.Time) (trigger.Verdict, error) {
	sights, tasks, err := s.see(ctx, t)
	if err != nil {
		return trigger.Verdict{}, err
	}
	// A Redis that does not answer for one partition must not hold up the others.
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	v, err := s.settle(ctx, t, now, sights, tasks)
	// Whether its last task is over is known for certain only where the next is made.
	var busy *trigger.BusyError
	if errors.As(err, &busy) {
		sights.Busy = true
		v, err = s.settle(ctx, t, now, sights, tasks)
	}
	var bad *trigger.DraftError
	if errors.As(err, &bad) {
		s.log.Warn("trigger_cannot_fire", "trigger_id", t.ID, "conversation", t.Conversation.Key(), "error", err)
		return v, s.o.Triggers.Fault(ctx, t, now, bad.Error())
	}
	return v, err
}

// settle judges a trigger by what was seen, and settles it, except for what is to be
// asked.
func (s *Supervisor) settle(ctx context.Context, t trigger.Trigger, now time.Time, sights trigger.Sights, tasks map[string]task.Task) (trigger.Verdict, error) {
	v := t.Judge(now, sights, s.o.Triggers.Look())
	writes := v.Writes(t)
	switch {
	case len(v.Ask) > 0 && !writes:
		return v, nil
	case len(v.Ask) > 0:
		v.Due, v.Ask = now, nil // what was seen is kept first, and what is then to be asked is asked
	case !writes && len(t.Condition.Paths()) > 0:
		return v, nil // it is looked at again when the claim ends
	}
	prompt := ""
	if v.Fire != nil {
		var err error
		if prompt, err = s.words.prompt(t, v.Fire.Causes, tasks); err != nil {
			return v, err
		}
	}
	fired := func(error) {}
	if v.Fire != nil && s.o.Firing != nil {
		t, fired = s.o.Firing(ctx, t, *v.Fire)
	}
	id, err := s.o.Triggers.Settle(ctx, t, v, prompt, s.o.Storage)
	fired(err)
	if err != nil {
		return v, err
	}
	attrs := []any{"trigger_id", t.ID, "type", t.Type, "conversation", t.Conversation.Key(), "trace_id", t.TraceID}
	switch {
	case v.Fire != nil:
		s.log.Info("trigger_fired", append(attrs, "slot", v.Fire.Slot, "task_id", id, "late_ms", now.Sub(v.Fire.At).Milliseconds())...)
		if s.o.Fired != nil {
			s.o.Fired(t, id)
		}
	case v.Remove != "":
		s.log.Info("trigger_removed", append(attrs, "why", v.Remove)...)
	case v.Skip:
		s.log.Info("trigger_run_skipped", append(attrs, "task_id", t.LastTaskID, "skipped", t.Skipped+1)...)
	}
	return v, nil
}

// see looks at what a trigger waits for.
func (s *Supervisor) see(ctx context.Context, t trigger.Trigger) (trigger.Sights, map[string]task.Task, error) {
	sights := trigger.Sights{Tasks: map[string]trigger.TaskSight{}, Files: map[string]trigger.FileSight{}}
	tasks := map[string]task.Task{}
	if t.Condition == nil {
		return sights, tasks, nil
	}
	// Triggers first: one that goes with its task started leaves the task behind.
	var named []string
	for _, id := range t.Condition.Tasks() {
		if trigger.IsID(id) {
			named = append(named, id)
		}
	}
	var err error
	if sights.Triggers, err = s.o.Triggers.Exists(ctx, t.Conversation, named); err != nil {
		return sights, nil, err
	}
	for _, id := range t.WatchedTasks() {
		got, err := s.o.Tasks.Get(ctx, id)
		if err != nil && !errors.Is(err, task.ErrUnknown) {
			return sights, nil, err
		}
		if err != nil || got.Conversation != t.Conversation { // of another it is nobody's business
			sights.Tasks[id] = trigger.TaskSight{}
			continue
		}
		tasks[id] = got
		sights.Tasks[id] = trigger.TaskSight{Found: true, Status: got.Status, ResultID: got.ResultID, CompletedAt: got.CompletedAt, Title: got.Title}
	}
	if s.o.Files == nil {
		return sights, tasks, nil
	}
	for _, path := range t.Condition.Paths() {
		sights.Files[path] = s.o.Files.Look(ctx, t.Conversation, t.Storage, path, t.Condition.Watches(path))
		if ctx.Err() != nil {
			return sights, nil, context.Cause(ctx)
		}
	}
	return sights, tasks, nil
}

// mostAsked bounds, in bytes, the questions of one internal task.
const mostAsked = 64 << 10

// askAll puts conditions to a model: of each person in each conversation together.
func (s *Supervisor) askAll(ctx context.Context, list []asking, now time.Time) {
	slices.SortFunc(list, func(a, b asking) int {
		return strings.Compare(a.t.Conversation.Key()+" "+a.t.Requester.ID+" "+a.t.ID, b.t.Conversation.Key()+" "+b.t.Requester.ID+" "+b.t.ID)
	})
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && list[n].t.Conversation == list[0].t.Conversation && list[n].t.Requester.ID == list[0].t.Requester.ID {
			for _, q := range list[n].v.Ask {
				size += len(q)
			}
			if n > 0 && size > mostAsked {
				break
			}
			n++
		}
		if err := s.askModel(ctx, list[:n], now); err != nil && ctx.Err() == nil {
			s.log.Warn("conditions_not_asked", "conversation", list[0].t.Conversation.Key(), "triggers", n, "error", err)
		}
		list = list[n:]
	}
}

func (s *Supervisor) askModel(ctx context.Context, list []asking, now time.Time) error {
	lead := list[0].t
	if s.o.Budget != nil {
		if err := s.o.Budget(ctx, lead.Conversation, lead.Requester); err != nil {
			return s.putOff(ctx, list, err)
		}
	}
	parts := []string{"llm_eval", list[0].v.Slot.UTC().Format(time.RFC3339)}
	var questions []Question
	var asked []trigger.Asking
	for _, a := range list {
		parts = append(parts, a.t.ID)
		asked = append(asked, trigger.Asking{Trigger: a.t, Due: a.v.Due})
		for path, text := range a.v.Ask {
			questions = append(questions, Question{a.t.ID + ":" + path, text})
		}
	}
	slices.SortFunc(questions, func(a, b Question) int { return strings.Compare(a.Key, b.Key) })
	prompt, err := s.o.EvalPrompt(questions)
	if err != nil {
		return err
	}
	call, err := s.o.Triggers.Issuer().Ask(asked, now, s.evalDraft(lead, prompt, now, parts))
	if err != nil {
		return s.putOff(ctx, list, err)
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	_, err = s.o.Triggers.Perform(ctx, lead.Conversation, call)
	return err
}

// evalDraft is the internal task that asks.
func (s *Supervisor) evalDraft(lead trigger.Trigger, prompt string, now time.Time, parts []string) task.Draft {
	return task.Draft{
		ID: s.tasks.Derive(lead.Conversation, now, parts...), Profile: s.o.EvalProfile, Title: "Look at conditions", Prompt: prompt,
		Conversation: lead.Conversation, Requester: lead.Requester, TraceID: lead.TraceID, Traceparent: lead.Traceparent, SourceTriggerID: lead.ID, TriggeredAt: now,
		Internal: true, Storage: lead.Storage, Retry: &task.Retry{},
	}
}

// putOff notes why a model was not asked; it is tried again at the next slot.
func (s *Supervisor) putOff(ctx context.Context, list []asking, why error) error {
	for _, a := range list {
		v := a.v
		v.Ask, v.Error = nil, "a model was not asked: "+shorten(why.Error(), trigger.MaxError/2)
		if _, err := s.o.Triggers.Settle(ctx, a.t, v, "", ""); err != nil && !errors.Is(err, trigger.ErrLate) && !errors.Is(err, trigger.ErrUnknown) {
			return err
		}
	}
	return why
}
