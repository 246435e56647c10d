package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// oldest is the first version with all that our scripts and readers use
// (XAUTOCLAIM, exclusive ranges, GETEX).
var oldest = [2]int{6, 2}

// facts are what one server says about itself.
type facts struct {
	addr       string
	product    string // "redis" or "valkey"
	version    string // the product's own
	compatible string // the Redis version it is compatible with
	role       string
	cluster    bool
	policy     string // maxmemory-policy
	aof        bool
	fsync      string // "always", "everysec", "no"; empty if it may not be asked
}

// check looks at each master and refuses or warns.
func (s *Store) check(ctx context.Context) error {
	var mu sync.Mutex
	look := func(ctx context.Context, c *redis.Client) error {
		addr := c.Options().Addr
		if s.opts.Mode == Sentinel {
			addr = fmt.Sprintf("master %q", s.opts.MasterName) // the address may change
		}
		f, err := inspect(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
		f.addr = addr
		mu.Lock()
		defer mu.Unlock()
		s.facts = append(s.facts, f)
		return nil
	}
	switch c := s.Client.(type) {
	case *redis.ClusterClient:
		if err := c.ForEachMaster(ctx, look); err != nil {
			return err
		}
	case *redis.Client:
		if err := look(ctx, c); err != nil {
			return err
		}
	}
	// The weakest first: it is the one that Describe should speak of.
	slices.SortFunc(s.facts, func(a, b facts) int {
		if d := a.strength() - b.strength(); d != 0 {
			return d
		}
		return strings.Compare(a.addr, b.addr)
	})
	for _, f := range s.facts {
		if err := f.refuse(s.opts.Mode); err != nil {
			return err
		}
		if w := f.warning(); w != "" {
			s.Warnings = append(s.Warnings, w)
		}
	}
	return nil
}

// inspect reads the facts, waiting for as long as the server loads its data.
func inspect(ctx context.Context, c *redis.Client) (facts, error) {
	if err := awaitLoaded(ctx, c); err != nil {
		return facts{}, err
	}
	info, err := c.Info(ctx).Result()
	if err != nil {
		return facts{}, fmt.Errorf("read INFO: %w", err)
	}
	f := factsOf(info)
	// CONFIG is forbidden on most hosted servers; what INFO says must do there.
	for name, set := range map[string]func(string){
		"maxmemory-policy": func(v string) { f.policy = v },
		"appendonly":       func(v string) { f.aof = v == "yes" },
		"appendfsync":      func(v string) { f.fsync = v },
	} {
		values, err := c.ConfigGet(ctx, name).Result()
		if err != nil && !isAnswer(err) {
			return facts{}, fmt.Errorf("read CONFIG %s: %w", name, err)
		}
		if v, ok := values[name]; ok {
			set(v)
		}
	}
	return f, nil
}

// awaitLoaded returns when the server has its data in memory.
func awaitLoaded(ctx context.Context, c *redis.Client) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := c.Ping(ctx).Err()
		if err == nil || !redis.IsLoadingError(err) {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("wait for the server to load its data: %w", err)
		}
	}
}

func factsOf(info string) facts {
	f := facts{
		product:    "redis",
		version:    field(info, "redis_version"),
		compatible: field(info, "redis_version"),
		role:       field(info, "role"),
		cluster:    field(info, "cluster_enabled") == "1",
		policy:     field(info, "maxmemory_policy"),
		aof:        field(info, "aof_enabled") == "1",
	}
	if v := field(info, "valkey_version"); v != "" {
		f.product, f.version = "valkey", v
	}
	return f
}

// refuse says why state must not be kept here, and what would mend it.
func (f facts) refuse(mode Mode) error {
	switch ok, err := atLeast(f.compatible, oldest); {
	case err != nil:
		return fmt.Errorf("%s: %w", f.addr, err)
	case !ok:
		return fmt.Errorf("%s: %s %s is too old; Redis %d.%d or newer, or Valkey, is needed",
			f.addr, f.product, f.version, oldest[0], oldest[1])
	}
	if f.policy != "noeviction" {
		return fmt.Errorf("%s: maxmemory-policy is %q, by which Redis throws state away when its memory is full; "+
			"only \"noeviction\" is allowed: CONFIG SET maxmemory-policy noeviction, and the same in redis.conf", f.addr, f.policy)
	}
	if f.role == "slave" {
		return fmt.Errorf("%s: this server is a replica, which takes no writes; give the address of its master, or use mode \"sentinel\"", f.addr)
	}
	if f.cluster && mode != Cluster {
		return fmt.Errorf("%s: this server is a node of a Redis Cluster; use mode \"cluster\", not %q", f.addr, mode)
	}
	return nil
}

// warning says what may be lost, or nothing.
func (f facts) warning() string {
	const mend = "CONFIG SET appendonly yes, CONFIG SET appendfsync always, and the same in redis.conf"
	switch {
	case !f.aof:
		return fmt.Sprintf("%s keeps no append-only file: when it stops or crashes, everything since its last snapshot is lost, "+
			"messages and tasks with it. To keep them: %s", f.addr, mend)
	case f.fsync == "everysec":
		return fmt.Sprintf("%s writes its append-only file to disk once a second: a crash of its machine may lose the last one or two seconds "+
			"of acknowledged messages and tasks. To lose none: CONFIG SET appendfsync always", f.addr)
	case f.fsync == "no":
		return fmt.Sprintf("%s leaves it to the operating system when to write its append-only file to disk: a crash of its machine may lose "+
			"half a minute of acknowledged messages and tasks. To lose none: CONFIG SET appendfsync always", f.addr)
	case f.fsync == "":
		return fmt.Sprintf("%s does not say how often its append-only file is written to disk (CONFIG is not allowed there): "+
			"unless appendfsync is \"always\", a crash of its machine may lose the last seconds of acknowledged messages and tasks", f.addr)
	}
	return ""
}

// durability is the short form of warning, for Describe.
func (f facts) durability() string {
	switch {
	case !f.aof:
		return "AOF off"
	case f.fsync == "":
		return "AOF on"
	}
	return "AOF " + f.fsync
}

// strength orders servers by how well they keep their writes.
func (f facts) strength() int {
	if !f.aof {
		return 0
	}
	return 1 + slices.Index([]string{"no", "", "everysec", "always"}, f.fsync)
}

// atLeast compares the first two numbers of a version such as "7.0.15".
func atLeast(version string, least [2]int) (bool, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false, fmt.Errorf("version %q is not of the form 7.0.15", version)
	}
	var got [2]int
	for i := range got {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return false, fmt.Errorf("version %q is not of the form 7.0.15", version)
		}
		got[i] = n
	}
	return slices.Compare(got[:], least[:]) >= 0, nil
}

// field finds "name:value" in the answer to INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// isAnswer tells an error that the server answered from one of the way to it.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// sleep waits for d, or returns the cause of ctx' end.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
