package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/store"
	"mimikit/core/task"
)

// A taskVerdict is what the oracle found of tasks.
type taskVerdict struct {
	c       *chaosTasksCmd
	w       *world
	d       *taskDriver
	keys    channel.Keys
	drained bool
	took    time.Duration

	tasks map[string]task.Task  // all that there are
	plans map[string]taskPlan   // :: id -> what the task was to do, of all that there may be
	due   map[string]bool       // of them, those that must be there
	told  map[string][]toldLine // :: id -> what was told of it
	runs  map[string]*runRecord // :: id -> what its runs have said

	missing, twice, wrong int
	slowest               time.Duration // from a cancel to the end of what ran
	breaches              []string
}

// A runRecord is what the runs of a task have said.
type runRecord struct {
	begun map[int]int // :: attempt -> how often a run began with it
	fails int
	steps map[int]int // :: step -> how often a run has kept it
}

func newTaskVerdict(c *chaosTasksCmd, w *world, d *taskDriver) *taskVerdict {
	return &taskVerdict{
		c: c, w: w, d: d, keys: channel.Keys{Prefix: w.prefix, Partitions: c.Partitions},
		tasks: map[string]task.Task{}, plans: map[string]taskPlan{}, due: map[string]bool{}, told: map[string][]toldLine{}, runs: map[string]*runRecord{},
	}
}

func (v *taskVerdict) breach(format string, args ...any) {
	v.breaches = append(v.breaches, fmt.Sprintf(format, args...))
}

// open opens Redis as it is, past all faults.
func (v *taskVerdict) open(ctx context.Context) (*store.Store, *task.Queue, error) {
	cfg := config.Default()
	cfg.Redis = v.w.redis.settings()
	cfg.Redis.Prefix, cfg.Channel.Partitions, cfg.Node = v.w.prefix, v.c.Partitions, "judge"
	st, err := openStore(ctx, cfg, slog.New(slog.DiscardHandler), false)
	if err != nil {
		return nil, nil, err
	}
	q, err := task.New(chaosQueue(st, v.keys, v.c.Lease))
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	return st, q, nil
}

// drain waits until all tasks are over, all results read and all cancels passed on.
// A result that is read may make a task, so it looks twice.
func (v *taskVerdict) drain(ctx context.Context, most time.Duration) bool {
	st, q, err := v.open(ctx)
	if err != nil {
		v.breach("look at the end of the run: %v", err)
		return false
	}
	defer func() { _ = st.Close() }()
	before := -1
	for until := time.Now().Add(most); time.Now().Before(until); {
		total := v.restingAt(ctx, st, q)
		if total >= 0 && total == before {
			return true
		}
		before = total
		if pauseFor(ctx, 200*time.Millisecond) != nil {
			return false
		}
	}
	return false
}

// restingAt is how many tasks there are when nothing is under way, else -1.
func (v *taskVerdict) restingAt(ctx context.Context, st *store.Store, q *task.Queue) int {
	s, err := q.Stats(ctx)
	if err != nil || s.Open() > 0 {
		return -1
	}
	if left, err := leftBehind(ctx, st, v.keys); err != nil || left != "" {
		return -1
	}
	total := 0
	for _, n := range s.ByStatus {
		total += n
	}
	for p := range v.keys.Partitions {
		if n, err := st.Client.Exists(ctx, v.keys.In(p, "t:cascade")).Result(); err != nil || n > 0 {
			return -1
		}
	}
	return total
}

// judge holds what there is against what was asked for.
func (v *taskVerdict) judge(ctx context.Context) error {
	st, q, err := v.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	if !v.drained {
		s, serr := q.Stats(ctx)
		left, lerr := leftBehind(ctx, st, v.keys)
		v.breach("the run did not come to rest within %s: %d tasks are not over, %s", v.c.Drain, s.Open(), cmp.Or(left, "nothing in the streams"))
		if err := errors.Join(serr, lerr); err != nil {
			return err
		}
	}
	if err := errors.Join(v.readTasks(ctx, q), v.readTold(ctx, st), v.readRuns()); err != nil {
		return err
	}
	v.judgeAll(q.Issuer())
	return v.judgeRest(ctx, st)
}

