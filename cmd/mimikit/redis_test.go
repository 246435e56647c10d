package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// counting answers with the newest of "one", "two", "three" in a prompt: a call
// may be repeated, and must then give the same. It waits with "two" until hold is
// closed.
func counting(t *testing.T, hold <-chan struct{}) llmtest.Behavior {
	return func(x *llmtest.Exchange) {
		body := string(x.Call.Body)
		switch {
		case strings.Contains(body, "say three"):
			llmtest.Answers("Third.")(x)
		case strings.Contains(body, "say two"):
			select {
			case <-hold:
			case <-t.Context().Done():
			}
			llmtest.Answers("Second.")(x)
		default:
			llmtest.Answers("First.")(x)
		}
	}
}

const counted = "user: say one|assistant: First.|user: say two|assistant: Second.|user: say three|assistant: Third."

// The embedded server is killed in the middle of a talk, while the model thinks
// and while nothing happens: it is started again, and the talk goes on.
func TestEmbeddedRedisKilled(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	hold := make(chan struct{})
	d := deploy(t, counting(t, hold))
	node, _ := d.serve()
	chat := d.start("chat", "--talk", "t")
	chat.say("say one")
	chat.out.shows(t, "First.")

	before := d.redisPID()
	chat.say("say two")
	d.thinking(2)
	d.killRedis()
	close(hold)
	chat.out.shows(t, "Second.")

	d.killRedis()
	chat.say("say three")
	chat.out.shows(t, "Third.")
	chat.ends(0)
	if got := chat.out.String(); got != "First.\n\nSecond.\n\nThird.\n" {
		t.Errorf("output %q, want each answer once", got)
	}
	if now := d.redisPID(); now == 0 || now == before {
		t.Errorf("redis-server is process %d, was %d", now, before)
	}
	d.record(nil).counted()
	has(t, node.err.String(), "redis-server ended, starting it again")
	if s := node.err.String(); strings.Contains(s, "redis_lost_writes") {
		t.Errorf("a server that syncs every write lost some:\n%s", s)
	}
	node.stops(stopSignal, 0)
}

func (r *record) counted() {
	r.Helper()
	r.settled()
	if texts, answered := r.posted("t"); len(texts) != 3 || len(answered) != 3 {
		r.Errorf("posted %q for %v, want three for three", texts, answered)
	}
	if got := r.history("t"); got != counted {
		r.Errorf("history %q, want %q", got, counted)
	}
}

