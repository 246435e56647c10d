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
	if by := t.PausedBy; (what == "resume" || what == "run") && t.Paused() && by.ID != q.c.Author.ID && by.Role > max(q.c.role(), chat.RoleUser) {
		return Answer{}, forbid("%s was paused by %s, who is %s; your role is %s, so ask them.", code(brief(t.ID)), Escape(personName(by)), by.Role, q.c.role())
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
		by := q.c.Author
		by.Role = q.c.role()
		again, err = q.o.Triggers.Pause(ctx, t.ID, by, "")
		change.Did, words = "paused", "Paused "+named+". "+q.c.name("trigger resume "+t.ID)+" has it go on; runs that fall into the pause are not made up for."
		if again {
			words = named + " is paused already."
		}
	case "resume":
		again, err = q.o.Triggers.Resume(ctx, t.ID)
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
	if errors.Is(err, trigger.ErrUnknown) {
		return Answer{}, refuse("%s is gone meanwhile.", code(brief(t.ID)))
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
