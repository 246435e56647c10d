package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/task"
)

// The bare queue is the least that is a queue of tasks: one sorted set by priority and
// age, the texts in a hash, one task for the same request, a lease of what runs, and a
// result in a stream. It has no attempts, fairness, index, cancels, fences or
// partitions, and nobody looks for leases that have lapsed. Each operation is one
// script: called one by one, as most queues do, or by one loop that claims as many as
// there are free workers and one that settles what is over, up to bareBatch at once. It
// is the yardstick, not a thing to run.

const bareBatch = 100

// bareEnqueue stores a task, unless the same was asked for and is not over.
// KEYS: rows hash, queue, requests hash, bell. ARGV: id, row, score, request.
var bareEnqueue = redis.NewScript(`
if redis.call('HSETNX', KEYS[3], ARGV[4], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[4], 0, 'new')
return 1`)

// bareClaim takes tasks and leases them.
// KEYS: rows hash, queue, leases. ARGV: how many at most, until when (ms).
// Returns the rows.
var bareClaim = redis.NewScript(`
local rows, got = {}, redis.call('ZPOPMIN', KEYS[2], ARGV[1])
for i = 1, #got, 2 do
  rows[#rows + 1] = redis.call('HGET', KEYS[1], got[i])
  redis.call('ZADD', KEYS[3], ARGV[2], got[i])
end
return rows`)

// bareEnd ends tasks that are leased and publishes their results.
// KEYS: state hash, results stream, leases, requests hash. ARGV: id, state, result, request …
var bareEnd = redis.NewScript(`
for i = 1, #ARGV, 4 do
  if redis.call('ZREM', KEYS[3], ARGV[i]) == 1 then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    redis.call('HDEL', KEYS[4], ARGV[i + 3])
    redis.call('XADD', KEYS[2], '*', 'data', ARGV[i + 2])
  end
end
return 1`)

// bareLease is longer than any run of the bench.
const bareLease = 15 * time.Second

// A bareTask is what the bare queue stores of a task.
type bareTask struct {
	ID           string            `json:"id"`
	Title        string            `json:"title"`
	Prompt       string            `json:"prompt"`
	Profile      string            `json:"profile"`
	Conversation chat.Conversation `json:"conversation"`
	Requester    chat.Author       `json:"requester"`
	Priority     int               `json:"priority"`
	CreatedAt    time.Time         `json:"createdAt"`
}

// A bareQueue is a run of the bare queue.
type bareQueue struct {
	st    *store.Store
	key   func(name string) string
	batch int
	times *taskTimes
	free  chan struct{} // a token for each idle worker
	ended chan bareTask
}

// bareQueue makes a run that claims and settles up to batch tasks at once; with
// 1 the worker that did a task settles it itself.
func (tb *taskBench) bareQueue(batch int) func(ctx context.Context, prefix string, l taskLoad) (measure, error) {
	return func(ctx context.Context, prefix string, l taskLoad) (measure, error) {
		b := &bareQueue{
			st: tb.st, key: func(name string) string { return "{" + prefix + ":0}:" + name }, batch: batch, times: newTaskTimes(l.tasks),
			free: make(chan struct{}, l.workers), ended: make(chan bareTask, l.workers),
		}
		for range l.workers {
			b.free <- struct{}{}
		}
		stop, cancel := context.WithCancel(ctx)
		g, gctx := errgroup.WithContext(stop)
		g.Go(func() error { return b.claim(gctx, g) })
		if batch > 1 {
			g.Go(func() error { return b.settle(gctx) })
		}
		tb.trips.n.Store(0)
		m, err := l.send(gctx, b.times, func(ctx context.Context, i int) error { return b.enqueue(ctx, i, i%l.conversations) })
		m.Trips = float64(tb.trips.n.Load()) / float64(l.tasks)
		cancel()
		if gerr := g.Wait(); gerr != nil && !errors.Is(gerr, context.Canceled) {
			err = errors.Join(gerr, err)
		}
		return m, err
	}
}

func (b *bareQueue) enqueue(ctx context.Context, i, conversation int) error {
	d, now := benchDraft(i, conversation), time.Now()
	row, err := json.Marshal(bareTask{
		ID: task.NewID(now, 0, uint64(i)), Title: d.Title, Prompt: d.Prompt, Profile: d.Profile,
		Conversation: d.Conversation, Requester: d.Requester, Priority: task.DefaultPriority, CreatedAt: now,
	})
	if err != nil {
		return err
	}
	score := now.UnixMilli() - task.DefaultPriority*task.PriorityStep.Milliseconds()
	err = bareEnqueue.Run(ctx, b.st.Client, []string{b.key("rows"), b.key("queue"), b.key("requests"), b.key("bell")}, task.NewID(now, 0, uint64(i)), row, score, d.Title).Err()
	if err != nil {
		return fmt.Errorf("bare queue: enqueue: %w", err)
	}
	return nil
}

