package usage_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"mimikit/core/llm"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

func refused(t *testing.T, l *usage.Ledger, c llm.Charge) *llm.BudgetError {
	t.Helper()
	_, err := l.Reserve(t.Context(), c)
	var over *llm.BudgetError
	if !errors.As(err, &over) {
		t.Fatalf("reserve: %v, want a *llm.BudgetError", err)
	}
	return over
}

// Each kind of subject can be stopped, in either unit, and the error says all
// that a person wants to know.
func TestBudgetStops(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	tokens, money := usage.Limit{Tokens: 90}, usage.Limit{Money: 400}
	for name, c := range map[string]struct {
		budgets usage.Budgets
		want    llm.Budget
	}{
		"user":      {usage.Budgets{User: tokens}, llm.Budget{Subject: llm.Subject{Kind: llm.UserSubject, ID: "ann"}, Unit: llm.Tokens, Limit: 90, Spent: 100, Resets: midnight}},
		"place":     {usage.Budgets{Place: money}, llm.Budget{Subject: llm.Subject{Kind: llm.PlaceSubject, ID: "lobby"}, Unit: llm.Money, Limit: 400, Spent: 500, Resets: midnight}},
		"workspace": {usage.Budgets{Workspace: tokens}, llm.Budget{Subject: llm.Subject{Kind: llm.WorkspaceSubject, ID: "w"}, Unit: llm.Tokens, Limit: 90, Spent: 100, Resets: midnight}},
		"task":      {usage.Budgets{Task: money}, llm.Budget{Subject: llm.Subject{Kind: llm.TaskSubject, ID: "t1"}, Unit: llm.Money, Limit: 400, Spent: 500}},
		"of one": {usage.Budgets{Of: map[llm.Subject]usage.Limit{{Kind: llm.UserSubject, ID: "ann"}: tokens}},
			llm.Budget{Subject: llm.Subject{Kind: llm.UserSubject, ID: "ann"}, Unit: llm.Tokens, Limit: 90, Spent: 100, Resets: midnight}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				t.Parallel()
				var told []*llm.BudgetError
				l := ledger(t, s, func(o *usage.Options) {
					o.Budgets, o.OnRefuse = c.budgets, func(e *llm.BudgetError) { told = append(told, e) }
				})
				spend(t, l, charge())
				got := refused(t, l, charge())
				if got.Budget != c.want {
					t.Errorf("refused with %+v, want %+v", got.Budget, c.want)
				}
				if len(told) != 1 || told[0] != got {
					t.Errorf("the hook heard %v", told)
				}
				if n := today(t, l, usage.Everything, "").Calls; n != 1 {
					t.Errorf("%d calls booked, want the one that was made", n)
				}
				other := charge()
				other.User, other.Place, other.Workspace, other.Task = "bob", "yard", "x", "t2"
				spend(t, l, other)
			})
		})
	}
}

// A refusal leaves nothing set aside in the accounts that had admitted the call.
func TestRefusalGivesBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l := ledger(t, s, func(o *usage.Options) {
			o.Budgets = usage.Budgets{User: usage.Limit{Tokens: 1000}, Workspace: usage.Limit{Tokens: 100}, Of: map[llm.Subject]usage.Limit{{Kind: llm.UserSubject, ID: "boss"}: {}}}
		})
		spend(t, l, charge())
		for range 3 {
			if over := refused(t, l, charge()); over.Subject.Kind != llm.WorkspaceSubject {
				t.Fatalf("refused by %v", over.Subject)
			}
		}
		b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.UserSubject, ID: "ann"})
		if err != nil || len(b) != 1 || b[0].Reserved != 0 || b[0].Spent != 100 {
			t.Errorf("ann's budget = %+v, %v; want nothing reserved", b, err)
		}
		if b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.UserSubject, ID: "boss"}); err != nil || len(b) != 0 {
			t.Errorf("the boss has budgets %v, %v; want none", b, err)
		}
	})
}

// Calls at the same time see each other's estimates: of forty that begin at
// once only as many are made as the budget has room for.
func TestNoOvershoot(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l := ledger(t, s, func(o *usage.Options) {
			o.Budgets = usage.Budgets{User: usage.Limit{Tokens: 1000}, Workspace: usage.Limit{Tokens: 950}}
		})
		var mu sync.Mutex
		var holds []llm.Hold
		no := 0
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				h, err := l.Reserve(t.Context(), charge())
				mu.Lock()
				defer mu.Unlock()
				var over *llm.BudgetError
				switch {
				case err == nil:
					holds = append(holds, h)
				case errors.As(err, &over):
					no++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(holds) != 10 || no != 30 {
			t.Fatalf("%d calls made and %d refused, want 10 and 30", len(holds), no)
		}
		b, _ := l.Budgets(t.Context(), llm.Subject{Kind: llm.WorkspaceSubject, ID: "w"})
		if b[0].Spent != 0 || b[0].Reserved != 1000 {
			t.Errorf("budget = %+v, want 1000 tokens reserved", b[0])
		}
		// Estimates that were too high make room again.
		small := charge()
		small.Usage = llm.Usage{Prompt: 1}
		for _, h := range holds {
			settle(t, h, small)
		}
		spend(t, l, charge())
	})
}

