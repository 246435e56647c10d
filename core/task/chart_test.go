package task

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// The picture in the documentation is the chart of the code.
func TestChartInDocs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(data), "```mermaid\nstateDiagram-v2\n")
	picture, _, _ = strings.Cut(picture, "```")
	var drawn, want []string
	for _, m := range regexp.MustCompile(`(?m)^ *(\S+) --> (\S+) : (.+)$`).FindAllStringSubmatch(picture, -1) {
		if from, to := m[1], m[2]; to != "[*]" {
			drawn = append(drawn, fmt.Sprintf("%s → %s: %s", strings.Replace(from, "[*]", "", 1), to, m[3]))
		}
	}
	for _, a := range transitions {
		want = append(want, fmt.Sprintf("%s → %s: %s", a.from, a.to, a.by))
	}
	slices.Sort(drawn)
	slices.Sort(want)
	if !slices.Equal(drawn, want) {
		t.Errorf("docs/tasks.md draws\n%s\nthe code has\n%s", strings.Join(drawn, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range Statuses {
		out := slices.ContainsFunc(transitions, func(a transition) bool { return a.from == s })
		if out == Over(s) {
			t.Errorf("%s: is an end: %v, has arrows from it: %v", s, Over(s), out)
		}
		if end := strings.Contains(picture, string(s)+" --> [*]"); end != Over(s) {
			t.Errorf("%s: is an end: %v, drawn as one: %v", s, Over(s), end)
		}
	}
}

// Whatever happens to a task in whatever status, it goes along an arrow of the
// chart or stays; and every arrow can be gone.
func TestEveryTransition(t *testing.T) {
	storetest.Each(t, everyTransition)
}

func everyTransition(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s, one)
	ctx := t.Context()
	gone := map[[2]Status]bool{}
	reach := map[Status]func(d Draft) (id string, run *Run){
		Deferred: func(d Draft) (string, *Run) {
			d.DeferUntil = epoch.AddDate(5, 0, 0)
			return r.enqueue(d), nil
		},
		Pending: func(d Draft) (string, *Run) { return r.enqueue(d), nil },
		Running: func(d Draft) (string, *Run) { id := r.enqueue(d); return id, r.run(id) },
	}
	after := func(how verdict) func(d Draft) (string, *Run) {
		return func(d Draft) (string, *Run) { id, run := reach[Running](d); r.settle(run, how); return id, run }
	}
	reach[Waiting] = after(how("ask", "asked", "q1", "question", `{"id":"q1","question":"which?"}`))
	reach[Succeeded] = after(how("succeed"))
	reach[Failed] = after(how("final", "error", "no"))
	reach[Canceled] = func(d Draft) (string, *Run) {
		id, run := reach[Running](d)
		if _, err := r.q.Cancel(ctx, id, bob, ""); err != nil {
			t.Fatal(err)
		}
		r.settle(run, how("back"))
		return id, run
	}
	claimer := newClaimer(r.q, "n2")
	end := func(v verdict) func(id string, run *Run) {
		return func(id string, run *Run) {
			token := "1-nobody-1"
			if run != nil {
				token = run.token
			}
			_, _ = r.q.settle(ctx, 0, token, id, v)
		}
	}
	cancel := func(id string, _ *Run) {
		if _, err := r.q.Cancel(ctx, id, bob, "enough"); err != nil {
			t.Fatal(err)
		}
	}
	events := map[string]struct {
		do     func(id string, run *Run)
		drafts func(d *Draft)
		to     map[Status]Status // from the others it stays
	}{
		"due": {func(id string, _ *Run) {
			s.Client.ZAdd(ctx, r.q.keys.In(0, "t:deferred"), z(0, id))
			if _, err := r.q.look(ctx, 0, looker{}, nil); err != nil {
				t.Fatal(err)
			}
		}, nil, map[Status]Status{Deferred: Pending}},
		"claim": {func(string, *Run) { r.claim(claimer, 0) }, nil, map[Status]Status{Pending: Running}},
		"claim of what does not wait in the queue": {func(id string, _ *Run) {
			// What another program has put there.
			c := class(Standard, "") + " " + conv("c").Key()
			s.Client.ZAdd(ctx, r.q.keys.In(0, "t:queue"), z(0, c+" 0000000000000001 5 "+id))
			s.Client.ZAdd(ctx, r.q.keys.In(0, "t:ready"), z(0, class(Standard, "")+" 0000000000000001 "+conv("c").Key()))
			r.claim(claimer, 0)
		}, nil, map[Status]Status{Pending: Running}},
		"succeed":         {end(how("succeed")), nil, map[Status]Status{Running: Succeeded}},
		"fail":            {end(how("fail", "error", "no")), nil, map[Status]Status{Running: Deferred}},
		"fail at last":    {end(how("fail", "error", "no")), func(d *Draft) { d.Retry = &Retry{} }, map[Status]Status{Running: Failed}},
		"fail for good":   {end(how("final", "error", "no")), nil, map[Status]Status{Running: Failed}},
		"stop":            {end(how("back")), nil, map[Status]Status{Running: Pending}},
		"lapse":           {end(how("lapse")), nil, map[Status]Status{Running: Pending}},
		"ask":             {end(how("ask", "asked", "q2", "question", `{"id":"q2","question":"?"}`)), nil, map[Status]Status{Running: Waiting}},
		"answer":          {func(id string, _ *Run) { _ = r.q.Answer(ctx, conv("c"), id, "q1", "that", ann) }, nil, map[Status]Status{Waiting: Pending}},
		"cancel":          {cancel, nil, map[Status]Status{Deferred: Canceled, Pending: Canceled, Waiting: Canceled}},
		"cancel, succeed": {both(cancel, end(how("succeed"))), nil, map[Status]Status{Deferred: Canceled, Pending: Canceled, Waiting: Canceled, Running: Canceled}},
		"cancel, stop":    {both(cancel, end(how("back"))), nil, map[Status]Status{Deferred: Canceled, Pending: Canceled, Waiting: Canceled, Running: Canceled}},
		"cancel, lapse":   {both(cancel, end(how("lapse"))), nil, map[Status]Status{Deferred: Canceled, Pending: Canceled, Waiting: Canceled, Running: Canceled}},
		"cancel, fail":    {both(cancel, end(how("fail"))), nil, map[Status]Status{Deferred: Canceled, Pending: Canceled, Waiting: Canceled, Running: Canceled}},
		"cancel, ask":     {both(cancel, end(how("ask", "asked", "q2", "question", "{}"))), nil, map[Status]Status{Deferred: Canceled, Pending: Canceled, Waiting: Canceled, Running: Canceled}},
		"another's end":   {func(id string, _ *Run) { _, _ = r.q.settle(ctx, 0, "1-other-7", id, how("succeed")) }, nil, nil},
	}
	for name, e := range events {
		for _, from := range Statuses {
			d := draft("c", name+" of "+string(from))
			if e.drafts != nil {
				e.drafts(&d)
			}
			id, run := reach[from](d)
			if got := r.get(id).Status; got != from {
				t.Fatalf("%s: it is %s to begin with", d.Title, got)
			}
			e.do(id, run)
			want, moves := e.to[from]
			if !moves {
				want = from
			}
			got := r.get(id)
			if got.Status != want {
				t.Errorf("%s: %s, want %s", d.Title, got.Status, want)
			}
			if from != got.Status && !allowed(from, got.Status) {
				t.Errorf("%s went to %s, where the chart has no arrow", d.Title, got.Status)
			}
			gone[[2]Status{from, got.Status}] = true
			// Nothing of this stays in the way of the next.
			if !Over(got.Status) {
				cancel(id, nil)
				if now := r.get(id); now.Status == Running {
					st := r.stateOf(id)
					if _, err := r.q.settle(ctx, 0, st["run"].(string), id, how("back")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	for _, a := range transitions {
		if a.from != "" && !gone[[2]Status{a.from, a.to}] {
			t.Errorf("nothing went from %s to %s (%s)", a.from, a.to, a.by)
		}
	}
	for id, list := range r.told("worker-result") {
		if len(list) != 1 {
			t.Errorf("task %s has %d results", id, len(list))
		}
	}
	r.awaitOver()
	if err := r.q.Cascade(ctx, 0); err != nil {
		t.Fatal(err)
	}
	r.checkClean()
}

func both(a, b func(string, *Run)) func(string, *Run) {
	return func(id string, run *Run) { a(id, run); b(id, run) }
}
