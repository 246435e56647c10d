package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Several tasks that are taken in one call are those that would be taken one by one,
// in the same order.
func TestSeveralAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		fill := func(r *rig) {
			for i := range 12 {
				d := draft("flood", fmt.Sprintf("flood %d", i))
				d.Priority = new(5 + i%3)
				r.enqueue(d)
			}
			for i, place := range []string{"a", "b", "a", "c", "b", "a"} {
				d := draft(place, fmt.Sprintf("%s %d", place, i))
				d.Priority = new(5 - i%2)
				if place == "c" {
					d.Profile = Expert
				}
				r.enqueue(d)
			}
		}
		take := func(r *rig, many int) (titles []string) {
			c := newClaimer(r.q, "n")
			rooms := []room{{class(Expert, ""), 100}, {class(Standard, ""), 100}}
			for {
				got, outs, err := c.ask(t.Context(), []want{{0, many, ""}}, rooms)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) == 0 {
					if len(outs[0].scores) > 0 || outs[0].more {
						t.Errorf("nothing is taken of %+v", outs[0])
					}
					return titles
				}
				for _, x := range got {
					titles = append(titles, x.task.Title)
				}
			}
		}
		one1, all := newRig(t, s, one), newRig(t, s, one, func(o *Options) { o.Issuer.Keys.Prefix += "b" })
		fill(one1)
		fill(all)
		want := take(one1, 1)
		if len(want) != 18 {
			t.Fatalf("took %d", len(want))
		}
		// Two rigs were filled at different moments: what is the same of them is the
		// order within each conversation, and who goes first.
		{
			const many = 5
			got := take(all, many)
			if len(got) != len(want) || got[0] != want[0] {
				t.Errorf("%d at once: %q,\nwant %q", many, got, want)
			}
			for _, place := range []string{"flood", "a", "b", "c"} {
				of := func(list []string) []string {
					return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !strings.HasPrefix(s, place) })
				}
				if !slices.Equal(of(got), of(want)) {
					t.Errorf("%s: %q, want %q", place, of(got), of(want))
				}
			}
		}
	})
}

// A claim takes no more of a profile than there is room for, and says what is left
// for others.
func TestRoomOfAProfile(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		for i := range 6 {
			d := draft(fmt.Sprint(i), fmt.Sprint(i))
			if i < 4 {
				d.Profile = Expert
			}
			r.enqueue(d)
		}
		got, outs, err := newClaimer(r.q, "n").ask(t.Context(), []want{{0, 5, ""}}, []room{{class(Expert, ""), 2}, {class(Standard, ""), 5}})
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, x := range got {
			count[x.task.Profile]++
		}
		if count[Expert] != 2 || count[Standard] != 2 || len(outs[0].scores) != 0 || outs[0].more {
			t.Errorf("took %v, and there are left %+v", count, outs[0])
		}
	})
}

// What is asked for at the same time goes in few calls, each judged alone: one that
// there is not does not harm the others, and none is done twice.
func TestTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		f := newFlaky(9, 0.2, 0.2, s)
		t.Cleanup(f.late.Wait)
		const n = 60
		var all sync.WaitGroup
		ids := make([]string, n)
		for i := range n {
			all.Go(func() {
				id, created, err := r.q.Enqueue(context.Background(), draft(fmt.Sprint(i%7), fmt.Sprint(i/2)+fmt.Sprint(i%7)))
				if err != nil || !created {
					t.Errorf("%d: %s, %v, %v", i, id, created, err)
				}
				ids[i] = id
			})
		}
		all.Wait()
		c := newClaimer(r.q, "n")
		var runs []*Run
		for p := range r.parts {
			for run := r.claim(c, p); run != nil; run = r.claim(c, p) {
				runs = append(runs, run)
			}
		}
		if len(runs) != n {
			t.Fatalf("%d run, want %d", len(runs), n)
		}
		for i, run := range runs {
			all.Go(func() {
				if to, err := run.settle(context.Background(), how("succeed", "output", "x")); err != nil || to != Succeeded {
					t.Errorf("%s, %v", to, err)
				}
			})
			all.Go(func() {
				_, err := r.q.settle(context.Background(), run.p, fmt.Sprint("nobody-", i), run.Task.ID, how("final"))
				if !errors.Is(err, errNotOurs) {
					t.Errorf("another's end: %v", err)
				}
			})
		}
		all.Wait()
		told := r.told(channel.WorkerResult)
		for _, id := range ids {
			if got := r.get(id); got.Status != Succeeded || len(told[id]) != 1 {
				t.Errorf("%s is %s, with %d results", id, got.Status, len(told[id]))
			}
		}
		r.checkClean()
	})
}

