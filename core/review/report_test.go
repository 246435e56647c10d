package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/usage"
)

// pages are tasks, the newest first, two a page.
type pages []task.Task

func (p pages) List(_ context.Context, f task.Filter, from string, _ int) (task.Page, error) {
	if len(f.Status) != 3 {
		return task.Page{}, fmt.Errorf("asked for %v", f.Status)
	}
	at := 0
	if from != "" {
		_, _ = fmt.Sscan(from, &at)
	}
	end := min(at+2, len(p))
	page := task.Page{Tasks: p[at:end]}
	if end < len(p) {
		page.Next = fmt.Sprint(end)
	}
	return page, nil
}

// A desk is a reporter over a ledger and a tally of its own.
type desk struct {
	*Reporter
	o      ReporterOptions
	tally  *Tally
	ledger *usage.Ledger
	noted  []chat.Feedback
	now    time.Time
	dir    string
}

func newDesk(t *testing.T, s *store.Store, tasks ...task.Task) *desk {
	t.Helper()
	prefix := storetest.Prefix(t)
	d := &desk{now: noon, dir: t.TempDir()}
	clock := func() time.Time { return d.now }
	d.tally = NewTally(TallyOptions{Client: s.Client, Prefix: prefix, Now: clock})
	d.ledger = usage.New(usage.Options{Client: s.Client, Prefix: prefix, Now: clock, Timeout: time.Minute})
	d.o = ReporterOptions{
		Sources: Sources{Tally: d.tally, Ledger: d.ledger, Tasks: pages(tasks), Feedback: func(_ context.Context, n int) ([]chat.Feedback, error) {
			return d.noted[:min(n, len(d.noted))], nil
		}},
		Client: s.Client, Prefix: prefix, Dir: d.dir, Name: "Mimi", Currency: "EUR", Now: clock,
	}
	var err error
	if d.Reporter, err = NewReporter(d.o); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) spend(t *testing.T, user string, cost int64) {
	t.Helper()
	c := llm.Charge{
		Time: d.now, Agent: "thinker", Model: "large", User: user, Place: "slack/T1/C1", Workspace: "slack/T1",
		Usage: llm.Usage{Prompt: 1500, Completion: 500, Cached: 200}, Cost: cost, Took: 2 * time.Second,
	}
	h, err := d.ledger.Reserve(t.Context(), c)
	if err == nil {
		_, err = h.Settle(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func ended(id, profile string, s task.Status, at time.Time, made time.Duration) task.Task {
	t := task.Task{ID: id, Profile: profile, Status: s, CompletedAt: at, CreatedAt: at.Add(-made), DurationMs: 4000, Attempts: 2, Conversation: thread}
	if s == task.Failed {
		t.FailureReason, t.Error = task.ReasonTimeout, "took | too <b>long</b>\nreally"
	}
	return t
}

// A whole day, as people read it.
func TestReport(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		private := ended("t3", "standard", task.Failed, noon.Add(-2*time.Hour), time.Minute)
		private.Conversation = annsDM
		d := newDesk(t, s,
			ended("t9", "standard", task.Succeeded, noon.AddDate(0, 0, 1), time.Hour), // tomorrow
			ended("t5", "standard", task.Succeeded, noon, time.Minute),
			ended("t4", "standard", task.Failed, noon.Add(-time.Hour), time.Minute),
			private,
			ended("t2", "planner", task.Canceled, noon.Add(-3*time.Hour), time.Minute),
			ended("t1", "standard", task.Succeeded, noon.Add(-12*time.Hour), 7*24*time.Hour),             // midnight, made a week ago
			ended("t0", "standard", task.Succeeded, noon.Add(-12*time.Hour-time.Millisecond), time.Hour), // yesterday
		)
		for i := range 100 {
			d.tally.Took(TimeHop+LastHop, time.Duration(i+1)*100*time.Millisecond)
		}
		d.tally.Add(CountIn+"slack:accepted", 1234)
		d.tally.Add(CountIn+"slack:duplicate", 5)
		d.tally.Add(CountPost+"slack:given_up", 1)
		d.tally.Add(CountDead+"thinker", 2)
		flush(t, d.tally)
		d.spend(t, "slack/T1/U1", 7000)
		d.spend(t, "slack/T1/U1", 7000)
		d.spend(t, "slack/T1/U2", 0)
		d.noted = []chat.Feedback{
			{Kind: chat.FeedbackReview, Conversation: thread, Message: "tomorrow", Severity: "high", At: noon.AddDate(0, 0, 1)},
			{Kind: chat.FeedbackReview, Conversation: thread, Message: "mild", Category: "quality", Severity: "low", At: noon},
			{Kind: chat.FeedbackReview, Conversation: thread, Message: "mild too", Category: "quality", Severity: "low", At: noon},
			{Kind: chat.FeedbackCaptured, Conversation: annsDM, Message: "ann is ill", Category: "bug", Severity: "high", At: noon, Author: ann},
			{Kind: chat.FeedbackThinkerError, Conversation: thread, Message: "old", At: noon.AddDate(0, 0, -1)},
		}
		d.now = time.Date(2026, 11, 22, 0, 5, 0, 0, time.UTC)
		path, text, err := d.Write(t.Context(), noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"# Mimi on Saturday, 21 November 2026 (UTC)\n",
			"- messages: 1,234 accepted, 100 replies\n", "99 of 100 within 9.", "- tasks: 2 succeeded, 2 failed, 1 canceled\n",
			"- models: 3 calls, 0 failed; 6,000 tokens, 0.0140 EUR\n", "- **given up: 2**", "- feedback: 3\n",
			"| slack | heard | duplicate | 5 |\n", "| slack | posted | given up | 1 |\n", "| posted | 100 | ", "| thinker | 2 |\n",
			"| standard | succeeded | 2 | 4s |\n", "| standard | failed | 2 | 4s |\n", "| planner | canceled | 1 | 4s |\n",
			"Failed: 2 timeout. The newest:\n", `| t4 | 11:00 | standard | timeout | 2 | took \| too &lt;b>long&lt;/b> really |`, "| t3 | 10:00 | standard | timeout | 2 | (said in a direct message) |",
			"| large | 3 | 0 | 4,500 | 600 | 1,500 | 2s | 0.0140 |\n", "| slack/T1/U1 | 2 | 0 | 3,000 | 400 | 1,000 | 2s | 0.0140 |\n", "| slack/T1/C1 | 3 |", "| slack/T1 | 3 |",
			"| review · quality · low | 2 |\n", "| captured · bug · high | 1 |\n",
			"| 12:00 | captured | high | slack/T1/D1/ |  | (said in a direct message) |", "| mild too |",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q", want)
			}
		}
		for _, not := range []string{"ann is ill", "tomorrow", "old", "t9", "t0 ", "not over", "Ann"} {
			if strings.Contains(text, not) {
				t.Errorf("%q stands there", not)
			}
		}
		if strings.Index(text, "captured | high") > strings.Index(text, "| mild too |") {
			t.Error("the gravest is not first")
		}
		if t.Failed() {
			t.Log(text)
		}
		data, err := os.ReadFile(path)
		if err != nil || string(data) != text || path != filepath.Join(d.dir, "reports", "daily", "2026-11-21.md") {
			t.Errorf("%s: %v", path, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})
}

func TestReportOfNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Mini(t))
	_, text, err := d.Write(t.Context(), noon)
	for _, want := range []string{"not over: this is how it stood at 12:00", "Nobody said anything.", "No task came to an end.", "No model was called.", "There was none.", "0 accepted, 0 replies"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("no %q in, %v:\n%s", want, err, text)
		}
	}
}

