package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"mimikit/config"
	"mimikit/core/store"
)

// benchCmds are what can be measured. `mimikit bench` alone is messages.
type benchCmds struct {
	Messages benchCmd      `cmd:"" default:"withargs" help:"Measure the pipeline with an instant model (the default)."`
	Tasks    benchTasksCmd `cmd:"" help:"Measure the queue of background tasks with tasks that do nothing."`
}

// benchStore says on which Redis is measured.
type benchStore struct {
	Redis string `placeholder:"HOST:PORT" help:"Measure on this Redis instead of one of the bench's own."`
	Store string `enum:"embedded,memory,configured" default:"embedded" help:"Without --redis: a redis-server of the bench's own (embedded, append-only file always), a Redis in the process (memory), or the configured one."`
}

// benchCmd measures the pipeline.
type benchCmd struct {
	Messages      int           `short:"n" default:"20000" help:"Messages to send."`
	Conversations int           `short:"C" default:"1000" help:"Conversations they are spread over. In each the next message is sent when the last is answered."`
	Rate          float64       `help:"Send so many messages a second, whether answered or not (for latency), instead of as fast as they are answered."`
	Duration      time.Duration `help:"With --rate: how long to send, instead of --messages."`
	Compare       bool          `help:"Also run a bare pipeline with the same hops and payloads on the same Redis, in turns, and print the ratio of the medians."`
	Rounds        int           `default:"3" help:"Runs of each with --compare."`
	JSON          bool          `name:"json" help:"Print one line of JSON."`
	benchStore    `embed:""`
}

// A load is what a run sends.
type load struct {
	messages, conversations int
	rate                    float64
}

// A measure is what a run gave.
type measure struct {
	Ops      int
	Took     time.Duration
	P50, P99 time.Duration
	Commands float64 // Redis commands a message, those inside scripts too; -1 when Redis does not tell
	Trips    float64 // round trips a message
	Bytes    float64 // in and out of Redis a message; -1 when Redis does not tell
	Stored   float64 // bytes that a message leaves in Redis' memory; -1 when Redis does not tell
	Heap     uint64  // bytes held by the process afterwards
	Left     int64   // keys left in Redis afterwards
}

func (m measure) rate() float64 { return float64(m.Ops) / m.Took.Seconds() }

// Run measures and prints.
func (c *benchCmd) Run(ctx context.Context, std *streams, s *settings) error {
	l := load{c.Messages, c.Conversations, c.Rate}
	if c.Duration > 0 {
		if c.Rate <= 0 {
			return fmt.Errorf("--duration %s: it needs --rate, messages a second", c.Duration)
		}
		l.messages = int(c.Rate * c.Duration.Seconds())
	}
	if l.messages < 1 || l.conversations < 1 || c.Rounds < 1 {
		return fmt.Errorf("--messages %d, --conversations %d, --rounds %d: 1 or more is allowed", l.messages, l.conversations, c.Rounds)
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
		fmt.Fprintf(std.out, "%s\n%d messages in %d conversations, instant model\n\n", st.Describe(), l.messages, l.conversations)
	}
	var ours, bare []measure
	for range c.rounds() {
		m, err := measured(ctx, st, func(prefix string) (measure, error) { return runPipeline(ctx, cfg, log, st, prefix, l) })
		if err != nil {
			return err
		}
		ours = append(ours, m)
		if !c.Compare {
			continue
		}
		if m, err = measured(ctx, st, func(prefix string) (measure, error) { return runBare(ctx, st, prefix, l) }); err != nil {
			return err
		}
		bare = append(bare, m)
	}
	return c.report(std.out, ours, bare)
}

func (c *benchCmd) rounds() int {
	if c.Compare {
		return c.Rounds
	}
	return 1
}

// config is the configuration of a bench: the chat pace without its pauses, and
// a store of its own unless another is asked for.
func (c *benchStore) config(s *settings) (config.Config, func(), error) {
	cfg, err := s.load()
	if err != nil {
		return cfg, nil, err
	}
	cfg.Teller.Debounce, cfg.Thinker.MinInterval = 0, 0
	cfg.LLM.MaxConcurrent = 1 << 20
	dir, err := os.MkdirTemp("", "mimikit-bench-")
	if err != nil {
		return cfg, nil, fmt.Errorf("make a directory for the bench: %w", err)
	}
	done := func() { _ = os.RemoveAll(dir) } // in the temporary directory; nothing depends on it
	cfg.DataDir = dir
	switch {
	case c.Redis != "":
		cfg.Redis = config.Redis{Mode: config.Single, Addrs: []string{c.Redis}}
	case c.Store == "memory":
		cfg.Redis = config.Redis{Mode: config.Memory}
	case c.Store == "embedded":
		cfg.Redis = config.Redis{Mode: config.Embedded}
	}
	return cfg, done, nil
}

// measured runs under a key prefix of its own, adds what Redis counted, and
// removes what the run left.
func measured(ctx context.Context, st *store.Store, run func(prefix string) (measure, error)) (measure, error) {
	prefix := "bench-" + strings.ToLower(ulid.Make().String())
	before, err := count(ctx, st)
	if err != nil {
		return measure{}, err
	}
	m, err := run(prefix)
	if err != nil {
		return m, err
	}
	after, err := count(ctx, st)
	if err != nil {
		return m, err
	}
	m.Commands, m.Bytes, m.Stored = -1, -1, -1
	if before.commands > 0 {
		m.Commands = float64(after.commands-before.commands) / float64(m.Ops)
		m.Bytes = float64(after.bytes-before.bytes) / float64(m.Ops)
		m.Stored = max(0, float64(after.memory-before.memory)/float64(m.Ops))
	}
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	m.Heap = mem.HeapAlloc
	m.Left, err = remove(ctx, st.Client, prefix)
	return m, err
}

