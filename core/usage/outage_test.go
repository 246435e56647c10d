package usage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/llm"
	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

// While Redis is away calls are made, and what they used is booked once it is
// back, once.
func TestOutage(t *testing.T) {
	t.Parallel()
	s, m := storetest.MiniRaw(t)
	var outages []string
	l := ledger(t, s, func(o *usage.Options) {
		o.Budgets.User = usage.Limit{Tokens: 150}
		o.OnOutage = func(op string, _ error) { outages = append(outages, op) }
	})
	spend(t, l, charge())
	m.SetError("LOADING Redis is loading the dataset in memory")
	spend(t, l, charge())
	spend(t, l, charge())
	if err := l.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "LOADING") {
		t.Errorf("flush in the outage: %v", err)
	}
	if got := strings.Join(outages, " "); got != "reserve settle reserve settle" {
		t.Errorf("outages told: %s", got)
	}
	m.SetError("")
	if n := l.Backlog(); n != 18 {
		t.Errorf("%d bookings wait, want those of nine accounts twice", n)
	}
	if err := l.Flush(t.Context()); err != nil || l.Backlog() != 0 {
		t.Errorf("flush: %v, %d left", err, l.Backlog())
	}
	if got := today(t, l, llm.UserSubject, "ann"); got.Calls != 3 || got.Tokens() != 300 {
		t.Errorf("totals = %+v, want all three calls", got)
	}
	if over := refused(t, l, charge()); over.Spent != 300 || over.Reserved != 0 {
		t.Errorf("refused with %+v", over)
	}
}

func TestStrict(t *testing.T) {
	t.Parallel()
	s, m := storetest.MiniRaw(t)
	l := ledger(t, s, func(o *usage.Options) { o.Strict, o.Budgets.User = true, usage.Limit{Tokens: 150} })
	m.SetError("LOADING Redis is loading the dataset in memory")
	_, err := l.Reserve(t.Context(), charge())
	var over *llm.BudgetError
	if err == nil || errors.As(err, &over) || !strings.Contains(err.Error(), "user ann") {
		t.Errorf("err = %v, want one that names the subject and is no *llm.BudgetError", err)
	}
	nobody := charge()
	nobody.User = ""
	if _, err := l.Reserve(t.Context(), nobody); err != nil {
		t.Errorf("a call without a budget: %v, want it made", err)
	}
}

// A booking whose reply is lost is sent again and counts once; so does the hold
// that was set aside without our knowing.
func TestLostReply(t *testing.T) {
	t.Parallel()
	direct := storetest.Redis(t)
	proxy, err := faultproxy.New(direct.Client.(*redis.Client).Options().Addr, faultproxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	through := storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{proxy.Addr()}})
	l := ledger(t, through, func(o *usage.Options) { o.Budgets.User = usage.Limit{Tokens: 1000} })
	spend(t, l, charge()) // loads the scripts

	for lost := range 3 {
		proxy.SwallowNext(1, "evalsha")
		h, err := l.Reserve(t.Context(), charge())
		if err != nil {
			t.Fatal(err)
		}
		proxy.SwallowNext(1, "evalsha")
		settle(t, h, charge())
		if l.Backlog() == 0 {
			t.Fatal("no booking waits although the reply was lost: the test tests nothing")
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := int64(lost + 2)
		for _, kind := range []llm.SubjectKind{llm.UserSubject, usage.Everything} {
			id := map[llm.SubjectKind]string{llm.UserSubject: "ann"}[kind]
			if got := today(t, l, kind, id); got.Calls != want || got.Tokens() != 100*want {
				t.Errorf("%s: %+v, want %d calls", kind, got, want)
			}
		}
	}
	b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.UserSubject, ID: "ann"})
	if err != nil || b[0].Reserved != 0 {
		t.Errorf("budget = %+v, %v; want nothing reserved", b, err)
	}
	if n := proxy.Stats().Swallowed; n < 6 {
		t.Errorf("%d replies were lost, want 6", n)
	}
}

// A booking that Redis will never take is said to be lost, and holds up nothing.
func TestRefusedBooking(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		prefix := storetest.Prefix(t)
		l := ledger(t, s, func(o *usage.Options) { o.Prefix = prefix })
		if err := s.Client.Set(t.Context(), prefix+":usage:{2026-11-21/user/ann}", "no hash", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		h, err := l.Reserve(t.Context(), charge())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = h.Settle(t.Context(), charge()); err == nil || !strings.Contains(err.Error(), "user ann") {
			t.Errorf("err = %v, want one that names the account", err)
		}
		if n := l.Backlog(); n != 0 {
			t.Errorf("%d bookings wait for what will never be: %v", n, l.Flush(t.Context()))
		}
		if got := today(t, l, llm.PlaceSubject, "lobby"); got.Calls != 1 {
			t.Errorf("the other accounts: %+v", got)
		}
	})
}

// Run books what waits, and once more when it is stopped.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, m := storetest.MiniRaw(t)
		l := ledger(t, s, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()

		m.SetError("LOADING")
		spend(t, l, charge())
		time.Sleep(11 * time.Second)
		if l.Backlog() == 0 {
			t.Error("nothing waits although Redis is away")
		}
		m.SetError("")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := l.Backlog(); n != 0 {
			t.Errorf("%d bookings wait although Redis is back", n)
		}
		m.SetError("LOADING")
		spend(t, l, charge())
		m.SetError("")
		cancel()
		if err := <-done; err != nil || l.Backlog() != 0 {
			t.Errorf("run ended with %v and %d bookings left", err, l.Backlog())
		}
		if got := today(t, l, usage.Everything, ""); got.Calls != 2 {
			t.Errorf("%d calls booked, want 2", got.Calls)
		}
	})
}

// The backlog is bounded; what is lost is said.
func TestBacklogBound(t *testing.T) {
	t.Parallel()
	s, m := storetest.MiniRaw(t)
	l := ledger(t, s, nil)
	m.SetError("LOADING")
	var lost error
	for range 10_000/9 + 1 {
		h, err := l.Reserve(t.Context(), charge())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Settle(t.Context(), charge()); err != nil {
			lost = err
		}
	}
	if !errors.Is(lost, usage.ErrBacklog) || l.Backlog() != 10_000 {
		t.Errorf("lost = %v with %d waiting, want ErrBacklog and 10,000", lost, l.Backlog())
	}
}
