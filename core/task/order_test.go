package task

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// drain claims all that there is in partition 0, ending each run at once, and
// gives the titles in the order in which they were claimed.
func (r *rig) drain(c *claimer) []string {
	r.t.Helper()
	var titles []string
	for {
		run := r.claim(c, 0)
		if run == nil {
			return titles
		}
		titles = append(titles, run.Task.Title)
		r.settle(run, how("succeed"))
	}
}

// aged makes pending tasks look as if they had been enqueued at other times. It
// must be called before anything is claimed.
func (r *rig) aged(id string, by time.Duration) {
	r.t.Helper()
	ctx := r.t.Context()
	old := r.get(id)
	st := r.stateOf(id)
	was := number(st["enqueued"].(string))
	at := was - by.Milliseconds()
	class, conv := st["class"].(string), st["conv"].(string)
	g := class + " " + conv
	place := func(at int64) string {
		return fmt.Sprintf("%016d %02d %s %s", at-int64(old.Priority)*PriorityStep.Milliseconds(), old.Priority, st["seq"], id)
	}
	q, ready, order := r.q.keys.In(0, "t:queue"), r.q.keys.In(0, "t:ready"), r.q.keys.In(0, "t:order")
	s := r.s.Client
	had := strings.SplitN(s.HGet(ctx, order, g).Val(), " ", 4)
	if had[3] == place(was) {
		had[3] = place(at)
	} else {
		if n := s.ZRem(ctx, q, g+" "+place(was)).Val(); n != 1 {
			r.t.Fatalf("%q does not wait", place(was))
		}
		front, back := had[3], place(at)
		if back < front {
			front, back = back, front
		}
		had[3] = front
		s.ZAdd(ctx, q, z(0, g+" "+back))
	}
	if behind := s.ZRangeByLex(ctx, q, lex("["+g+" ", "("+g+"!")).Val(); len(behind) > 0 && behind[0] < g+" "+had[3] {
		// It is not the oldest any more.
		s.ZRem(ctx, q, behind[0])
		s.ZAdd(ctx, q, z(0, g+" "+had[3]))
		had[3] = strings.TrimPrefix(behind[0], g+" ")
	}
	st["enqueued"] = fmt.Sprint(at)
	data, err := json.Marshal(st)
	if err != nil {
		r.t.Fatal(err)
	}
	s.HSet(ctx, stateKey(r.q.keys, 0), id, data)
	s.ZRem(ctx, ready, class+" "+had[1]+" "+conv)
	since := min(number(had[0]), at)
	score := fmt.Sprintf("%016d", since-number(strings.Fields(had[3])[1])*PriorityStep.Milliseconds())
	s.ZAdd(ctx, ready, z(0, class+" "+score+" "+conv))
	s.HSet(ctx, order, g, fmt.Sprintf("%d %s %s %s", since, score, had[2], had[3]))
}

// Within a conversation: priority with aging, then age, exactly.
func TestOrderWithinAConversation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		type entry struct {
			title    string
			priority int
			age      time.Duration
		}
		// Sorted as they are to run: the score is age in minutes plus priority.
		list := []entry{
			{"10 now", 10, 0},
			{"0 for 9.5 min", 0, 9*time.Minute + 30*time.Second},
			{"5 for 4 min", 5, 4 * time.Minute},
			{"7 for 1 min", 7, time.Minute},
			{"6 for 50 s", 6, 50 * time.Second},
			{"5 for 2 s", 5, 2 * time.Second},
			{"5 for 1 s", 5, time.Second},
			{"0 now", 0, 0},
		}
		want := make([]string, len(list))
		for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(len(list)) {
			e := list[i]
			want[i] = e.title
			d := draft("c", e.title)
			d.Priority = new(e.priority)
			r.aged(r.enqueue(d), e.age)
		}
		if got := r.drain(newClaimer(r.q, "n")); !slices.Equal(got, want) {
			t.Errorf("ran %q,\nwant %q", got, want)
		}
		r.checkClean()
	})
}

// Priority counts from the first moment, within a conversation and between them.
func TestPriority(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		for _, x := range []struct {
			place    string
			priority int
		}{{"a", 2}, {"a", 4}, {"b", 3}, {"a", 8}, {"c", 9}, {"b", 5}} {
			d := draft(x.place, fmt.Sprintf("%s%d", x.place, x.priority))
			d.Priority = new(x.priority)
			r.enqueue(d)
		}
		if got, want := r.drain(newClaimer(r.q, "n")), []string{"c9", "a8", "b5", "a4", "b3", "a2"}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

// A conversation with many tasks takes turns with those that have few, and waiting
// beats priority in the end.
func TestFairBetweenConversations(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		for i := range 20 {
			r.enqueue(draft("flood", fmt.Sprintf("flood %02d", i)))
		}
		for _, c := range []string{"a", "b"} {
			for i := range 3 {
				r.enqueue(draft(c, fmt.Sprintf("%s %d", c, i)))
			}
		}
		got := r.drain(newClaimer(r.q, "n"))
		for _, c := range []string{"a", "b"} {
			if last := slices.Index(got, c+" 2"); last < 0 || last > 9 {
				t.Errorf("%s had its third turn at place %d: %q", c, last, got)
			}
		}
		if !slices.IsSorted(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, "flood") })) {
			t.Errorf("within a conversation the order is lost: %q", got)
		}

		// An urgent flood goes first, but not for ever.
		patient := draft("patient", "patient")
		id := r.enqueue(patient)
		for i := range 5 {
			d := draft("flood", fmt.Sprintf("urgent %d", i))
			d.Priority = new(10)
			r.enqueue(d)
		}
		if run := r.claim(newClaimer(r.q, "n"), 0); run == nil || run.Task.Title != "urgent 0" {
			t.Errorf("%+v", run)
		} else {
			r.settle(run, how("succeed"))
		}
		r.aged(id, 6*time.Minute)
		if got := r.drain(newClaimer(r.q, "n")); got[0] != "patient" {
			t.Errorf("%q", got)
		}
		r.checkClean()
	})
}

