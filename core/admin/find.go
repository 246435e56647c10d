package admin

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mimikit/core/task"
)

// shortID is what of an id people are shown: its time, to the millisecond.
const shortID = 10

// shortIDs gives beginnings of ids that are different.
func shortIDs(tasks []task.Task) []string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		n := min(shortID, len(t.ID))
		for j, u := range tasks {
			for i != j && n < len(t.ID) && strings.HasPrefix(u.ID, t.ID[:n]) {
				n++
			}
		}
		out[i] = t.ID[:n]
	}
	return out
}

func brief(id string) string { return id[:min(shortID, len(id))] }

// isID reports whether a word can be an id of a task, or the beginning of one.
func isID(word string) bool {
	word = strings.ToLower(word)
	return len(word) >= 4 && word[0] == 't' && strings.ContainsAny(word, "0123456789") &&
		strings.Trim(word[1:], "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

func plainIDs(args []string) bool {
	if len(args) == 0 || !isID(args[0]) {
		return false
	}
	return len(args) == 1 || len(args) == 2 && slices.Contains(parts, strings.ToLower(args[1]))
}

// mostLooked bounds among how many of the newest tasks the beginning of an id is
// looked up; older ones take the whole id.
const mostLooked = 500

// find gives the task that a word names, whole or by its beginning, if it exists
// for the caller. Where several begin so, only those are meant that the caller
// sees, so that nobody learns from an answer what others have.
func (q *query) find(ctx context.Context, word string) (task.Task, error) {
	word = strings.ToLower(strings.TrimSpace(word))
	unknown := refuse("There is no task %s that you could see; %s lists those there are.", code(cut(word, 40)), q.c.name("tasks"))
	if q.o.Triggers != nil && isTriggerID(word) {
		return task.Task{}, refuse("%s is the id of a trigger: see %s.", code(cut(word, 40)), q.c.name("help trigger"))
	}
	if len(word) < 2 || word[0] != 't' {
		return task.Task{}, unknown
	}
	if _, _, err := task.ParseID(word); err == nil {
		t, err := q.o.Tasks.Get(ctx, word)
		if errors.Is(err, task.ErrUnknown) {
			return task.Task{}, unknown
		}
		if err != nil {
			return task.Task{}, err
		}
		return q.seen(t, unknown)
	}
	t, err := q.o.Tasks.Find(ctx, word, nil)
	var several *task.AmbiguousError
	switch {
	case errors.As(err, &several): // the caller may see but one of them
	case errors.Is(err, task.ErrUnknown):
		return task.Task{}, unknown
	case err != nil:
		return task.Task{}, err
	default:
		return q.seen(t, unknown)
	}
	w := wish{scope: "mine"}
	if q.c.reaches(q.c.Conversation) {
		w.scope = "all"
	}
	all, complete, err := q.collect(ctx, w, mostLooked)
	if err != nil {
		return task.Task{}, err
	}
	// Ids that begin alike lie side by side, so only of the oldest looked at there
	// may be another behind it.
	unsure := ""
	if len(all) > 0 && (!complete || len(all) == mostLooked) {
		unsure = all[len(all)-1].ID
	}
	all = slices.DeleteFunc(all, func(t task.Task) bool { return !strings.HasPrefix(t.ID, word) })
	switch {
	case len(all) == 1 && all[0].ID == unsure:
		return task.Task{}, refuse("More than one task may begin with %s. Write more of the id.", code(word))
	case len(all) == 1:
		q.target = all[0].ID
		return all[0], nil
	case len(all) > 1:
		return task.Task{}, severally("task", word, shortIDs(all))
	}
	return task.Task{}, unknown
}

// severally refuses a beginning that several ids have, and names some of them.
func severally(what, word string, ids []string) error {
	var names []string
	for _, s := range ids[:min(5, len(ids))] {
		names = append(names, code(s))
	}
	if len(ids) > len(names) {
		names = append(names, "…")
	}
	return refuse("%s begin with %s: %s. Write more of the id.", count(len(ids), what), code(cut(word, 40)), strings.Join(names, ", "))
}

// seen gives a task, or says that it is not the caller's, or not there: that a
// task of their own conversation exists, people know anyway.
func (q *query) seen(t task.Task, unknown error) (task.Task, error) {
	q.target = t.ID
	switch {
	case q.c.sees(t):
		return t, nil
	case t.Conversation == q.c.Conversation && !hidden(t):
		return task.Task{}, forbid("%s was asked for by %s; only they, operators and admins may see and cancel it.", code(brief(t.ID)), Escape(personName(t.Requester)))
	}
	return task.Task{}, &Refusal{Text: Say(unknown), Forbidden: true, unseen: !same(q.c.Conversation, t.Conversation)}
}
