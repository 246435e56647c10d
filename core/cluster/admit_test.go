package cluster_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"mimikit/core/cluster"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Of what many nodes offer at once just so many are admitted, those again whenever they
// are offered again; one refusal is the first; another minute, and another name, begin
// anew.
func TestAdmit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		prefix := storetest.Prefix(t)
		nodes := []*cluster.Cluster{cluster.New(cluster.Options{Client: s.Client, Prefix: prefix}), cluster.New(cluster.Options{Client: s.Client, Prefix: prefix})}
		at := time.Date(2026, 11, 21, 10, 0, 59, 0, time.UTC)
		const most, offered = 5, 40
		var mu sync.Mutex
		var all sync.WaitGroup
		in, firsts := map[string]bool{}, 0
		for i := range offered {
			all.Go(func() {
				thing := fmt.Sprint(i)
				ok, first, err := nodes[i%2].Admit(t.Context(), "ann", thing, at, most)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if ok {
					in[thing] = true
				}
				if first {
					firsts++
				}
			})
		}
		all.Wait()
		if len(in) != most || firsts != 1 {
			t.Fatalf("%d were admitted and %d refusals were the first; want %d and 1", len(in), firsts, most)
		}
		for i := range offered {
			ok, first, err := nodes[0].Admit(t.Context(), "ann", fmt.Sprint(i), at, most)
			if err != nil || ok != in[fmt.Sprint(i)] || first {
				t.Errorf("offered again, %d is admitted: %v, first: %v, %v", i, ok, first, err)
			}
		}
		for name, when := range map[string]time.Time{"ann": at.Add(time.Second), "bob": at} {
			if ok, _, err := nodes[0].Admit(t.Context(), name, "x", when, most); !ok || err != nil {
				t.Errorf("%s at %s is not admitted: %v", name, when, err)
			}
		}
		if ttl, err := s.Client.TTL(t.Context(), "{"+prefix+":cluster:admit:bob:"+fmt.Sprint(at.Unix()/60)+"}:in").Result(); err != nil || ttl <= 0 || ttl > 10*time.Minute {
			t.Errorf("it is remembered for %s, %v", ttl, err)
		}
		if _, _, err := nodes[0].Admit(t.Context(), "ann", "x", at, 0); err == nil {
			t.Error("a bound of 0 was taken")
		}
	})
}

// What was not admitted stays so, and its author is not told anew, as long as a look back
// at what was missed may bring it again: they were told to say it again, and have.
func TestAdmitLooksBack(t *testing.T) {
	t.Parallel()
	s, redis := storetest.MiniRaw(t)
	c := cluster.New(cluster.Options{Client: s.Client})
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, after := range []time.Duration{0, 9 * time.Minute, 11 * time.Minute, 12 * time.Hour} {
		redis.FastForward(after)
		order := []int{0, 1, 2, 3}
		if after > 0 { // what was said elsewhere may be brought first, or not at all
			order = []int{3, 2, 1, 0}
		}
		for _, i := range order {
			ok, first, err := c.Admit(t.Context(), "ann", fmt.Sprint(i), at, 2)
			if err != nil || ok != (i < 2) || first != (after == 0 && i == 2) {
				t.Errorf("%s later %d is admitted: %v, first: %v, %v", after, i, ok, first, err)
			}
		}
	}
	redis.FastForward(27 * time.Hour)
	if n := len(redis.Keys()); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// BenchmarkAdmit is what a bound on a person's rate costs a message.
func BenchmarkAdmit(b *testing.B) {
	c := cluster.New(cluster.Options{Client: storetest.Mini(b).Client})
	at := time.Now()
	for i := 0; b.Loop(); i++ {
		if _, _, err := c.Admit(b.Context(), "ann", fmt.Sprint(i), at, 30); err != nil {
			b.Fatal(err)
		}
	}
}
