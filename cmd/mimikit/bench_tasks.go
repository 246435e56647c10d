package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"mimikit/config"
	"mimikit/core/store"
)

// benchTasksCmd measures the queue of background tasks with tasks that do nothing.
type benchTasksCmd struct {
	Tasks         int           `short:"n" default:"20000" help:"Tasks of a throughput run."`
	Conversations int           `short:"C" default:"1000" help:"Conversations they are spread over."`
	Callers       int           `default:"32" help:"How many enqueue at once, each its next task when the last is stored."`
	Workers       int           `default:"32" help:"Tasks that run at once."`
	Rate          float64       `default:"50" help:"Tasks a second while the pick-up is measured: far below what the queue can do."`
	Picks         int           `default:"500" help:"Tasks of a pick-up run."`
	Compare       bool          `help:"Also run a bare queue with the same payloads on the same Redis, in turns, and print the ratios of the medians."`
	Rival         string        `placeholder:"PROGRAM" help:"With --compare: also run this program in turns; tools/rival is one, on the queue asynq."`
	Rounds        int           `default:"3" help:"Runs of each with --compare."`
	Deferred      int           `default:"100000" help:"Tasks that are due in a year, and whose cost to an idle node is measured. 0 skips it."`
	Idle          time.Duration `default:"20s" help:"How long an idle node is watched, without them and with them."`
	JSON          bool          `name:"json" help:"Print one line of JSON."`
	benchStore    `embed:""`
}

// A taskBench is what all runs share.
type taskBench struct {
	cfg   config.Config
	log   *slog.Logger
	st    *store.Store
	trips *tripCounter // of both clients
}

// A contender is a queue that is measured.
type contender struct {
	name string
	run  func(ctx context.Context, prefix string, l taskLoad) (measure, error)
	full []measure // throughput runs
	slow []measure // pick-up runs
}

// A taskLoad is what a run of tasks sends.
type taskLoad struct {
	tasks, conversations, callers, workers int
	rate                                   float64 // tasks a second; 0: as fast as the callers can
}

// Run measures and prints.
func (c *benchTasksCmd) Run(ctx context.Context, std *streams, s *settings) error {
	switch {
	case min(c.Tasks, c.Conversations, c.Callers, c.Workers, c.Picks, c.Rounds) < 1:
		return fmt.Errorf("--tasks %d, --conversations %d, --callers %d, --workers %d, --picks %d, --rounds %d: 1 or more is allowed",
			c.Tasks, c.Conversations, c.Callers, c.Workers, c.Picks, c.Rounds)
	case c.Rate <= 0 || c.Deferred < 0 || c.Idle <= 0:
		return fmt.Errorf("--rate %g, --deferred %d, --idle %s: more than 0 is allowed, and 0 deferred", c.Rate, c.Deferred, c.Idle)
	case c.Rival != "" && !c.Compare:
		return fmt.Errorf("--rival %s: it needs --compare", c.Rival)
	}
	cfg, done, err := c.config(s)
	if err != nil {
		return err
	}
	defer done()
	log := slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	st, err := openStore(ctx, cfg, log, false)
	if err != nil {
		return err
	}
	defer closeStore(st, log)
	if !c.JSON {
		fmt.Fprintf(std.out, "%s\n%d tasks that do nothing in %d conversations, %d callers, %d workers; pick-up of %d at %g a second\n\n",
			st.Describe(), c.Tasks, c.Conversations, c.Callers, c.Workers, c.Picks, c.Rate)
	}
	b := &taskBench{cfg: cfg, log: log, st: st, trips: &tripCounter{}}
	st.Client.AddHook(b.trips)
	st.Blocking.AddHook(b.trips)
	all, err := c.contenders(b)
	if err != nil {
		return err
	}
	if err := c.measure(ctx, st, all); err != nil {
		return err
	}
	var idle *idleCost
	if c.Deferred > 0 {
		if idle, err = c.idle(ctx, b); err != nil {
			return err
		}
	}
	if c.JSON {
		return c.printJSON(std.out, all, idle)
	}
	return c.print(std.out, all, idle)
}

func (c *benchTasksCmd) contenders(b *taskBench) ([]*contender, error) {
	all := []*contender{{name: "mimikit", run: b.runTasks}}
	if !c.Compare {
		return all, nil
	}
	all = append(all,
		&contender{name: "bare", run: b.bareQueue(bareBatch)},
		&contender{name: "bare, one by one", run: b.bareQueue(1)})
	if c.Rival != "" {
		run, err := b.rival(c.Rival)
		if err != nil {
			return nil, err
		}
		all = append(all, &contender{name: "rival", run: run})
	}
	return all, nil
}

