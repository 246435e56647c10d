package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// mostCanceled bounds what one command cancels.
const mostCanceled = 1000

// cancel is the command.
func (q *query) cancel(ctx context.Context, args []string) (Answer, error) {
	if len(args) == 0 {
		return Answer{}, refuse("Which task? Write %s, or %s for all of yours; %s lists them.", q.c.name("cancel <id>"), q.c.name("cancel mine"), q.c.name("tasks active"))
	}
	if scope := strings.ToLower(args[0]); slices.Contains(scopes, scope) {
		return q.cancelAll(ctx, scope, args[1:])
	}
	var tasks []task.Task
	for _, word := range args {
		t, err := q.find(ctx, word)
		if err != nil {
			return Answer{}, err
		}
		if !slices.ContainsFunc(tasks, func(u task.Task) bool { return u.ID == t.ID }) {
			tasks = append(tasks, t)
		}
	}
	var a Answer
	var did []Canceled
	for _, t := range tasks {
		c, words, err := q.cancelOne(ctx, t)
		if err != nil {
			return a, err
		}
		a.say(words)
		did = append(did, c)
	}
	a.Data = did
	return a, nil
}

// A Canceled is what became of one task that was to be canceled. Its JSON is
// add-only.
type Canceled struct {
	ID     string `json:"id"`
	Status string `json:"status"` // of the task afterwards
	Did    string `json:"did"`    // canceled, flagged, again or ended
}

// cancelOne cancels a task that the caller sees.
func (q *query) cancelOne(ctx context.Context, t task.Task) (Canceled, string, error) {
	q.target = t.ID
	how := "asked for with " + strings.ToLower(q.words[0])
	if q.c.Door != "" {
		how += " at " + q.c.Door
	}
	got, err := q.o.Tasks.Cancel(ctx, t.ID, q.c.Author, how)
	if errors.Is(err, task.ErrUnknown) {
		return Canceled{}, "", refuse("%s is not kept any more.", code(brief(t.ID)))
	}
	if err != nil {
		q.audit(ctx, t.ID, "failed: "+err.Error())
		return Canceled{}, "", err
	}
	q.audit(ctx, t.ID, string(got.Did))
	c := Canceled{ID: t.ID, Status: string(got.Status), Did: string(got.Did)}
	named := code(brief(t.ID))
	if q.readsTask(t) {
		named += " (" + Escape(cut(clean(t.Title), 80)) + ")"
	}
	var words string
	switch got.Did {
	case task.DidEnd:
		words = "Canceled " + named + "."
	case task.DidFlag:
		words = "Canceling " + named + ": its worker was told to end it."
	case task.DidAgain:
		words = named + " is being canceled already."
	default:
		words = fmt.Sprintf("%s is over already: %s %s. What it started and still ran is canceled.", named, t.Status, q.ago(t.CompletedAt))
	}
	if got.Partial {
		words += " What it started is canceled in the background."
	}
	return c, words, nil
}

// cancelAll cancels all of a scope, once that was confirmed.
func (q *query) cancelAll(ctx context.Context, scope string, args []string) (Answer, error) {
	if scope == "all" && !q.c.reaches(q.c.Conversation) {
		if q.c.role() >= chat.RoleOperator {
			return Answer{}, q.noAll()
		}
		scope = "mine" // all that a user can cancel
	}
	sure, until, err := sure(args)
	if err != nil {
		return Answer{}, err
	}
	tasks, all, err := q.collect(ctx, wish{scope: scope, statuses: task.Active}, mostCanceled)
	if err != nil {
		return Answer{}, err
	}
	all = all && len(tasks) < mostCanceled
	tasks = slices.DeleteFunc(tasks, func(t task.Task) bool { return !t.CancelRequestedAt.IsZero() || sure && t.CreatedAt.After(until) })
	var a Answer
	if len(tasks) == 0 {
		a.say("There is nothing to cancel.")
		a.Data = []Canceled{}
		return a, nil
	}
	if !sure {
		askers, places := map[string]bool{}, map[string]bool{}
		for _, t := range tasks {
			askers[t.Requester.ID], places[t.Conversation.Key()] = true, true
			until = latest(until, t.CreatedAt)
		}
		words := "This cancels " + count(len(tasks), "task")
		if scope != "mine" {
			words += fmt.Sprintf(" of %s in %s", people(len(askers)), count(len(places), "conversation"))
		}
		a.say(words + ". To do it, write " + q.c.name("cancel "+scope+" yes") + ".")
		a.press("Cancel "+count(len(tasks), "task"), "danger", "cancel", scope, "yes", stamp(until))
		return a, nil
	}
	var did []Canceled
	n := map[task.Did]int{}
	for _, t := range tasks {
		c, _, err := q.cancelOne(ctx, t)
		if r := (*Refusal)(nil); errors.As(err, &r) {
			continue // it went meanwhile
		}
		if err != nil {
			return a, fmt.Errorf("after %d of %d were canceled: %w", len(did), len(tasks), err)
		}
		n[task.Did(c.Did)]++
		did = append(did, c)
	}
	words := fmt.Sprintf("Canceled %s", count(n[task.DidEnd]+n[task.DidFlag]+n[task.DidAgain], "task"))
	if k := n[task.DidFlag]; k > 0 {
		words += fmt.Sprintf("; %d of them ran, and their workers were told to end them", k)
	}
	a.say(words + ".")
	if !all {
		a.say("There may be more: do it again.")
	}
	a.Data = did
	return a, nil
}

