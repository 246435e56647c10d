package review

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/task"
	"mimikit/core/usage"
)

// The bounds of a report.
const (
	top          = 10                 // users, places and workspaces that are named
	mostFailures = 20                 // failed tasks that are named
	mostNoted    = 30                 // pieces of feedback that are shown
	mostTasks    = 50_000             // tasks that are looked through
	longestTask  = 8 * 24 * time.Hour // before a day, what ended on it was made at the earliest, as a rule
	mostFeedback = 1_000_000          // pieces of feedback that are looked through: more than is kept
)

// Ledger tells what models were used for; a *usage.Ledger is one.
type Ledger interface {
	Days(ctx context.Context, s llm.Subject, from, to time.Time) ([]usage.DayTotals, error)
	Top(ctx context.Context, kind llm.SubjectKind, day time.Time, by llm.Unit, n int) ([]usage.Row, error)
}

// TaskList lists tasks; a *task.Queue is one.
type TaskList interface {
	List(ctx context.Context, f task.Filter, from string, limit int) (task.Page, error)
}

// Sources are where a report is read from. All are needed.
type Sources struct {
	Tally  *Tally
	Ledger Ledger
	Tasks  TaskList
	// Feedback lists the newest feedback, newest first.
	Feedback func(ctx context.Context, limit int) ([]chat.Feedback, error)
}

// A Day is what happened on a UTC day.
type Day struct {
	Day    time.Time // its midnight
	Counts Counts
	Ended  []TaskCount
	Why    []Count     // of failed tasks
	Failed []task.Task // the newest, at most mostFailures
	Cut    bool        // there were too many tasks to look through all

	Used                                      usage.Totals
	Models, Agents, Users, Places, Workspaces []usage.Row

	Noted []Count         // feedback by kind, category and severity
	Shown []chat.Feedback // the gravest, at most mostNoted
}

// A TaskCount is how many tasks of a profile came to an end.
type TaskCount struct {
	Profile string
	Status  task.Status
	N       int
	Took    time.Duration // of all their runs together
}

// A Count is how many there are of something.
type Count struct {
	What string
	N    int
}

// Read gathers a day.
func (s Sources) Read(ctx context.Context, day time.Time) (Day, error) {
	d := Day{Day: day.UTC().Truncate(24 * time.Hour)}
	var err error
	if d.Counts, err = s.Tally.Read(ctx, d.Day); err != nil {
		return d, err
	}
	if err := s.tasks(ctx, &d); err != nil {
		return d, err
	}
	if err := s.usage(ctx, &d); err != nil {
		return d, err
	}
	return d, s.feedback(ctx, &d)
}

// within reports whether a time is of the day.
func (d *Day) within(t time.Time) bool {
	return !t.Before(d.Day) && t.Before(d.Day.AddDate(0, 0, 1))
}

func (s Sources) tasks(ctx context.Context, d *Day) error {
	type kind struct {
		profile string
		status  task.Status
	}
	ended, why := map[kind]*TaskCount{}, map[string]int{}
	f := task.Filter{Status: []task.Status{task.Succeeded, task.Failed, task.Canceled}}
	from := ""
	for read := 0; ; {
		page, err := s.Tasks.List(ctx, f, from, 100)
		if err != nil {
			return err
		}
		old := false
		for _, t := range page.Tasks {
			old = t.CreatedAt.Before(d.Day.Add(-longestTask))
			if !d.within(t.CompletedAt) {
				continue
			}
			k := kind{t.Profile, t.Status}
			if ended[k] == nil {
				ended[k] = &TaskCount{Profile: t.Profile, Status: t.Status}
			}
			ended[k].N++
			ended[k].Took += time.Duration(t.DurationMs) * time.Millisecond
			if t.Status == task.Failed {
				why[cmp.Or(t.FailureReason, "error")]++
				if len(d.Failed) < mostFailures {
					d.Failed = append(d.Failed, t)
				}
			}
		}
		if read += len(page.Tasks); page.Next == "" || old {
			break
		}
		if read >= mostTasks {
			d.Cut = true
			break
		}
		from = page.Next
	}
	for _, c := range ended {
		d.Ended = append(d.Ended, *c)
	}
	slices.SortFunc(d.Ended, func(a, b TaskCount) int {
		return cmp.Or(strings.Compare(a.Profile, b.Profile), strings.Compare(string(b.Status), string(a.Status)))
	})
	d.Why = counted(why)
	return nil
}

func (s Sources) usage(ctx context.Context, d *Day) error {
	all, err := s.Ledger.Days(ctx, llm.Subject{Kind: usage.Everything}, d.Day, d.Day)
	if err != nil {
		return err
	}
	for _, t := range all {
		d.Used = t.Totals
	}
	for _, of := range []struct {
		kind llm.SubjectKind
		n    int
		to   *[]usage.Row
	}{
		{usage.ModelSubject, 50, &d.Models}, {usage.AgentSubject, 50, &d.Agents},
		{llm.UserSubject, top, &d.Users}, {llm.PlaceSubject, top, &d.Places}, {llm.WorkspaceSubject, top, &d.Workspaces},
	} {
		if *of.to, err = s.Ledger.Top(ctx, of.kind, d.Day, llm.Tokens, of.n); err != nil {
			return err
		}
	}
	return nil
}

func (s Sources) feedback(ctx context.Context, d *Day) error {
	if s.Feedback == nil {
		return errors.New("read feedback: there is nobody to ask")
	}
	all, err := s.Feedback(ctx, mostFeedback)
	if err != nil {
		return err
	}
	n := map[string]int{}
	for _, f := range all {
		if !d.within(f.At) {
			continue
		}
		n[strings.Join(strings.Fields(string(f.Kind)+" "+f.Category+" "+f.Severity), " · ")]++
		d.Shown = append(d.Shown, f)
	}
	slices.SortStableFunc(d.Shown, func(a, b chat.Feedback) int { return grave(b) - grave(a) })
	d.Shown = d.Shown[:min(len(d.Shown), mostNoted)]
	d.Noted = counted(n)
	return nil
}

func grave(f chat.Feedback) int { return slices.Index(severities, f.Severity) }

// counted lists counts, the greatest first.
func counted(m map[string]int) []Count {
	out := make([]Count, 0, len(m))
	for what, n := range m {
		out = append(out, Count{what, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(b.N-a.N, strings.Compare(a.What, b.What)) })
	return out
}
