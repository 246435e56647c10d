package task

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
)

// SummaryLimits bound a summary.
type SummaryLimits struct {
	Min   int // tasks that are told of however long they are, their texts cut to fit (default 5)
	Max   int // tasks at most (default 20)
	Bytes int // of all lines (default 20 KiB)
}

// Summary describes the recent tasks of a conversation for a prompt, one a line,
// the newest first. Those that are not over go before those that are, when there
// is no room for all. The lines hold no line break of a task's own: what people and
// models wrote is quoted.
func (q *Queue) Summary(ctx context.Context, c chat.Conversation, l SummaryLimits) ([]string, error) {
	page, err := q.List(ctx, Filter{Conversation: &c}, "", 100)
	if err != nil {
		return nil, fmt.Errorf("sum up the tasks of %s: %w", c, err)
	}
	return Summarize(page.Tasks, l, q.is.now()), nil
}

// Summarize is Summary of tasks that were read, the newest first. Times are told
// as their distance from now.
func Summarize(tasks []Task, l SummaryLimits, now time.Time) []string {
	l.Max = cmp.Or(l.Max, 20)
	l.Min = min(cmp.Or(l.Min, 5), l.Max)
	l.Bytes = cmp.Or(l.Bytes, 20<<10)
	room := l.Max
	for _, t := range tasks {
		if !Over(t.Status) {
			room--
		}
	}
	var lines []string
	size, open := 0, 0
	for _, t := range tasks {
		switch {
		case !Over(t.Status):
			if open++; open > l.Max {
				continue
			}
		case room <= 0:
			continue
		default:
			room--
		}
		s := line(t, now, 2<<10)
		if size+len(s)+1 > l.Bytes {
			// What must be told has its share of the bytes, whatever it would say.
			if len(lines) >= l.Min {
				break
			}
			s = line(t, now, max(0, (l.Bytes-size)/(2*(l.Min-len(lines)))-300))
		}
		size += len(s) + 1
		lines = append(lines, s)
	}
	return lines
}

// line describes a task; its result takes at most so many bytes.
func line(t Task, now time.Time, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %s", t.ID, t.Status, t.Profile, quoted(t.Title, MaxTitle))
	fact := func(name string, v any) { fmt.Fprintf(&b, " %s=%v", name, v) }
	fact("created", ago(t.CreatedAt, now))
	switch {
	case t.Status == Deferred && !t.DeferUntil.IsZero():
		fact("due", ago(t.DeferUntil, now))
	case t.Status == Running:
		fact("started", ago(t.StartedAt, now))
	case Over(t.Status) && !t.CompletedAt.IsZero():
		fact("ended", ago(t.CompletedAt, now))
	}
	if t.Priority != DefaultPriority {
		fact("priority", t.Priority)
	}
	if t.Attempts > 1 {
		fact("attempts", t.Attempts)
	}
	if t.ParentTaskID != "" {
		fact("parent", t.ParentTaskID)
	}
	if t.SourceTriggerID != "" {
		fact("trigger", t.SourceTriggerID)
	}
	if t.FailureReason != "" {
		fact("reason", t.FailureReason)
	}
	if !t.CancelRequestedAt.IsZero() && !Over(t.Status) {
		fact("canceling", "true")
	}
	if t.Status == Waiting && t.Question != nil {
		fact("question", quoted(t.Question.Question, min(most, 500)))
	}
	if t.Error != "" {
		fact("error", quoted(t.Error, min(most, 500)))
	}
	if t.Output != "" && most > 0 {
		fact("result", quoted(t.Output, most))
	}
	return b.String()
}

// quoted puts a text on one line, cut to about so many bytes.
func quoted(s string, most int) string {
	cut, size := cutText(strings.Join(strings.Fields(s), " "), most)
	if size > 0 {
		cut += "…"
	}
	return strconv.Quote(cut)
}

// ago tells a time as its distance from now, which says more to a model than a
// date, and in two parts at most.
func ago(t, now time.Time) string {
	d := now.Sub(t).Round(time.Second)
	if d < 0 {
		return "in_" + short(-d)
	}
	return short(d) + "_ago"
}

func short(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.String()
}
