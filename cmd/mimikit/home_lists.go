package main

import (
	"context"
	"fmt"
	"strings"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/trigger"
)

const (
	mostHomeTriggers  = 20
	mostHomeQuestions = 10
)

// homeTriggers lists what will start tasks on somebody's behalf.
func (a *App) homeTriggers(ctx context.Context, who chat.Author, in chat.Conversation) ([]homeRow, error) {
	page, err := a.triggers.List(ctx, trigger.Filter{Platform: in.Platform, Workspace: in.Workspace, Requester: who.ID}, "", mostHomeTriggers)
	if err != nil {
		return nil, err
	}
	var rows []homeRow
	for _, t := range page.Triggers {
		if !t.Internal {
			rows = append(rows, homeTrigger(t))
		}
	}
	return rows, nil
}

func homeTrigger(t trigger.Trigger) homeRow {
	said := []string{t.When()}
	change := admin.Press("Pause", "", "trigger", "pause", t.ID)
	if t.Paused() {
		said = append(said, "paused")
		change = admin.Press("Resume", "", "trigger", "resume", t.ID)
	} else if next := t.NextRuns(1); len(next) > 0 {
		said = append(said, "next "+trigger.Stamp(next[0], t.Zoned()))
	}
	return homeRow{title: t.Title, detail: strings.Join(append(said, t.ID), " · "), buttons: []chat.Button{change, admin.Press("Run now", "", "trigger", "run", t.ID)}}
}

// homeQuestions lists what somebody is asked by name, or by their role, in the
// workspace. What all of a conversation are asked is answered there.
func (a *App) homeQuestions(ctx context.Context, who chat.Author, in chat.Conversation) ([]homeRow, error) {
	var rows []homeRow
	left := 0
	for q, err := range a.questions.EachOpen(ctx) {
		switch {
		case err != nil:
			return nil, err
		case !askedAtHome(q, who, in):
		case len(rows) < mostHomeQuestions:
			rows = append(rows, homeQuestion(q))
		default:
			left++
		}
	}
	if left > 0 {
		rows = append(rows, homeRow{title: fmt.Sprintf("… and %d more", left), detail: a.cfg.Slack.Command + " questions lists all of them"})
	}
	return rows, nil
}

func homeQuestion(q question.Question) homeRow {
	var said []string
	if !q.Deadline.IsZero() {
		said = append(said, "until "+q.Deadline.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if len(q.Options) == 0 {
		said = append(said, "answer where it was asked")
	}
	r := homeRow{title: q.Text, detail: strings.Join(append(said, q.ID), " · "), buttons: q.Buttons()}
	if q.OnlyOptions {
		r.whole = q.Text
	}
	return r
}

// askedAtHome reports whether somebody may answer a question where nobody else is: it
// is put to them, or to their role in its workspace.
func askedAtHome(q question.Question, who chat.Author, in chat.Conversation) bool {
	c := q.Conversation
	if c.Platform != in.Platform || c.Workspace != in.Workspace || in.Workspace == "" {
		return false
	}
	return who.ID != "" && (q.AskedTo.ID == who.ID || q.AskedRole > 0 && who.Role >= q.AskedRole)
}

// homePaused says that the bot rests; "" when it does not.
func (a *App) homePaused(in chat.Conversation) string {
	p, held := a.pauses.Of(in)
	if !held {
		return ""
	}
	words := " I am paused at the moment"
	if p.Reason != "" {
		words += " (" + p.Reason + ")"
	}
	return words + ", since " + p.At.UTC().Format("2006-01-02 15:04 UTC") + ": what you write is kept and answered afterwards."
}