// measure runs every contender in turns, so that what else the machine does falls
// on all of them.
func (c *benchTasksCmd) measure(ctx context.Context, st *store.Store, all []*contender) error {
	full := taskLoad{c.Tasks, c.Conversations, c.Callers, c.Workers, 0}
	slow := full
	slow.tasks, slow.rate = c.Picks, c.Rate
	rounds := 1
	if c.Compare {
		rounds = c.Rounds
	}
	for range rounds {
		for _, x := range all {
			for _, of := range []struct {
				load taskLoad
				to   *[]measure
			}{{full, &x.full}, {slow, &x.slow}} {
				m, err := measured(ctx, st, func(prefix string) (measure, error) { return x.run(ctx, prefix, of.load) })
				if err != nil {
					return fmt.Errorf("measure %s: %w", x.name, err)
				}
				*of.to = append(*of.to, m)
			}
		}
	}
	return nil
}

// A taskRatio says how the first contender stands to another.
type taskRatio struct{ rate, p50, p99 float64 }

func ratioOf(a, b *contender) taskRatio {
	af, bf, as, bs := median(a.full), median(b.full), median(a.slow), median(b.slow)
	return taskRatio{af.rate() / bf.rate(), float64(as.P50) / float64(bs.P50), float64(as.P99) / float64(bs.P99)}
}

func (c *benchTasksCmd) print(w io.Writer, all []*contender, idle *idleCost) error {
	t := newTable("", "TASKS/S", "COMMANDS/TASK", "TRIPS/TASK", "WIRE/TASK", "STORED/TASK", "HEAP", "PICK-UP P50", "P99")
	for i := range all[0].full {
		for _, x := range all {
			f, s := x.full[i], x.slow[i]
			t.row(x.name, fmt.Sprintf("%.0f", f.rate()), orUnknown(f.Commands), orUnknown(f.Trips), orUnknown(f.Bytes), orUnknown(f.Stored),
				fmt.Sprintf("%.1f MiB", float64(f.Heap)/(1<<20)), s.P50.Round(time.Microsecond), s.P99.Round(time.Microsecond))
		}
	}
	if err := t.print(w); err != nil {
		return err
	}
	for _, x := range all[1:] {
		r := ratioOf(all[0], x)
		if _, err := fmt.Fprintf(w, "%smimikit to %s, ratio of medians: %.2f of the tasks/s, %.2f of the pick-up p50, %.2f of the p99\n",
			newline(x == all[1]), x.name, r.rate, r.p50, r.p99); err != nil {
			return err
		}
	}
	if idle == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nidle for %s: %s commands/s (%.2f calls/s); with %d tasks deferred for a year %s commands/s (%.2f calls/s), %s bytes of Redis each\n",
		c.Idle, orUnknown(idle.empty.commands), idle.empty.calls, c.Deferred, orUnknown(idle.full.commands), idle.full.calls, orUnknown(idle.bytes))
	return err
}

func newline(yes bool) string {
	if yes {
		return "\n"
	}
	return ""
}

func (c *benchTasksCmd) printJSON(w io.Writer, all []*contender, idle *idleCost) error {
	o, s := median(all[0].full), median(all[0].slow)
	extra := map[string]any{
		"tasks_per_sec": o.rate(), "redis_commands_per_task": o.Commands, "redis_stored_per_task": o.Stored, "round_trips_per_task": o.Trips,
		"redis_bytes_per_task": o.Bytes, "heap_bytes": o.Heap,
	}
	ratios := map[string]any{}
	for _, x := range all[1:] {
		r, f := ratioOf(all[0], x), median(x.full)
		ratios[x.name] = map[string]any{"tasks_per_sec": f.rate(), "ratio": r.rate, "pickup_p50_ratio": r.p50, "pickup_p99_ratio": r.p99}
	}
	if len(ratios) > 0 {
		extra["to"] = ratios
	}
	if idle != nil {
		extra["idle_commands_per_sec"], extra["idle_commands_per_sec_with_deferred"] = idle.empty.commands, idle.full.commands
		extra["idle_calls_per_sec"], extra["idle_calls_per_sec_with_deferred"] = idle.empty.calls, idle.full.calls
		extra["deferred"], extra["redis_bytes_per_deferred_task"] = c.Deferred, idle.bytes
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"ops": o.Ops, "sec": o.Took.Seconds(), "p50_us": s.P50.Microseconds(), "p99_us": s.P99.Microseconds(), "extra": extra,
	})
}

// ofSorted gives the median and the 99th percentile of what is sorted.
func ofSorted[T cmp.Ordered](all []T) (p50, p99 T) { return all[len(all)/2], all[len(all)*99/100] }
