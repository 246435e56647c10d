package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/task"
)

// taskTimes notes when each task of a run was asked for, begun and over.
type taskTimes struct {
	asked []time.Time
	begun []time.Time
	left  atomic.Int64
	over  chan struct{}
}

func newTaskTimes(n int) *taskTimes {
	t := &taskTimes{asked: make([]time.Time, n), begun: make([]time.Time, n), over: make(chan struct{})}
	t.left.Store(int64(n))
	return t
}

// begin notes the beginning of a run of a task, and end, called once, its end.
func (t *taskTimes) begin(i int) { t.begun[i] = time.Now() }

func (t *taskTimes) end() {
	if t.left.Add(-1) == 0 {
		close(t.over)
	}
}

// measure gives the times of a run that began at start; its latencies are those
// from asking to beginning.
func (t *taskTimes) measure(start time.Time) measure {
	m := measure{Ops: len(t.asked), Took: time.Since(start)}
	took := make([]time.Duration, len(t.asked))
	for i := range took {
		took[i] = t.begun[i].Sub(t.asked[i])
	}
	slices.Sort(took)
	m.P50, m.P99 = ofSorted(took)
	return m
}

// send has the callers enqueue the whole load, and waits until all of it is over.
func (l taskLoad) send(ctx context.Context, t *taskTimes, enqueue func(ctx context.Context, i int) error) (measure, error) {
	start := time.Now()
	var next atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for range l.callers {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= l.tasks {
					return nil
				}
				if l.rate > 0 {
					due := start.Add(time.Duration(float64(i) / l.rate * float64(time.Second)))
					if err := pauseFor(gctx, time.Until(due)); err != nil {
						return err
					}
				}
				t.asked[i] = time.Now()
				if err := enqueue(gctx, i); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return measure{}, err
	}
	late := time.NewTimer(5 * time.Minute)
	defer late.Stop()
	select {
	case <-t.over:
	case <-ctx.Done():
		return measure{}, context.Cause(ctx)
	case <-late.C:
		return measure{}, fmt.Errorf("%d of %d tasks are not over 5 min after the last was enqueued", t.left.Load(), l.tasks)
	}
	return t.measure(start), nil
}

// benchDraft is a task of a bench. The prompt ends with its number.
func benchDraft(i, conversation int) task.Draft {
	return task.Draft{
		Profile: task.Standard, Title: "Figures of last week " + strconv.Itoa(i), Prompt: benchText + " #" + strconv.Itoa(i),
		Conversation: chat.Conversation{Platform: benchPlatform, Workspace: "T1", Place: "C" + strconv.Itoa(conversation)},
		Requester:    chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser},
	}
}

// benchNumber reads the number out of a prompt, -1 for none.
func benchNumber(prompt string) int {
	i, err := strconv.Atoi(prompt[strings.LastIndexByte(prompt, '#')+1:])
	if err != nil {
		return -1
	}
	return i
}

// A taskRig is a queue and a node of a bench that works on it.
type taskRig struct {
	queue *task.Queue
	stop  func() error
}

// newRig starts a node and waits until it has done a first task, so that
// scripts are loaded and signals are heard.
func (b *taskBench) newRig(ctx context.Context, prefix string, workers int, times *taskTimes) (*taskRig, error) {
	r := &taskRig{}
	var err error
	r.queue, err = task.New(task.Options{
		Issuer: task.Issuer{Keys: channel.Keys{Prefix: prefix, Partitions: b.cfg.Channel.Partitions}},
		Client: b.st.Client, Lease: b.cfg.Worker.Lease, Logger: b.log,
	})
	if err != nil {
		return nil, err
	}
	warm := make(chan struct{})
	pool, err := task.NewPool(task.PoolOptions{
		Queue: r.queue, Node: "bench", MaxConcurrent: workers,
		Runners: map[string]task.Runner{task.Standard: func(_ context.Context, run *task.Run) (task.Outcome, error) {
			if i := benchNumber(run.Task.Prompt); i >= 0 {
				times.begin(i)
			}
			return task.Outcome{Output: benchAnswer}, nil
		}},
		Hooks: task.Hooks{Ended: func(t task.Task, to task.Status, _ time.Duration) {
			switch {
			case !task.Over(to): // this machine is so slow that it lapsed, and runs again
			case benchNumber(t.Prompt) < 0:
				close(warm)
			default:
				times.end()
			}
		}},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- pool.Run(ctx) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-over })
	first := benchDraft(0, 0)
	first.Prompt = "warm up"
	if _, _, err := r.queue.Enqueue(ctx, first); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	select {
	case <-warm:
		return r, nil
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), r.stop())
	}
}

