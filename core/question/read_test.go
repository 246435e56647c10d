package question

import (
	"fmt"
	"testing"

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
