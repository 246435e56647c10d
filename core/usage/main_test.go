package usage_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/llm"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// ledger makes one under a prefix of the test's own; edit may change its options.
func ledger(t *testing.T, s *store.Store, edit func(*usage.Options)) *usage.Ledger {
	t.Helper()
	var n atomic.Int64
	o := usage.Options{
		Client: s.Client, Prefix: storetest.Prefix(t),
		Now: func() time.Time { return noon },
		ID:  func() string { return fmt.Sprint("call-", n.Add(1)) },
		// A script takes miniredis milliseconds under the race detector, and
		// one after the other.
		Timeout: time.Minute,
	}
	if edit != nil {
		edit(&o)
	}
	return usage.New(o)
}

// charge is ann's call in a place, for a task: 100 tokens and 500 millionths.
func charge() llm.Charge {
	return llm.Charge{
		Time: noon, Agent: "thinker", Model: "m1", Conversation: "conv", User: "ann", Place: "lobby", Workspace: "w", Task: "t1",
		Usage: llm.Usage{Prompt: 70, Completion: 30, Cached: 20}, Cost: 500, Took: 1500 * time.Millisecond,
	}
}

// spend makes a whole call: estimate and spent are the same.
func spend(t *testing.T, l *usage.Ledger, c llm.Charge) []llm.BudgetWarning {
	t.Helper()
	h, err := l.Reserve(t.Context(), c)
	if err != nil {
		t.Fatalf("reserve: %v", err)
	}
	return settle(t, h, c)
}

func settle(t *testing.T, h llm.Hold, c llm.Charge) []llm.BudgetWarning {
	t.Helper()
	w, err := h.Settle(t.Context(), c)
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
	return w
}

func today(t *testing.T, l *usage.Ledger, kind llm.SubjectKind, id string) usage.Totals {
	t.Helper()
	days, err := l.Days(t.Context(), llm.Subject{Kind: kind, ID: id}, noon, noon)
	if err != nil || len(days) != 1 {
		t.Fatalf("days of %s %s: %v, %v", kind, id, days, err)
	}
	return days[0].Totals
}

// ttls gives the time to live of every key under a prefix.
func ttls(t *testing.T, s *store.Store, prefix string) map[string]time.Duration {
	t.Helper()
	out := map[string]time.Duration{}
	ctx := context.Background()
	it := s.Client.Scan(ctx, 0, prefix+":*", 1000).Iterator()
	for it.Next(ctx) {
		d, err := s.Client.TTL(ctx, it.Val()).Result()
		if err != nil {
			t.Fatal(err)
		}
		out[it.Val()] = d
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}
