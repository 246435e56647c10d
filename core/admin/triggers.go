package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// Triggers is what commands do with triggers; a *trigger.Store is one.
type Triggers interface {
	List(ctx context.Context, f trigger.Filter, from string, limit int) (trigger.Page, error)
	Get(ctx context.Context, id string) (trigger.Trigger, error)
	Find(ctx context.Context, prefix string, c *chat.Conversation) (trigger.Trigger, error)
	Pause(ctx context.Context, id string, by chat.Author, reason string) (again bool, err error)
	Resume(ctx context.Context, id string, by chat.Author) (again bool, err error)
	Run(ctx context.Context, id string) (taskID string, err error)
	Remove(ctx context.Context, id string) (trigger.Trigger, error)
}

// triggerActs are what `trigger` can do, in the order of help.
var triggerActs = []string{"show", "pause", "resume", "run", "remove"}

// triggerCommands are the commands on triggers.
func (s *Set) triggerCommands() []Command {
	there := s.o.Triggers != nil
	return []Command{
		{
			Name: "triggers", Usage: "triggers [mine|here|all] [page]", Short: "lists what starts tasks later, with the next three times", Rights: chat.RoleUser,
			Long: "mine are those you asked for in this workspace (the default), here those of this conversation, all those of the workspace, which only operators and admins may see.",
			Args: []Arg{{Name: "whose", Short: "whose triggers", Words: scopes, Optional: true}, {Name: "page", Short: "which page, from 1", Optional: true}},
			run:  having(there, (*query).triggers), plainly: plainTriggers,
		},
		{
			Name: "trigger", Usage: "trigger <id> | trigger pause|resume|run|remove <id>", Short: "shows one trigger, or pauses, resumes, runs or removes it", Rights: chat.RoleUser,
			Long: "Runs that fall into a pause are not made up for. run starts the task now, unless the last one still runs, and changes no time, but that what was to run once has then run. A task that was started goes on when its trigger is removed.",
			Args: []Arg{{Name: "what", Short: "what to do", Words: triggerActs}, {Name: "id", Short: "the trigger's id, or enough of its beginning", Trigger: true}},
			run:  having(there, (*query).trigger), plainly: plainTrigger,
		},
	}
}

// asTask has of a trigger what rights depend on: who asked for it, and where.
func asTask(t trigger.Trigger) task.Task {
	return task.Task{ID: t.ID, Title: t.Title, Conversation: t.Conversation, Requester: t.Requester}
}

// A TriggerView is a trigger as programs are told of it. Its JSON is add-only.
type TriggerView struct {
	ID            string   `json:"id"`
	Title         string   `json:"title"`
	Type          string   `json:"type"`
	When          string   `json:"when"`
	Next          []string `json:"next,omitempty"` // up to three times, RFC 3339 in UTC
	Zone          string   `json:"zone,omitempty"`
	Conversation  string   `json:"conversation"`
	Requester     string   `json:"requester"`
	Profile       string   `json:"profile"`
	Priority      int      `json:"priority"`
	Prompt        string   `json:"prompt,omitempty"` // in the view of one trigger
	Cooldown      float64  `json:"cooldown,omitempty"`
	Paused        bool     `json:"paused,omitempty"`
	PausedAt      string   `json:"pausedAt,omitempty"`
	PauseReason   string   `json:"pauseReason,omitempty"`
	Fired         int64    `json:"fired"`
	LastTriggered string   `json:"lastTriggeredAt,omitempty"`
	Skipped       int64    `json:"skipped,omitempty"` // runs left out because its task was still running
	LastSkipped   string   `json:"lastSkippedAt,omitempty"`
	WaitsFor      string   `json:"waitsForTaskId,omitempty"` // its own task, at whose end it fires
	LastTaskID    string   `json:"lastTaskId,omitempty"`
	LastError     string   `json:"lastError,omitempty"`
	ParentTaskID  string   `json:"parentTaskId,omitempty"`
	TraceID       string   `json:"traceId,omitempty"`
	CreatedAt     string   `json:"createdAt"`
}

