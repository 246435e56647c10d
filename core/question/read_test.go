package question

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// What is open is listed, the newest first, however much is open and whatever was closed
// since; what cannot be read hides no other.
func TestEachOpen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		const n = 1100
		var want []string
		for i := range n {
			q := r.ask(deploy(fmt.Sprint("d", (i*7)%n))) // places do not sort as times do
			if i%100 == 50 {
				if err := r.st.Withdraw(t.Context(), q, "x"); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want = append(want, q.ID)
		}
		slices.Sort(want)
		slices.Reverse(want)
		_, p, _ := ParseID(want[5])
		s.Client.HSet(t.Context(), stateKey(r.keys, p), want[5], "{")
		want = slices.Delete(want, 5, 6)
		var got []string
		for q, err := range r.st.EachOpen(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, q.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d are open, the first %q; want %d, the first %q", len(got), got[0], len(want), want[0])
		}
		for q, err := range r.st.EachOpen(t.Context()) {
			if err != nil || q.ID != want[0] {
				t.Errorf("%+v, %v", q, err)
			}
			break
		}
		if n, err := r.st.CountOpen(t.Context()); err != nil || n != len(want)+1 {
			t.Errorf("%d are open, %v", n, err)
		}
	})
}

// What was closed since a time is listed, of its conversation alone.
func TestClosedSince(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		first, second, open := r.ask(deploy("c")), r.ask(deploy("c")), r.ask(deploy("c"))
		elsewhere := r.ask(deploy("d"))
		if err := r.st.Withdraw(t.Context(), first, "x"); err != nil {
			t.Fatal(err)
		}
		for _, q := range []Question{second, elsewhere} {
			if _, _, err := r.st.Answer(t.Context(), q, Answer{By: ann, Text: "staging", Option: "staging", How: ByButton, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := r.st.ClosedSince(t.Context(), conv("c"), r.get(first.ID).AnsweredAt)
		if err != nil || len(list) != 2 || list[0].ID != first.ID && list[1].ID != first.ID || list[0].Status == Open || list[1].Status == Open {
			t.Errorf("%+v, %v; %s is open", list, err, open.ID)
		}
		if list, err = r.st.ClosedSince(t.Context(), conv("c"), r.get(second.ID).AnsweredAt.Add(time.Millisecond)); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
