package supervisor

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// step does what a result asks for.
func (s *Supervisor) step(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	var fx channel.Effects
	for _, e := range w.Entries {
		r, ok := e.Value.(*chat.TaskResult)
		if !ok {
			return fx, &channel.GiveUp{Why: fmt.Sprintf("it holds a %T and no result", e.Value)}
		}
		if r.Conversation.Key() != w.Conversation {
			return fx, &channel.GiveUp{Why: fmt.Sprintf("the result of task %s belongs to the conversation %s", r.ID, r.Conversation), Quiet: true}
		}
		do := s.stepped
		if r.Profile == task.Planner {
			do = func(ctx context.Context, r chat.TaskResult) (channel.Effects, error) { return s.planned(ctx, w, r) }
		}
		one := *r
		one.Traceparent = w.Traceparent
		more, err := do(ctx, one)
		if err != nil {
			return fx, err
		}
		fx.Publish = append(fx.Publish, more.Publish...)
		fx.History = append(fx.History, more.History...)
		fx.Puts = append(fx.Puts, more.Puts...)
		fx.Calls = append(fx.Calls, more.Calls...)
		calls, err := s.heard(ctx, *r)
		if err != nil {
			return fx, err
		}
		fx.Calls = append(fx.Calls, calls...)
	}
	return fx, nil
}

// heard tells the triggers that wait for a task of its end, and those that have asked
// it of its answer.
func (s *Supervisor) heard(ctx context.Context, r chat.TaskResult) ([]channel.Call, error) {
	if !task.Over(r.Status) {
		return nil, nil
	}
	watchers, err := s.o.Triggers.Watchers(ctx, r.Conversation, r.ID)
	if err != nil {
		return nil, err
	}
	var calls []channel.Call
	var said map[string]bool
	waits := false
	for _, t := range watchers {
		if t.EvalTaskID != r.ID || t.Conversation != r.Conversation {
			waits = true
			continue
		}
		if said == nil {
			if said, err = s.answers(ctx, r); err != nil {
				return nil, err
			}
		}
		// What was not answered is as it was.
		answers := maps.Clone(t.Answers)
		if answers == nil {
			answers = map[string]bool{}
		}
		for key, so := range said {
			if path, mine := strings.CutPrefix(key, t.ID+":"); mine {
				answers[path] = so
			}
		}
		call, err := s.o.Triggers.Issuer().Answers(t, r.ID, answers)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	if waits {
		calls = append(calls, s.o.Triggers.Issuer().Heard(r.Conversation, r.ID))
	}
	return calls, nil
}

// answers reads what a model said of conditions; none when it said nothing.
func (s *Supervisor) answers(ctx context.Context, r chat.TaskResult) (map[string]bool, error) {
	if r.Status != task.Succeeded {
		s.log.Warn("conditions_not_answered", "task_id", r.ID, "status", r.Status, "error", r.Error, "conversation", r.Conversation.Key())
		return map[string]bool{}, nil
	}
	out, err := s.output(ctx, r)
	if err != nil {
		return nil, err
	}
	said := s.o.EvalAnswers(out)
	if len(said) == 0 {
		s.log.Warn("conditions_not_answered", "task_id", r.ID, "status", r.Status, "output_bytes", len(out), "conversation", r.Conversation.Key())
		said = map[string]bool{}
	}
	return said, nil
}

// output is the whole output of a result.
func (s *Supervisor) output(ctx context.Context, r chat.TaskResult) (string, error) {
	if r.OutputSize == 0 {
		return r.Output, nil
	}
	out, err := s.o.Tasks.Output(ctx, r.ID)
	if err != nil {
		return "", fmt.Errorf("read the whole output of task %s: %w", r.ID, err)
	}
	return out, nil
}

// failed tells people of a plan whose result was given up, and ends a task that would
// wait for ever. Of other results nobody waits here: a trigger that was not woken looks
// again when it is due.
func (s *Supervisor) failed(w *channel.Work, reason string) channel.Effects {
	var fx channel.Effects
	for _, e := range w.Entries {
		r, ok := e.Value.(*chat.TaskResult)
		if !ok || r.Conversation.Key() != w.Conversation {
			continue
		}
		if r.Status == task.Waiting { // it would wait for ever; its end is told like any
			if cancel, err := s.tasks.Cancel(r.Conversation, r.ID, r.Requester, "its question could not be asked: "+reason); err == nil {
				fx.Calls = append(fx.Calls, cancel)
				continue
			}
		}
		if r.Profile == task.Planner {
			fx.Publish = append(fx.Publish, report(*r, "the plan could not be carried out: "+reason))
		}
	}
	return fx
}

// report tells the conversation of a plan that came to nothing.
func report(r chat.TaskResult, why string) channel.Publish {
	r.Status, r.Error, r.FailureReason = task.Failed, why, task.ReasonError
	r.Output, r.OutputSize, r.ResultType, r.Question = "", 0, "", nil
	return tell(r)
}

func tell(r chat.TaskResult) channel.Publish {
	return channel.Publish{To: channel.WorkerResult, Value: &r, Stage: "supervise"}
}
