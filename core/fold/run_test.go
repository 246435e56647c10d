package fold

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/store/storetest"
)

// bubble runs f in a synctest bubble with a miniredis and a running folder.
func bubble(t *testing.T, change func(*Options), f func(t *testing.T, r *rig, m *model, f *Folder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, m := newRig(t, storetest.Mini(t)), &model{}
		fo := folder(t, r.h, m, func(o *Options) {
			if change != nil {
				change(o)
			}
		})
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() { over <- fo.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-over; err != nil {
				t.Errorf("run ended with %v", err)
			}
		}()
		f(t, r, m, fo)
	})
}

func TestOffersAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, r *rig, m *model, f *Folder) {
		start := time.Now()
		f.Offer("") // nobody's
		for n := range 11 {
			r.say("c", n, n+1, 5)
			f.Offer("c")
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		calls := m.called()
		if len(calls) != 1 || calls[0].at.Sub(start) != 5*time.Second || f.Waiting() != 0 {
			t.Errorf("%d calls, %d waiting; want one call 5 s after the first offer", len(calls), f.Waiting())
		}
		r.check("c", 11)
	})
}

func TestALongHistoryIsFoldedInTurns(t *testing.T) {
	t.Parallel()
	bubble(t, func(o *Options) { o.Batch = 50 }, func(t *testing.T, r *rig, m *model, f *Folder) {
		for _, c := range []string{"a", "b", "c"} {
			r.say(c, 0, 24, 24) // two lines a call, until there are ten
			f.Offer(c)
		}
		time.Sleep(time.Minute)
		calls := m.called()
		if len(calls) != 21 {
			t.Fatalf("%d calls, want 21", len(calls))
		}
		for i, c := range calls {
			if want := []string{"a", "b", "c"}[i%3]; c.conversation != want {
				t.Fatalf("call %d is for %s, want %s: they take turns", i, c.conversation, want)
			}
		}
		for _, c := range []string{"a", "b", "c"} {
			if n := r.check(c, 24); n != 14 {
				t.Errorf("%s: %d folded", c, n)
			}
		}
	})
}

func TestFailuresBackOff(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	failed := map[string]int{}
	hook := func(o *Options) {
		o.Failed = func(c string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if !errors.Is(err, errModel) {
				t.Errorf("failed with %v", err)
			}
			failed[c]++
		}
	}
	bubble(t, hook, func(t *testing.T, r *rig, m *model, f *Folder) {
		m.set(errModel, nil)
		r.say("bad", 0, 11, 5)
		f.Offer("bad")
		for range 12 * 60 { // offers do not hasten it
			time.Sleep(time.Minute)
			f.Offer("bad")
		}
		calls := m.called()
		var waits []time.Duration
		for i := range calls[1:] {
			waits = append(waits, calls[i+1].at.Sub(calls[i].at))
		}
		want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour}
		for i, w := range waits {
			if w != want[min(i, len(want)-1)] {
				t.Fatalf("waits %v", waits)
			}
		}
		if len(waits) < 15 || failed["bad"] != len(calls) {
			t.Errorf("%d calls in 12 hours, %d of them told", len(calls), failed["bad"])
		}
		// Others do not wait for it, and when the model is back, neither does it.
		m.set(nil, nil)
		r.say("good", 0, 11, 5)
		f.Offer("good")
		time.Sleep(6 * time.Second)
		r.check("good", 11)
		if p := r.past("good"); p.Summary.Version != 1 {
			t.Error("the good one was not folded")
		}
		time.Sleep(time.Hour)
		if n := r.check("bad", 11); n != 7 || f.Waiting() != 0 {
			t.Errorf("%d folded, %d waiting", n, f.Waiting())
		}
	})
}

func TestJitter(t *testing.T) {
	t.Parallel()
	f := folder(t, newRig(t, storetest.Mini(t)).h, &model{})
	for fails := range 100 {
		least, most := time.Hour, time.Duration(0)
		for x := range uint64(1000) {
			f.o.Rand = func() uint64 { return x * 18_446_744_073_709_551 }
			w := f.backoff(fails)
			least, most = min(least, w), max(most, w)
		}
		whole := min(30*time.Second<<min(fails, 20), time.Hour)
		if least < whole/2 || most > whole || most-least < whole/3 {
			t.Fatalf("after %d failures it waits %s to %s", fails, least, most)
		}
	}
}