// claim gives tasks to free workers. When the queue was empty it waits in Redis for the
// bell, which is the shortest wait there is that takes nothing away.
func (b *bareQueue) claim(ctx context.Context, g *errgroup.Group) error {
	wait := true
	for {
		select {
		case <-b.free:
		case <-ctx.Done():
			return nil
		}
		n := 1
		for n < b.batch && len(b.free) > 0 {
			<-b.free
			n++
		}
		if wait {
			_, err := b.st.Blocking.BZPopMin(ctx, time.Second, b.key("bell")).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return fmt.Errorf("bare queue: wait: %w", err)
			}
			if err != nil {
				b.release(n)
				continue
			}
		}
		until := time.Now().Add(bareLease).UnixMilli()
		rows, err := bareClaim.Run(ctx, b.st.Client, []string{b.key("rows"), b.key("queue"), b.key("leases")}, n, until).StringSlice()
		if err != nil {
			return fmt.Errorf("bare queue: claim: %w", err)
		}
		wait = len(rows) < n
		b.release(n - len(rows))
		for _, row := range rows {
			t, err := decode[bareTask](row)
			if err != nil {
				return fmt.Errorf("bare queue: read a task: %w", err)
			}
			g.Go(func() error { return b.work(ctx, *t) })
		}
	}
}

func (b *bareQueue) release(n int) {
	for range n {
		b.free <- struct{}{}
	}
}

func (b *bareQueue) work(ctx context.Context, t bareTask) error {
	b.times.begin(benchNumber(t.Prompt))
	if b.batch == 1 {
		return b.end(ctx, t)
	}
	b.ended <- t // there is room for every worker
	return nil
}

// settle ends what is over, as much at once as there is, never waiting for more.
func (b *bareQueue) settle(ctx context.Context) error {
	for {
		var batch []bareTask
		select {
		case t := <-b.ended:
			batch = append(batch, t)
		case <-ctx.Done():
			return nil
		}
		for len(batch) < b.batch && len(b.ended) > 0 {
			batch = append(batch, <-b.ended)
		}
		if err := b.end(ctx, batch...); err != nil {
			return err
		}
	}
}

func (b *bareQueue) end(ctx context.Context, batch ...bareTask) error {
	var args []any
	for _, t := range batch {
		now := time.Now()
		result := chat.TaskResult{
			ID: t.ID, Conversation: t.Conversation, Title: t.Title, Profile: t.Profile, Status: chat.TaskSucceeded, ResultType: "text",
			Output: benchAnswer, Attempts: 1, Requester: t.Requester, StartedAt: t.CreatedAt, CompletedAt: now,
		}
		data, err := json.Marshal(&result)
		if err != nil {
			return fmt.Errorf("bare queue: end: %w", err)
		}
		args = append(args, t.ID, "succeeded "+strconv.FormatInt(now.UnixMilli(), 10)+" "+benchAnswer, data, t.Title)
	}
	if err := bareEnd.Run(ctx, b.st.Client, []string{b.key("state"), b.key("results"), b.key("leases"), b.key("requests")}, args...).Err(); err != nil {
		return fmt.Errorf("bare queue: end: %w", err)
	}
	b.release(len(batch))
	for range batch {
		b.times.end()
	}
	return nil
}

// rival makes a run of another program, which is told where Redis is and what to
// do, and prints one line of JSON: ops, sec, p50_us and p99_us of the pick-up.
func (tb *taskBench) rival(program string) (func(ctx context.Context, prefix string, l taskLoad) (measure, error), error) {
	client, ok := tb.st.Client.(*redis.Client)
	if !ok || tb.st.Volatile() {
		return nil, fmt.Errorf("--rival %s: it needs one redis-server, and this is %s", program, tb.st.Describe())
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("--rival %s: %w", program, err)
	}
	return func(ctx context.Context, prefix string, l taskLoad) (measure, error) {
		o := client.Options()
		var out, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, path, "-network", o.Network, "-addr", o.Addr, "-queue", prefix, "-n", strconv.Itoa(l.tasks),
			"-callers", strconv.Itoa(l.callers), "-workers", strconv.Itoa(l.workers), "-rate", strconv.FormatFloat(l.rate, 'g', -1, 64))
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil {
			return measure{}, fmt.Errorf("run %s: %w: %s", program, err, bytes.TrimSpace(stderr.Bytes()))
		}
		var got struct {
			Ops int     `json:"ops"`
			Sec float64 `json:"sec"`
			P50 int64   `json:"p50_us"`
			P99 int64   `json:"p99_us"`
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			return measure{}, fmt.Errorf("run %s: it printed %q: %w", program, out.String(), err)
		}
		if got.Ops != l.tasks || got.Sec <= 0 {
			return measure{}, fmt.Errorf("run %s: it printed %q, want the figures of %d tasks", program, out.String(), l.tasks)
		}
		return measure{
			Ops: got.Ops, Took: time.Duration(got.Sec * float64(time.Second)), Trips: -1,
			P50: time.Duration(got.P50) * time.Microsecond, P99: time.Duration(got.P99) * time.Microsecond,
		}, nil
	}, nil
}
