package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/review"
	"mimikit/core/task"
	"mimikit/core/usage"
	"mimikit/prompts"
)

// reviewAccount is the account that reviews are booked for, as if it were a user:
// nobody's budget pays for them, and they have one of their own.
const reviewAccount = "review"

// A lookback is what looks back at what the bot did: the reviewer of idle
// conversations, the writer of daily reports, and what they read.
type lookback struct {
	tally    *review.Tally
	notes    *review.Notes    // nil on a node without a model
	reviewer *review.Reviewer // nil where conversations are not reviewed
	runs     atomic.Bool      // the tally is told to Redis every now and then
}

// books is the ledger of this process, or one to read in what the nodes booked.
func (a *App) books() *usage.Ledger {
	if a.ledger != nil {
		return a.ledger
	}
	return usage.New(usage.Options{Client: a.store.Client, Prefix: a.cfg.Redis.Prefix, Budgets: budgets(a.cfg), Logger: a.log})
}

// newLookback makes what counts and notes; reviewing adds the reviewer.
func (a *App) newLookback(model *chosenModel) {
	if model != nil && model.alone {
		return // it measures, and is measured by itself
	}
	a.back.tally = review.NewTally(review.TallyOptions{Client: a.store.Client, Prefix: a.cfg.Redis.Prefix, Logger: a.log})
	if model != nil {
		a.back.notes = review.NewNotes(review.NotesOptions{
			Client: a.store.Client, Keys: a.keys, Get: a.queue.Get, Slow: a.cfg.Review.Slow, Heavy: a.cfg.Review.Heavy, Logger: a.log,
		})
	}
}

// count counts something of today. What a process counts that does not run for
// long, such as a terminal that joins a node, is told to Redis at once.
func (a *App) count(name string) {
	if a.back.tally == nil {
		return
	}
	a.back.tally.Add(name, 1)
	if !a.back.runs.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := a.back.tally.Flush(ctx); err != nil {
			a.log.Debug("tally_waits", "error", err)
		}
	}
}

// passed counts the time from a message to the end of a loop's step.
func (a *App) passed(loop string, since time.Duration) {
	if a.back.tally != nil {
		a.back.tally.Took(review.TimeHop+loop, since)
	}
}

// reviewing makes the reviewer: by the teller's model, unless that is one that only
// stands for a model.
func (a *App) reviewing(hist review.History, set *prompts.Set, model llm.Model, m *chosenModel) error {
	if a.cfg.Review.Idle == 0 || m.alone || m.demo {
		return nil
	}
	name := m.name(a.cfg.LLM.Models.Teller)
	var err error
	a.back.reviewer, err = review.New(review.Options{
		Client: a.store.Client, Keys: a.keys, History: hist, Tasks: a.queue, Logger: a.log,
		Idle: a.cfg.Review.Idle, Conversations: a.cfg.Review.Conversations, Timeout: a.cfg.LLM.Timeout,
		Look: min(time.Minute, a.cfg.Review.Idle),
		Skip: func(c chat.Conversation) bool { _, held := a.pauses.Of(c); return held },
		Ask: func(ctx context.Context, c chat.Conversation, summary string, lines []chat.Line) (string, error) {
			p, err := set.Compose("review", prompts.Data{
				Bot: a.cfg.Name, Summary: summary, History: lines,
				Limits: []prompts.Fact{{Name: "findings", Value: fmt.Sprintf("at most %d", review.MaxFindings)}},
			})
			if err != nil {
				return "", err
			}
			r, err := model.Complete(ctx, llm.Request{
				Agent: "review", Model: name, Messages: p.Messages(), Conversation: c.Key(), User: reviewAccount,
				Schema: &llm.Schema{Name: "findings", Schema: json.RawMessage(review.Schema)},
			})
			return r.Text, err
		},
	})
	return err
}

// reporter writes reports below the data directory.
func (a *App) reporter() (*review.Reporter, error) {
	return review.NewReporter(review.ReporterOptions{
		Sources: review.Sources{Tally: a.back.tally, Ledger: a.books(), Tasks: a.queue, Feedback: a.node.Feedback},
		Client:  a.store.Client, Prefix: a.cfg.Redis.Prefix, Dir: a.cfg.DataDir, Name: a.cfg.Name,
		Currency: a.cfg.Budgets.Currency, Logger: a.log,
	})
}

