package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// chaosCmds are what can be tormented. `mimikit chaos` alone is messages.
type chaosCmds struct {
	Messages chaosCmd      `cmd:"" default:"withargs" help:"Torment the pipeline (the default): nothing lost, nothing answered twice, all in order."`
	Tasks    chaosTasksCmd `cmd:"" help:"Torment background tasks: each ends once, in the right state, and is told once."`
}

// chaosCmd runs nodes as processes under faults and judges all that was posted.
type chaosCmd struct {
	Nodes         int           `default:"3" help:"Node processes."`
	Messages      int           `short:"n" default:"5000" help:"Messages to send."`
	Conversations int           `short:"C" default:"200" help:"Conversations they are spread over."`
	Lease         time.Duration `default:"1s" help:"How long a silent node keeps its partitions."`
	Partitions    int           `default:"16" help:"Partitions of the deployment."`
	Spread        time.Duration `default:"30s" help:"Time over which the messages are sent."`
	Seed          uint64        `help:"Repeats a run: the same faults in the same order. Default: by chance, and printed."`
	Failover      bool          `help:"Run on a Sentinel set and kill masters. What a fail-over loses must then be found out and counted."`
	Drain         time.Duration `default:"2m" help:"How long the last answers may take once the faults are over."`
	Keep          bool          `help:"Keep the directory with the logs of nodes and Redis, and print its name."`
	Verbose       bool          `short:"v" help:"Print every fault as it is made."`
}

// Run runs the chaos. A breach is exit code 1.
func (c *chaosCmd) Run(ctx context.Context, std *streams) error {
	if c.Nodes < 1 || c.Messages < 1 || c.Conversations < 1 || c.Partitions < 1 {
		return fmt.Errorf("--nodes %d, --messages %d, --conversations %d, --partitions %d: 1 or more is allowed", c.Nodes, c.Messages, c.Conversations, c.Partitions)
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
	fmt.Fprintf(std.out, "%d messages in %d conversations, %d nodes, lease %s, %s, seed %d\n",
		c.Messages, c.Conversations, c.Nodes, c.Lease, c.mode(), c.Seed)
	verdict, err := c.run(ctx, std.out, dir)
	if err != nil {
		return err
	}
	if err := verdict.print(std.out); err != nil {
		return err
	}
	if len(verdict.breaches) > 0 {
		return exitCode(1)
	}
	return nil
}

func (c *chaosCmd) mode() string {
	if c.Failover {
		return "Sentinel with fail-overs"
	}
	return "one Redis, append-only file always"
}

// run builds the world, sends under faults, heals, and judges.
func (c *chaosCmd) run(ctx context.Context, out io.Writer, dir string) (*verdict, error) {
	start := time.Now()
	platform, err := newChaosPlatform(c.Seed)
	if err != nil {
		return nil, err
	}
	defer platform.close()
	w, err := newWorld(ctx, c, dir, (*chaosNode).loopArgs)
	if err != nil {
		return nil, err
	}
	w.platform = platform
	defer w.close()
	if c.Verbose {
		w.say = func(format string, args ...any) {
			fmt.Fprintf(out, "%7.2fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
		}
	}
	if err := w.startNodes(); err != nil {
		return nil, err
	}
	sent := make(chan error, 1)
	go func() { sent <- c.send(ctx, w) }()
	err = w.torment(ctx, sent)
	if err != nil {
		return nil, err
	}
	w.heal()
	platform.calmDown()
	v := newVerdict(w, c.Failover)
	v.drained = w.drain(ctx, c.Drain, c.Failover)
	if err := v.judge(ctx); err != nil {
		return nil, err
	}
	w.stopNodes(v)
	v.took = time.Since(start)
	return v, nil
}

// send sends every conversation's messages in order: the next is offered when
// the last was accepted by some node.
func (c *chaosCmd) send(ctx context.Context, w *world) error {
	each := c.Messages / c.Conversations
	gap := time.Duration(0)
	if n := max(each, 1); n > 0 {
		gap = c.Spread / time.Duration(n)
	}
	var wg sync.WaitGroup
	errs := make(chan error, c.Conversations)
	for conv := range c.Conversations {
		n := each
		if conv < c.Messages%c.Conversations {
			n++
		}
		wg.Go(func() {
			r := rand.New(rand.NewPCG(c.Seed, uint64(conv)+1000))
			for i := range n {
				if err := pauseFor(ctx, time.Duration(r.Float64()*2*float64(gap))); err != nil {
					errs <- err
					return
				}
				if err := w.offer(ctx, r, conv, i); err != nil {
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

// offer offers one message to nodes by chance until one has accepted it.
func (w *world) offer(ctx context.Context, r *rand.Rand, conv, i int) error {
	for {
		id, err := w.nodes[r.IntN(len(w.nodes))].say(ctx, conv, i)
		if err == nil {
			w.platform.accepted(conv, i, id)
			return nil
		}
		if err := pauseFor(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runName is a key prefix of the run's own.
func runName() string { return "chaos-" + ulid.Make().String() }
