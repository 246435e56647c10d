package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/store"
)

func TestMain(m *testing.M) { Main(m) }

func TestEach(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		ctx, key := t.Context(), Prefix(t)
		if err := s.Client.Set(ctx, key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		got, err := Another(t, s).Client.Get(ctx, key).Result()
		if err != nil || got != "v" {
			t.Errorf("another store reads %q, %v; want what the first one wrote", got, err)
		}
	})
}

func TestMiniInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Mini(t)
		ctx := t.Context()
		if err := s.Client.Set(ctx, "k", "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		if n := s.Client.Exists(ctx, "k").Val(); n != 1 {
			t.Error("the key ended before its hour")
		}
		time.Sleep(2 * time.Minute)
		if n := s.Client.Exists(ctx, "k").Val(); n != 0 {
			t.Error("the key outlived its hour")
		}
	})
}

func TestCluster(t *testing.T) {
	t.Parallel()
	s := Cluster(t)
	ctx := t.Context()
	for i := range 20 {
		if err := s.Client.Set(ctx, fmt.Sprintf("{%d}", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if want := "redis 7"; !strings.HasPrefix(s.Describe(), want) || !strings.Contains(s.Describe(), "3 masters") {
		t.Errorf("Describe = %q", s.Describe())
	}
}

func TestSentinelIsolateAndHeal(t *testing.T) {
	t.Parallel()
	set := Sentinel(t)
	s := set.Store()
	ctx := t.Context()
	if err := s.Client.Set(ctx, "k", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Do(ctx, "wait", 2, 5000).Err(); err != nil {
		t.Fatal(err)
	}
	old := set.Isolate()
	alone := dial(t, set.Server(old).Addr())
	if err := alone.Set(ctx, "k", "lost", 0).Err(); err != nil {
		t.Errorf("the isolated master refuses a write: %v", err)
	}
	Eventually(t, "the new master", func() error { return s.Client.Set(ctx, "k", "after", 0).Err() })
	set.Heal()
	set.AwaitQuorum()
	Eventually(t, "the old master follows", func() error {
		got, err := alone.Get(ctx, "k").Result()
		if err == nil && got != "after" {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	st := Open(t, store.Options{Mode: store.Single, Addrs: []string{s.Addr()}})
	ctx := t.Context()
	if err := st.Client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := st.Client.Ping(ctx).Err(); err == nil {
		t.Error("PING of a dead server succeeded")
	}
	s.Restart()
	if got, err := st.Client.Get(ctx, "k").Result(); err != nil || got != "v" {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	s.Pause()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := st.Client.Ping(short).Err(); err == nil {
		t.Error("PING of a paused server succeeded")
	}
	s.Cont()
	if err := st.Client.Ping(ctx).Err(); err != nil {
		t.Errorf("PING after the pause: %v", err)
	}
	s.Stop()
}

func TestPrefixIsUnique(t *testing.T) {
	t.Parallel()
	a, b := Prefix(t), Prefix(t)
	if a == b || strings.ContainsAny(a, "{}") {
		t.Errorf("Prefix gave %q and %q", a, b)
	}
}
