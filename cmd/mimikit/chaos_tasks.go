package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
	"mimikit/core/task"
)

// chaosTasksCmd runs tasks on nodes that are processes, under faults, and judges
// how each of them ended.
type chaosTasksCmd struct {
	Nodes         int           `default:"3" help:"Node processes."`
	Tasks         int           `short:"n" default:"2000" help:"Tasks to enqueue; those that tasks start come on top."`
	Conversations int           `short:"C" default:"300" help:"Conversations they are spread over."`
	Lease         time.Duration `default:"1s" help:"How long a silent worker keeps its task, and a silent node its partitions."`
	Partitions    int           `default:"16" help:"Partitions of the deployment."`
	Workers       int           `default:"12" help:"Tasks that run at once on a node."`
	Spread        time.Duration `default:"40s" help:"Time over which the tasks are enqueued."`
	Seed          uint64        `help:"Repeats a run: the same tasks and the same faults in the same order. Default: by chance, and printed."`
	Drain         time.Duration `default:"2m" help:"How long the last tasks may take once the faults are over."`
	Keep          bool          `help:"Keep the directory with the logs of nodes and Redis, and print its name."`
	Verbose       bool          `short:"v" help:"Print every fault as it is made."`
}

// Run runs the chaos. A breach is exit code 1.
func (c *chaosTasksCmd) Run(ctx context.Context, std *streams) error {
	if min(c.Nodes, c.Tasks, c.Conversations, c.Partitions, c.Workers) < 1 {
		return fmt.Errorf("--nodes %d, --tasks %d, --conversations %d, --partitions %d, --workers %d: 1 or more is allowed",
			c.Nodes, c.Tasks, c.Conversations, c.Partitions, c.Workers)
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return fmt.Errorf("chaos needs a redis-server to kill: %w (Debian: apt install redis-server)", err)
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()>>1 | 1
	}
	dir, err := os.MkdirTemp("", "mimikit-chaos-")
	if err != nil {
		return fmt.Errorf("make a directory for the run: %w", err)
	}
	if c.Keep {
		fmt.Fprintf(std.out, "logs in %s\n", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }() // in the temporary directory; nothing depends on it
	}
	fmt.Fprintf(std.out, "%d tasks in %d conversations, %d nodes with %d workers, lease %s, one Redis, append-only file always, seed %d\n",
		c.Tasks, c.Conversations, c.Nodes, c.Workers, c.Lease, c.Seed)
	v, err := c.run(ctx, std.out, dir)
	if err != nil {
		return err
	}
	if err := v.print(std.out); err != nil {
		return err
	}
	if len(v.breaches) > 0 {
		return exitCode(1)
	}
	return nil
}

