package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
)

// limits are budgets in memory.
type limits struct {
	ledger
	set []admin.Limit
	err error
}

func (l *limits) SetLimit(_ context.Context, kind, id string, money bool, n int64) error {
	if l.err == nil {
		l.set = append(l.set, admin.Limit{Kind: kind, ID: id, Money: money, Limit: n})
	}
	return l.err
}

func (l *limits) UnsetLimit(_ context.Context, kind, id string) error {
	l.set = append(l.set, admin.Limit{Kind: kind, ID: id, Limit: -1})
	return l.err
}

func (l *limits) SetLimits(context.Context) ([]admin.Limit, error) { return l.set, l.err }

func (l *limits) Budgets(_ context.Context, kind, id string) ([]admin.Budget, error) {
	for i := len(l.set) - 1; i >= 0; i-- {
		if s := l.set[i]; s.Kind == kind && s.ID == id && s.Limit > 0 {
			return []admin.Budget{{Money: s.Money, Limit: s.Limit, Spent: s.Limit / 2, Resets: time.Now().Add(time.Hour)}}, nil
		}
	}
	return nil, l.err
}

func TestBudgetIsSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		c     admin.Caller
		words string
		want  string // the limits that were set; for a refusal, its words
	}{
		{at(ada, thread), "budget user tokens 1,000", "[{user slack/T1/* false 1000}]"},
		{at(ada, thread), "budget user me tokens 50k", "[{user slack/T1/U4 false 50000}]"},
		{at(ada, thread), "budget user <@U7|cy> money 2.50", "[{user slack/T1/U7 true 2500000}]"},
		{at(ada, guild), "budget user <@!77> tokens 1.5M", "[{user discord/G1/77 false 1500000}]"},
		{at(ada, thread), "budget place money 0.30", "[{place slack/T1/C1 true 300000}]"},
		{at(ada, thread), "budget place <#C9|x> tokens 7", "[{place slack/T1/C9 false 7}]"},
		{at(ada, thread), "budget place everyone tokens 7", "[{place slack/T1/* false 7}]"},
		{at(ada, thread), "budget workspace off", "[{workspace slack/T1 false 0} {workspace slack/T1 true 0}]"},
		{at(ada, thread), "budget workspace money off", "[{workspace slack/T1 true 0}]"},
		{at(ada, thread), "budget workspace default", "[{workspace slack/T1 false -1}]"},
		{owner(), "budget workspace slack/T9 tokens 9", "[{workspace slack/T9 false 9}]"},
		{owner(), "budget user slack/T9/* tokens 9", "[{user slack/T9/* false 9}]"},

		{at(ola, thread), "budget workspace tokens 9", "Only admins may set budgets"},
		{at(ann, thread), "budget user me tokens 9", "Only admins may set budgets"},
		{at(ada, thread), "budget workspace slack/T2 tokens 9", "nobody but who holds the machine"},
		{at(ada, thread), "budget user ../../T2/x tokens 9", "[{user slack/T1/..%2F..%2FT2%2Fx false 9}]"},
		{at(ada, guildDM), "budget user tokens 9", "There is no workspace here"},
		{at(ada, guildDM), "budget user me tokens 9", "not of your workspace"},
		{at(ada, thread), "budget user tokens", "How many?"},
		{at(ada, thread), "budget user tokens 0", "is no amount"},
		{at(ada, thread), "budget user tokens -5", "is no amount"},
		{at(ada, thread), "budget user tokens 1e9", "is no amount"},
		{at(ada, thread), "budget user tokens 1.5", "is no amount"},
		{at(ada, thread), "budget user tokens NaN", "is no amount"},
		{at(ada, thread), "budget user money 99999999999999", "is no amount"},
		{at(ada, thread), "budget user off now", "nothing may follow"},
		{at(ada, thread), "budget user x beans 3", "Allowed: tokens, money, off, default"},
		{at(ada, thread), "budget task tokens 3", "Allowed: user, place, workspace"},
	} {
		l := &limits{}
		r := newRig(t, func(o *admin.Options) { o.Usage, o.Budgets = l, l })
		text, _, err := r.run(c.c, c.words)
		if refusal := (*admin.Refusal)(nil); errors.As(err, &refusal) {
			if !strings.Contains(text, c.want) || len(l.set) > 0 {
				t.Errorf("%s: %s; set %v, want %q", c.words, text, l.set, c.want)
			}
			continue
		}
		if got := fmt.Sprint(l.set); err != nil || got != c.want {
			t.Errorf("%s: set %s, %v; want %s", c.words, got, err, c.want)
		}
		if acts := r.audit.take(); len(acts) != 1 || !strings.Contains(acts[0], "set to ") {
			t.Errorf("%s: audited %q", c.words, acts)
		}
	}
}