// A conversation at its cap waits without standing in the way, and goes on when
// one of its tasks ends, however it ends.
func TestCapOfAConversation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one, func(o *Options) { o.MaxPerConversation = 2 })
		c := newClaimer(r.q, "n")
		var busy []*Run
		for i := range 6 {
			d := draft("busy", fmt.Sprintf("busy %d", i))
			if i%2 == 1 {
				d.Profile = Expert
			}
			r.enqueue(d)
		}
		for range 2 {
			busy = append(busy, r.claim(c, 0))
		}
		if run := r.claim(c, 0); run != nil {
			t.Fatalf("%s runs beyond the cap", run.Task.Title)
		}
		r.enqueue(draft("other", "other"))
		other := r.claim(c, 0)
		if other == nil || other.Task.Title != "other" {
			t.Fatalf("%+v", other)
		}
		// One that waits is canceled; nothing is unparked by that.
		waiting, err := r.q.List(t.Context(), Filter{Status: []Status{Pending}}, "", 10)
		if err != nil || len(waiting.Tasks) != 4 {
			t.Fatalf("%d wait, %v", len(waiting.Tasks), err)
		}
		if _, err := r.q.Cancel(t.Context(), waiting.Tasks[0].ID, bob, ""); err != nil {
			t.Fatal(err)
		}
		if run := r.claim(c, 0); run != nil {
			t.Fatalf("%s runs beyond the cap", run.Task.Title)
		}
		for i, end := range []string{"succeed", "back", "lapse", "succeed"} {
			r.settle(busy[i], how(end))
			next := r.claim(c, 0)
			if next == nil {
				t.Fatalf("after %s nothing goes on", end)
			}
			busy = append(busy, next)
			if run := r.claim(c, 0); run != nil {
				t.Fatalf("%s runs beyond the cap", run.Task.Title)
			}
		}
		for _, run := range append(busy[4:], other) {
			r.settle(run, how("final"))
		}
		r.drain(c)
		r.checkClean()
	})
}

// A worker takes only what it can do: its profiles, and the storages mounted with it.
func TestClasses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		c := newClaimer(r.q, "n")
		for _, d := range []Draft{
			{Title: "disk", Profile: Standard, Storage: "disk/1 @x"}, {Title: "plain", Profile: Standard}, {Title: "expert", Profile: Expert},
		} {
			d.Prompt, d.Conversation, d.Requester = d.Title, conv("c"), ann
			r.enqueue(d)
		}
		for _, step := range []struct {
			classes []string
			want    string
		}{
			{nil, ""},
			{[]string{class(Planner, ""), class(Standard, "disk/2")}, ""},
			{[]string{class(Standard, "")}, "plain"},
			{[]string{class(Standard, "")}, ""},
			{[]string{class(Standard, ""), class(Standard, "disk/1 @x")}, "disk"},
			{[]string{class(Expert, "")}, "expert"},
		} {
			got, _, err := c.claim(t.Context(), 0, step.classes, "")
			switch {
			case err != nil:
				t.Fatal(err)
			case got == nil && step.want != "", got != nil && got.task.Title != step.want:
				t.Errorf("%v: took %+v, want %q", step.classes, got, step.want)
			}
		}
	})
}

// Of several partitions the best head goes first.
func TestBestAcrossPartitions(t *testing.T) {
	t.Parallel()
	b := newBoard(5)
	now := epoch
	for p, score := range []string{"0000000000000007", "", "0000000000000003", "0000000000000005", "0000000000000009"} {
		b.learn(p, b.asking(p), outlook{scores: strings.Fields(score), later: -1}, now)
	}
	if got, want := b.plan(1), []want{{2, 1, "0000000000000005"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	// What is heard while one asks is not forgotten for the answer.
	asked := b.asking(1)
	b.hear(1)
	b.learn(1, asked, outlook{later: 5 * time.Second}, now)
	if got := b.news(now); !slices.Equal(got, []int{1}) {
		t.Errorf("news of %v", got)
	}
	b.learn(1, b.asking(1), outlook{later: 5 * time.Second}, now)
	if got := b.news(now.Add(4 * time.Second)); len(got) != 0 {
		t.Errorf("news of %v", got)
	}
	if got := b.nextDue(now.Add(time.Second), time.Hour); got != 4*time.Second {
		t.Errorf("next in %s", got)
	}
	if got := b.news(now.Add(5 * time.Second)); !slices.Equal(got, []int{1}) {
		t.Errorf("news of %v", got)
	}
	// An answer that was asked for before a later one does not replace it.
	early := b.asking(2)
	b.hear(2)
	b.learn(2, b.asking(2), outlook{later: -1}, now)
	b.learn(2, early, outlook{scores: []string{"0000000000000001"}, later: -1}, now)
	if got := b.plan(1); got[0].p != 3 {
		t.Errorf("%v", got)
	}
}