// killRedis kills the embedded server, and no other, and waits until it is gone.
func (d *deployment) killRedis() {
	d.Helper()
	pid := 0
	storetest.Eventually(d, "the redis-server", func() error {
		if pid = d.redisPID(); pid == 0 {
			return syscall.ESRCH
		}
		return nil
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		d.Fatal(err)
	}
	storetest.Eventually(d, "the end of redis-server", func() error {
		if d.redisPID() == pid {
			return syscall.EEXIST
		}
		return nil
	})
}

// A server of somebody's own goes away and comes back while a message waits to
// be stored and another to be answered.
func TestSingleRedisAway(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	hold := make(chan struct{})
	d := deploy(t, counting(t, hold), "MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr())
	d.serve()
	chat := d.start("chat", "--talk", "t")
	chat.say("say one")
	chat.out.shows(t, "First.")
	chat.say("say two")
	d.thinking(2)
	server.Kill()
	chat.say("say three")
	chat.err.shows(t, "The store is away, still trying.")
	close(hold)
	server.Restart()
	chat.out.shows(t, "Second.", "Third.")
	chat.ends(0)
	if got := chat.out.String(); got != "First.\n\nSecond.\n\nThird.\n" {
		t.Errorf("output %q, want each answer once", got)
	}
	has(t, chat.err.String(), "The store is back.")
	d.record(redis.NewClient(&redis.Options{Addr: server.Addr()})).counted()
	// The commands that look say what is wrong and where.
	server.Kill()
	_, stderr := d.run(1, "", "streams")
	has(t, stderr, server.Addr(), "refused")
	_, stderr = d.run(1, "", "serve")
	has(t, stderr, server.Addr(), "refused")
}

func TestRedisRefused(t *testing.T) {
	t.Parallel()
	evicting := storetest.NewServer(t, "--maxmemory-policy", "allkeys-lru")
	d := deploy(t, nil, "MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+evicting.Addr())
	for _, cmd := range []string{"serve", "chat --once hi"} {
		out, stderr := d.run(1, "", strings.Fields(cmd)...)
		has(t, stderr, evicting.Addr(), `"allkeys-lru"`, "CONFIG SET maxmemory-policy noeviction")
		if out != "" {
			t.Errorf("%s: output %q", cmd, out)
		}
	}
	c := redis.NewClient(&redis.Options{Addr: evicting.Addr()})
	defer func() { _ = c.Close() }()
	if n, err := c.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys, %v, in a Redis that was refused", n, err)
	}
	if err := c.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	// The mend mends. What the server may lose is still said.
	node, _ := d.serve()
	has(t, node.err.String(), "store_warning", "no append-only file")
	if err := c.ConfigSet(t.Context(), "requirepass", "secret-of-redis").Err(); err != nil {
		t.Fatal(err)
	}
	_, stderr := d.run(1, "", "serve")
	has(t, stderr, "NOAUTH")
	_, stderr = d.with("MIMIKIT_REDIS_PASSWORD=wrong-guess").run(1, "", "serve")
	has(t, stderr, "WRONGPASS")
	if strings.Contains(stderr, "wrong-guess") {
		t.Errorf("the password is told: %s", stderr)
	}
}

func TestPartitionsChanged(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Noted."))
	d.once("t", "hi")
	for _, cmd := range []string{"serve", "chat --once hi"} {
		_, stderr := d.with("MIMIKIT_CHANNEL_PARTITIONS=8").run(1, "", strings.Fields(cmd)...)
		has(t, stderr, "channel.partitions is 8", "made with 16", "set it to 16")
	}
	if pid := d.redisPID(); pid != 0 {
		t.Errorf("redis-server %d is left behind", pid)
	}
	d.once("t", "and with the right number?")
	calls := d.model.Calls()
	has(t, string(calls[len(calls)-1].Body), "hi", "and with the right number?")
}

// What other programs keep in the same Redis is not ours, whatever it is called,
// and our names all begin with our prefix.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	for _, err := range []error{
		c.Set(ctx, "mimikit", "a text", 0).Err(),
		c.Set(ctx, "session:1", "a session", time.Hour).Err(),
		c.RPush(ctx, "mimikit-queue", "job").Err(),
		c.SAdd(ctx, "{mimikit}:set", "a").Err(),
		c.HSet(ctx, "other:meta", "partitions", 4).Err(),
		c.ZAdd(ctx, "nodes", redis.Z{Score: 1, Member: "n"}).Err(),
		c.XAdd(ctx, &redis.XAddArgs{Stream: "user-input", Values: []any{"k", "v"}}).Err(),
		c.XGroupCreate(ctx, "user-input", "teller", "0").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ours := func(key string) bool { return strings.HasPrefix(key, "bot:") || strings.HasPrefix(key, "{bot:") }
	before := dump(t, c, func(string) bool { return true })
	d := deploy(t, llmtest.Answers("Noted."), "MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr(), "MIMIKIT_REDIS_PREFIX=bot")
	d.once("t", "hi")
	d.run(0, "", "dead", "drop", "all")
	r := d.record(c)
	r.settled()
	if after := dump(t, c, func(key string) bool { return !ours(key) }); !maps.Equal(before, after) {
		t.Errorf("foreign keys were %q, are %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	if own := dump(t, c, ours); len(own) == 0 {
		t.Error("no keys of our own under the prefix")
	}
}

// dump is the content of the keys that are wanted.
func dump(t *testing.T, c *redis.Client, want func(key string) bool) map[string]string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, k := range keys {
		if !want(k) {
			continue
		}
		if all[k], err = c.Dump(t.Context(), k).Result(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Without redis-server there is a talk all the same, and a plain warning.
func TestNoRedisServer(t *testing.T) {
	t.Parallel()
	d := deploy(t, llmtest.Answers("Noted."), "PATH="+t.TempDir())
	out, stderr := d.run(0, "", "chat", "--once", "hi")
	if out != "Noted.\n" {
		t.Errorf("output %q", out)
	}
	has(t, stderr, "Warning: redis-server was not found on PATH", "gone when it ends", "apt install redis-server")
	node, _ := d.serve()
	has(t, node.err.String(), `"level":"WARN"`, "redis-server was not found on PATH")
	// Its state is where no other process can reach it, and that is said.
	_, stderr = d.run(1, "", "streams")
	has(t, stderr, "redis-server", "inside that process")
	_, stderr = d.run(1, "", "chat", "--once", "hi")
	has(t, stderr, "inside that process")
	node.stops(stopSignal, 0)

	// Where earlier runs had one, going on without their state would be worse than
	// not starting.
	storetest.Need(t)
	d = deploy(t, llmtest.Answers("Noted."))
	d.once("t", "hi")
	_, stderr = d.with("PATH="+t.TempDir()).run(1, "", "chat", "--once", "hi")
	has(t, stderr, filepath.Join(d.dir, "redis"), "install redis-server again")
}