func TestBudgetIsShown(t *testing.T) {
	t.Parallel()
	l := &limits{set: []admin.Limit{
		{Kind: "user", ID: "slack/T1/U1", Limit: 1000}, {Kind: "place", ID: "slack/T1/C1", Money: true, Limit: 3_000_000},
		{Kind: "user", ID: "slack/T1/*", Limit: 500}, {Kind: "workspace", ID: "slack/T12", Limit: 77}, {Kind: "user", ID: "slack/T1/U2", Limit: 0},
	}}
	r := newRig(t, func(o *admin.Options) { o.Usage, o.Budgets = l, l })
	text := r.ok(at(ann, thread), "budget")
	has(t, text, "you", "1,000 tokens", "500 tokens (50%)", "this place", "3.0000", "1.5000 (50%)", "██████")
	hasNot(t, text, "Set in place", "each person")
	text = r.ok(at(ola, thread), "budget")
	has(t, text, "Set in place of what is configured", "each person", "user U2", "no bound of tokens")
	hasNot(t, text, "77")
	has(t, r.ok(owner(), "budget"), "workspace slack/T12", "77 tokens", "each user of slack/T1")
	has(t, r.ok(at(bob, lobby), "budget"), "No budget bounds what you may use here.")
	has(t, r.ok(at(bob, thread), "budget place"), "this place")
	has(t, r.ok(at(bob, thread), "budget user"), "Your budget is without a bound of tokens.")
	has(t, r.no(at(bob, thread), "budget user U1"), "Only operators")
	has(t, r.ok(at(ola, thread), "budget user U1"), "500 tokens (50%)")
	has(t, r.ok(at(ola, thread), "budget user everyone"), "500 tokens a day")
	text, a, _ := r.run(at(ada, thread), "budget user U5 tokens 2k")
	has(t, text, "The budget of user U5 is 2,000 tokens a day from now on.", "1,000 tokens (50%)")
	if v := a.Data.(admin.BudgetView); len(v.Budgets) != 1 || v.Budgets[0].Limit != 2000 || v.Budgets[0].ID != "slack/T1/U5" {
		t.Errorf("data %+v", v)
	}
	l.err = errors.New("away")
	r.audit.take()
	if _, _, err := r.run(at(ada, thread), "budget workspace tokens 5"); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("%v", err)
	}
	if acts := r.audit.take(); len(acts) != 1 || !strings.Contains(acts[0], "failed: away") {
		t.Errorf("audited %q", acts)
	}
}

func TestUsageOfATask(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *admin.Options) { o.Usage = ledger{} })
	id := r.task(ann, thread, "count")
	has(t, r.ok(at(ann, thread), "usage task "+id[:8]), "count", "1,000", "234", "0.0025", "████")
	has(t, r.ok(at(ola, lobby), "usage task "+id), "1,000")
	has(t, r.no(at(bob, lobby), "usage task "+id), "There is no task")
	has(t, r.no(at(ann, thread), "usage task"), "Which task?")
	if _, ok := r.set.IsAddressed("usage task " + id); !ok {
		t.Error("it is no command when it is addressed to the bot")
	}
}

func TestBudgetAmongTalk(t *testing.T) {
	t.Parallel()
	l := &limits{}
	r := newRig(t, func(o *admin.Options) { o.Usage, o.Budgets = l, l })
	for text, want := range map[string]bool{
		"budget": true, "budget user": true, "budget workspace tokens 5": true, "budget user U1 off": true,
		"budget for next year": false, "budget user stories": false, "budget place is full": false,
	} {
		if _, got := r.set.IsAddressed(text); got != want {
			t.Errorf("%q is a command: %v, want %v", text, got, want)
		}
	}
}
