package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// A Moment is one thing that happened to a task. Its JSON is add-only.
type Moment struct {
	At      time.Time `json:"at"`
	What    string    `json:"what"`
	Percent *int      `json:"percent,omitempty"`
}

// How many events of its progress the story of a task has. All that are kept are
// read, so that what began is known when it ends.
const (
	toldEvents  = 12 // in chat
	toldToOwner = 60
)

// story tells all that is known of when what happened to a task, the oldest first,
// and how many of the earlier events are left out.
func (q *query) story(t task.Task, events []task.Event) (list []Moment, left int) {
	add := func(at time.Time, what string) {
		if !at.IsZero() {
			list = append(list, Moment{At: at, What: what})
		}
	}
	// insert puts what happened behind all that was not later. The clocks of the nodes,
	// which events have, may differ from that of Redis, so the rest keeps the order of
	// a task's life.
	insert := func(at time.Time, what string) {
		i := len(list)
		for i > 1 && list[i-1].At.After(at) {
			i--
		}
		list = slices.Insert(list, i, Moment{At: at, What: what})
	}
	reads := q.readsTask(t)
	asked := "asked for by " + q.asker(t)
	switch {
	case t.SourceTriggerID != "":
		asked += ", started by the trigger " + t.SourceTriggerID
	case t.ParentTaskID != "":
		asked += ", started by the task " + brief(t.ParentTaskID)
	}
	add(t.CreatedAt, asked)
	if !t.StartedAt.IsZero() {
		words := "the first run began"
		if t.Node != "" && t.Attempts <= 1 && q.c.role() >= chat.RoleOperator {
			words += " on " + clean(t.Node)
		}
		add(t.StartedAt, words)
	}
	told := happened(events, reads)
	most := toldEvents
	if q.c.Owner {
		most = toldToOwner
	}
	if left = max(0, len(told)-most); left > 0 {
		told = told[left:]
	}
	list = append(list, told...)
	if t.DeferUntil.After(t.CreatedAt) {
		words := "might begin"
		switch {
		case t.Status == task.Deferred:
			words = "is to begin"
		case t.Retries > 0:
			words = "might run again"
		}
		insert(t.DeferUntil, words)
	}
	if !t.StorageAwaySince.IsZero() {
		insert(t.StorageAwaySince, "its files were on no node that runs; it waits for them")
	}
	if !t.CancelRequestedAt.IsZero() {
		words := "told to end by " + personName(t.CanceledBy)
		if t.CancelReason != "" && reads {
			words += ": " + cut(clean(t.CancelReason), 200)
		}
		insert(t.CancelRequestedAt, words)
	}
	if task.Over(t.Status) {
		words := string(t.Status)
		if t.Status == task.Failed {
			words += " (" + t.FailureReason + ")"
		}
		if t.DurationMs > 0 {
			words += ", after running for " + lasting(time.Duration(t.DurationMs)*time.Millisecond)
		}
		if t.Error != "" && t.Status == task.Failed && reads {
			words += ": " + cut(clean(t.Error), 200)
		}
		add(t.CompletedAt, words)
	}
	return list, left
}

// happened tells a task's events in words: an action with how long it took, and
// each further run. reads says that what was said may be told.
func happened(events []task.Event, reads bool) []Moment {
	var out []Moment
	open, run := -1, 1 // the action that is under way, and of which run the last event is
	for _, e := range events {
		m := clean(e.Message)
		if e.Attempt > run {
			run, open = e.Attempt, -1
			out = append(out, Moment{At: e.At, What: fmt.Sprintf("run %d began", run)})
		}
		switch e.Kind {
		case "action_call_start":
			words := m
			switch known, ours := doing[m]; {
			case known != "":
				words = known
			case !ours && !reads:
				words = "an action"
			}
			out = append(out, Moment{e.At, words, e.Percent})
			open = len(out) - 1
			continue
		case "action_call_end":
			if open >= 0 {
				out[open].What += ", " + lasting(e.At.Sub(out[open].At))
				open = -1
				continue
			}
		case "standard_start", "planner_start", "expert_start": // the run that began, and its message is the title
			continue
		case "standard_resume", "planner_resume", "expert_resume":
			out = append(out, Moment{e.At, "went on from where it was", e.Percent})
			continue
		}
		what := strings.ReplaceAll(clean(e.Kind), "_", " ")
		if m != "" && reads {
			what += ": " + cut(m, 200)
		}
		out = append(out, Moment{e.At, what, e.Percent})
	}
	return out
}

// moment spells a time for people: its UTC clock, its day where that is another,
// and how long ago it was.
func (q *query) moment(t time.Time) string {
	now, t := q.o.Now().UTC(), t.UTC()
	layout := "15:04:05"
	switch {
	case now.Year() != t.Year():
		layout = "2 Jan 2006 " + layout
	case now.YearDay() != t.YearDay():
		layout = "2 Jan " + layout
	}
	return t.Format(layout) + ", " + q.ago(t)
}

// tell adds the story to an answer.
func (q *query) tell(a *Answer, t task.Task, list []Moment, left int) {
	tab := a.table("When (UTC)", "What happened", "Done")
	done := false
	for _, m := range list {
		percent := ""
		if m.Percent != nil {
			percent, done = fmt.Sprintf("%d%%", *m.Percent), true
		}
		tab.row(q.moment(m.At), m.What, percent)
	}
	if !done {
		dropColumn(tab, 2)
	}
	if left > 0 {
		a.say(fmt.Sprintf("%s of its progress %s left out here; %s shows all that is kept.", count(left, "earlier event"), isAre(left), q.c.name("task "+brief(t.ID)+" progress")))
	}
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// mostChildren bounds what is said of the tasks that a task started.
const mostChildren = 20

// children names the tasks that a task started, those first that were made first.
func (q *query) children(ctx context.Context, t task.Task) ([]task.Task, error) {
	page, err := q.o.Tasks.List(ctx, task.Filter{Parent: t.ID}, "", mostChildren)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(page.Tasks, func(c task.Task) bool { return !q.c.sees(c) })
	slices.Reverse(list)
	return list, nil
}

func (q *query) childWords(list []task.Task) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = brief(c.ID) + " " + statusOf(c)
		if title := q.title(c); title != withheld {
			words[i] += " (" + cut(title, 40) + ")"
		}
	}
	return strings.Join(words, ", ")
}