// runLookback counts on every node, and reviews and reports on the one that has the
// lease.
func (a *App) runLookback(ctx context.Context, g *errgroup.Group) {
	b := &a.back
	if b.tally == nil || b.notes == nil {
		return
	}
	b.runs.Store(true)
	g.Go(func() error { return b.tally.Run(ctx) })
	g.Go(func() error { return b.notes.Run(ctx) })
	var parts []func(context.Context) error
	if b.reviewer != nil {
		parts = append(parts, b.reviewer.Run)
	}
	if a.cfg.Review.Report {
		r, err := a.reporter()
		if err != nil {
			g.Go(func() error { return err }) // which ends the others too
			return
		}
		parts = append(parts, r.Run)
	}
	if len(parts) > 0 {
		g.Go(func() error { return a.alone(ctx, "review", parts) })
	}
}

// errLeaseLost ends what only one node may do.
var errLeaseLost = errors.New("another node may hold the lease")

// alone runs parts while this node holds a lease, until ctx ends.
func (a *App) alone(ctx context.Context, lease string, parts []func(context.Context) error) error {
	for {
		held, err := a.cluster.Acquire(ctx, lease, 1)
		if err != nil {
			return nil //nolint:nilerr // it fails only when ctx ends, which is no failure
		}
		mine, cancel := context.WithCancelCause(ctx)
		watch := make(chan struct{})
		go func() {
			defer close(watch)
			select {
			case <-held.Lost():
				cancel(errLeaseLost)
			case <-mine.Done():
			}
		}()
		g, mine2 := errgroup.WithContext(mine)
		for _, run := range parts {
			g.Go(func() error { return run(mine2) })
		}
		err = g.Wait()
		cancel(nil)
		<-watch
		held.Release()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// noteBudget files that a budget is near its end, for the operators of its
// workspace. It comes once for each subject and day. A task's ceiling is told with
// the task.
func (a *App) noteBudget(w llm.BudgetWarning) {
	parts := strings.Split(w.Subject.ID, "/")
	if len(parts) < 2 || w.Limit <= 0 || w.Subject.Kind == llm.TaskSubject {
		return
	}
	for i, p := range parts {
		if s, err := url.PathUnescape(p); err == nil {
			parts[i] = s
		}
	}
	in := chat.Conversation{Platform: parts[0], Workspace: parts[1]}
	if len(parts) > 2 && w.Subject.Kind == llm.PlaceSubject {
		in.Place = parts[2]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := review.File(ctx, a.store.Client, a.keys, chat.Feedback{
		Kind: chat.FeedbackUsage, Conversation: in, Category: "other", Severity: "low", At: time.Now().UTC().Truncate(time.Millisecond),
		Message: fmt.Sprintf("%d %% of the daily budget of %s, in %s, is used.", 100*w.Spent/w.Limit, w.Subject, w.Unit),
	})
	if err != nil {
		a.log.Warn("budget_not_noted", "subject", w.Subject.String(), "error", err)
	}
}

// noteEnd has a task that is over looked at.
func (a *App) noteEnd(t task.Task, to task.Status) {
	if a.back.notes != nil && task.Over(to) {
		a.back.notes.Ended(t.ID)
	}
}

// reportCmd is `mimikit report`.
type reportCmd struct {
	Day string `arg:"" optional:"" default:"today" help:"Which UTC day: 2006-01-02, today (the default) or yesterday."`
}

// Help tells more.
func (*reportCmd) Help() string {
	return `Sums a UTC day up: messages and replies, how long they took, tasks by how they ended and why they failed, what models were used for and by whom, and feedback. It is printed, and written to reports/daily/YYYY-MM-DD.md in the data directory. After each day one node writes it by itself.

Users, places and conversations stand there by their ids. What nodes counted reaches it within ten seconds.

Examples:
  mimikit report
  mimikit report yesterday
  mimikit report 2026-11-21`
}

// Run writes and prints a day's report.
func (c *reportCmd) Run(ctx context.Context, std *streams, s *settings) error {
	day, err := reportDay(c.Day, time.Now())
	if err != nil {
		return err
	}
	return withApp(ctx, s, func(app *App) error {
		r, err := app.reporter()
		if err != nil {
			return err
		}
		path, text, err := r.Write(ctx, day)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(std.out, text); err != nil {
			return err
		}
		_, err = fmt.Fprintln(std.err, "Written to", path)
		return err
	})
}

// reportDay reads a day: it is not to come, and not so long ago that nothing of it
// is kept.
func reportDay(word string, now time.Time) (time.Time, error) {
	today := now.UTC().Truncate(24 * time.Hour)
	switch strings.ToLower(word) {
	case "", "today":
		return today, nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	oldest := today.Add(-usage.Retention)
	day, err := time.Parse(time.DateOnly, word)
	if err != nil || day.After(today) || day.Before(oldest) {
		return day, fmt.Errorf("day %q: allowed are today, yesterday, and %s to %s", word, oldest.Format(time.DateOnly), today.Format(time.DateOnly))
	}
	return day, nil
}
