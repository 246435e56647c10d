package usage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/llm"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

func subject(kind llm.SubjectKind, id string) llm.Subject { return llm.Subject{Kind: kind, ID: id} }

// person is a charge of somebody of a workspace, as cmd names them.
func person(id string) llm.Charge {
	c := charge()
	c.User, c.Place, c.Workspace = "slack/T1/"+id, "slack/T1/C1", "slack/T1"
	return c
}

func limitOf(t *testing.T, l *usage.Ledger, s llm.Subject) map[llm.Unit]int64 {
	t.Helper()
	list, err := l.Budgets(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	out := map[llm.Unit]int64{}
	for _, b := range list {
		out[b.Unit] = b.Limit
	}
	return out
}

// What was set goes before what is configured, on every ledger at once, and the
// narrower before the wider; each unit for itself.
func TestSetLimits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		prefix := storetest.Prefix(t)
		another := func() *usage.Ledger {
			return ledger(t, s, func(o *usage.Options) {
				o.Prefix, o.Budgets = prefix, usage.Budgets{User: usage.Limit{Tokens: 5000, Money: 7000}}
			})
		}
		chat, node := another(), another()
		ann, bob, far := subject(llm.UserSubject, "slack/T1/ann"), subject(llm.UserSubject, "slack/T1/bob"), subject(llm.UserSubject, "slack/T2/cy")
		all := usage.Everyone(llm.UserSubject, "slack/T1")
		set := func(s llm.Subject, u llm.Unit, n int64) {
			t.Helper()
			if err := chat.SetLimit(t.Context(), s, u, n); err != nil {
				t.Fatal(err)
			}
		}
		check := func(what string, s llm.Subject, want map[llm.Unit]int64) {
			t.Helper()
			if diff := cmp.Diff(want, limitOf(t, node, s)); diff != "" {
				t.Errorf("%s: limits of %s, -want +got:\n%s", what, s, diff)
			}
		}
		check("configured", ann, map[llm.Unit]int64{llm.Tokens: 5000, llm.Money: 7000})
		set(all, llm.Tokens, 300)
		check("of everyone", ann, map[llm.Unit]int64{llm.Tokens: 300, llm.Money: 7000})
		check("of another workspace", far, map[llm.Unit]int64{llm.Tokens: 5000, llm.Money: 7000})
		set(ann, llm.Tokens, 90)
		set(bob, llm.Money, 0)
		check("of one", ann, map[llm.Unit]int64{llm.Tokens: 90, llm.Money: 7000})
		check("freed of one unit", bob, map[llm.Unit]int64{llm.Tokens: 300})

		spend(t, node, person("ann"))
		if over := refused(t, node, person("ann")); over.Limit != 90 || over.Spent != 100 || over.Subject != ann {
			t.Errorf("refused with %+v", over)
		}
		set(ann, llm.Tokens, 201) // raised from a chat: the node's next call is made
		spend(t, node, person("ann"))

		got, err := node.SetLimits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]usage.SetLimit{{all, llm.Tokens, 300}, {ann, llm.Tokens, 201}, {bob, llm.Money, 0}}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		for _, s := range []llm.Subject{ann, all} {
			if err := chat.UnsetLimit(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		check("unset", ann, map[llm.Unit]int64{llm.Tokens: 5000, llm.Money: 7000})
	})
}

func TestWhatIsNoLimitIsRefused(t *testing.T) {
	t.Parallel()
	l := ledger(t, storetest.Mini(t), nil)
	for _, c := range []usage.SetLimit{
		{subject(llm.TaskSubject, "t1"), llm.Tokens, 1}, {subject(llm.UserSubject, ""), llm.Tokens, 1},
		{subject(llm.UserSubject, "a"), "beans", 1}, {subject(llm.UserSubject, "a"), llm.Money, -1},
	} {
		if err := l.SetLimit(t.Context(), c.Subject, c.Unit, c.Limit); err == nil {
			t.Errorf("%+v was set", c)
		}
	}
	if got, err := l.SetLimits(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("set are %v, %v", got, err)
	}
}

// Whichever call crossed the share, one turn is given the right to tell, and a
// repeat of that turn is given it again.
func TestTellsOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		day := noon
		l := ledger(t, s, func(o *usage.Options) {
			o.Budgets = usage.Budgets{User: usage.Limit{Tokens: 1000}, Workspace: usage.Limit{Money: 1000}, Warn: 0.2}
			o.Now = func() time.Time { return day }
		})
		subjects := []llm.Subject{subject(llm.UserSubject, "slack/T1/ann"), subject(llm.PlaceSubject, "slack/T1/C1"), subject(llm.WorkspaceSubject, "slack/T1")}
		tell := func(turn string) (kinds []llm.SubjectKind) {
			t.Helper()
			got, err := l.Tell(t.Context(), turn, subjects...)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range got {
				kinds = append(kinds, w.Subject.Kind)
			}
			return kinds
		}
		if got := tell("d0"); got != nil {
			t.Errorf("before anything was spent: %v", got)
		}
		spend(t, l, person("ann")) // 100 of 1000 tokens, 500 of 1000 money
		if diff := cmp.Diff([]llm.SubjectKind{llm.WorkspaceSubject}, tell("d1")); diff != "" {
			t.Error(diff)
		}
		spend(t, l, person("ann")) // a call that speaks to nobody crosses the share
		for _, c := range []struct {
			turn string
			want []llm.SubjectKind
		}{{"d2", []llm.SubjectKind{llm.UserSubject}}, {"d1", []llm.SubjectKind{llm.WorkspaceSubject}}, {"d2", []llm.SubjectKind{llm.UserSubject}}, {"d3", nil}} {
			if diff := cmp.Diff(c.want, tell(c.turn)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.turn, diff)
			}
		}
		day = day.AddDate(0, 0, 1)
		next := person("ann")
		next.Time = day
		spend(t, l, next)
		spend(t, l, next)
		if diff := cmp.Diff([]llm.SubjectKind{llm.UserSubject, llm.WorkspaceSubject}, tell("d9")); diff != "" {
			t.Errorf("tomorrow: -want +got:\n%s", diff)
		}
	})
}

// A limit that was set holds in an outage too, as far as it was known before.
func TestSetLimitInAnOutage(t *testing.T) {
	t.Parallel()
	s, m := storetest.MiniRaw(t)
	l := ledger(t, s, func(o *usage.Options) { o.Strict = true })
	if err := l.SetLimit(t.Context(), subject(llm.WorkspaceSubject, "slack/T1"), llm.Tokens, 1000); err != nil {
		t.Fatal(err)
	}
	spend(t, l, person("ann"))
	m.SetError("LOADING Redis is loading the dataset in memory")
	if _, err := l.Reserve(t.Context(), person("ann")); err == nil || !strings.Contains(err.Error(), "workspace slack/T1") {
		t.Errorf("in the outage: %v, want it refused for the workspace", err)
	}
	m.SetError("")
	if err := l.UnsetLimit(t.Context(), subject(llm.WorkspaceSubject, "slack/T1")); err != nil {
		t.Fatal(err)
	}
	spend(t, l, person("ann"))
	m.SetError("LOADING Redis is loading the dataset in memory")
	if _, err := l.Reserve(t.Context(), person("ann")); err != nil {
		t.Errorf("unset, in the outage: %v", err)
	}
}