// A partition that Redis refuses does not stop the others of the same call.
func TestRefusedPartition(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		var places [4]string
		for i := 0; slices.Contains(places[:], ""); i++ {
			place := fmt.Sprint("c", i)
			places[r.q.keys.Partition(conv(place).Key())] = place
		}
		for _, place := range places {
			r.enqueue(draft(place, place))
		}
		s.Client.Del(t.Context(), r.q.keys.In(2, "t:ready"))
		s.Client.Set(t.Context(), r.q.keys.In(2, "t:ready"), "not ours", 0)
		c := newClaimer(r.q, "n")
		got, outs, err := c.ask(t.Context(), []want{{0, 1, ""}, {1, 1, ""}, {2, 1, ""}, {3, 1, ""}}, []room{{class(Standard, ""), 9}})
		if err == nil || len(got) != 3 || len(outs) != 3 || len(c.open) != 1 {
			t.Errorf("took %d of %d partitions, %d are open: %v", len(got), len(outs), len(c.open), err)
		}
	})
}

// What is told of new heads is kept until an answer that knows of it, in the order
// of scores, and not behind what is not known.
func TestPlan(t *testing.T) {
	t.Parallel()
	b := newBoard(2)
	for p := range 2 {
		b.learn(p, b.asking(p), outlook{later: -1}, epoch)
	}
	asked := b.asking(0)
	b.hearOf(0, "3")
	b.hearOf(1, "2")
	if got, want := b.plan(5), []want{{1, 1, ""}, {0, 1, ""}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	b.learn(0, asked, outlook{scores: []string{"1", "5"}, more: true, later: -1}, epoch)
	b.hearOf(0, "7") // behind what nobody has told
	if got, want := b.plan(3), []want{{0, 2, "5"}, {1, 1, "5"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// What follows the last known head may be better than another partition's.
	b.hearOf(1, "6")
	if got, want := b.plan(9), []want{{0, 3, "5"}, {1, 1, "5"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := b.news(epoch); len(got) != 0 {
		t.Errorf("news of %v", got)
	}
	// An answer that is older than what was told meanwhile does not make it forgotten,
	// whatever was known then.
	b.learn(0, b.asking(0), outlook{scores: []string{"1"}, more: true, later: -1}, epoch)
	b.learn(1, b.asking(1), outlook{later: -1}, epoch)
	asked = b.asking(0)
	b.hearOf(0, "9")
	b.learn(0, asked, outlook{later: -1}, epoch)
	if got, want := b.plan(9), []want{{0, 1, ""}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// What is too much to remember is looked up.
	for i := range mostHints + 1 {
		b.hearOf(1, fmt.Sprint(100+i))
	}
	if got := b.news(epoch); !slices.Equal(got, []int{1}) {
		t.Errorf("news of %v", got)
	}
	b.learn(1, b.asking(1), outlook{later: -1}, epoch)
	b.learn(0, b.asking(0), outlook{more: true, later: -1}, epoch)
	if got := b.news(epoch); !slices.Equal(got, []int{0}) {
		t.Errorf("news of %v", got)
	}
}

// A node that has filled itself with tasks of one conversation knows that there are
// more, and takes the next as soon as there is room.
func TestFullOfOnePartition(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for i := range 9 {
			r.enqueue(draft("c", fmt.Sprint(i)))
		}
		began := time.Now()
		r.pool("n", func(context.Context, *Run) (Outcome, error) {
			time.Sleep(time.Second)
			return Outcome{}, nil
		}, func(o *PoolOptions) { o.MaxConcurrent = 3 })
		time.Sleep(8 * time.Second)
		page, err := r.q.List(t.Context(), Filter{Status: []Status{Succeeded}}, "", 100)
		if err != nil || len(page.Tasks) != 9 {
			t.Fatalf("%d have succeeded, %v", len(page.Tasks), err)
		}
		for _, x := range page.Tasks {
			if took := x.CompletedAt.Sub(began); took > 4*time.Second {
				t.Errorf("%s ended after %s", x.Title, took)
			}
		}
	})
}

// A key that holds something else is found before anything of its partition is
// changed, also when the ops of several partitions go in one call.
func TestWrongKeysOfOneOfMany(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		var calls []call
		ids := map[int]string{}
		for i := 0; len(ids) < 2; i++ {
			made, c, err := r.q.Issuer().Create(draft(fmt.Sprint("c", i), "x"))
			if err != nil {
				t.Fatal(err)
			}
			_, p, _ := ParseID(made.ID)
			if ids[p] != "" {
				continue
			}
			ids[p] = made.ID
			args := make([]any, len(c.Args))
			for j, a := range c.Args {
				args[j] = a
			}
			calls = append(calls, r.q.spellOps(p, []*op{{p: p, own: c.Keys[fixedKeys:], args: args}}))
		}
		bad := calls[1].p
		s.Client.Set(ctx, r.q.keys.In(bad, "t:ready"), "no set", 0)
		got := r.q.sendAll(ctx, calls)
		if got[0].err != nil || got[1].err == nil {
			t.Fatalf("%v, %v", got[0].err, got[1].err)
		}
		if n := s.Client.HLen(ctx, rowsKey(r.q.keys, bad)).Val(); n != 0 {
			t.Errorf("what was refused has left %d rows", n)
		}
		if n := s.Client.HLen(ctx, rowsKey(r.q.keys, calls[0].p)).Val(); n != 1 {
			t.Errorf("beside it there are %d rows, want 1", n)
		}
	})
}