func (q *query) viewTrigger(t trigger.Trigger) TriggerView {
	v := TriggerView{
		ID: t.ID, Title: q.title(asTask(t)), Type: string(t.Type), When: q.when(t), Zone: t.Zone, Conversation: t.Conversation.Key(),
		Requester: t.Requester.ID, Profile: t.Profile, Priority: t.Priority, Cooldown: t.Cooldown.Seconds(), Paused: t.Paused(),
		PausedAt: rfc(t.PausedAt), Fired: t.Fired, LastTriggered: rfc(t.LastTriggeredAt), LastTaskID: t.LastTaskID,
		Skipped: t.Skipped, LastSkipped: rfc(t.LastSkippedAt), WaitsFor: t.Behind,
		ParentTaskID: t.ParentTaskID, TraceID: t.TraceID, CreatedAt: rfc(t.CreatedAt),
	}
	if q.readsTask(asTask(t)) {
		v.PauseReason, v.LastError = clean(t.PauseReason), clean(t.LastError)
	}
	for _, at := range t.NextRuns(3) {
		v.Next = append(v.Next, rfc(at))
	}
	return v
}

func rfc(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// when says when a trigger fires, as far as the answer may: a condition holds words
// of its conversation.
func (q *query) when(t trigger.Trigger) string {
	if t.Type == trigger.Conditional && !q.readsTask(asTask(t)) {
		return "when something comes true " + withheld
	}
	return clean(t.When())
}

// next tells the next times in the zone that people think of them in.
func next(t trigger.Trigger) string {
	runs := t.NextRuns(3)
	if len(runs) == 0 {
		return ""
	}
	times := make([]string, len(runs))
	for i, at := range runs {
		times[i] = strings.TrimSuffix(trigger.Stamp(at, t.Zoned()), " "+t.Zoned())
	}
	return strings.Join(times, ", ") + " " + t.Zoned()
}

func (q *query) stateOf(t trigger.Trigger) string {
	switch {
	case t.Paused():
		return "paused"
	case t.LastError != "":
		return "cannot look"
	case t.Behind != "":
		return "waits for its last task to end"
	case t.Skipped > 0:
		return "fired " + count(int(t.Fired), "time") + ", skipped " + t.Skips()
	case t.Fired > 0:
		return "fired " + count(int(t.Fired), "time")
	}
	return "waits"
}

// triggers is the command.
func (q *query) triggers(ctx context.Context, args []string) (Answer, error) {
	scope, page, err := readTriggers(args)
	if err != nil {
		return Answer{}, err
	}
	if scope == "all" && !q.c.reaches(q.c.Conversation) {
		return Answer{}, q.noAll()
	}
	size := q.c.PageSize
	got, all, err := q.collectTriggers(ctx, scope, page*size+1)
	if err != nil {
		return Answer{}, err
	}
	more := len(got) > page*size
	got = got[min((page-1)*size, len(got)):min(page*size, len(got))]
	var a Answer
	views := make([]TriggerView, 0, len(got))
	for _, t := range got {
		views = append(views, q.viewTrigger(t))
	}
	a.Data = views
	if len(got) == 0 {
		words := map[string]string{"mine": "You have no triggers", "here": "There are no triggers in this conversation that you could see", "all": "There are no triggers"}[scope] + "."
		if page > 1 {
			words = fmt.Sprintf("There is no page %d.", page)
		} else if scope == "mine" && q.c.reaches(q.c.Conversation) {
			words += " " + q.c.name("triggers all") + " shows everybody's."
		}
		a.say(words)
		return a, nil
	}
	tab := a.table("ID", "Title", "When", "Next", "For", "State")
	tasks := make([]task.Task, len(got))
	for i, t := range got {
		tasks[i] = asTask(t)
	}
	for i, short := range shortIDs(tasks) {
		t := got[i]
		tab.row(short, cut(q.title(tasks[i]), 50), cut(q.when(t), 80), next(t), q.asker(tasks[i]), q.stateOf(t))
	}
	if scope == "mine" {
		dropColumn(tab, 4)
	}
	if page > 1 || more {
		words := fmt.Sprintf("Page %d.", page)
		if more {
			following := fmt.Sprintf("triggers %s %d", scope, page+1)
			words += " " + q.c.name(following) + " shows the next."
			a.press("Next page", "", following)
		}
		a.say(words)
	}
	if !all {
		a.say("There are too many triggers to look through all; older ones may be missing.")
	}
	return a, nil
}

func readTriggers(args []string) (scope string, page int, err error) {
	scope, page = "mine", 1
	scoped, paged := false, false
	for _, arg := range args {
		word := strings.ToLower(arg)
		n, err := strconv.Atoi(word)
		switch {
		case slices.Contains(scopes, word) && !scoped:
			scope, scoped = word, true
		case err == nil && n >= 1 && n <= maxPages && !paged:
			page, paged = n, true
		case err == nil && !paged:
			return "", 0, refuse("Page %s: allowed are 1 to %d.", code(cut(arg, 40)), maxPages)
		default:
			return "", 0, odd(arg, slices.Concat(scopes, []string{"the number of a page"}))
		}
	}
	return scope, page, nil
}

func plainTriggers(args []string) bool {
	_, _, err := readTriggers(args)
	return err == nil
}

// collectTriggers reads the newest triggers that the caller sees, at most so many.
// all says that nothing was left out for there being too many of others.
func (q *query) collectTriggers(ctx context.Context, scope string, most int) (out []trigger.Trigger, all bool, err error) {
	f := trigger.Filter{}
	in := q.c.Conversation
	switch scope {
	case "here":
		f.Conversation = &in
	case "mine":
		f.Platform, f.Workspace, f.Requester = in.Platform, in.Workspace, q.c.Author.ID
		if f.Requester == "" {
			return nil, true, nil
		}
	default:
		if !q.c.Owner {
			f.Platform, f.Workspace = in.Platform, in.Workspace
		}
	}
	from := ""
	for range mostLists {
		page, err := q.o.Triggers.List(ctx, f, from, min(most, 100))
		if err != nil {
			return nil, false, err
		}
		for _, t := range page.Triggers {
			if q.c.sees(asTask(t)) {
				out = append(out, t)
			}
			if len(out) == most {
				return out, true, nil
			}
		}
		if from = page.Next; from == "" {
			return out, true, nil
		}
	}
	return out, false, nil
}

// findTrigger gives the trigger that a word names, whole or by its beginning, if it
// exists for the caller. As with tasks, where several begin so only those are meant
// that the caller sees.
func (q *query) findTrigger(ctx context.Context, word string) (trigger.Trigger, error) {
	word = strings.ToLower(strings.TrimSpace(word))
	unknown := refuse("There is no trigger %s that you could see; %s lists those there are.", code(cut(word, 40)), q.c.name("triggers"))
	if len(word) < 2 || !trigger.IsID(word) {
		return trigger.Trigger{}, unknown
	}
	t, err := q.o.Triggers.Find(ctx, word, nil)
	var several *trigger.AmbiguousError
	switch {
	case errors.As(err, &several):
	case errors.Is(err, trigger.ErrUnknown):
		return t, unknown
	case err != nil:
		return t, err
	default:
		if _, err := q.seen(asTask(t), unknown); err != nil {
			return trigger.Trigger{}, err
		}
		return t, nil
	}
	scope := "mine"
	if q.c.reaches(q.c.Conversation) {
		scope = "all"
	}
	list, _, err := q.collectTriggers(ctx, scope, mostLooked)
	if err != nil {
		return trigger.Trigger{}, err
	}
	list = slices.DeleteFunc(list, func(t trigger.Trigger) bool { return !strings.HasPrefix(t.ID, word) })
	switch len(list) {
	case 0:
		return trigger.Trigger{}, unknown
	case 1:
		q.target = list[0].ID
		return list[0], nil
	}
	return trigger.Trigger{}, refuse("%s begin with %s. Write more of the id.", count(len(list), "trigger"), code(word))
}

// isTriggerID reports whether a word can be an id of a trigger, or its beginning.
func isTriggerID(word string) bool {
	return trigger.IsID(strings.ToLower(word)) && isID("t"+word[1:])
}

func plainTrigger(args []string) bool {
	switch len(args) {
	case 1:
		return isTriggerID(args[0])
	case 2:
		return slices.Contains(triggerActs, strings.ToLower(args[0])) && isTriggerID(args[1])
	}
	return false
}
