package usage_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/llm"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

// What a call used is in the totals of each of its subjects, to the token.
func TestBooks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l := ledger(t, s, nil)
		spend(t, l, charge())
		failed := charge()
		failed.Failed, failed.Usage, failed.Cost = true, llm.Usage{Prompt: 7, Estimated: true}, 0
		spend(t, l, failed)
		nothing := charge()
		nothing.Failed, nothing.Usage, nothing.Cost, nothing.Took = true, llm.Usage{}, 0, 0
		spend(t, l, nothing)
		other := charge()
		other.User, other.Model, other.Task = "bob", "m2", ""
		spend(t, l, other)

		ann := usage.Totals{Calls: 3, Failed: 2, Estimated: 1, Prompt: 77, Cached: 20, Completion: 30, Money: 500, Took: 3 * time.Second}
		all := usage.Totals{Calls: 4, Failed: 2, Estimated: 1, Prompt: 147, Cached: 40, Completion: 60, Money: 1000, Took: 4500 * time.Millisecond}
		for _, c := range []struct {
			kind llm.SubjectKind
			id   string
			want usage.Totals
		}{
			{llm.UserSubject, "ann", ann},
			{llm.TaskSubject, "t1", ann},
			{usage.ModelSubject, "m1", ann},
			{llm.PlaceSubject, "lobby", all},
			{llm.WorkspaceSubject, "w", all},
			{usage.ConversationSubject, "conv", all},
			{usage.AgentSubject, "thinker", all},
			{usage.Everything, "", all},
			{llm.UserSubject, "nobody", usage.Totals{}},
			{llm.UserSubject, "", usage.Totals{}},
		} {
			if d := cmp.Diff(c.want, today(t, l, c.kind, c.id)); d != "" {
				t.Errorf("%s %q (-want +got):\n%s", c.kind, c.id, d)
			}
		}
		if got, err := l.Task(t.Context(), "t1"); err != nil || got != ann {
			t.Errorf("life of the task = %+v, %v; want %+v", got, err, ann)
		}
	})
}

func TestReads(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l := ledger(t, s, nil)
		yesterday := noon.AddDate(0, 0, -1)
		for i, c := range []struct {
			user, model string
			at          time.Time
			tokens      int
			money       int64
		}{
			{"ann", "m1", noon, 100, 5}, {"bob", "m2", noon, 300, 1}, {"cid", "m1", noon, 200, 0}, {"ann", "m1", noon, 250, 1}, {"bob", "m2", yesterday, 1000, 9},
		} {
			spend(t, l, llm.Charge{Time: c.at, User: c.user, Model: c.model, Usage: llm.Usage{Prompt: c.tokens}, Cost: c.money})
			_ = i
		}
		names := func(rows []usage.Row, err error) string {
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, r := range rows {
				out = append(out, fmt.Sprint(r.Subject.ID, ":", r.Tokens(), ":", r.Money))
			}
			return strings.Join(out, " ")
		}
		for _, c := range []struct{ what, got, want string }{
			{"by tokens", names(l.Top(t.Context(), llm.UserSubject, noon, llm.Tokens, 10)), "ann:350:6 bob:300:1 cid:200:0"},
			{"by money", names(l.Top(t.Context(), llm.UserSubject, noon, llm.Money, 10)), "ann:350:6 bob:300:1"},
			{"the first", names(l.Top(t.Context(), llm.UserSubject, noon, llm.Tokens, 1)), "ann:350:6"},
			{"none", names(l.Top(t.Context(), llm.UserSubject, noon, llm.Tokens, 0)), ""},
			{"an empty day", names(l.Top(t.Context(), llm.UserSubject, noon.AddDate(0, 0, -2), llm.Tokens, 5)), ""},
			{"models", names(l.Models(t.Context(), yesterday, noon)), "m2:1300:10 m1:550:6"},
			{"models of a day", names(l.Models(t.Context(), noon, noon)), "m1:550:6 m2:300:1"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
			}
		}
		days, err := l.Days(t.Context(), llm.Subject{Kind: usage.Everything}, noon.AddDate(0, 0, -2), noon)
		if err != nil || len(days) != 3 {
			t.Fatalf("days = %v, %v; want three", days, err)
		}
		for i, want := range []int64{0, 1000, 850} {
			if days[i].Tokens() != want || days[i].Day.Format(time.DateOnly) != noon.AddDate(0, 0, i-2).Format(time.DateOnly) {
				t.Errorf("day %d = %+v, want %d tokens", i, days[i], want)
			}
		}
		if days, err := l.Days(t.Context(), llm.Subject{Kind: usage.Everything}, noon.AddDate(-10, 0, 0), noon); err != nil || len(days) != 91 {
			t.Errorf("ten years give %d days, %v; want the newest 91", len(days), err)
		}
	})
}