// judgeAll judges every task that there is or must be.
func (v *taskVerdict) judgeAll(is *task.Issuer) {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	v.breaches = append(v.breaches, v.d.doubled...)
	v.expect(is)
	for _, id := range slices.Sorted(maps.Keys(v.plans)) {
		t, there := v.tasks[id]
		if !there {
			if v.due[id] {
				v.missing++
				v.breach("task %s (%s) is not there", id, v.plans[id].title())
			}
			continue
		}
		for _, wrong := range slices.Concat(v.judgeEnd(t), v.judgeCancel(t), v.judgeAttempts(t)) {
			v.wrong++
			v.breach("task %s (%s): %s; it is %s (%s), %d attempts, %d retries, %d lapses", id, t.Title, wrong, t.Status, t.FailureReason, t.Attempts, t.Retries, t.Lapses)
		}
		v.judgeTold(t)
	}
	for id, t := range v.tasks {
		if _, known := v.plans[id]; !known {
			v.wrong++
			v.breach("nobody has asked for task %s (%s)", id, t.Title)
		}
	}
	for id := range v.told {
		if _, there := v.tasks[id]; !there {
			v.breach("a result was told of task %s, which is not there", id)
		}
	}
}

// expect works out which tasks there may and must be.
func (v *taskVerdict) expect(is *task.Issuer) {
	var add func(id string, p taskPlan, must bool)
	add = func(id string, p taskPlan, must bool) {
		v.plans[id], v.due[id] = p, must
		t, there := v.tasks[id]
		if !there {
			return
		}
		done := t.Status == task.Succeeded
		for i := range p.Kids {
			add(kidID(is, t.Conversation, id, i), p.kid(i), done)
		}
		if p.Do == doChain && done {
			add(nextID(is, t.Conversation, id), p.next(), true)
		}
	}
	for id, p := range v.d.accepted {
		add(id, p, true)
	}
}

// judgeEnd says what is wrong with how a task ended.
func (v *taskVerdict) judgeEnd(t task.Task) (wrong []string) {
	want := v.plans[t.ID].ending()
	switch {
	case !task.Over(t.Status):
		return []string{"it is not over"}
	case t.Status == task.Canceled:
		if t.CancelRequestedAt.IsZero() {
			wrong = append(wrong, "nobody has canceled it")
		}
		if t.Retries > want.retries {
			wrong = append(wrong, fmt.Sprintf("it was to be retried at most %d times", want.retries))
		}
	case t.FailureReason == task.ReasonKilled:
		if t.Status != task.Failed || t.Lapses != 3 || t.Retries > want.retries {
			wrong = append(wrong, "it counts as killed, which takes 3 lapses")
		}
	case t.Status != want.status || t.FailureReason != want.reason || t.Retries != want.retries:
		wrong = append(wrong, fmt.Sprintf("it was to be %s (%s) after %d retries", want.status, want.reason, want.retries))
	}
	if t.Status == task.Succeeded && t.Output != fmt.Sprintf("done by run %d", t.Attempts) {
		wrong = append(wrong, fmt.Sprintf("its output is %q", t.Output))
	}
	if t.CompletedAt.IsZero() || t.CompletedAt.Before(t.CreatedAt) || t.ResultID != t.ID {
		wrong = append(wrong, fmt.Sprintf("it was created %s and completed %s, with the result %q", t.CreatedAt, t.CompletedAt, t.ResultID))
	}
	return wrong
}

// judgeCancel says what is wrong with the cancels of a task: its own, and those of
// what started it. A cancel that came in time has ended it, and one that came late
// has left its mark, which all that it started must have too.
func (v *taskVerdict) judgeCancel(t task.Task) (wrong []string) {
	parent := v.tasks[t.ParentTaskID]
	answers := v.d.canceled[t.ID]
	asked := !t.CancelRequestedAt.IsZero()
	switch {
	case asked && len(answers) == 0 && parent.CancelRequestedAt.IsZero():
		wrong = append(wrong, "it is marked as canceled, and nobody has done it")
	case !asked && len(answers) > 0:
		wrong = append(wrong, fmt.Sprintf("cancels were answered %v, and left no mark", answers))
	case !asked && !parent.CancelRequestedAt.IsZero():
		wrong = append(wrong, fmt.Sprintf("what started it, %s, was canceled, and it was not", parent.ID))
	case asked && t.Status != task.Canceled && t.CompletedAt.After(t.CancelRequestedAt):
		wrong = append(wrong, fmt.Sprintf("it was canceled at %s and ended only at %s", t.CancelRequestedAt, t.CompletedAt))
	case asked && t.CanceledBy != chaosCanceler:
		wrong = append(wrong, fmt.Sprintf("it was canceled by %+v", t.CanceledBy))
	}
	for _, did := range answers {
		if did != task.DidOver && t.Status != task.Canceled {
			wrong = append(wrong, fmt.Sprintf("its cancels were answered %v", answers))
		}
	}
	if t.Status == task.Canceled && !t.StartedAt.IsZero() {
		v.slowest = max(v.slowest, t.CompletedAt.Sub(t.CancelRequestedAt))
	}
	return wrong
}

