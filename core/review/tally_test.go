package review

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

func tally(t *testing.T, s *store.Store, prefix, id string, now *time.Time) *Tally {
	t.Helper()
	return NewTally(TallyOptions{Client: s.Client, Prefix: prefix, ID: id, Now: func() time.Time { return *now }})
}

func flush(t *testing.T, all ...*Tally) {
	t.Helper()
	for _, c := range all {
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, c *Tally, day time.Time) Counts {
	t.Helper()
	got, err := c.Read(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What all nodes counted is summed, day by day, and ends by itself.
func TestTally(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		prefix, now := storetest.Prefix(t), noon
		a, b := tally(t, s, prefix, "a", &now), tally(t, s, prefix, "b", &now)
		a.Add("in:slack:accepted", 2)
		b.Add("in:slack:accepted", 3)
		a.Took("hop:outbox", 1200*time.Millisecond)
		flush(t, a, b)
		a.Add("in:slack:accepted", 1)
		b.Took("hop:outbox", 1250*time.Millisecond)
		flush(t, a, a, b, b)
		now = now.AddDate(0, 0, 1)
		a.Add("in:slack:accepted", 100)
		flush(t, a)
		got := read(t, b, noon)
		if diff := cmp.Diff(map[string]int64{"in:slack:accepted": 6}, got.N); diff != "" || got.Timed("hop:outbox") != 2 {
			t.Errorf("times %v, -want +got:\n%s", got.Times, diff)
		}
		if n := read(t, a, now).N["in:slack:accepted"]; n != 100 {
			t.Errorf("the next day has %d", n)
		}
		ttl := s.Client.TTL(t.Context(), tallyKey(prefix, now)).Val()
		if ttl <= 0 || time.Until(now)+ttl < -usage.Retention {
			t.Errorf("a day ends in %s", ttl)
		}
		if len(a.days) > 1 {
			t.Errorf("days that are over are kept: %v", a.days)
		}
	})
}

// What could not be told is told later, once, even if it had arrived.
func TestTallyInAnOutage(t *testing.T) {
	t.Parallel()
	s, m := storetest.MiniRaw(t)
	now := noon
	c := tally(t, s, "x", "a", &now)
	c.Add("n", 1)
	m.SetError("LOADING Redis is loading the dataset in memory")
	if err := c.Flush(t.Context()); err == nil {
		t.Error("an outage went unseen")
	}
	c.Add("n", 10)
	m.SetError("")
	flush(t, c) // the first batch again
	flush(t, c) // the second
	if n := read(t, c, noon).N["n"]; n != 11 {
		t.Errorf("%d are counted", n)
	}
	// The answer to a batch is lost: the same batch is sent again.
	c.Add("n", 100)
	flush(t, c)
	b := c.days[noon.Format(time.DateOnly)]
	b.sent = map[string]int64{"n": 100}
	flush(t, c)
	if n := read(t, c, noon).N["n"]; n != 111 {
		t.Errorf("%d are counted, want a repeat to change nothing", n)
	}
}

func TestTallyIsBounded(t *testing.T) {
	t.Parallel()
	now := noon
	c := NewTally(TallyOptions{Client: storetest.Mini(t).Client, Now: func() time.Time { return now }})
	for i := range maxFields + 50 {
		c.Add(fmt.Sprint("n", i), 1)
	}
	for range 20 {
		now = now.AddDate(0, 0, 1)
		c.Add("n", 1)
	}
	if n := len(c.days); n != maxWait {
		t.Errorf("%d days wait", n)
	}
	for day, b := range c.days {
		if len(b.counts) > maxFields {
			t.Errorf("%s has %d names", day, len(b.counts))
		}
	}
}

func TestTallyRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Mini(t)
		c := NewTally(TallyOptions{Client: s.Client})
		look := func() int64 { return read(t, c, time.Now()).N["n"] }
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- c.Run(ctx) }()
		c.Add("n", 1)
		time.Sleep(11 * time.Second) // of the bubble's clock
		if n := look(); n != 1 {
			t.Errorf("after a while %d", n)
		}
		c.Add("n", 1)
		cancel()
		if err := <-done; err != nil || look() != 2 {
			t.Errorf("at the end %d, %v", look(), err)
		}
	})
}

func TestShare(t *testing.T) {
	t.Parallel()
	now := noon
	s := storetest.Mini(t)
	c := tally(t, s, "x", "a", &now)
	var wait sync.WaitGroup
	for i := 1; i <= 1000; i++ {
		wait.Go(func() { c.Took("k", time.Duration(i)*10*time.Millisecond) })
	}
	wait.Wait()
	flush(t, c)
	got := read(t, c, noon)
	for share, want := range map[float64]time.Duration{0.5: 5 * time.Second, 0.99: 9900 * time.Millisecond, 1: 10 * time.Second, 0.001: 10 * time.Millisecond} {
		if d := got.Share("k", share); float64(d) < 0.94*float64(want) || float64(d) > 1.06*float64(want) {
			t.Errorf("%.3f of them within %s, want about %s", share, d, want)
		}
	}
	if d := got.Share("none", 0.5); d != 0 {
		t.Errorf("of none %s", d)
	}
	if bucket(-time.Second) != 0 || bucket(1<<62) > 300 {
		t.Errorf("buckets %d and %d", bucket(-time.Second), bucket(1<<62))
	}
}
