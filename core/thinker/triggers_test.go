package thinker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

var bob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleUser}

// later is tasks and triggers in memory.
type later struct {
	tasks    []task.Task
	triggers []trigger.Trigger
	count    int
}

func (l *later) List(_ context.Context, f task.Filter, _ string, _ int) (page task.Page, err error) {
	for _, t := range l.tasks {
		if len(f.Status) == 0 || slices.Contains(f.Status, t.Status) {
			page.Tasks = append(page.Tasks, t)
		}
	}
	return page, nil
}

func (l *later) Find(_ context.Context, prefix string, c *chat.Conversation) (task.Task, error) {
	for _, t := range l.tasks {
		if strings.HasPrefix(t.ID, prefix) && t.Conversation == *c {
			return t, nil
		}
	}
	return task.Task{}, task.ErrUnknown
}

// laterTriggers is the side of later that keeps triggers.
type laterTriggers struct{ *later }

func (l laterTriggers) List(context.Context, trigger.Filter, string, int) (trigger.Page, error) {
	return trigger.Page{Triggers: l.triggers}, nil
}

func (l laterTriggers) Find(_ context.Context, prefix string, c *chat.Conversation) (trigger.Trigger, error) {
	var found []trigger.Trigger
	for _, t := range l.triggers {
		if strings.HasPrefix(t.ID, prefix) && t.Conversation == *c {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return trigger.Trigger{}, trigger.ErrUnknown
	case 1:
		return found[0], nil
	}
	return trigger.Trigger{}, &trigger.AmbiguousError{Prefix: prefix, IDs: []string{found[0].ID, found[1].ID}}
}

func (l laterTriggers) Count(context.Context, chat.Conversation) (int, error) {
	return max(l.count, len(l.triggers)), nil
}

func (l *later) options() TaskOptions {
	is := &task.Issuer{Keys: channel.Keys{Prefix: "x", Partitions: 1}, Now: func() time.Time { return epoch }}
	return TaskOptions{
		Issuer: is, Store: l, Profiles: []string{task.Standard}, Planner: true, Storage: "disk",
		Triggers: &TriggerOptions{Issuer: &trigger.Issuer{Tasks: is, Now: func() time.Time { return epoch }}, Store: laterTriggers{l}},
	}
}

// turn runs one turn in which the model makes the calls, and gives what it was told.
func (l *later) turn(t *testing.T, calls ...llm.ToolCall) (fx channel.Effects, told string) {
	t.Helper()
	f, _ := acting(t, &found{}, TaskActions(l.options()), calls...)
	w := work(entry(digest()))
	w.Field = func(_ context.Context, table channel.Table, field string) (string, error) {
		if table != channel.Storages || field != conv {
			t.Errorf("looked up %s in %v", field, table)
		}
		return "", nil
	}
	fx, err := f.Loop().Step(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	return fx, decision(t, fx).Decision
}

// ops names what the calls of a commit do.
func ops(fx channel.Effects) string {
	var out []string
	for _, c := range fx.Calls {
		out = append(out, c.Extension+" "+c.Args[0])
	}
	return strings.Join(out, ", ")
}

func args(more map[string]any) map[string]any {
	out := map[string]any{"prompt": "sum up the tickets", "title": "Tickets"}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	id := task.NewID(epoch, 0, 7)
	for _, c := range []struct {
		name string
		args map[string]any
		told []string
		row  []string
	}{
		{
			"cron", map[string]any{"type": "recurring", "cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "cooldown": 3600, "priority": 7, "timeout": 60, "retry": map[string]any{"maxAttempts": 2, "backoff": 9}},
			[]string{"It fires every weekday at 09:00 Europe/Berlin, next on Mon 2026-11-23 09:00 Europe/Berlin, Tue 2026-11-24 09:00 Europe/Berlin and Wed 2026-11-25 09:00 Europe/Berlin, and not again for 1 hour after it has fired."},
			[]string{`"cron":"0 9 * * 1-5"`, `"priority":7`, `"timeout":60000`, `"maxAttempts":2,"backoff":9000`, `"storage":"disk"`, `"traceId":"tr"`, `"id":"U1"`},
		},
		{"interval", map[string]any{"type": "recurring", "interval": 60}, []string{"every minute"}, []string{`"interval":60000`, `"priority":5`}},
		{"once", map[string]any{"type": "scheduled", "runAt": epoch.Add(time.Hour)}, []string{"once, on Sat 2026-11-21 11:00 UTC"}, []string{`"type":"scheduled"`}},
		{
			"after a task, by the beginning of its id", map[string]any{"type": "conditional", "condition": map[string]any{"type": "task_done", "params": map[string]any{"taskId": id[:8]}}},
			[]string{"when task " + id + " is done"}, []string{`"taskId":"` + id + `"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &later{tasks: []task.Task{{ID: id, Conversation: thread, Status: task.Running}}}
			fx, told := l.turn(t, call(t, "schedule", args(c.args)))
			if ops(fx) != "trigger create" || len(fx.Puts) != 1 || fx.Puts[0].Value != "disk" {
				t.Fatalf("%q with %v: %s", ops(fx), fx.Puts, told)
			}
			for _, want := range c.told {
				if !strings.Contains(told, want) {
					t.Errorf("the model was told %q, without %q", told, want)
				}
			}
			for _, want := range c.row {
				if row := strings.Join(fx.Calls[0].Args, " "); !strings.Contains(row, want) {
					t.Errorf("kept %q, without %s", row, want)
				}
			}
		})
	}
}

// What cannot be is said in words that the model can mend, and nothing is set up.
func TestScheduleRefuses(t *testing.T) {
	t.Parallel()
	stranger := task.NewID(epoch, 0, 8)
	full := &later{count: trigger.MaxPerConversation}
	other := &later{tasks: []task.Task{{ID: stranger, Conversation: chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C9"}}}}
	for _, c := range []struct {
		l    *later
		args map[string]any
		want string
	}{
		{&later{}, map[string]any{"type": "recurring", "cron": "99 9 * * *"}, `cron "99 9 * * *"`},
		{&later{}, map[string]any{"type": "recurring", "cron": "0 9 * * *", "zone": "Berlin"}, "Europe/Berlin"},
		{&later{}, map[string]any{"type": "scheduled", "runAt": epoch.Add(-time.Hour)}, "that is over"},
		{&later{}, map[string]any{"type": "recurring", "interval": 60, "profile": "expert"}, `"expert" is not to be had here; there is standard`},
		{other, map[string]any{"type": "conditional", "condition": map[string]any{"type": "task_done", "params": map[string]any{"taskId": stranger}}}, "is no task or trigger of this conversation"},
		{full, map[string]any{"type": "recurring", "interval": 60}, "has 500 triggers already"},
	} {
		fx, told := c.l.turn(t, call(t, "schedule", args(c.args)))
		if len(fx.Calls) != 0 || len(fx.Puts) != 0 || !strings.Contains(told, c.want) {
			t.Errorf("%v: %q and %q, want %q", c.args, ops(fx), told, c.want)
		}
	}
}

// What one turn sets up counts within it, and what it removes does, too: each that would
// be one too many is refused by its name, and not told as set up.
func TestScheduleCountsItsOwn(t *testing.T) {
	t.Parallel()
	every := func(title string, seconds int) llm.ToolCall {
		return call(t, "schedule", map[string]any{"prompt": "look", "title": title, "type": "recurring", "interval": seconds})
	}
	old := trigger.Trigger{ID: trigger.NewID(epoch, 0, 1), Title: "Old", Conversation: thread, Requester: ann}
	for _, c := range []struct {
		have  int
		calls []llm.ToolCall
		ops   string
		told  []string
	}{
		{trigger.MaxPerConversation - 2, []llm.ToolCall{every("One", 60), every("Two", 120), every("Three", 180), every("Four", 240)},
			"trigger create, trigger create", []string{"Set up as", `schedule: "Three" was not set up: this conversation has 500 triggers already, 2 of this turn among them`, `"Four" was not set up`}},
		{trigger.MaxPerConversation, []llm.ToolCall{call(t, "cancel_task", map[string]any{"task_id": old.ID}), call(t, "cancel_task", map[string]any{"task_id": old.ID[:12]}), every("One", 60), every("Two", 120)},
			"trigger remove, trigger remove, trigger create", []string{"Set up as", `"Two" was not set up`}},
	} {
		l := &later{count: c.have, triggers: []trigger.Trigger{old}}
		fx, told := l.turn(t, c.calls...)
		if ops(fx) != c.ops || strings.Count(told, "Set up as") != strings.Count(c.ops, "create") {
			t.Errorf("%s: %s", ops(fx), told)
		}
		for _, want := range c.told {
			if !strings.Contains(told, want) {
				t.Errorf("the model was told %s, without %s", told, want)
			}
		}
	}
}

func TestTheSameTriggerTwice(t *testing.T) {
	t.Parallel()
	l := &later{triggers: []trigger.Trigger{{
		ID: trigger.NewID(epoch, 0, 1), Type: trigger.Recurring, Title: "Tickets", Prompt: "sum up the tickets", Profile: task.Standard,
		Interval: time.Minute, Conversation: thread, Requester: ann,
	}}}
	again := call(t, "schedule", args(map[string]any{"type": "recurring", "interval": 60}))
	if fx, told := l.turn(t, again); len(fx.Calls) != 0 || !strings.Contains(told, "same trigger already, "+l.triggers[0].ID) {
		t.Errorf("%q, %q", ops(fx), told)
	}
	if fx, _ := l.turn(t, call(t, "schedule", args(map[string]any{"type": "recurring", "interval": 120}))); ops(fx) != "trigger create" {
		t.Errorf("%q", ops(fx))
	}
	// One that this turn removes is none, and one that it has set up is one.
	anew := call(t, "schedule", args(map[string]any{"type": "recurring", "interval": 60, "timeout": 90}))
	remove := call(t, "cancel_task", map[string]any{"task_id": l.triggers[0].ID})
	if fx, told := l.turn(t, remove, again, anew); ops(fx) != "trigger remove, trigger create" || !strings.Contains(told, "same trigger already") {
		t.Errorf("%q, %q", ops(fx), told)
	}
	l.triggers[0].PausedAt = epoch
	if fx, _ := l.turn(t, again); ops(fx) != "trigger create" {
		t.Errorf("%q", ops(fx))
	}
}

// cancel_task takes triggers too, with the task that one has started; a user only
// their own.
func TestCancelATrigger(t *testing.T) {
	t.Parallel()
	mine := trigger.Trigger{ID: trigger.NewID(epoch, 0, 1), Title: "Tickets", Conversation: thread, Requester: ann, LastTaskID: task.NewID(epoch, 0, 3)}
	bobs := trigger.Trigger{ID: trigger.NewID(epoch.Add(time.Hour), 0, 2), Conversation: thread, Requester: bob}
	l := &later{triggers: []trigger.Trigger{mine, bobs}, tasks: []task.Task{{ID: mine.LastTaskID, Conversation: thread, Status: task.Running}}}
	cancel := func(id string) llm.ToolCall { return call(t, "cancel_task", map[string]any{"task_id": id}) }
	if fx, _ := l.turn(t, cancel(mine.ID[:9])); ops(fx) != "trigger remove, task cancel" || fx.Calls[0].Args[4] != mine.ID {
		t.Errorf("%q", ops(fx))
	}
	l.tasks[0].Status = task.Succeeded
	if fx, _ := l.turn(t, cancel(mine.ID)); ops(fx) != "trigger remove" {
		t.Errorf("%q", ops(fx))
	}
	for id, want := range map[string]string{
		bobs.ID: "was asked for by Bob; only they and operators", "gzzzz": `there is no trigger "gzzzz"`, "g": "begins the ids of several",
	} {
		if fx, told := l.turn(t, cancel(id)); len(fx.Calls) != 0 || !strings.Contains(told, want) {
			t.Errorf("%s: %q, %q, want %q", id, ops(fx), told, want)
		}
	}
}

func TestListTellsOfTriggers(t *testing.T) {
	t.Parallel()
	l := &later{
		tasks:    []task.Task{{ID: task.NewID(epoch, 0, 3), Title: "A task", Conversation: thread, Status: task.Succeeded, Profile: task.Standard}},
		triggers: []trigger.Trigger{{ID: trigger.NewID(epoch, 0, 1), Type: trigger.Recurring, Title: "Tickets", Interval: time.Minute, NextRunAt: epoch, Conversation: thread}},
	}
	for status, wants := range map[string]string{"all": "A task Tickets", "active": "Tickets", "succeeded": "A task", "failed": "There are no such tasks"} {
		_, told := l.turn(t, call(t, "list_tasks", map[string]any{"status": status}))
		for _, w := range []string{"A task", "Tickets", "There are no such tasks"} {
			if strings.Contains(told, w) != strings.Contains(wants, w) {
				t.Errorf("%s: told %q, want %s", status, told, wants)
			}
		}
	}
}

func TestDelegate(t *testing.T) {
	t.Parallel()
	l := &later{}
	what := call(t, "delegate", map[string]any{"prompt": "compare A and B,\nthen " + strings.Repeat("write ", 30), "priority": 8, "timeout": 90})
	fx, _ := l.turn(t, what)
	if ops(fx) != "task create" {
		t.Fatalf("%q", ops(fx))
	}
	row := strings.Join(fx.Calls[0].Args, " ")
	for _, want := range []string{`"profile":"planner"`, `"priority":8`, `"timeout":90000`, `"title":"compare A and B, then write`, `"traceId":"tr"`} {
		if !strings.Contains(row, want) {
			t.Errorf("made %q, without %s", row, want)
		}
	}
	twin := task.Task{ID: "t1", Profile: task.Planner, Status: task.Running, Conversation: thread, Prompt: "plan", Title: "plan"}
	l.tasks = []task.Task{twin}
	if fx, told := l.turn(t, call(t, "delegate", map[string]any{"prompt": "plan"})); len(fx.Calls) != 0 || !strings.Contains(told, "planned already, by the task t1") {
		t.Errorf("%q, %q", ops(fx), told)
	}
	// Without a planner, or triggers, the model is not offered them.
	o := l.options()
	o.Planner, o.Triggers = false, nil
	for _, d := range TaskActions(o) {
		if d.Name == action.Delegate.Name || d.Name == action.Schedule.Name {
			t.Error(fmt.Sprint(d.Name, " is offered"))
		}
	}
}