// What a node that died had set aside comes back by itself, and a call that
// ends after its hold is booked all the same, without taking anything back twice.
func TestHoldsEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l := ledger(t, s, func(o *usage.Options) {
			o.Budgets.User = usage.Limit{Tokens: 100}
			o.HoldFor = 50 * time.Millisecond
		})
		late, err := l.Reserve(t.Context(), charge())
		if err != nil {
			t.Fatal(err)
		}
		var second llm.Hold
		storetest.Eventually(t, "the hold ends", func() error {
			second, err = l.Reserve(t.Context(), charge())
			return err
		})
		settle(t, late, charge())
		settle(t, second, charge())
		b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.UserSubject, ID: "ann"})
		if err != nil || b[0].Spent != 200 || b[0].Reserved != 0 {
			t.Errorf("budget = %+v, %v; want 200 spent and nothing reserved", b, err)
		}
	})
}

// What costs nothing is set aside and given back like anything else.
func TestFreeCalls(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		l := ledger(t, s, func(o *usage.Options) {
			o.Budgets.User = usage.Limit{Tokens: 1000, Money: 1000}
			o.HoldFor = 20 * time.Millisecond
			o.OnOutage = func(op string, err error) { t.Errorf("%s: %v", op, err) }
		})
		free := charge()
		free.Cost = 0
		if _, err := l.Reserve(t.Context(), free); err != nil { // ends by itself
			t.Fatal(err)
		}
		storetest.Eventually(t, "the hold ends", func() error {
			spend(t, l, free)
			b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.UserSubject, ID: "ann"})
			if err == nil && b[0].Reserved != 0 {
				err = errors.New("still reserved")
			}
			return err
		})
		nothing := charge()
		nothing.Usage, nothing.Cost = llm.Usage{}, 0
		spend(t, l, nothing)
		b, err := l.Budgets(t.Context(), llm.Subject{Kind: llm.UserSubject, ID: "ann"})
		if err != nil || len(b) != 2 || b[0].Reserved != 0 || b[1].Reserved != 0 || b[1].Spent != 0 {
			t.Errorf("budgets = %+v, %v", b, err)
		}
	})
}

// A warning comes once for each subject and day, with the call that crossed the
// line.
func TestWarnsOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		var heard []llm.BudgetWarning
		l := ledger(t, s, func(o *usage.Options) {
			o.Budgets = usage.Budgets{User: usage.Limit{Tokens: 500}, Task: usage.Limit{Money: 10_000}, Warn: 0.5}
			o.OnWarn = func(w llm.BudgetWarning) { heard = append(heard, w) }
		})
		var warned []int
		for call := 1; call <= 5; call++ {
			if w := spend(t, l, charge()); len(w) > 0 {
				warned = append(warned, call)
				if len(w) != 1 || w[0].Subject.ID != "ann" || w[0].Unit != llm.Tokens || w[0].Limit != 500 || w[0].Spent != 300 {
					t.Errorf("warning = %+v", w)
				}
			}
		}
		if len(warned) != 1 || warned[0] != 3 || len(heard) != 1 {
			t.Errorf("warned at calls %v, the hook heard %v; want once, at the third", warned, heard)
		}
		tomorrow := charge()
		tomorrow.Time = noon.AddDate(0, 0, 1)
		tomorrow.Usage.Prompt = 400
		w := spend(t, l, tomorrow)
		if len(w) != 1 || w[0].Spent != 430 {
			t.Errorf("tomorrow: %+v, want a warning anew", w)
		}
	})
}

func TestNoWarning(t *testing.T) {
	t.Parallel()
	l := ledger(t, storetest.Mini(t), func(o *usage.Options) { o.Budgets = usage.Budgets{User: usage.Limit{Tokens: 100}, Warn: 1} })
	if w := spend(t, l, charge()); len(w) != 0 {
		t.Errorf("warned %v although warnings are off", w)
	}
}

// A caller that gives up while its budget is asked for gets its own error.
func TestReserveCancelled(t *testing.T) {
	t.Parallel()
	l := ledger(t, storetest.Mini(t), func(o *usage.Options) { o.Budgets.User = usage.Limit{Tokens: 100} })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Reserve(ctx, charge()); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context canceled", err)
	}
}
