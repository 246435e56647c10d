package question

import (
	"fmt"
	"testing"
	"time"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// What is open is listed, however many were asked and closed since.
func TestAllOpen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		old := r.ask(deploy("c"))
		for i := range 5 {
			if err := r.st.Withdraw(t.Context(), r.ask(deploy(fmt.Sprint("d", i))), "x"); err != nil {
				t.Fatal(err)
			}
		}
		newer := r.ask(deploy("e"))
		if list, err := r.st.AllOpen(t.Context(), 3); err != nil || len(list) != 2 || list[0].ID != newer.ID || list[1].ID != old.ID {
			t.Errorf("%+v, %v", list, err)
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
