// Command rival does with the queue asynq what `mimikit bench tasks` does with ours,
// on the same Redis: see its --rival. It lies in a module of its own, so that the
// program does not depend on a queue that it does not use.
//
// Tasks carry the same texts and leave a result. asynq's tasks have no priority
// within a queue, no fairness between conversations and no stream of results, and
// its workers look for new tasks once a second when they found none, which is what
// its pick-up shows.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// A job is the payload of a task.
type job struct {
	N            int    `json:"n"`
	Title        string `json:"title"`
	Prompt       string `json:"prompt"`
	Conversation string `json:"conversation"`
	Requester    string `json:"requester"`
}

const (
	prompt = "Could you have a look at the figures of last week and tell me what changed?"
	answer = "Sales rose by four per cent against the week before; everything else is as it was."
)

// A bench is what to do, and what was seen.
type bench struct {
	redis   asynq.RedisClientOpt
	queue   string
	n       int
	callers int
	workers int
	rate    float64

	asked, begun []time.Time
	left         atomic.Int64
	over         chan struct{}
}

func main() {
	var b bench
	flag.StringVar(&b.redis.Network, "network", "tcp", "network of Redis")
	flag.StringVar(&b.redis.Addr, "addr", "127.0.0.1:6379", "address of Redis")
	flag.StringVar(&b.queue, "queue", "rival", "name of the queue, which is removed afterwards")
	flag.IntVar(&b.n, "n", 20000, "tasks")
	flag.IntVar(&b.callers, "callers", 32, "how many enqueue at once")
	flag.IntVar(&b.workers, "workers", 32, "tasks that run at once")
	flag.Float64Var(&b.rate, "rate", 0, "tasks a second; 0: as fast as it goes")
	flag.Parse()
	if b.n < 1 || b.callers < 1 || b.workers < 1 || b.rate < 0 {
		fmt.Fprintln(os.Stderr, "rival: -n, -callers and -workers: 1 or more is allowed; -rate: 0 or more")
		os.Exit(2)
	}
	if err := b.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rival:", err)
		os.Exit(1)
	}
}

func (b *bench) run(out io.Writer) error {
	b.asked, b.begun, b.over = make([]time.Time, b.n), make([]time.Time, b.n), make(chan struct{})
	b.left.Store(int64(b.n))
	server := asynq.NewServer(b.redis, asynq.Config{
		Concurrency: b.workers, Queues: map[string]int{b.queue: 1}, LogLevel: asynq.FatalLevel,
	})
	if err := server.Start(asynq.HandlerFunc(b.work)); err != nil {
		return err
	}
	client := asynq.NewClient(b.redis)
	start := time.Now()
	err := b.send(client, start)
	if err == nil {
		select {
		case <-b.over:
		case <-time.After(5 * time.Minute):
			err = fmt.Errorf("%d of %d tasks are not over", b.left.Load(), b.n)
		}
	}
	took := time.Since(start)
	server.Shutdown()
	if cerr := client.Close(); err == nil {
		err = cerr
	}
	b.clear()
	if err != nil {
		return err
	}
	waits := make([]time.Duration, b.n)
	for i := range waits {
		waits[i] = b.begun[i].Sub(b.asked[i])
	}
	slices.Sort(waits)
	return json.NewEncoder(out).Encode(map[string]any{
		"ops": b.n, "sec": took.Seconds(), "p50_us": waits[b.n/2].Microseconds(), "p99_us": waits[b.n*99/100].Microseconds(),
	})
}

// send has the callers enqueue everything.
func (b *bench) send(client *asynq.Client, start time.Time) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, b.callers)
	for range b.callers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.n {
					return
				}
				if b.rate > 0 {
					time.Sleep(time.Until(start.Add(time.Duration(float64(i) / b.rate * float64(time.Second)))))
				}
				b.asked[i] = time.Now()
				data, err := json.Marshal(job{i, fmt.Sprint("Figures of last week ", i), fmt.Sprintf("%s #%d", prompt, i), fmt.Sprint("C", i%1000), "U1"})
				if err == nil {
					_, err = client.Enqueue(asynq.NewTask("job", data), asynq.Queue(b.queue), asynq.MaxRetry(1), asynq.Retention(time.Hour))
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func (b *bench) work(_ context.Context, t *asynq.Task) error {
	var j job
	if err := json.Unmarshal(t.Payload(), &j); err != nil {
		return err
	}
	b.begun[j.N] = time.Now()
	if _, err := t.ResultWriter().Write([]byte(answer)); err != nil {
		return err
	}
	if b.left.Add(-1) == 0 {
		close(b.over)
	}
	return nil
}

// clear removes what the run has left.
func (b *bench) clear() {
	i := asynq.NewInspector(b.redis)
	defer func() { _ = i.Close() }()
	if _, err := i.DeleteAllCompletedTasks(b.queue); err != nil {
		log.Printf("clear %s: %v", b.queue, err)
	}
	if err := i.DeleteQueue(b.queue, true); err != nil {
		log.Printf("clear %s: %v", b.queue, err)
	}
}
