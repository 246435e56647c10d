package usage_test

import (
	"testing"

	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

// One call with three budgets: what is added to the seconds that a model takes.
func BenchmarkCall(b *testing.B) {
	s := storetest.Redis(b)
	l := usage.New(usage.Options{Client: s.Client, Prefix: storetest.Prefix(b), Budgets: usage.Budgets{
		User: usage.Limit{Tokens: 1e15}, Place: usage.Limit{Tokens: 1e15}, Workspace: usage.Limit{Money: 1e15},
	}})
	for b.Loop() {
		c := charge()
		h, err := l.Reserve(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Settle(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
