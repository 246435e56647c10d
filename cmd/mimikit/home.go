package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// A homeView is what a person is shown of all that is theirs, as plain text.
type homeView struct {
	intro    string
	sections []homeSection
}

type homeSection struct {
	title, empty string
	rows         []homeRow
}

type homeRow struct {
	title, detail string
	whole         string // what its buttons decide about, where nobody should by its beginning
	buttons       []chat.Button
}

const recentTasks = 10

// home gathers somebody's tasks in a workspace.
func (a *App) home(ctx context.Context, who chat.Author, in chat.Conversation) (homeView, error) {
	v := homeView{intro: fmt.Sprintf("Hello! I am %s. Mention me in a channel or write to me under Messages: I answer in the thread where I was asked, and what takes longer becomes a task that you see here.", a.cfg.Name)}
	if why := a.access.refuses(in, who.ID); why != "" {
		v.intro = why
		return v, nil
	}
	mine := task.Filter{Platform: in.Platform, Workspace: in.Workspace, Requester: who.ID}
	open, err := a.homeTasks(ctx, mine, task.Active, 20)
	if err != nil {
		return v, err
	}
	over, err := a.homeTasks(ctx, mine, []task.Status{task.Succeeded, task.Failed, task.Canceled}, recentTasks)
	if err != nil {
		return v, err
	}
	triggers, err := a.homeTriggers(ctx, who, in)
	if err != nil {
		return v, err
	}
	questions, err := a.homeQuestions(ctx, who, in)
	if err != nil {
		return v, err
	}
	v.intro += a.homePaused(in)
	if len(questions) > 0 { // what waits for them comes first
		v.sections = append(v.sections, homeSection{"Questions for you", "", questions})
	}
	v.sections = append(v.sections, []homeSection{
		{"Your tasks", "Nothing of yours runs or waits. Ask for something that takes a while, such as “compare these two pages and write a summary”.", open},
		{"Your triggers", "Nothing starts by itself for you. Say when, such as “every weekday at nine, tell me what is new on this page”.", triggers},
		{"Ended of late", "Nothing has ended yet.", over},
	}...)
	return v, nil
}

// homeTasks lists the newest tasks that a filter chooses.
func (a *App) homeTasks(ctx context.Context, f task.Filter, status []task.Status, most int) ([]homeRow, error) {
	f.Status = status
	var rows []homeRow
	for next := ""; ; {
		page, err := a.queue.List(ctx, f, next, most)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tasks {
			if !t.Internal && len(rows) < most {
				rows = append(rows, homeTask(t))
			}
		}
		if next = page.Next; next == "" || len(rows) >= most {
			return rows, nil
		}
	}
}

func homeTask(t task.Task) homeRow {
	r := homeRow{title: t.Title}
	said := []string{string(t.Status)}
	switch {
	case !t.CompletedAt.IsZero():
		said = append(said, "after "+short(time.Duration(t.DurationMs)*time.Millisecond), "at "+t.CompletedAt.UTC().Format("2006-01-02 15:04 UTC"))
	case !t.CancelRequestedAt.IsZero():
		said = append(said, "it was told to end")
	case !t.DeferUntil.IsZero() && t.Status == task.Deferred:
		said = append(said, "begins at "+t.DeferUntil.UTC().Format("2006-01-02 15:04 UTC"))
	}
	said = append(said, t.ID)
	r.detail = strings.Join(said, " · ")
	if !task.Over(t.Status) && t.CancelRequestedAt.IsZero() {
		r.buttons = []chat.Button{admin.Press("Cancel", "danger", "cancel", t.ID)}
	}
	return r
}

// short writes a time as people say it.
func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
