package task

import (
	"fmt"
	"slices"
	"strings"

	"mimikit/core/chat"
)

// A Status is where a task is in its life.
type Status = chat.TaskStatus

// The statuses; the last three are ends.
const (
	Deferred  = chat.TaskDeferred
	Pending   = chat.TaskPending
	Running   = chat.TaskRunning
	Waiting   = chat.TaskWaiting
	Succeeded = chat.TaskSucceeded
	Failed    = chat.TaskFailed
	Canceled  = chat.TaskCanceled
)

// Statuses lists all statuses in the order of a task's life.
var Statuses = []Status{Deferred, Pending, Running, Waiting, Succeeded, Failed, Canceled}

// Over reports whether a status is an end, which a task never leaves.
func Over(s Status) bool { return s == Succeeded || s == Failed || s == Canceled }

// A transition is one arrow of the state chart. The scripts are given the chart,
// and docs/tasks.md shows it; a test holds the three together.
type transition struct {
	from, to Status // from "" is the beginning
	by       string // what happens, for people
}

// transitions is the state chart.
var transitions = []transition{
	{"", Deferred, "create, for later"},
	{"", Pending, "create"},
	{Deferred, Pending, "due"},
	{Deferred, Canceled, "cancel"},
	{Pending, Running, "claim"},
	{Pending, Canceled, "cancel"},
	{Running, Succeeded, "succeed"},
	{Running, Failed, "fail, or the last lapse"},
	{Running, Deferred, "fail, with a try left"},
	{Running, Pending, "clean stop, or lapse"},
	{Running, Waiting, "ask"},
	{Running, Canceled, "any end after a cancel"},
	{Waiting, Pending, "answer"},
	{Waiting, Canceled, "cancel"},
}

// allowed reports whether the chart has an arrow.
func allowed(from, to Status) bool {
	return slices.ContainsFunc(transitions, func(t transition) bool { return t.from == from && t.to == to })
}

// luaChart spells the chart as the text in which the scripts look: a table would be
// made anew by each call of one.
func luaChart() string {
	var b strings.Builder
	b.WriteString("local chart = '")
	for _, from := range Statuses {
		for _, to := range Statuses {
			if allowed(from, to) {
				fmt.Fprintf(&b, " %s>%s ", from, to)
			}
		}
	}
	b.WriteString("'\n")
	return b.String()
}
