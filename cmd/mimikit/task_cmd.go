package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mimikit/core/admin"
	"mimikit/core/task"
)

// tasksCmd is `mimikit tasks`.
type tasksCmd struct {
	Words  []string `arg:"" optional:"" name:"word" help:"The same in words, as in chat: mine, all, a status, the number of a page."`
	All    bool     `xor:"whose" help:"Everybody's tasks on all platforms (the default)."`
	Mine   bool     `xor:"whose" help:"Only what was asked for in this account's terminals."`
	Status []string `short:"s" sep:"," placeholder:"STATUS" help:"Only tasks that are so: deferred, pending, running, waiting, succeeded, failed, canceled; active for those that are not over, over for those that are. May be given several times."`
	Page   int      `default:"1" help:"Which page, from 1."`
	Limit  int      `short:"n" default:"30" help:"How many a page has, 1 to 100."`
	asJSON
}

// Help tells more.
func (*tasksCmd) Help() string {
	return `Lists tasks, the newest first. Ids are shown by their beginning, which is enough for the other commands; --json has them whole.

Examples:
  mimikit tasks                       all tasks
  mimikit tasks --status running      what runs now
  mimikit tasks -s failed -s canceled --json
  mimikit tasks mine running 2        the second page of one's own`
}

// Run lists tasks.
func (c *tasksCmd) Run(ctx context.Context, std *streams, s *settings) error {
	if c.Limit < 1 || c.Limit > 100 {
		return fmt.Errorf("--limit %d: 1 to 100 are allowed", c.Limit)
	}
	words := []string{"tasks"}
	said := slices.ContainsFunc(c.Words, func(w string) bool { return slices.Contains([]string{"mine", "here", "all"}, strings.ToLower(w)) })
	switch {
	case said:
	case c.Mine:
		words = append(words, "mine")
	default:
		words = append(words, "all")
	}
	words = append(append(words, c.Words...), c.Status...)
	if c.Page != 1 {
		words = append(words, fmt.Sprint(c.Page))
	}
	return withCommands(ctx, s, func(_ *App, set *admin.Set, who admin.Caller) error {
		who.PageSize = c.Limit
		a, err := set.Run(ctx, who, words)
		if err != nil {
			return err
		}
		return printAnswer(std.out, a, c.JSON)
	})
}

// taskCmd is `mimikit task`.
type taskCmd struct {
	ID     string `arg:"" help:"The task's id, or enough of its beginning."`
	Part   string `arg:"" optional:"" enum:",output,prompt,progress" default:"" help:"One part of it, whole: output, prompt or progress."`
	Output bool   `xor:"what" help:"Print the whole output and nothing else."`
	Follow bool   `short:"f" xor:"what" help:"Print the progress as it goes, and the output when it is over."`
	asJSON
}

// Help tells more.
func (*taskCmd) Help() string {
	return `Shows one task: its state, who asked for it, its progress, what it used, and its result.

With --follow it waits for the end, and the exit code is 0 only if the task succeeded. To interrupt it leaves the task alone.

Examples:
  mimikit task t1m7z06qfa
  mimikit task t1m7z06qfa --output > report.md
  mimikit task t1m7z06qfa --follow && echo done`
}

// Run shows a task.
func (c *taskCmd) Run(ctx context.Context, std *streams, s *settings) error {
	words := []string{"task", c.ID}
	if c.Part != "" {
		words = append(words, c.Part)
	}
	return withCommands(ctx, s, func(app *App, set *admin.Set, who admin.Caller) error {
		a, err := set.Run(ctx, who, words)
		if err != nil {
			return err
		}
		d, whole := a.Data.(admin.TaskDetail)
		if !whole || !c.Output && !c.Follow {
			return printAnswer(std.out, a, c.JSON)
		}
		if c.Follow {
			return follow(ctx, std, app.queue, d.ID)
		}
		return printOutput(ctx, std.out, app.queue, d.ID)
	})
}

func printOutput(ctx context.Context, w io.Writer, q *task.Queue, id string) error {
	text, err := q.Output(ctx, id)
	if err != nil || text == "" {
		return err
	}
	return printBlock(w, admin.Block{Text: admin.Clean(text)})
}

