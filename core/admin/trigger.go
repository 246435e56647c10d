package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// trigger is the command.
func (q *query) trigger(ctx context.Context, args []string) (Answer, error) {
	if len(args) == 1 && !slices.Contains(triggerActs, strings.ToLower(args[0])) {
		args = []string{"show", args[0]}
	}
	if len(args) != 2 {
		return Answer{}, refuse("Which trigger? Write %s, or %s; %s lists them.", q.c.name("trigger <id>"), q.c.name("trigger pause|resume|run|remove <id>"), q.c.name("triggers"))
	}
	what := strings.ToLower(args[0])
	if !slices.Contains(triggerActs, what) {
		return Answer{}, odd(args[0], triggerActs)
	}
	t, err := q.findTrigger(ctx, args[1])
	if err != nil {
		return Answer{}, err
	}
	if what == "show" {
		return q.showTrigger(ctx, t)
	}
	return q.changeTrigger(ctx, what, t)
}

// showTrigger tells all that is known of a trigger.
func (q *query) showTrigger(_ context.Context, t trigger.Trigger) (Answer, error) {
	as := asTask(t)
	reads := q.readsTask(as)
	var a Answer
	var list []Fact
	fact := func(name, value string) {
		if value != "" {
			list = append(list, Fact{name, value})
		}
	}
	a.say(code(t.ID) + " " + Escape(q.title(as)))
	fact("fires", q.when(t))
	fact("next", next(t))
	if t.Cooldown > 0 {
		fact("not again for", lasting(t.Cooldown)+" after it has fired")
	}
	if t.Paused() {
		by := personName(t.PausedBy) + ", " + q.ago(t.PausedAt)
		if t.PausedBy.ID == "" {
			by = "itself, " + q.ago(t.PausedAt)
		}
		if t.PauseReason != "" && reads {
			by += ": " + cut(clean(t.PauseReason), 300)
		}
		fact("paused by", by)
	}
	fact("asked for by", q.asker(as)+", "+q.ago(t.CreatedAt))
	if q.c.Owner || t.Conversation != q.c.Conversation {
		fact("conversation", t.Conversation.Key())
	}
	if t.Profile != task.Standard {
		fact("profile", t.Profile)
	}
	if t.Priority != task.DefaultPriority {
		fact("priority", fmt.Sprintf("%d (0 to %d, usually %d)", t.Priority, task.MaxPriority, task.DefaultPriority))
	}
	if t.Fired > 0 {
		fact("fired", count(int(t.Fired), "time")+", last "+q.ago(t.LastTriggeredAt))
		fact("last task", t.LastTaskID)
	}
	if t.Skipped > 0 {
		fact("skipped", t.Skips()+", last "+q.ago(t.LastSkippedAt))
	}
	if t.Behind != "" {
		fact("waits", "for its last task to end; then it fires")
	}
	if t.LastError != "" && reads {
		fact("error", cut(clean(t.LastError), 500))
	}
	fact("started by task", t.ParentTaskID)
	fact("trace", t.TraceID)
	a.facts(list)
	v := q.viewTrigger(t)
	if reads {
		a.say("Its task:")
		a.write(cut(t.Prompt, shownText))
		v.Prompt = t.Prompt
	} else {
		a.say(elsewhere)
	}
	if t.Paused() {
		a.press("Resume", "", "trigger", "resume", t.ID)
	} else {
		a.press("Pause", "", "trigger", "pause", t.ID)
	}
	a.press("Run now", "", "trigger", "run", t.ID)
	a.press("Remove", "danger", "trigger", "remove", t.ID)
	a.Data = v
	return a, nil
}

// A TriggerChange is what a command did to a trigger. Its JSON is add-only.
type TriggerChange struct {
	ID   string   `json:"id"`
	Did  string   `json:"did"`              // paused, resumed, started or removed; unchanged when it was so already
	Task string   `json:"taskId,omitempty"` // that was started
	Next []string `json:"next,omitempty"`   // up to three times, RFC 3339 in UTC
}

