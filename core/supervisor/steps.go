package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// A step of a plan is a task whose success only serves another: that one is told of
// it, and the conversation keeps it in its history. People hear of what comes last,
// and of every step that fails.

// steps names what a plan has for steps: what others wait for to be done, and for
// nothing that is not of the plan.
func steps(p action.Plan) map[string]bool {
	out := map[string]bool{}
	for _, t := range p.Triggers {
		if refs, only := joined(t.Condition, known(p)); only {
			for _, ref := range refs {
				out[ref] = true
			}
		}
	}
	return out
}

// known names the tasks and triggers of a plan.
func known(p action.Plan) map[string]bool {
	out := map[string]bool{}
	for _, t := range p.Tasks {
		out[t.Ref] = true
	}
	for _, t := range p.Triggers {
		out[t.Ref] = true
	}
	delete(out, "")
	return out
}

// joined gives the names in a condition, and whether it is made of nothing but that
// they all are done.
func joined(c *action.Condition, known map[string]bool) (refs []string, only bool) {
	switch {
	case c == nil:
		return nil, false
	case c.Type == trigger.TaskDone:
		if c.Params == nil || !known[c.Params.TaskID] {
			return nil, false
		}
		return []string{c.Params.TaskID}, true
	case c.Type != trigger.And:
		return nil, false
	}
	for i := range c.Conditions {
		more, only := joined(&c.Conditions[i], known)
		if !only {
			return nil, false
		}
		refs = append(refs, more...)
	}
	return refs, len(refs) > 0
}

// within reports whether a condition is decided by how the plan's own tasks end.
func within(c *action.Condition, known map[string]bool) bool {
	if c == nil {
		return false
	}
	if len(c.Conditions) > 0 {
		return !slices.ContainsFunc(c.Conditions, func(part action.Condition) bool { return !within(&part, known) })
	}
	return c.Params != nil && known[c.Params.TaskID]
}

// stepped hands on the end of a step: a success into the history, anything else to
// the people. It asks what a task that waits asks, and takes that back at its end.
func (s *Supervisor) stepped(ctx context.Context, r chat.TaskResult) (channel.Effects, error) {
	if r.Status == task.Waiting {
		return s.ask(ctx, r)
	}
	if !task.Over(r.Status) {
		return channel.Effects{}, nil
	}
	var fx channel.Effects
	var err error
	if fx.Calls, err = s.withdraw(ctx, r); err != nil || r.ParentTaskID == "" {
		return fx, err
	}
	t, err := s.o.Tasks.Get(ctx, r.ID)
	switch {
	case errors.Is(err, task.ErrUnknown): // of long ago
	case err != nil:
		return channel.Effects{}, err
	case !t.Internal: // people hear of it by themselves
	case r.Status == task.Succeeded:
		fx.History = []string{history.Encode(history.ResultLine(r))}
	default:
		fx.Publish = []channel.Publish{tell(r)}
	}
	return fx, nil
}

// set says what a plan has set up, and whether some of it waits for more than the
// plan's own tasks: of that nobody would hear for a while.
func set(p action.Plan, triggers []trigger.Trigger) (words string, waits bool) {
	var b strings.Builder
	for _, t := range p.Tasks {
		fmt.Fprintf(&b, "Task “%s” starts", cutTitle(t.Title))
		if !t.DeferUntil.IsZero() {
			fmt.Fprintf(&b, " on %s", trigger.Stamp(t.DeferUntil, "UTC"))
			waits = true
		}
		b.WriteString(".\n")
	}
	for i, t := range p.Triggers {
		made := triggers[i]
		if refs, only := joined(t.Condition, known(p)); only {
			fmt.Fprintf(&b, "Then, after %s: “%s”.\n", titles(p, refs), cutTitle(made.Title))
			continue
		}
		waits = waits || !within(t.Condition, known(p))
		fmt.Fprintf(&b, "Trigger %s, “%s”, fires %s.\n", made.ID, cutTitle(made.Title), made.Fires())
	}
	return strings.TrimSpace(b.String()), waits
}

// titles are what people know the parts of a plan by.
func titles(p action.Plan, refs []string) string {
	var out []string
	for _, ref := range refs {
		title := ref
		if i := slices.IndexFunc(p.Tasks, func(t action.PlannedTask) bool { return t.Ref == ref }); i >= 0 {
			title = p.Tasks[i].Title
		} else if i := slices.IndexFunc(p.Triggers, func(t action.PlannedTrigger) bool { return t.Ref == ref }); i >= 0 && p.Triggers[i].Title != "" {
			title = p.Triggers[i].Title
		}
		out = append(out, "“"+cutTitle(title)+"”")
	}
	return strings.Join(out, " and ")
}

func cutTitle(s string) string { return strings.Join(strings.Fields(history.Cut(s, 120)), " ") }