// run builds the world, enqueues and cancels under faults, heals, and judges.
func (c *chaosTasksCmd) run(ctx context.Context, out io.Writer, dir string) (*taskVerdict, error) {
	start := time.Now()
	w, err := newWorld(ctx, &chaosCmd{Nodes: c.Nodes, Lease: c.Lease, Partitions: c.Partitions, Seed: c.Seed}, dir, c.nodeArgs)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if c.Verbose {
		w.say = func(format string, args ...any) {
			fmt.Fprintf(out, "%7.2fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
		}
	}
	d, err := newTaskDriver(ctx, c, w)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := w.startNodes(); err != nil {
		return nil, err
	}
	sent := make(chan error, 1)
	sendCtx, stop := context.WithCancel(ctx)
	go func() { sent <- d.send(sendCtx) }()
	if err = w.torment(ctx, sent); err != nil {
		stop()
		return nil, err
	}
	stop()
	w.heal()
	d.proxy.SetFaults(faultproxy.Faults{})
	v := newTaskVerdict(c, w, d)
	v.drained = v.drain(ctx, c.Drain)
	if err := v.judge(ctx); err != nil {
		return nil, err
	}
	for _, n := range w.nodes {
		if err := n.stop(); err != nil {
			v.breach("node %d did not stop cleanly: %v", n.i, err)
		}
	}
	v.took = time.Since(start)
	return v, nil
}

// nodeArgs call a node of this run.
func (c *chaosTasksCmd) nodeArgs(n *chaosNode) []string {
	return []string{"chaos-task-node", "--log", taskLog(n.w.dir, n.i), "--workers", fmt.Sprint(c.Workers)}
}

// A taskDriver enqueues and cancels, through faults of its own, and remembers
// what it was answered.
type taskDriver struct {
	c     *chaosTasksCmd
	proxy *faultproxy.Proxy
	store *store.Store
	queue *task.Queue

	mu       sync.Mutex
	accepted map[string]taskPlan   // :: id of an enqueued task -> what it is to do
	canceled map[string][]task.Did // :: id -> what cancels of it were answered
	doubled  []string              // what was answered wrongly to a repeat
}

func newTaskDriver(ctx context.Context, c *chaosTasksCmd, w *world) (*taskDriver, error) {
	d := &taskDriver{c: c, accepted: map[string]taskPlan{}, canceled: map[string][]task.Did{}}
	var err error
	if d.proxy, err = faultproxy.New(w.redis.addr(), faultproxy.Options{Seed: c.Seed + 1000}); err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.Redis = config.Redis{Mode: config.Single, Addrs: []string{d.proxy.Addr()}, Prefix: w.prefix}
	cfg.Channel.Partitions, cfg.Node = c.Partitions, "driver"
	if d.store, err = openStore(ctx, cfg, slog.New(slog.DiscardHandler), false); err != nil {
		d.close()
		return nil, err
	}
	d.proxy.SetFaults(faultproxy.Faults{DelayMax: 2 * time.Millisecond, CutEvery: 4 * time.Second, SwallowReply: 0.01})
	d.queue, err = task.New(chaosQueue(d.store, channel.Keys{Prefix: w.prefix, Partitions: c.Partitions}, c.Lease))
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// chaosQueue are the options of the queue of a run, alike for all who use it.
func chaosQueue(st *store.Store, keys channel.Keys, lease time.Duration) task.Options {
	return task.Options{
		Issuer: task.Issuer{Keys: keys}, Client: st.Client, MaxPerConversation: 3, Lease: lease, CallTimeout: time.Second,
	}
}

func (d *taskDriver) close() {
	if d.store != nil {
		_ = d.store.Close()
	}
	_ = d.proxy.Close()
}

// send enqueues all tasks within the spread, and cancels some of them.
func (d *taskDriver) send(ctx context.Context) error {
	const hands = 8
	gap := d.c.Spread * hands / time.Duration(max(d.c.Tasks, hands))
	g, ctx := errgroup.WithContext(ctx)
	for hand := range hands {
		g.Go(func() error {
			for n := hand; n < d.c.Tasks; n += hands {
				r := rand.New(rand.NewPCG(d.c.Seed, uint64(n)+2000))
				if err := pauseFor(ctx, time.Duration(r.Float64()*2*float64(gap))); err != nil {
					return err
				}
				p := newTaskPlan(r, n)
				id, err := d.enqueue(ctx, r, p)
				if err != nil {
					return err
				}
				if wait, yes := p.cancelAfter(r); yes {
					twice := r.IntN(4) == 0
					g.Go(func() error { return d.cancel(ctx, id, wait, twice) })
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// enqueue enqueues one task, some of them twice.
func (d *taskDriver) enqueue(ctx context.Context, r *rand.Rand, p taskPlan) (string, error) {
	c := chaosConversation(p.N % d.c.Conversations)
	draft := p.draft(c)
	given := r.IntN(2) == 0
	if given {
		draft.ID = d.queue.Issuer().Derive(c, chaosEpoch, "driver", fmt.Sprint(p.N))
	}
	if r.IntN(6) == 0 {
		draft.DeferUntil = time.Now().Add(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
	id, created, err := d.queue.Enqueue(ctx, draft)
	if err != nil {
		return "", err
	}
	d.accept(id, p)
	if !created {
		d.doubt("task %d (%s) was not there before, and a new one was not made", p.N, id)
	}
	if r.IntN(5) > 0 {
		return id, nil
	}
	again, created, err := d.queue.Enqueue(ctx, draft)
	switch {
	case err != nil:
		return "", err
	case given && (created || again != id):
		d.doubt("task %d was given the id %s and made again as %s", p.N, id, again)
	case !given && created == (again == id):
		d.doubt("task %d is %s, and a repeat answered %s, created %t", p.N, id, again, created)
	}
	d.accept(again, p) // a new one where the first was over already
	return id, nil
}

func (d *taskDriver) accept(id string, p taskPlan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accepted[id] = p
}

func (d *taskDriver) doubt(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doubled = append(d.doubled, fmt.Sprintf(format, args...))
}

// chaosCanceler is who cancels in a chaos run.
var chaosCanceler = chat.Author{ID: "U0", Name: "Bob", Role: chat.RoleAdmin}

// cancel cancels a task after a while, perhaps twice.
func (d *taskDriver) cancel(ctx context.Context, id string, wait time.Duration, twice bool) error {
	if err := pauseFor(ctx, wait); err != nil {
		return err
	}
	for {
		got, err := d.queue.Cancel(ctx, id, chaosCanceler, "chaos")
		if err != nil {
			return err
		}
		d.mu.Lock()
		d.canceled[id] = append(d.canceled[id], got.Did)
		d.mu.Unlock()
		if !twice {
			return nil
		}
		twice = false
	}
}
