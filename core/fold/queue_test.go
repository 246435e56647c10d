package fold

import (
	"fmt"
	"testing"
	"time"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	q := newQueue(3)
	take := func(now int, want string, idle bool) {
		t.Helper()
		it, wait := q.take(at(now))
		if it.conversation != want || it.idle != idle || want == "" && wait == 0 {
			t.Errorf("at %d took %q, idle %v, wait %s; want %q, %v", now, it.conversation, it.idle, wait, want, idle)
		}
	}
	take(0, "", false)
	for i, c := range []string{"a", "b", "a", "c", "b"} { // offered again, they keep their place
		if q.offer(c, false, at(10+i)) {
			t.Errorf("%s was refused", c)
		}
	}
	if first, second := q.offer("d", false, at(0)), q.offer("d", false, at(0)); !first || second || q.len() != 3 {
		t.Errorf("refused %v, then %v, with %d waiting: it is told once", first, second, q.len())
	}
	if _, wait := q.take(at(7)); wait != 3*time.Second {
		t.Errorf("waits %s, want 3s", wait)
	}
	take(20, "a", false)
	take(20, "b", false)
	q.done("a", false, at(20), at(99)) // a has more to fold: it goes behind c, which was due before
	take(20, "c", false)
	take(20, "a", false)
	take(20, "", false)

	// Offered while it is taken, it is looked at once more; idle holds until
	// somebody speaks.
	q.offer("a", true, at(21))
	q.done("a", false, time.Time{}, at(30))
	take(29, "", false)
	take(30, "a", true)
	q.offer("a", false, at(21))
	q.done("a", true, at(40), at(30))
	it, _ := q.take(at(40))
	if it.conversation != "a" || it.idle || it.fails != 1 {
		t.Errorf("took %+v", it)
	}
	q.done("a", true, at(50), at(0))
	if it, _ = q.take(at(50)); it.fails != 2 {
		t.Errorf("took %+v", it)
	}
	q.done("a", false, at(60), at(0))
	if it, _ = q.take(at(60)); it.fails != 0 {
		t.Errorf("took %+v", it)
	}
	for _, c := range []string{"a", "b", "c"} {
		q.done(c, false, time.Time{}, at(0))
	}
	if q.len() != 0 || len(q.due) != 0 {
		t.Errorf("%d left", q.len())
	}
	for i := range 3 {
		q.offer(fmt.Sprint(i), false, at(0))
	}
	if !q.offer("x", false, at(0)) {
		t.Error("there was room again, and then none: that is told anew")
	}
}