func people(n int) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}

// sure reads a confirmation: "yes", and what a button says besides, which is the
// time of the newest that it was shown for. Nothing that came later is meant. It
// is a time of Redis, as those that it is compared with.
func sure(args []string) (sure bool, until time.Time, err error) {
	switch {
	case len(args) == 0:
		return false, time.Time{}, nil
	case !strings.EqualFold(args[0], "yes") || len(args) > 2:
		return false, time.Time{}, odd(strings.Join(args, " "), []string{"yes"})
	case len(args) == 1:
		return true, time.UnixMilli(math.MaxInt64), nil
	}
	ms, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return false, time.Time{}, odd(args[1], []string{"yes alone"})
	}
	return true, time.UnixMilli(ms).Add(time.Millisecond - 1), nil
}

func stamp(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func plainCancel(args []string) bool {
	if len(args) == 0 {
		return false
	}
	if slices.Contains(scopes, strings.ToLower(args[0])) {
		return len(args) == 1 || len(args) == 2 && strings.EqualFold(args[1], "yes")
	}
	return !slices.ContainsFunc(args, func(w string) bool { return !isID(w) })
}

// A Retried names the task that was made of another. Its JSON is add-only.
type Retried struct {
	ID      string `json:"id"`
	Of      string `json:"of"`
	Created bool   `json:"created"` // false when the same task was open already
}

// startEmpty has a task whose files are on no node go on without them, wherever
// there is room.
func (q *query) startEmpty(ctx context.Context, t task.Task) (Answer, error) {
	err := q.o.Tasks.StartEmpty(ctx, t.ID, "")
	switch {
	case errors.Is(err, task.ErrRunning), errors.Is(err, task.ErrOver):
		return Answer{}, refuse("%s has gone on meanwhile; %s shows it.", code(brief(t.ID)), q.c.name("task "+brief(t.ID)))
	case err != nil:
		q.audit(ctx, t.ID, "failed: "+err.Error())
		return Answer{}, err
	}
	q.audit(ctx, t.ID, "started with empty files")
	var a Answer
	a.Data = Retried{ID: t.ID, Of: t.ID}
	a.say(fmt.Sprintf("%s starts with empty files, on any node.", code(brief(t.ID))))
	return a, nil
}

// retry is the command. The new task belongs to the caller and to the
// conversation of the old one, and it has the least rights of the caller and of
// who asked first: the words are theirs.
func (q *query) retry(ctx context.Context, args []string) (Answer, error) {
	if len(args) != 1 {
		return Answer{}, refuse("Which task? Write %s; %s lists what may be retried.", q.c.name("retry <id>"), q.c.name("tasks failed"))
	}
	t, err := q.find(ctx, args[0])
	if err != nil {
		return Answer{}, err
	}
	if hidden(t) {
		return Answer{}, refuse("%s is internal; it is made again by itself when it is needed.", code(brief(t.ID)))
	}
	if !t.StorageAwaySince.IsZero() && !task.Over(t.Status) {
		return q.startEmpty(ctx, t)
	}
	if t.Status != task.Failed && t.Status != task.Canceled {
		is := "is"
		if t.Status == task.Succeeded {
			is = "has"
		}
		return Answer{}, refuse("%s %s %s; only tasks that failed or were canceled can be retried.", code(brief(t.ID)), is, t.Status)
	}
	prompt, err := q.o.Tasks.Prompt(ctx, t.ID)
	if err != nil {
		return Answer{}, err
	}
	by := q.c.Author
	by.Role = q.c.role()
	if t.Requester.Role >= chat.RoleUser {
		by.Role = min(by.Role, t.Requester.Role)
	}
	id, created, err := q.o.Tasks.Enqueue(ctx, task.Draft{
		Profile: t.Profile, Title: t.Title, Prompt: prompt, Conversation: t.Conversation, Requester: by,
		Priority: &t.Priority, Timeout: &t.Timeout, Retry: &t.Retry, Storage: t.Storage,
	})
	if err != nil {
		q.audit(ctx, t.ID, "failed: "+err.Error())
		return Answer{}, err
	}
	var a Answer
	a.Data = Retried{ID: id, Of: t.ID, Created: created}
	if !created {
		q.audit(ctx, t.ID, "open already as "+id)
		a.say(fmt.Sprintf("The same task is open already as %s; no second one was started.", code(id)))
		return a, nil
	}
	q.audit(ctx, t.ID, "started "+id)
	words := "Started " + code(id)
	if q.readsTask(t) {
		words += " (" + Escape(cut(clean(t.Title), 80)) + ")"
	}
	words += ", the same as " + code(brief(t.ID)) + "."
	if t.Conversation != q.c.Conversation {
		words += " Its result is told where the first was asked for."
	}
	a.say(words)
	a.press("Show", "", "task", id)
	a.press("Cancel", "danger", "cancel", id)
	return a, nil
}

// stop is the command.
func (q *query) stop(ctx context.Context, args []string) (Answer, error) {
	if err := q.nothing(args); err != nil {
		return Answer{}, err
	}
	if err := q.o.Stop(ctx, q.c); err != nil {
		return Answer{}, err
	}
	q.audit(ctx, q.c.Conversation.Key(), "asked to stop")
	var a Answer
	a.say("Asked to stop what is being worked on here. Tasks go on; " + q.c.name("cancel here") + " cancels them.")
	return a, nil
}
