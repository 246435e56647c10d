package store_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
	"mimikit/core/store/storetest"
)

func single(addr string) store.Options {
	return store.Options{Mode: store.Single, Addrs: []string{addr}}
}

func TestOpenRefusesWhatWouldLoseState(t *testing.T) {
	t.Parallel()
	hidden := []string{"--rename-command", "CONFIG", ""} // as hosted servers do
	master := storetest.NewServer(t)
	_, port, _ := net.SplitHostPort(master.Addr())
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"evicting":          {[]string{"--maxmemory-policy", "allkeys-lru"}, `maxmemory-policy is "allkeys-lru"`},
		"evicting, no CONF": {append([]string{"--maxmemory-policy", "volatile-lru"}, hidden...), `maxmemory-policy is "volatile-lru"`},
		"replica":           {[]string{"--replicaof", "127.0.0.1 " + port}, "is a replica"},
		"cluster node":      {[]string{"--cluster-enabled", "yes"}, `use mode "cluster"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.NewServer(t, tt.args...)
			_, err := store.Open(t.Context(), single(s.Addr()))
			wantErr(t, err, nil, s.Addr(), tt.want)
		})
	}
}

func TestOpenWarnsOfWhatMayBeLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args     []string
		warning  string // part of the only one; empty: none
		describe string
	}{
		"off":      {nil, "no append-only file", "AOF off"},
		"everysec": {[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, "once a second", "AOF everysec"},
		"always":   {[]string{"--appendonly", "yes", "--appendfsync", "always"}, "", "AOF always"},
		"no CONF":  {[]string{"--appendonly", "yes", "--rename-command", "CONFIG", ""}, "does not say", "AOF on"},
		"NOPERM": {[]string{"--appendonly", "yes", "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-config"},
			"does not say", "AOF on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := storetest.NewServer(t, tt.args...)
			s := storetest.Open(t, single(server.Addr()))
			got := strings.Join(s.Warnings, "\n")
			if (got == "") != (tt.warning == "") || len(s.Warnings) > 1 || !strings.Contains(got, tt.warning) {
				t.Errorf("Warnings = %q, want one with %q", s.Warnings, tt.warning)
			}
			want := "redis " + field(s, "redis_version") + " at " + server.Addr() + ", " + tt.describe
			if s.Describe() != want {
				t.Errorf("Describe = %q, want %q", s.Describe(), want)
			}
		})
	}
}

func TestOpenFailsWithoutAServer(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), single("127.0.0.1:1"))
	wantErr(t, err, nil, "open single store", "127.0.0.1:1", "refused")
}

func TestMemory(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{Mode: store.Memory})
	set(t, s, "k", "v")
	if !s.Volatile() || len(s.Warnings) != 1 || !strings.Contains(s.Describe(), "in-process") {
		t.Errorf("Volatile %v, Warnings %q, Describe %q", s.Volatile(), s.Warnings, s.Describe())
	}
	if err := s.Client.PExpire(t.Context(), "k", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	storetest.Eventually(t, "the TTL ends", func() error {
		if n := s.Client.Exists(t.Context(), "k").Val(); n != 0 {
			return redis.Nil
		}
		return nil
	})
	if got := s.Generation(); got != 1 {
		t.Errorf("Generation = %d, want 1", got)
	}
}

func TestPipelineLargerThanAnyBuffer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		pipe, key := s.Client.Pipeline(), storetest.Prefix(t)
		for range 2000 {
			pipe.SetArgs(t.Context(), key, strings.Repeat("x", 1000), redis.SetArgs{Get: true})
		}
		// The first of them answers nil: there was no value.
		if _, err := pipe.Exec(t.Context()); err != nil && !errors.Is(err, redis.Nil) {
			t.Error(err)
		}
		if n := s.Client.StrLen(t.Context(), key).Val(); n != 1000 {
			t.Errorf("%d bytes were kept, want 1000", n)
		}
	})
}

func TestCloseEndsABlockedRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		done := make(chan error, 1)
		key := storetest.Prefix(t)
		go func() {
			done <- s.Blocking.XRead(context.Background(), &redis.XReadArgs{Streams: []string{key, "$"}, Block: time.Minute}).Err()
		}()
		storetest.Eventually(t, "the read blocks", func() error {
			if s.Blocking.PoolStats().TotalConns == 0 {
				return redis.Nil
			}
			return nil
		})
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		select {
		case err := <-done:
			if err == nil {
				t.Error("the read returned without an error")
			}
		case <-time.After(20 * time.Second):
			t.Error("the read outlived Close")
		}
	})
}

func TestLostReplyIsNotRepeated(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	server := storetest.NewServer(t)
	proxy, err := faultproxy.New(server.Addr(), faultproxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	s := storetest.Open(t, single(proxy.Addr()))
	wantOnce(t, s, func() { proxy.SwallowNext(1) })
}

// wantOnce expects that a write whose reply is lost takes place once and fails,
// alone and in a pipeline.
func wantOnce(t *testing.T, s *store.Store, lose func()) {
	t.Helper()
	ctx := t.Context()
	set(t, s, "n", "0") // the cluster client learns where the slot is
	lose()
	if err := s.Client.Incr(ctx, "n").Err(); err == nil {
		t.Error("INCR with its reply lost succeeded: it was repeated")
	}
	wantValue(t, s, "n", "1")
	lose()
	pipe := s.Client.Pipeline()
	pipe.Incr(ctx, "n")
	pipe.Incr(ctx, "n")
	if _, err := pipe.Exec(ctx); err == nil {
		t.Error("a pipeline with its reply lost succeeded: it was repeated")
	}
	wantValue(t, s, "n", "3")
	lose()
	tx := s.Client.TxPipeline()
	tx.Incr(ctx, "n")
	if _, err := tx.Exec(ctx); err == nil {
		t.Error("a transaction with its reply lost succeeded: it was repeated")
	}
	wantValue(t, s, "n", "4")
}

func TestLostReplyIsNotRepeatedInACluster(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	set := storetest.NewCluster(t)
	proxies := map[string]*faultproxy.Proxy{}
	for _, m := range set.Masters {
		p, err := faultproxy.New(m.Addr(), faultproxy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		proxies[m.Addr()] = p
	}
	opts := store.Options{Mode: store.Cluster, Addrs: []string{set.Masters[0].Addr()}}
	opts.DialWith(func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, proxies[addr].Addr())
	})
	s := storetest.Open(t, opts)
	wantOnce(t, s, func() {
		for _, p := range proxies {
			p.SwallowNext(1, "INCR", "MULTI")
		}
	})

	// The pool still finds connections that ended while idle.
	for _, p := range proxies {
		p.SwallowNext(0)
		p.CutAll()
	}
	wantValue(t, s, "n", "4")
}

func TestGenerationGrowsWithARestart(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	s := storetest.Open(t, single(server.Addr()))
	changed := s.Changed()
	for range 10 {
		if err := s.Blocking.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Generation(); got != 1 {
		t.Errorf("Generation = %d on the first server, want 1", got)
	}
	server.Kill()
	server.Restart()
	set(t, s, "k", "v")
	select {
	case <-changed:
	default:
		t.Error("Changed did not fire before the first command's answer")
	}
	if got := s.Generation(); got != 2 {
		t.Errorf("Generation = %d after a restart, want 2", got)
	}
	select {
	case <-s.Changed():
		t.Error("a new Changed has fired already")
	default:
	}
}

func TestGenerationGrowsWithAFailover(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	set := storetest.Sentinel(t)
	s := set.Store()
	changed := s.Changed()
	if got := s.Generation(); got != 1 {
		t.Errorf("Generation = %d at first, want 1: sentinels are not servers of state", got)
	}
	if want := `master "` + storetest.MasterName + `" by sentinels `; !strings.Contains(s.Describe(), want) {
		t.Errorf("Describe = %q, want %q in it", s.Describe(), want)
	}
	set.KillMaster()
	storetest.Eventually(t, "a write after the failover", func() error { return s.Client.Set(t.Context(), "k", "v", 0).Err() })
	wantChange(t, changed)
	if got := s.Generation(); got != 2 {
		t.Errorf("Generation = %d after a failover, want 2", got)
	}
}

func TestGenerationGrowsInACluster(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	set := storetest.NewCluster(t)
	s := set.Store
	run(t, s)
	changed := s.Changed()
	if got := s.Generation(); got != 1 {
		t.Errorf("Generation = %d at first, want 1", got)
	}
	set.Masters[1].Kill()
	set.Masters[1].Restart()
	wantChange(t, changed) // no command was needed: Run looks
	if got := s.Generation(); got != 2 {
		t.Errorf("Generation = %d after a master's restart, want 2", got)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}