type counts struct{ commands, bytes, memory int64 }

// count reads Redis' own counters; miniredis has none.
func count(ctx context.Context, st *store.Store) (counts, error) {
	if st.Volatile() {
		return counts{}, nil
	}
	var c counts
	info, err := st.Client.Info(ctx, "stats", "memory", "commandstats").Result()
	if err != nil {
		return c, fmt.Errorf("read Redis' counters: %w", err)
	}
	for line := range strings.SplitSeq(info, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		var n int64
		switch {
		case strings.HasPrefix(name, "cmdstat_"):
			if _, err := fmt.Sscanf(value, "calls=%d", &n); err == nil {
				c.commands += n
			}
		case name == "total_net_input_bytes", name == "total_net_output_bytes":
			if _, err := fmt.Sscan(value, &n); err == nil {
				c.bytes += n
			}
		case name == "used_memory":
			if _, err := fmt.Sscan(value, &c.memory); err != nil {
				return c, fmt.Errorf("read Redis' memory: used_memory is %q", value)
			}
		}
	}
	return c, nil
}

// remove deletes all keys of a prefix and says how many there were.
func remove(ctx context.Context, client redis.UniversalClient, prefix string) (int64, error) {
	var n int64
	each := func(ctx context.Context, c redis.UniversalClient) error {
		it := c.Scan(ctx, 0, "*"+prefix+":*", 1000).Iterator()
		for it.Next(ctx) {
			if err := c.Unlink(ctx, it.Val()).Err(); err != nil {
				return err
			}
			n++
		}
		return it.Err()
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return each(ctx, c) })
	} else {
		err = each(ctx, client)
	}
	if err != nil {
		return n, fmt.Errorf("remove the keys of the bench: %w", err)
	}
	return n, nil
}

func (c *benchCmd) report(w io.Writer, ours, bare []measure) error {
	o := median(ours)
	if c.JSON {
		extra := map[string]any{
			"msgs_per_sec": o.rate(), "redis_commands_per_msg": o.Commands, "round_trips_per_msg": o.Trips,
			"redis_bytes_per_msg": o.Bytes, "redis_stored_per_msg": o.Stored, "heap_bytes": o.Heap, "keys_left": o.Left,
		}
		if len(bare) > 0 {
			b := median(bare)
			extra["bare_msgs_per_sec"], extra["ratio"] = b.rate(), o.rate()/b.rate()
			extra["bare_p50_us"], extra["bare_p99_us"] = b.P50.Microseconds(), b.P99.Microseconds()
		}
		return json.NewEncoder(w).Encode(map[string]any{
			"ops": o.Ops, "sec": o.Took.Seconds(), "p50_us": o.P50.Microseconds(), "p99_us": o.P99.Microseconds(), "extra": extra,
		})
	}
	t := newTable("", "MSGS/S", "P50", "P99", "COMMANDS/MSG", "TRIPS/MSG", "WIRE/MSG", "STORED/MSG", "HEAP", "KEYS LEFT")
	row := func(name string, m measure) {
		t.row(name, fmt.Sprintf("%.0f", m.rate()), m.P50.Round(time.Microsecond), m.P99.Round(time.Microsecond),
			orUnknown(m.Commands), fmt.Sprintf("%.1f", m.Trips), orUnknown(m.Bytes), orUnknown(m.Stored), fmt.Sprintf("%.1f MiB", float64(m.Heap)/(1<<20)), m.Left)
	}
	for i := range ours {
		row("mimikit", ours[i])
		if i < len(bare) {
			row("bare", bare[i])
		}
	}
	if err := t.print(w); err != nil || len(bare) == 0 {
		return err
	}
	b := median(bare)
	_, err := fmt.Fprintf(w, "\nratio of medians, mimikit to bare: %.2f of the messages/s, %.2f of the p50, %.2f of the p99\n",
		o.rate()/b.rate(), float64(o.P50)/float64(b.P50), float64(o.P99)/float64(b.P99))
	return err
}

func orUnknown(x float64) string {
	if x < 0 {
		return "?"
	}
	return fmt.Sprintf("%.1f", x)
}

// median takes each figure's median over the runs.
func median(runs []measure) measure {
	m := runs[0]
	m.Took = mid(runs, func(m measure) time.Duration { return m.Took })
	m.P50 = mid(runs, func(m measure) time.Duration { return m.P50 })
	m.P99 = mid(runs, func(m measure) time.Duration { return m.P99 })
	m.Commands = mid(runs, func(m measure) float64 { return m.Commands })
	m.Trips = mid(runs, func(m measure) float64 { return m.Trips })
	m.Bytes = mid(runs, func(m measure) float64 { return m.Bytes })
	return m
}

func mid[T cmp.Ordered](runs []measure, get func(measure) T) T {
	all := make([]T, len(runs))
	for i, r := range runs {
		all[i] = get(r)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
