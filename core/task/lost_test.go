package task

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Each script in turn does its work and its answer is lost, twice: the caller is
// answered like the first time, and nothing is done twice.
func TestLostAnswers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		f := newFlaky(1, 0, 0, s)
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		d := draft("c", "x")
		d.Retry = &Retry{MaxAttempts: 3}
		f.loseNext()
		id, created, err := r.q.Enqueue(ctx, d)
		if err != nil || !created {
			t.Errorf("create: %v, %v", created, err)
		}
		c := newClaimer(r.q, "n")
		f.loseNext()
		run := r.claim(c, 0)
		if run == nil || run.Task.ID != id || run.Task.Attempts != 1 {
			t.Fatalf("claim: %+v", run)
		}
		f.loseNext()
		must(run.SaveCheckpoint(ctx, []byte("1")))
		f.loseNext()
		must(run.Report(ctx, Event{Kind: "e"}))
		if events, err := r.q.Progress(ctx, id, 10); err != nil || len(events) != 1 {
			t.Errorf("%d events, %v", len(events), err)
		}
		for _, end := range []struct {
			how string
			to  Status
		}{{"back", Pending}, {"fail", Deferred}, {"lapse", Pending}, {"ask", Waiting}} {
			f.loseNext()
			v := how(end.how, "asked", "q", "question", `{"id":"q"}`, "error", "no")
			v.usage["calls"] = "1"
			if to := r.settle(run, v); to != end.to {
				t.Errorf("%s: %s", end.how, to)
			}
			switch end.to {
			case Deferred:
				s.Client.ZAdd(ctx, r.q.keys.In(0, "t:deferred"), z(0, id))
			case Waiting:
				f.loseNext()
				must(r.q.Answer(ctx, conv("c"), id, "q", "that", ann))
			}
			if run = r.claim(c, 0); run == nil {
				t.Fatalf("after %s there is nothing to claim", end.how)
			}
		}
		if got := run.Task; got.Attempts != 3 || got.Retries != 1 || got.Lapses != 1 || got.Usage.Calls != 4 {
			t.Errorf("%+v", got)
		}
		f.loseNext()
		if c, err := r.q.Cancel(ctx, id, bob, "x"); err != nil || c.Did != DidFlag {
			t.Errorf("cancel of what runs: %+v, %v", c, err)
		}
		f.loseNext()
		if to := r.settle(run, how("succeed")); to != Canceled {
			t.Errorf("%s", to)
		}
		second := r.enqueue(draft("c", "y"))
		f.loseNext()
		if c, err := r.q.Cancel(ctx, second, bob, "x"); err != nil || c.Did != DidEnd {
			t.Errorf("cancel of what waits: %+v, %v", c, err)
		}
		f.loseNext()
		must(r.q.Archived(ctx, second, "tasks/y.md"))
		if got := r.get(second).ArchivePath; got != "tasks/y.md" {
			t.Errorf("archived at %q", got)
		}
		if n := s.Client.XLen(ctx, r.q.keys.Stream(0, channel.SupervisorEvent)).Val(); n != 1 {
			t.Errorf("the supervisor was told %d times of one question", n)
		}
		for id, list := range r.told(channel.WorkerResult) {
			if len(list) != 1 {
				t.Errorf("%s has %d results", id, len(list))
			}
		}
		if n := s.Client.XLen(ctx, r.q.keys.In(0, "feedback")).Val(); n != 1 {
			t.Errorf("%d notes of one failure", n)
		}
		if f.losses() < 25 {
			t.Errorf("only %d answers were lost", f.losses())
		}
		r.checkClean()
	})
}

