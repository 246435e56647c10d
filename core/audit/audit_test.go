package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"mimikit/core/audit"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func newLog(t *testing.T, s *store.Store, keep int64) (*audit.Log, string) {
	t.Helper()
	key := storetest.Prefix(t) + ":audit"
	l, err := audit.New(audit.Options{Client: s.Client, Key: key, Keep: keep, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return l, key
}

func act(what string) audit.Act {
	return audit.Act{
		Who:   chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleOperator},
		Where: chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.2"},
		Door:  "slack", What: what, Target: "t1", Result: "canceled",
	}
}

func record(t *testing.T, l *audit.Log, a audit.Act) {
	t.Helper()
	if err := l.Record(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

func recent(t *testing.T, l *audit.Log, n int) []audit.Act {
	t.Helper()
	got, err := l.Recent(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestNewestFirst(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l, _ := newLog(t, s, 0)
		if got := recent(t, l, 5); len(got) != 0 {
			t.Errorf("an empty trail has %+v", got)
		}
		for i := range 4 {
			record(t, l, act(fmt.Sprint("cancel t", i)))
		}
		got := recent(t, l, 3)
		want := []audit.Act{act("cancel t3"), act("cancel t2"), act("cancel t1")}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(audit.Act{}, "At")); diff != "" {
			t.Errorf("the newest three (-want +got):\n%s", diff)
		}
		for i, a := range got {
			if age := time.Since(a.At); age < -time.Minute || age > time.Minute {
				t.Errorf("act %d was recorded %s ago", i, age)
			}
		}
		for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 4: 4, 1 << 40: 4} {
			if got := recent(t, l, n); len(got) != want {
				t.Errorf("the newest %d are %d, want %d", n, len(got), want)
			}
		}
	})
}

func TestCapped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l, key := newLog(t, s, 10)
		for i := range 500 {
			record(t, l, act(fmt.Sprint(i)))
		}
		// Redis trims by whole nodes of a hundred entries.
		if n := s.Client.XLen(t.Context(), key).Val(); n < 10 || n > 200 {
			t.Errorf("%d acts are kept of 500, want about 10", n)
		}
		if got := recent(t, l, 1); got[0].What != "499" {
			t.Errorf("the newest is %q", got[0].What)
		}
	})
}

// What people write is bounded and cannot break the record; what another build
// wrote is left out and hides nothing.
func TestHostileActs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l, key := newLog(t, s, 0)
		record(t, l, act("one"))
		a := act(strings.Repeat("é", 5000) + "\xff\x00\"")
		a.Who.Name = "\x1b[31m" + strings.Repeat("n", 5000)
		record(t, l, a)
		for _, damaged := range []map[string]any{{"v": "9"}, {"act": "{"}, {"act": `{"who":7}`}} {
			if err := s.Client.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: damaged}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		got := recent(t, l, 10)
		if len(got) != 2 || got[1].What != "one" {
			t.Fatalf("read %+v", got)
		}
		if len(got[0].What) > 3000 || len(got[0].Who.Name) > 3000 || !strings.HasPrefix(got[0].What, "éé") {
			t.Errorf("kept %d bytes of what was done, %d of the name", len(got[0].What), len(got[0].Who.Name))
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	for _, o := range []audit.Options{{}, {Client: s.Client}, {Key: "k"}, {Client: s.Client, Key: "k", Keep: -1}} {
		if _, err := audit.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	l, _ := newLog(t, s, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Record(ctx, act("cancel all")); err == nil || !strings.Contains(err.Error(), "cancel all") {
		t.Errorf("recording without Redis: %v", err)
	}
	if _, err := l.Recent(ctx, 1); err == nil {
		t.Error("reading without Redis gave no error")
	}
}