// Each day once it is over, what was missed included, and nothing twice.
func TestReportsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		d := newDesk(t, s)
		midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
		for _, step := range []struct {
			name string
			now  time.Time
			want []string
		}{
			{"the first day", noon, nil},
			{"just over", midnight.Add(settled - time.Second), nil},
			{"settled", midnight.Add(settled), []string{"2026-11-21.md"}},
			{"again", midnight.Add(time.Hour), nil},
			{"no node ran for three days", midnight.AddDate(0, 0, 3).Add(time.Hour), []string{"2026-11-22.md", "2026-11-23.md", "2026-11-24.md"}},
			{"nor for a month", midnight.AddDate(0, 0, 33).Add(time.Hour), []string{
				"2026-12-18.md", "2026-12-19.md", "2026-12-20.md", "2026-12-21.md", "2026-12-22.md", "2026-12-23.md", "2026-12-24.md",
			}},
			{"another year", midnight.AddDate(1, 0, 20).Add(time.Hour), nil},
		} {
			d.now = step.now
			paths, err := d.Once(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range paths {
				got = append(got, filepath.Base(p))
			}
			if step.name == "another year" {
				if len(got) != missed {
					t.Errorf("%s: %v", step.name, got)
				}
				break
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", step.name, diff)
			}
		}
		files, err := os.ReadDir(filepath.Join(d.dir, "reports", "daily"))
		if err != nil || len(files) == 0 || files[0].Name() != "2026-12-18.md" {
			t.Errorf("what is older than a year is kept: %v, %v", files, err)
		}
	})
}

// A report that cannot be written is tried again, and leaves nothing half.
func TestReportFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Mini(t))
	if _, err := d.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.now = noon.AddDate(0, 0, 1)
	sources := d.Reporter.o.Sources
	d.Reporter.o.Feedback = func(context.Context, int) ([]chat.Feedback, error) { return nil, errors.New("away") }
	if _, err := d.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "report of 2026-11-21: away") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "reports")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is there: %v", err)
	}
	d.Reporter.o.Sources = sources
	if paths, err := d.Once(t.Context()); err != nil || len(paths) != 1 {
		t.Errorf("%v, %v", paths, err)
	}
	if _, err := NewReporter(ReporterOptions{}); err == nil {
		t.Error("made of nothing")
	}
}