// changeTrigger pauses, resumes, runs or removes a trigger that the caller sees.
func (q *query) changeTrigger(ctx context.Context, what string, t trigger.Trigger) (Answer, error) {
	q.target = t.ID
	by := q.c.Author
	by.Role = q.c.role()
	if p := t.PausedBy; (what == "resume" || what == "run") && t.Paused() && p.ID != by.ID && p.Role > max(by.Role, chat.RoleUser) {
		return Answer{}, q.above(t)
	}
	named := code(brief(t.ID))
	if q.readsTask(asTask(t)) {
		named += " (" + Escape(cut(clean(t.Title), 80)) + ")"
	}
	change := TriggerChange{ID: t.ID}
	var words string
	var again bool
	var err error
	switch what {
	case "pause":
		again, err = q.o.Triggers.Pause(ctx, t.ID, by, "")
		change.Did, words = "paused", q.paused(ctx, t, named, again)
	case "resume":
		again, err = q.o.Triggers.Resume(ctx, t.ID, by)
		change.Did, words = "resumed", "Resumed "+named+"."
		if again {
			words = named + " is not paused."
		}
	case "run":
		change.Task, err = q.o.Triggers.Run(ctx, t.ID)
		change.Did, words = "started", "Started "+code(change.Task)+" for "+named+"."
		if t.Conversation != q.c.Conversation {
			words += " Its result is told where the trigger was asked for."
		}
	default:
		_, err = q.o.Triggers.Remove(ctx, t.ID)
		change.Did, words = "removed", "Removed "+named+"."
	}
	var busy *trigger.BusyError
	switch {
	case errors.Is(err, trigger.ErrUnknown):
		return Answer{}, refuse("%s is gone meanwhile.", code(brief(t.ID)))
	case errors.Is(err, trigger.ErrAbove):
		if t, err = q.o.Triggers.Get(ctx, t.ID); err != nil {
			return Answer{}, err
		}
		return Answer{}, q.above(t)
	case errors.As(err, &busy):
		q.audit(ctx, t.ID, "refused")
		return Answer{}, refuse("%s is not started: its last task, %s, is %s. %s ends it.", named, code(brief(busy.Task)), q.unfinished(ctx, busy.Task), q.c.name("cancel "+busy.Task))
	}
	if err != nil {
		q.audit(ctx, t.ID, "failed: "+err.Error())
		return Answer{}, err
	}
	if again {
		change.Did = "unchanged"
	}
	result := change.Did
	if change.Task != "" {
		result += " " + change.Task
	}
	q.audit(ctx, t.ID, result)
	var a Answer
	if what == "resume" {
		if now, err := q.o.Triggers.Get(ctx, t.ID); err == nil { // else it has fired and gone
			if times := next(now); times != "" {
				words += " It runs next on " + Escape(times) + "."
			}
			for _, at := range now.NextRuns(3) {
				change.Next = append(change.Next, rfc(at))
			}
		}
	}
	a.say(words)
	switch {
	case what == "run":
		a.press("Show", "", "task", change.Task)
		a.press("Cancel", "danger", "cancel", change.Task)
	case what == "pause":
		a.press("Resume", "", "trigger", "resume", t.ID)
	case what == "remove" && t.LastTaskID != "":
		if last, err := q.o.Tasks.Get(ctx, t.LastTaskID); err == nil && !task.Over(last.Status) {
			a.say("The task that it started last, " + code(brief(t.LastTaskID)) + ", goes on; " + q.c.name("cancel "+t.LastTaskID) + " ends it.")
			a.press("Cancel its task", "danger", "cancel", t.LastTaskID)
		}
	}
	a.Data = change
	return a, nil
}

// above refuses to go against who has paused a trigger.
func (q *query) above(t trigger.Trigger) error {
	return forbid("%s was paused by %s, who is %s; your role is %s, so ask them.", code(brief(t.ID)), Escape(personName(t.PausedBy)), t.PausedBy.Role, q.c.role())
}

// paused says what a pause did to a trigger, as it was before; again: nothing.
func (q *query) paused(ctx context.Context, t trigger.Trigger, named string, again bool) string {
	if !again {
		words := "Paused " + named
		if t.Paused() && t.PausedBy.ID != "" {
			words = named + " was paused by " + Escape(personName(t.PausedBy)) + " already; now it is by you, and who stands lower cannot resume it"
		}
		return words + ". " + q.c.name("trigger resume "+t.ID) + " has it go on; runs that fall into the pause are not made up for."
	}
	if !t.Paused() { // meanwhile
		if now, err := q.o.Triggers.Get(ctx, t.ID); err == nil {
			t = now
		}
	}
	words := named + " is paused already"
	if by := t.PausedBy; by.ID != "" && by.ID != q.c.Author.ID {
		words += " by " + Escape(personName(by)) + ", who is " + by.Role.String() + "; nothing is changed"
	}
	return words + "."
}

// unfinished says how a task stands that is not over, as far as that can be seen.
func (q *query) unfinished(ctx context.Context, id string) string {
	t, err := q.o.Tasks.Get(ctx, id)
	if err != nil || task.Over(t.Status) {
		return "not over"
	}
	return q.standing(t)
}