// lookEvery is the pause between two looks at a task that is followed.
const lookEvery = 500 * time.Millisecond

// follow prints what a task tells until it is over.
func follow(ctx context.Context, std *streams, q *task.Queue, id string) error {
	var told []task.Event
	for {
		t, err := q.Get(ctx, id)
		if err != nil {
			return interrupted(ctx, std, id, err)
		}
		events, err := q.Progress(ctx, id, task.KeepEvents)
		if err != nil {
			return interrupted(ctx, std, id, err)
		}
		for _, e := range events[fresh(told, events):] {
			if err := printEvent(std.out, e); err != nil {
				return err
			}
		}
		told = events
		if task.Over(t.Status) {
			return ended(ctx, std, q, t)
		}
		if err := pauseFor(ctx, lookEvery); err != nil {
			return interrupted(ctx, std, id, err)
		}
	}
}

// interrupted is no failure of what was asked for: the task goes on.
func interrupted(ctx context.Context, std *streams, id string, err error) error {
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		return err
	}
	_, _ = fmt.Fprintf(std.err, "The task %s goes on.\n", id)
	return exitCode(130)
}

// fresh is where in a list of the newest events those begin that were not in the
// list before.
func fresh(before, now []task.Event) int {
	if len(before) == 0 {
		return 0
	}
	last := before[len(before)-1]
	for i, e := range slices.Backward(now) {
		if e.At.Equal(last.At) && e.Kind == last.Kind && e.Message == last.Message && e.Attempt == last.Attempt {
			return i + 1
		}
	}
	return 0
}

func printEvent(w io.Writer, e task.Event) error {
	line := e.At.Local().Format(time.TimeOnly) + "  " + e.Kind
	if e.Message != "" && e.Message != e.Kind {
		line += ": " + e.Message
	}
	if e.Percent != nil {
		line += fmt.Sprintf(" (%d%%)", *e.Percent)
	}
	_, err := fmt.Fprintln(w, strings.Join(strings.Fields(admin.Clean(line)), " "))
	return err
}

// ended prints how a task ended.
func ended(ctx context.Context, std *streams, q *task.Queue, t task.Task) error {
	if err := printOutput(ctx, std.out, q, t.ID); err != nil {
		return err
	}
	switch t.Status {
	case task.Succeeded:
		return nil
	case task.Failed:
		return fmt.Errorf("task %s failed (%s): %s", t.ID, t.FailureReason, admin.Clean(t.Error))
	}
	return fmt.Errorf("task %s is %s", t.ID, t.Status)
}

// cancelCmd is `mimikit cancel`.
type cancelCmd struct {
	IDs []string `arg:"" name:"id" help:"Ids of tasks, or enough of their beginnings; or all, or mine."`
	Yes bool     `short:"y" help:"Confirm that all are meant."`
	asJSON
}

// Help tells more.
func (*cancelCmd) Help() string {
	return `Cancels tasks and all that they started. What waits ends at once; the worker of what runs is told to end it, which takes about a second. The conversation that asked for a task is told.

To cancel all or mine takes --yes; without it, it is said how many there are, nothing is canceled, and the exit code is 1.

Examples:
  mimikit cancel t1m7z06qfa t1m7z06qfb
  mimikit cancel all --yes`
}

// Run cancels tasks.
func (c *cancelCmd) Run(ctx context.Context, std *streams, s *settings) error {
	words := append([]string{"cancel"}, c.IDs...)
	many := slices.Contains([]string{"all", "mine", "here"}, strings.ToLower(c.IDs[0]))
	if c.Yes && many && len(c.IDs) == 1 {
		words = append(words, "yes")
	}
	return confirmed(ctx, std, s, c.asJSON, words...)
}

// retryCmd is `mimikit retry`.
type retryCmd struct {
	ID string `arg:"" help:"The task's id, or enough of its beginning."`
	asJSON
}

// Help tells more.
func (*retryCmd) Help() string {
	return "Starts a task that failed or was canceled again, as a new task with the same words, in the same conversation, where its result is told. The new id is printed."
}

// Run retries a task.
func (c *retryCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, "retry", c.ID)
}
