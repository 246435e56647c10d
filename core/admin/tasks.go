package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// scopes say whose tasks.
var scopes = []string{"mine", "here", "all"}

// statusNames are the words for statuses, besides the statuses themselves.
var statusNames = map[string][]task.Status{
	"active":    task.Active,
	"over":      {task.Succeeded, task.Failed, task.Canceled},
	"done":      {task.Succeeded},
	"cancelled": {task.Canceled}, // the other spelling
}

// statusWords lists what may be asked for, in the order of a task's life.
func statusWords() []string {
	words := []string{"active"}
	for _, s := range task.Statuses {
		words = append(words, string(s))
	}
	return append(words, "over")
}

// statusesOf gives the statuses that a word names.
func statusesOf(word string) ([]task.Status, bool) {
	if list, ok := statusNames[word]; ok {
		return list, true
	}
	s := task.Status(word)
	return []task.Status{s}, slices.Contains(task.Statuses, s)
}

// A wish is what `tasks` was asked for.
type wish struct {
	scope    string
	statuses []task.Status
	words    []string // its spelling, without the page
	page     int
}

func readWish(args []string) (wish, error) {
	w := wish{scope: "mine", page: 1}
	scoped, paged := false, false
	for _, arg := range args {
		word := strings.ToLower(arg)
		list, isStatus := statusesOf(word)
		n, err := strconv.Atoi(word)
		switch {
		case slices.Contains(scopes, word) && !scoped:
			w.scope, scoped = word, true
		case isStatus:
			w.statuses = append(w.statuses, list...)
		case err == nil && n >= 1 && n <= maxPages && !paged:
			w.page, paged = n, true
			continue
		case err == nil && !paged:
			return w, refuse("Page %s: allowed are 1 to %d.", code(cut(arg, 40)), maxPages)
		default:
			return w, odd(arg, slices.Concat(scopes, statusWords(), []string{"the number of a page"}))
		}
		w.words = append(w.words, word)
	}
	return w, nil
}

// maxPages bounds how far back a list can be read.
const maxPages = 1000

func plainTasks(args []string) bool {
	_, err := readWish(args)
	return err == nil
}

// A TaskView is a task as programs are told of it. Its JSON is add-only.
type TaskView struct {
	ID           string  `json:"id"`
	Title        string  `json:"title"`
	Status       string  `json:"status"`
	Profile      string  `json:"profile"`
	Conversation string  `json:"conversation"`
	Requester    string  `json:"requester"`
	Priority     int     `json:"priority"`
	Attempts     int     `json:"attempts"`
	Canceling    bool    `json:"canceling,omitempty"`
	Percent      *int    `json:"percent,omitempty"`
	LastEvent    string  `json:"lastEvent,omitempty"`
	CreatedAt    string  `json:"createdAt"`
	DeferUntil   string  `json:"deferUntil,omitempty"`
	StartedAt    string  `json:"startedAt,omitempty"`
	CompletedAt  string  `json:"completedAt,omitempty"`
	Seconds      float64 `json:"seconds,omitempty"` // that its runs took
	Reason       string  `json:"failureReason,omitempty"`
	Error        string  `json:"error,omitempty"`
}

// tasks is the command.
func (q *query) tasks(ctx context.Context, args []string) (Answer, error) {
	w, err := readWish(args)
	if err != nil {
		return Answer{}, err
	}
	if w.scope == "all" && !q.c.reaches(q.c.Conversation) {
		return Answer{}, q.noAll()
	}
	size := q.c.PageSize
	got, all, err := q.collect(ctx, w, w.page*size+1)
	if err != nil {
		return Answer{}, err
	}
	more := len(got) > w.page*size
	got = got[min((w.page-1)*size, len(got)):min(w.page*size, len(got))]
	var a Answer
	views := make([]TaskView, 0, len(got))
	if len(got) == 0 {
		a.say(q.noTasks(w))
		if !all {
			a.say(tooMany)
		}
		a.Data = views
		return a, nil
	}
	t := a.table("ID", "Title", "Status", "For", "Since", "Last")
	short := shortIDs(got)
	for i, x := range got {
		p, err := q.last(ctx, x)
		if err != nil {
			return Answer{}, err
		}
		t.row(short[i], cut(q.title(x), 50), statusOf(x), q.asker(x), q.since(x), p.words())
		views = append(views, q.view(x, p))
	}
	if w.scope == "mine" {
		dropColumn(t, 3)
	}
	if w.page > 1 || more {
		words := fmt.Sprintf("Page %d.", w.page)
		if more {
			next := strings.Join(append(append([]string{"tasks"}, w.words...), strconv.Itoa(w.page+1)), " ")
			words += " " + q.c.name(next) + " shows the next."
			a.press("Next page", "", next)
		}
		a.say(words)
	}
	if !all {
		a.say(tooMany)
	}
	a.Data = views
	return a, nil
}

// tooMany says that a list may lack old tasks.
const tooMany = "There are too many tasks to look through all; older ones may be missing. A status narrows the list."

// mostLists bounds how often one command asks for tasks; each time is up to a
// thousand of them.
const mostLists = 20

func dropColumn(t *Table, i int) {
	t.Head = slices.Delete(t.Head, i, i+1)
	for r := range t.Rows {
		t.Rows[r] = slices.Delete(t.Rows[r], i, i+1)
	}
}

// noAll refuses all tasks, to whom it must.
func (q *query) noAll() error {
	if q.c.role() >= chat.RoleOperator {
		return forbid("There is no workspace here whose tasks you could see; %s are yours, %s those of this conversation.", q.c.name("tasks mine"), q.c.name("tasks here"))
	}
	return forbid("Only operators and admins may see and cancel the tasks of others; %s are yours.", q.c.name("tasks mine"))
}

// noTasks says that a list is empty, and what else there may be.
func (q *query) noTasks(w wish) string {
	what := map[string]string{"mine": "You have no tasks", "here": "There are no tasks of yours in this conversation", "all": "There are no tasks"}[w.scope]
	if w.scope == "here" && q.c.reaches(q.c.Conversation) {
		what = "There are no tasks in this conversation"
	}
	for _, word := range w.words {
		if !slices.Contains(scopes, word) {
			what += " that are " + word
			break
		}
	}
	if w.page > 1 {
		return fmt.Sprintf("There is no page %d. %s shows the first.", w.page, q.c.name(strings.Join(append([]string{"tasks"}, w.words...), " ")))
	}
	if w.scope == "mine" && q.c.reaches(q.c.Conversation) {
		return what + ". " + q.c.name("tasks all") + " shows everybody's."
	}
	return what + "."
}

// collect reads the newest tasks that the caller sees, at most so many. all says
// that nothing was left out for there being too many of others.
func (q *query) collect(ctx context.Context, w wish, most int) (out []task.Task, all bool, err error) {
	f := task.Filter{Status: w.statuses}
	in := q.c.Conversation
	switch w.scope {
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
		page, err := q.o.Tasks.List(ctx, f, from, min(most, 100))
		if err != nil {
			return nil, false, err
		}
		for _, t := range page.Tasks {
			if q.c.sees(t) {
				out = append(out, t)
			}
			if len(out) == most {
				return out, true, nil
			}
		}
		if page.Next == "" {
			return out, true, nil
		}
		from = page.Next
	}
	return out, false, nil
}