// judgeAttempts says what is wrong with the count of a task's runs.
func (v *taskVerdict) judgeAttempts(t task.Task) (wrong []string) {
	r := cmp.Or(v.runs[t.ID], &runRecord{})
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	want := t.Retries + t.Lapses
	if !t.StartedAt.IsZero() {
		want++
	}
	// A lapse that ended the task began no further attempt.
	ended := t.Lapses > 0 && (t.Status == task.Canceled || t.FailureReason == task.ReasonKilled)
	if t.Attempts != want && (!ended || t.Attempts != want-1) {
		note("it was to have %d attempts", want)
	}
	unseen := 0
	for n := 1; n <= t.Attempts; n++ {
		if r.begun[n] == 0 {
			unseen++
		}
	}
	for n := range r.begun {
		if n < 1 || n > t.Attempts {
			note("a run began attempt %d", n)
		}
	}
	// Of a lapsed run, and of one that was not yet begun when it was canceled,
	// nothing may have been seen.
	spare := t.Lapses
	if t.Status == task.Canceled {
		spare++
	}
	if unseen > spare {
		note("%d of its attempts were never seen to begin", unseen)
	}
	if (t.Status == task.Succeeded || t.Status == task.Failed && t.FailureReason != task.ReasonKilled) && r.begun[t.Attempts] == 0 {
		note("its last attempt was never seen to begin")
	}
	if r.fails < t.Retries {
		note("only %d runs have failed", r.fails)
	}
	p := v.plans[t.ID]
	for step, times := range r.steps {
		if times > 1 {
			note("step %d was kept by %d runs: a checkpoint was not gone on from", step, times)
		}
		if step > p.Steps {
			note("a run took step %d", step)
		}
	}
	if p.Do == doSteps && t.Status == task.Succeeded && len(r.steps)+t.Lapses < p.Steps {
		note("only %d of its steps were taken", len(r.steps))
	}
	return wrong
}

// judgeTold holds what was told of a task against how it ended.
func (v *taskVerdict) judgeTold(t task.Task) {
	p, count := v.plans[t.ID], map[channel.Name]int{}
	waits := 0
	for _, l := range v.told[t.ID] {
		if l.Status == task.Waiting {
			waits++
			if l.By != channel.SupervisorEvent || p.Do != doAsk {
				v.breach("task %s was told to wait by way of %s", t.ID, l.By)
			}
			continue
		}
		count[l.By]++
		if l.Status != t.Status || l.Attempts != t.Attempts || l.Output != t.Output || l.Reason != t.FailureReason {
			v.wrong++
			v.breach("task %s is %s (%s) after %d attempts, and was told as %+v", t.ID, t.Status, t.FailureReason, t.Attempts, l)
		}
	}
	want := map[channel.Name]int{channel.WorkerResult: 1}
	if p.Internal {
		want = map[channel.Name]int{channel.SupervisorEvent: 1}
	} else if len(t.WatchedBy) > 0 {
		want[channel.SupervisorEvent] = 1
	}
	for _, by := range []channel.Name{channel.WorkerResult, channel.SupervisorEvent} {
		switch {
		case count[by] < want[by]:
			v.missing++
			v.breach("the end of task %s was not told by way of %s", t.ID, by)
		case count[by] > want[by]:
			v.twice++
			v.breach("the end of task %s was told %d times by way of %s, want %d", t.ID, count[by], by, want[by])
		}
	}
	if p.Do == doAsk && (waits > 1 || waits == 0 && t.Status == task.Succeeded) {
		v.twice++
		v.breach("task %s has asked %d times", t.ID, waits)
	}
}
