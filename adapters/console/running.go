package console

import (
	"context"
	"fmt"
	"time"
)

// mostTasks bounds the lines under the prompt.
const mostTasks = 3

// tryLook bounds one look at the tasks that run. What is not known by then is
// asked for again.
const tryLook = 3 * time.Second

// watch shows what runs in the background until ctx ends, and takes it away then.
// While the store is away it leaves what it showed last.
func (l *live) watch(ctx context.Context) {
	tasks, shown := l.t.o.Tasks(l.t.talk), 0
	defer func() {
		if shown > 0 {
			l.screen.Tasks(nil)
		}
	}()
	for {
		look, cancel := context.WithTimeout(ctx, tryLook)
		running, err := tasks(look)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.t.o.Logger.Debug("running tasks not known", "error", err)
		case len(running) > 0 || shown > 0:
			l.screen.Tasks(running)
			shown = len(running)
		}
		wait := l.t.o.LookEvery
		if shown == 0 {
			wait *= 2
		}
		pause(ctx, wait)
		if ctx.Err() != nil {
			return
		}
	}
}

// taskLines is a line for each task that runs, at most mostTasks: its title, how
// far it is, what it told last, and for how long it has run.
func taskLines(list []Task, now time.Time) []string {
	var lines []string
	for i, t := range list {
		if i == mostTasks-1 && len(list) > mostTasks {
			lines = append(lines, fmt.Sprintf("  and %d more; /tasks lists them", len(list)-i))
			break
		}
		line := "▸ " + shorten(t.Title, 40)
		if t.Percent != nil {
			line += fmt.Sprintf(" · %d%%", *t.Percent)
		}
		switch last := firstLine(t.Last); {
		case t.Ending:
			line += " · ending"
		case last != "":
			line += " · " + shorten(last, 60)
		}
		lines = append(lines, line+" · "+elapsed(now.Sub(t.Started)))
	}
	return lines
}

func shorten(s string, most int) string {
	r := []rune(firstLine(s))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

// elapsed tells a time in whole seconds, which is as often as it changes.
func elapsed(d time.Duration) string {
	s := int(max(d, 0).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}
