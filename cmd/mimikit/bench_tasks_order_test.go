package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// A crowd is a queue with a node whose tasks take a fixed time.
type crowd struct {
	t     *testing.T
	queue *task.Queue
	pool  *task.Pool
	mu    sync.Mutex
	begun []string             // ids in the order in which their runs began
	at    map[string]time.Time // :: id -> when it began
	over  chan struct{}        // one for each run that is over
}

func newCrowd(t *testing.T, st *store.Store, partitions, workers int, takes time.Duration) *crowd {
	t.Helper()
	c := &crowd{t: t, at: map[string]time.Time{}, over: make(chan struct{}, 10_000)}
	var err error
	if c.queue, err = task.New(task.Options{
		Issuer: task.Issuer{Keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: partitions}}, Client: st.Client,
	}); err != nil {
		t.Fatal(err)
	}
	if c.pool, err = task.NewPool(task.PoolOptions{
		Queue: c.queue, Node: "n", MaxConcurrent: workers,
		Runners: map[string]task.Runner{task.Standard: func(ctx context.Context, r *task.Run) (task.Outcome, error) {
			c.mu.Lock()
			c.begun, c.at[r.Task.ID] = append(c.begun, r.Task.ID), time.Now()
			c.mu.Unlock()
			return task.Outcome{}, pauseFor(ctx, takes)
		}},
		Hooks: task.Hooks{Ended: func(task.Task, task.Status, time.Duration) { c.over <- struct{}{} }},
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// run lets the node work until the returned function is called.
func (c *crowd) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- c.pool.Run(ctx) }()
	return func() {
		cancel()
		if err := <-over; err != nil {
			c.t.Error(err)
		}
	}
}

func (c *crowd) enqueue(place string, i, priority int) string {
	c.t.Helper()
	id, _, err := c.queue.Enqueue(c.t.Context(), task.Draft{
		Profile: task.Standard, Prompt: fmt.Sprintf("%s %d", place, i), Priority: &priority,
		Conversation: chat.Conversation{Platform: "test", Place: place}, Requester: chat.Author{ID: "U1"},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

func (c *crowd) get(id string) task.Task {
	c.t.Helper()
	got, err := c.queue.Get(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

// starts are the times at which all tasks began to run, by Redis' clock.
func (c *crowd) starts() (list []time.Time) {
	c.t.Helper()
	for from := ""; ; {
		page, err := c.queue.List(c.t.Context(), task.Filter{}, from, 100)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, t := range page.Tasks {
			if !t.StartedAt.IsZero() {
				list = append(list, t.StartedAt)
			}
		}
		if from = page.Next; from == "" {
			return list
		}
	}
}

// A conversation with a thousand tasks holds up another's first task by no more than
// the time of one task. On fake time, so that the figure is exact.
func TestCrowdHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 16} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const takes = 100 * time.Millisecond
				s, _ := storetest.MiniRaw(t)
				c := newCrowd(t, s, partitions, 3, takes)
				for i := range 1000 {
					c.enqueue("crowd", i, task.DefaultPriority)
				}
				stop := c.run()
				defer stop()
				var worst time.Duration
				r := rand.New(rand.NewPCG(1, 1))
				for i := range 10 {
					if err := pauseFor(t.Context(), 300*time.Millisecond+time.Duration(r.Int64N(int64(takes)))); err != nil {
						t.Fatal(err)
					}
					asked := time.Now()
					id := c.enqueue(fmt.Sprintf("other%d", i), 0, task.DefaultPriority)
					if err := pauseFor(t.Context(), 3*takes); err != nil {
						t.Fatal(err)
					}
					c.mu.Lock()
					at, began := c.at[id]
					c.mu.Unlock()
					if !began {
						t.Fatalf("%s has not begun after %s", id, 3*takes)
					}
					worst = max(worst, at.Sub(asked))
				}
				t.Logf("beside a conversation with 1000 tasks of %s the first task of another waits %s at most", takes, worst)
				if worst > takes {
					t.Errorf("the first task of another conversation waited %s, want at most %s", worst, takes)
				}
			})
		})
	}
}

// The same on a real Redis and in real time, where the order is judged: few of the
// crowd go before the other's first task once that is there.
func TestCrowdGoesBehind(t *testing.T) {
	t.Parallel()
	const takes, workers = 10 * time.Millisecond, 3
	c := newCrowd(t, storetest.Redis(t), 16, workers, takes)
	total := 1000
	for i := range total {
		c.enqueue("crowd", i, task.DefaultPriority)
	}
	stop := c.run()
	var others []string
	for range 50 {
		<-c.over
	}
	for i := range 10 {
		others = append(others, c.enqueue(fmt.Sprintf("other%d", i), 0, task.DefaultPriority))
		for range 20 {
			<-c.over
		}
	}
	stop()
	starts := c.starts()
	for _, id := range others {
		x := c.get(id)
		if x.StartedAt.IsZero() {
			t.Fatalf("%s has not begun while 20 others ended", id)
		}
		before := 0
		for _, at := range starts {
			if at.After(x.CreatedAt) && at.Before(x.StartedAt) {
				before++
			}
		}
		t.Logf("waited %s, %d of the crowd of %d began meanwhile", x.StartedAt.Sub(x.CreatedAt), before, total)
		if before > 3*workers {
			t.Errorf("%d of the crowd began before the other's first task, want at most %d", before, 3*workers)
		}
	}
}

// Within a partition tasks run in the exact order of their priorities, and those of
// one priority by age, whether one conversation has them or many.
func TestPriorityIsExact(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		for _, places := range []int{1, 150} {
			t.Run(fmt.Sprintf("%d conversations", places), func(t *testing.T) {
				const n = 150
				c := newCrowd(t, s, 1, 1, 0)
				r := rand.New(rand.NewPCG(7, 7))
				tasks := make([]task.Task, n)
				for i := range tasks {
					tasks[i] = c.get(c.enqueue(fmt.Sprint("c", i%places), i, r.IntN(task.MaxPriority+1)))
				}
				stop := c.run()
				for range tasks {
					<-c.over
				}
				stop()
				place := map[string]int{}
				for i, id := range c.begun {
					place[id] = i
				}
				slices.SortFunc(tasks, func(a, b task.Task) int { return place[a.ID] - place[b.ID] })
				wrong := 0
				for i := 1; i < n; i++ {
					a, b := tasks[i-1], tasks[i]
					if b.Priority > a.Priority || b.Priority == a.Priority && b.CreatedAt.Before(a.CreatedAt) {
						wrong++
						t.Errorf("%s (priority %d, of %s) ran before %s (priority %d, of %s)", a.ID, a.Priority, a.CreatedAt, b.ID, b.Priority, b.CreatedAt)
					}
				}
				t.Logf("%d tasks of %d conversations: %d of %d neighbours in the wrong order", n, places, wrong, n-1)
			})
		}
	})
}