// A call that ends after midnight is booked where it was reserved.
func TestMidnight(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		now := noon.Add(12*time.Hour - time.Second)
		l := ledger(t, s, func(o *usage.Options) {
			o.Now = func() time.Time { return now }
			o.Budgets.User = usage.Limit{Tokens: 50}
		})
		c := charge()
		c.Time = now
		h, err := l.Reserve(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
		settle(t, h, c)
		if got := today(t, l, llm.UserSubject, "ann").Tokens(); got != 100 {
			t.Errorf("the day of the call has %d tokens, want 100", got)
		}
		b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.UserSubject, ID: "ann"})
		if err != nil || len(b) != 1 || b[0].Spent != 0 || b[0].Reserved != 0 || b[0].Resets.Format(time.DateOnly) != "2026-11-23" {
			t.Errorf("the new day's budget = %+v, %v; want an untouched one until the 23rd", b, err)
		}
		c.Time = now
		spend(t, l, c) // a spent budget of yesterday stops nobody today
	})
}

// Every key ends by itself, and names no longer than it may.
func TestKeysEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		prefix := storetest.Prefix(t)
		// The clock of Redis decides when keys end, so this test lives now.
		now := time.Now()
		l := ledger(t, s, func(o *usage.Options) {
			o.Prefix, o.Now = prefix, func() time.Time { return now }
			o.Budgets = usage.Budgets{User: usage.Limit{Tokens: 1e6}, Task: usage.Limit{Money: 1e6}}
		})
		c := charge()
		c.Time, c.Conversation = now, strings.Repeat("long}{", 500)
		spend(t, l, c)
		if _, err := l.Reserve(t.Context(), c); err != nil { // never settled
			t.Fatal(err)
		}
		keys := ttls(t, s, prefix)
		if len(keys) < 9+9+2 {
			t.Errorf("%d keys, want those of nine accounts: %v", len(keys), keys)
		}
		for key, ttl := range keys {
			if ttl <= 0 || ttl > usage.Retention+24*time.Hour {
				t.Errorf("key %.80s lives %v, want at most the retention", key, ttl)
			}
			if !strings.Contains(key, ":settled") && ttl < usage.Retention-time.Minute {
				t.Errorf("key %.80s lives only %v", key, ttl)
			}
			if len(key) > len(prefix)+300 {
				t.Errorf("a key of %d bytes", len(key))
			}
		}
	})
}

// Totals are exact when many book at once.
func TestBooksAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l := ledger(t, s, func(o *usage.Options) { o.Budgets.Workspace = usage.Limit{Tokens: 1e9} })
		const callers, each = 10, 4
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range each {
					c := charge()
					h, err := l.Reserve(t.Context(), c)
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := h.Settle(t.Context(), c); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := today(t, l, llm.WorkspaceSubject, "w"); got.Calls != callers*each || got.Tokens() != 100*callers*each || got.Money != 500*callers*each {
			t.Errorf("totals = %+v, want %d calls of 100 tokens", got, callers*each)
		}
		b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.WorkspaceSubject, ID: "w"})
		if err != nil || b[0].Reserved != 0 || b[0].Spent != 100*callers*each {
			t.Errorf("budget = %+v, %v; want all of it settled", b, err)
		}
	})
}

// A Cluster takes the keys: none of a script's are in two slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	l := ledger(t, storetest.Cluster(t), func(o *usage.Options) {
		o.Budgets = usage.Budgets{User: usage.Limit{Tokens: 150}, Place: usage.Limit{Money: 1e6}, Workspace: usage.Limit{Tokens: 1e6}, Task: usage.Limit{Tokens: 1e6}}
	})
	spend(t, l, charge())
	spend(t, l, charge())
	var over *llm.BudgetError
	if _, err := l.Reserve(t.Context(), charge()); !errors.As(err, &over) || over.Subject.ID != "ann" || over.Spent != 200 {
		t.Errorf("third call: %v, want ann's budget spent at 200", err)
	}
	if rows, err := l.Top(t.Context(), llm.UserSubject, noon, llm.Tokens, 3); err != nil || len(rows) != 1 || rows[0].Calls != 2 {
		t.Errorf("top = %+v, %v", rows, err)
	}
}