// runTasks runs a load through the queue and one node.
func (b *taskBench) runTasks(ctx context.Context, prefix string, l taskLoad) (measure, error) {
	times := newTaskTimes(l.tasks)
	r, err := b.newRig(ctx, prefix, l.workers, times)
	if err != nil {
		return measure{}, err
	}
	b.trips.n.Store(0)
	m, err := l.send(ctx, times, func(ctx context.Context, i int) error {
		_, _, err := r.queue.Enqueue(ctx, benchDraft(i, i%l.conversations))
		return err
	})
	m.Trips = float64(b.trips.n.Load()) / float64(l.tasks)
	return m, errors.Join(err, r.stop())
}

// An idleCost is what an idle node asks of Redis, a second, without and with
// deferred tasks.
type idleCost struct {
	empty, full idleRate
	bytes       float64 // of Redis for each deferred task; -1 when Redis does not tell
}

type idleRate struct {
	commands float64 // -1 when Redis does not tell
	calls    float64
}

// idle measures a node with nothing to do, and then with tasks that are due in a
// year.
func (c *benchTasksCmd) idle(ctx context.Context, b *taskBench) (*idleCost, error) {
	var cost idleCost
	_, err := measured(ctx, b.st, func(prefix string) (measure, error) {
		r, err := b.newRig(ctx, prefix, c.Workers, newTaskTimes(1))
		if err != nil {
			return measure{}, err
		}
		err = c.idleOf(ctx, b, r, &cost)
		return measure{Ops: 1}, errors.Join(err, r.stop())
	})
	return &cost, err
}

func (c *benchTasksCmd) idleOf(ctx context.Context, b *taskBench, r *taskRig, cost *idleCost) error {
	var err error
	if cost.empty, err = c.watch(ctx, b); err != nil {
		return err
	}
	before, err := memoryUsed(ctx, b.st)
	if err != nil {
		return err
	}
	year := time.Now().AddDate(1, 0, 0)
	l := taskLoad{tasks: c.Deferred, callers: c.Callers}
	none := newTaskTimes(c.Deferred)
	close(none.over) // nobody waits for these
	if _, err = l.send(ctx, none, func(ctx context.Context, i int) error {
		d := benchDraft(i, i%c.Conversations)
		d.DeferUntil = year.Add(time.Duration(i) * time.Millisecond)
		_, _, err := r.queue.Enqueue(ctx, d)
		return err
	}); err != nil {
		return err
	}
	after, err := memoryUsed(ctx, b.st)
	if err != nil {
		return err
	}
	if cost.bytes = -1; before > 0 {
		cost.bytes = float64(after-before) / float64(c.Deferred)
	}
	cost.full, err = c.watch(ctx, b)
	return err
}

// watch counts for a while what an idle node does, once it has come to rest: what
// it hears and looks up after a start or an enqueueing is no cost of being idle.
func (c *benchTasksCmd) watch(ctx context.Context, b *taskBench) (idleRate, error) {
	if err := pauseFor(ctx, min(3*time.Second, c.Idle/4)); err != nil {
		return idleRate{}, err
	}
	before, err := count(ctx, b.st)
	if err != nil {
		return idleRate{}, err
	}
	b.trips.n.Store(0)
	if err := pauseFor(ctx, c.Idle); err != nil {
		return idleRate{}, err
	}
	rate := idleRate{commands: -1, calls: float64(b.trips.n.Load()) / c.Idle.Seconds()}
	after, err := count(ctx, b.st)
	if before.commands > 0 {
		rate.commands = float64(after.commands-before.commands-1) / c.Idle.Seconds() // without our own INFO
	}
	return rate, err
}

// memoryUsed is what Redis says that it uses, 0 when it does not tell.
func memoryUsed(ctx context.Context, st *store.Store) (int64, error) {
	if st.Volatile() {
		return 0, nil
	}
	info, err := st.Client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, fmt.Errorf("read how much memory Redis uses: %w", err)
	}
	for line := range strings.SplitSeq(info, "\r\n") {
		if v, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, errors.New("read how much memory Redis uses: it does not say")
}