// An outage of Redis is a failure as any other.
func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, raw := storetest.MiniRaw(t)
		r, m := newRig(t, s), &model{}
		f := folder(t, r.h, m)
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() { over <- f.Run(ctx) }()
		r.say("c", 0, 11, 5)
		raw.SetError("LOADING Redis is loading the dataset in memory")
		f.Offer("c")
		time.Sleep(time.Hour)
		raw.SetError("")
		time.Sleep(time.Hour)
		if n := r.check("c", 11); n != 7 || len(m.called()) != 1 {
			t.Errorf("%d folded in %d calls", n, len(m.called()))
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

func TestIdle(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, r *rig, m *model, f *Folder) {
		r.say("idle", 0, 3, 5)
		r.say("back", 0, 3, 5)
		f.OfferIdle("idle")
		f.OfferIdle("back")
		f.Offer("back") // somebody spoke
		time.Sleep(time.Minute)
		if n := r.check("idle", 3); n != 3 {
			t.Errorf("%d of 3 lines are folded", n)
		}
		if n := r.check("back", 3); n != 0 {
			t.Errorf("%d lines of a conversation that is not idle are folded", n)
		}
	})
}

// Two nodes that are offered the same ask the model once.
func TestOneNodeAsks(t *testing.T) {
	t.Parallel()
	slow := func(context.Context) { time.Sleep(30 * time.Second) }
	bubble(t, func(o *Options) { o.Workers = 3 }, func(t *testing.T, r *rig, m *model, f *Folder) {
		m.set(nil, slow)
		two := folder(t, r.histories(storetest.Another(t, r.s)), m, func(o *Options) { o.Rand = func() uint64 { return 1 } })
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() { over <- two.Run(ctx) }()
		for i := range 4 {
			c := fmt.Sprint("c", i)
			r.say(c, 0, 11, 5)
			f.Offer(c)
			two.Offer(c)
		}
		time.Sleep(10 * time.Minute)
		if n := len(m.called()); n != 4 {
			t.Errorf("%d model calls for 4 folds", n)
		}
		for i := range 4 {
			if n := r.check(fmt.Sprint("c", i), 11); n != 7 {
				t.Errorf("%d folded", n)
			}
		}
		if f.Waiting() != 0 || two.Waiting() != 0 {
			t.Errorf("%d and %d wait for nothing", f.Waiting(), two.Waiting())
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// No more folds at a time than there are workers, and as many when there is work.
func TestWorkers(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3} {
		running, most := 0, 0
		var mu sync.Mutex
		bubble(t, func(o *Options) { o.Workers = workers }, func(t *testing.T, r *rig, m *model, f *Folder) {
			m.set(nil, func(context.Context) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(10 * time.Second)
				mu.Lock()
				running--
				mu.Unlock()
			})
			for i := range 9 {
				r.say(fmt.Sprint(i), 0, 11, 5)
				f.Offer(fmt.Sprint(i))
			}
			time.Sleep(5*time.Second + time.Duration(90/workers)*time.Second + time.Second)
			mu.Lock()
			defer mu.Unlock()
			if n := len(m.called()); n != 9 || running != 0 {
				t.Errorf("%d workers made %d of 9 calls in their time, %d still run", workers, n, running)
			}
		})
		if most != workers {
			t.Errorf("%d folds at a time, want %d", most, workers)
		}
	}
}

// A stop gives the fold up at once, changes nothing, and gives the claim back.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, m := newRig(t, storetest.Mini(t)), &model{}
		m.set(nil, func(ctx context.Context) { <-ctx.Done() })
		f := folder(t, r.h, m)
		r.say("c", 0, 11, 5)
		f.Offer("c") // before it runs
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() { over <- f.Run(ctx) }()
		time.Sleep(10 * time.Second)
		stopped := time.Now()
		cancel()
		if err := <-over; err != nil || time.Since(stopped) != 0 {
			t.Errorf("%v after %s", err, time.Since(stopped))
		}
		if len(m.called()) != 1 || r.past("c").Summary.Version != 0 {
			t.Errorf("%d calls, summary %+v", len(m.called()), r.past("c").Summary)
		}
		// Run anew, it goes on with what was offered.
		m.set(nil, nil)
		ctx, cancel = context.WithCancel(context.Background())
		go func() { over <- f.Run(ctx) }()
		time.Sleep(6 * time.Second)
		if n := r.check("c", 11); n != 7 {
			t.Errorf("%d folded", n)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
