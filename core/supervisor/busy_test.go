package supervisor

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// Tasks that take three and a half minutes, every minute: one at a time, each begun at
// a regular time, and the runs in between counted.
func TestSlowTasksDoNotPileUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var running, most atomic.Int32
		r.pool(map[string]task.Runner{task.Standard: func(ctx context.Context, _ *task.Run) (task.Outcome, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			select {
			case <-time.After(210 * time.Second):
				return task.Outcome{Output: "done"}, nil
			case <-ctx.Done():
				return task.Outcome{}, ctx.Err()
			}
		}})
		r.run(r.sup.Run)
		start := time.Now()
		tr := r.create(recurring("c", "slow", time.Minute))
		sleepUntil(start.Add(20*time.Minute + 30*time.Second))
		var at []time.Duration
		for _, f := range r.firings() {
			at = append(at, f.at.Sub(start).Round(time.Second))
		}
		if want := "[1m0s 5m0s 9m0s 13m0s 17m0s]"; fmt.Sprint(at) != want || most.Load() != 1 || r.started() != 5 {
			t.Errorf("it fired after %v, want %s; %d ran at once, %d were made", at, want, most.Load(), r.started())
		}
		if got, err := r.trig.Get(t.Context(), tr.ID); err != nil || got.Fired != 5 || got.Skipped != 15 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A task that waits for an answer for days is not over: its trigger skips its runs until
// then, and goes on.
func TestATaskThatAsksHoldsItsTrigger(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.poll, r.lease = time.Hour, 24*time.Hour // so that little happens besides
		st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: r.tasks}, Client: r.s.Client})
		if err != nil {
			t.Fatal(err)
		}
		sup := r.supervisor(r.trig, func(o *Options) {
			o.Questions, o.Look, o.Approvals = st, 24*time.Hour, Approvals{Timeout: question.MaxTimeout}
		})
		r.node(sup)
		r.pool(map[string]task.Runner{task.Standard: func(_ context.Context, run *task.Run) (task.Outcome, error) {
			if run.Task.Answer == "" {
				return task.Outcome{Ask: &chat.TaskQuestion{Question: "May I?", Options: []string{"Yes", "No"}, Default: "No"}}, nil
			}
			return task.Outcome{Output: run.Task.Answer}, nil
		}})
		r.run(sup.Run)
		start := time.Now()
		tr := r.create(recurring("c", "asks", time.Hour))
		sleepUntil(start.Add(72*time.Hour + time.Minute))
		got, err := r.trig.Get(t.Context(), tr.ID)
		if err != nil || got.Fired != 1 || got.Skipped != 71 || r.taskOf(got.LastTaskID).Status != task.Waiting {
			t.Fatalf("%+v, %v", got, err)
		}
		open, err := st.Open(t.Context(), conv("c"))
		if err != nil || len(open) != 1 {
			t.Fatalf("%+v, %v", open, err)
		}
		if _, _, err := st.Answer(t.Context(), open[0], question.Answer{By: ann, Text: "Yes", Option: "Yes", How: question.ByButton, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		sleepUntil(start.Add(73*time.Hour + time.Minute))
		if got, err = r.trig.Get(t.Context(), tr.ID); err != nil || got.Fired != 2 || got.Skipped != 71 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A condition that comes true while its task is not over fires at that task's end, not
// when it is looked at next.
func TestConditionsHearOfTheirTasksEnd(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.poll = time.Minute
		release := map[string]chan struct{}{"own": make(chan struct{}), "a": make(chan struct{}), "b": make(chan struct{})}
		for _, c := range release {
			t.Cleanup(func() {
				select {
				case <-c:
				default:
					close(c)
				}
			})
		}
		r.node(r.sup)
		r.pool(map[string]task.Runner{task.Standard: func(_ context.Context, run *task.Run) (task.Outcome, error) {
			title := run.Task.Title
			if run.Task.SourceTriggerID != "" {
				title = "own"
			}
			<-release[title]
			return task.Outcome{Output: "done"}, nil
		}})
		r.run(r.sup.Run)
		begin := func(title string) string {
			return r.enqueue(task.Draft{Profile: task.Standard, Title: title, Prompt: title, Conversation: conv("c"), Requester: ann, Timeout: new(time.Duration(0))})
		}
		a, b := begin("a"), begin("b")
		done := func(id string) trigger.Condition {
			return trigger.Condition{Type: trigger.TaskDone, Params: &trigger.Params{TaskID: id}}
		}
		d := when("c", &trigger.Condition{Type: trigger.Or, Conditions: []trigger.Condition{done(a), done(b)}})
		d.Timeout = new(time.Duration(0))
		r.create(d)
		start := time.Now()
		close(release["a"])
		sleepUntil(start.Add(time.Minute))
		close(release["b"])
		sleepUntil(start.Add(2 * time.Hour))
		if got := r.firings(); len(got) != 1 {
			t.Fatalf("%v", got)
		}
		ended := time.Now()
		close(release["own"])
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.firings(); len(got) != 2 || got[1].at.Sub(ended) > 10*time.Second {
			t.Errorf("its task was over at %s, %v", ended, got)
		}
		if page, err := r.trig.List(t.Context(), trigger.Filter{}, "", 10); err != nil || len(page.Triggers) != 0 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

// After a week in which no node ran, everything that fell due fires once, and goes on
// at its regular times.
func TestAWeeksOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		often, daily := r.create(recurring("c", "often", 10*time.Second)), r.create(cron("0 9 * * *", "Europe/Berlin"))
		once := r.create(trigger.Draft{Type: trigger.Scheduled, Prompt: "once", Conversation: conv("c"), Requester: ann, RunAt: start.Add(time.Hour)})
		r.disk.put("a", "")
		file := r.create(when("c", condition1(trigger.FileExists, trigger.Params{Path: "a"})))
		stop := r.run(r.sup.Run)
		sleepUntil(start.Add(5 * time.Second))
		stop()
		r.disk.put("a", "x")
		sleepUntil(start.Add(7 * 24 * time.Hour))
		r.run(r.sup.Run)
		synctest.Wait()
		count := map[string]int{}
		for _, f := range r.firings() {
			count[f.trigger]++
		}
		for _, id := range []string{often.ID, daily.ID, once.ID, file.ID} {
			if count[id] != 1 {
				t.Errorf("of %s: fired %v", id, count)
			}
		}
		next := func(id string) time.Time {
			got, err := r.trig.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return got.NextRunAt
		}
		if at := next(often.ID); time.Until(at) > 10*time.Second {
			t.Errorf("often: next at %s", at)
		}
		if at := next(daily.ID); at.UTC().Format("15:04") != "08:00" || time.Until(at) > 24*time.Hour {
			t.Errorf("daily: next at %s", at)
		}
	})
}

// What is the matter with the questions of a partition does not keep its triggers.
func TestTriggersFireBesideBrokenQuestions(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: r.tasks}, Client: r.s.Client})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.s.Client.Set(t.Context(), r.keys.In(0, "q:due"), "no sorted set", 0).Err(); err != nil {
			t.Fatal(err)
		}
		r.pool(map[string]task.Runner{task.Standard: standard})
		start := time.Now()
		r.run(r.supervisor(r.trig, func(o *Options) { o.Questions, o.Look = st, 24*time.Hour }).Run)
		r.create(recurring("c", "a", 10*time.Minute))
		sleepUntil(start.Add(time.Hour + time.Minute))
		if got := r.firings(); len(got) != 6 {
			t.Errorf("it fired %d times in an hour: %v", len(got), got)
		}
	})
}