// A script that Redis sees again after its caller has gone on changes nothing: a
// late claim begins no run that nobody knows of, a late checkpoint replaces no
// newer one.
func TestLateCalls(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		ctx := t.Context()
		var sent [][]any
		s.Client.AddHook(recorder{&sent})
		var ids []string
		for i := range 4 {
			ids = append(ids, r.enqueue(draft("c", fmt.Sprint(i))))
		}
		c := newClaimer(r.q, "n")
		first := r.claim(c, 0)
		for i := range 3 {
			if err := first.SaveCheckpoint(ctx, fmt.Appendf(nil, "%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := first.Report(ctx, Event{Kind: "e"}); err != nil {
			t.Fatal(err)
		}
		second := r.claim(c, 0)
		again := func() {
			t.Helper()
			list := sent
			for _, args := range list {
				if err := s.Client.Do(ctx, args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			sent = list
		}
		again()
		if got, err := first.Checkpoint(ctx); string(got) != "2" || err != nil {
			t.Errorf("the checkpoint is %q, %v", got, err)
		}
		if n := s.Client.HLen(ctx, r.q.keys.In(0, "t:runs")).Val(); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
		r.settle(first, how("back"))
		r.settle(second, how("succeed"))
		if run := r.claim(newClaimer(r.q, "other"), 0); run == nil || run.Task.ID != ids[0] {
			t.Errorf("%+v", run)
		}
		again()
		if n := s.Client.HLen(ctx, r.q.keys.In(0, "t:runs")).Val(); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
		for i, want := range []Status{Running, Succeeded, Pending, Pending} {
			if got := r.get(ids[i]); got.Status != want {
				t.Errorf("task %d is %s, want %s", i, got.Status, want)
			}
		}
	})
}

// A claim whose answer did not come at all is asked again, and gives what it took.
func TestUnknownClaim(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		f := newFlaky(1, 0, 0, s)
		id := r.enqueue(draft("c", "x"))
		r.enqueue(draft("c", "y"))
		c := newClaimer(r.q, "n")
		f.mu.Lock()
		f.next = 1000
		f.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if got, _, err := c.claim(ctx, 0, allClasses, ""); err == nil {
			t.Fatalf("took %+v", got)
		}
		f.mu.Lock()
		f.next = 0
		f.mu.Unlock()
		if run := r.claim(c, 0); run == nil || run.Task.ID != id {
			t.Errorf("%+v", run)
		}
		if n := s.Client.HLen(t.Context(), r.q.keys.In(0, "t:runs")).Val(); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
	})
}

// The partition's commit number goes up with every script that writes, and whoever
// looks after it is told.
func TestCommitNumbers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		var seen []int64
		sentAt := int64(-1)
		r := newRig(t, s, one, func(o *Options) {
			o.Sent = func(int) int64 {
				if len(seen) > 0 {
					sentAt = seen[len(seen)-1]
				}
				return sentAt
			}
			o.Saw = func(_ context.Context, p int, sent, got int64) bool {
				if p != 0 || sent != sentAt {
					t.Errorf("partition %d, sent at %d, asked at %d", p, sent, sentAt)
				}
				seen = append(seen, got)
				return got <= sent
			}
		})
		ctx := t.Context()
		id := r.enqueue(draft("c", "x"))
		run := r.run(id)
		_ = run.SaveCheckpoint(ctx, nil)
		_, _ = r.q.shows(ctx, 0, time.Second, []*Run{run})
		r.settle(run, how("succeed"))
		if _, err := r.q.Cancel(ctx, id, bob, ""); err != nil {
			t.Fatal(err)
		}
		for i, n := range seen {
			if n != int64(i+1) {
				t.Errorf("the numbers are %v", seen)
				break
			}
		}
		if len(seen) < 7 {
			t.Errorf("only %d calls were seen", len(seen))
		}
	})
}

// A call that Redis refuses, as it does where another program has put another
// type, is refused as a whole and not repeated.
func TestRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for _, k := range fixed(r.q.keys, 0) {
			s.Client.Set(ctx, k, "not ours", 0)
			id, _, err := r.q.Enqueue(ctx, draft("c", "x"))
			if err == nil || ctx.Err() != nil {
				t.Errorf("%s holds a string, and %s was made: %v", k, id, err)
			}
			s.Client.Del(ctx, k)
			if keys := r.keysLike("t:"); len(keys) > 0 {
				t.Fatalf("%s: what was refused left %v", k, keys)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	good := Options{Issuer: Issuer{Keys: channel.Keys{Prefix: "x", Partitions: 1}}, Client: s.Client}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no client":    func(o *Options) { o.Client = nil },
		"no prefix":    func(o *Options) { o.Issuer.Keys.Prefix = "" },
		"partitions":   func(o *Options) { o.Issuer.Keys.Partitions = 2000 },
		"a negative":   func(o *Options) { o.Lease = -1 },
		"profile name": func(o *Options) { o.Issuer.Profiles = map[string]Profile{"a b": {}} },
		"backoff":      func(o *Options) { o.Issuer.Profiles = map[string]Profile{"a": {Retry: Retry{Backoff: 2 * time.Hour}}} },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	q, _ := New(good)
	runner := func(context.Context, *Run) (Outcome, error) { return Outcome{}, nil }
	for name, o := range map[string]PoolOptions{
		"no queue":    {Node: "n"},
		"no node":     {Queue: q},
		"a negative":  {Queue: q, Node: "n", MaxConcurrent: -1},
		"no runner":   {Queue: q, Node: "n", Runners: map[string]Runner{Standard: nil}},
		"a bad name":  {Queue: q, Node: "n", Runners: map[string]Runner{"a@b": runner}},
		"a bad bound": {Queue: q, Node: "n", MaxByProfile: map[string]int{Standard: 0}},
	} {
		if _, err := NewPool(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
