package trigger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// Three nodes that lose answers, send late and are killed in the middle take the
// same triggers all at once, each a little clock of its own: of every slot there is
// one task, or it was skipped once because the task of an earlier one was not over.
func TestEverySlotFiresOnce(t *testing.T) { storetest.Each(t, everySlotOnce) }

func everySlotOnce(t *testing.T, s *store.Store) {
	t.Parallel()
	const triggers, slots = 50, 10
	r := newRig(t, s, 4)
	var ids []string
	for i := range triggers {
		d := every(fmt.Sprintf("c%d", i%7), time.Hour)
		d.Title = fmt.Sprint(i)
		ids = append(ids, r.create(d).ID)
	}
	fired, skipped, open := make([]int64, triggers), make([]int64, triggers), make([]bool, triggers)
	base := time.Now().Add(time.Hour)
	// A slot ends when all its triggers have fired for it. Whoever sees that moves the
	// clock by an hour.
	for slot := range slots {
		now := base.Add(time.Duration(slot) * (time.Hour + time.Second))
		for i, id := range ids {
			if (i+slot)%3 > 0 {
				r.over(id)
				open[i] = false
			}
			if open[i] {
				skipped[i]++
			} else {
				fired[i]++
				open[i] = true
			}
		}
		var nodes sync.WaitGroup
		for n := range 3 {
			nodes.Go(func() {
				// A node that dies is followed by another; the last one lives.
				for life := range 4 {
					mine := storetest.Another(t, s)
					f := newFlaky(uint64(slot*100+n*10+life), 0.1, 0.1, mine)
					if life < 3 {
						f.killAfter, f.deadBefore = 1+int(rand.Uint64()%9), rand.Uint64()%2 == 0
					}
					fireAll(t, r.store(mine, func(o *Options) { o.CallTimeout = time.Second }), f, ids, now)
					f.late.Wait()
				}
			})
		}
		nodes.Wait()
	}
	made := map[string]int64{}
	for _, x := range r.started() {
		made[x.SourceTriggerID]++
	}
	for i, id := range ids {
		tr := r.get(id)
		if made[id] != fired[i] || tr.Fired != fired[i] || tr.Skipped != skipped[i] || fired[i]+skipped[i] != slots || skipped[i] == 0 {
			t.Errorf("%s has started %d tasks, and by its own count fired %d times and skipped %d; want %d and %d", id, made[id], tr.Fired, tr.Skipped, fired[i], skipped[i])
		}
	}
}

// fireAll looks at every trigger until none is due at that time or the node is dead.
func fireAll(t *testing.T, st *Store, f *flaky, ids []string, now time.Time) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, i := range rand.Perm(len(ids)) {
		f.mu.Lock()
		dead := f.dead
		f.mu.Unlock()
		if dead {
			return
		}
		tr, err := st.Get(ctx, ids[i])
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				continue // killed
			}
			t.Error(err)
			return
		}
		v := tr.Judge(now, Sights{}, time.Second)
		if v.Fire == nil {
			continue
		}
		call, cancel := context.WithTimeout(ctx, 2*time.Minute)
		stop := watchDeath(f, cancel)
		_, err = st.Settle(call, tr, v, "", "")
		var busy *BusyError
		if errors.As(err, &busy) {
			_, err = st.Settle(call, tr, tr.Judge(now, Sights{Busy: true}, time.Second), "", "")
		}
		stop()
		cancel()
		f.mu.Lock()
		dead = f.dead
		f.mu.Unlock()
		if err != nil && !dead && !errors.Is(err, ErrLate) {
			t.Errorf("settle: %v", err)
		}
	}
}

// watchDeath ends a call that a dead node would repeat for ever.
func watchDeath(f *flaky, cancel context.CancelFunc) (stop func()) {
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				f.mu.Lock()
				dead := f.dead
				f.mu.Unlock()
				if dead {
					cancel()
					return
				}
			}
		}
	}()
	return func() { close(over) }
}

// Every other op does what it does once, whatever is lost and repeated.
func TestLostAnswers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		mine := storetest.Another(t, s)
		f := newFlaky(5, 0.5, 0.3, mine)
		t.Cleanup(f.late.Wait)
		st := r.store(mine)
		ctx := t.Context()
		for i := range 12 {
			d := every("c", time.Hour)
			d.Title = fmt.Sprint(i)
			tr, err := st.Create(ctx, d)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := st.Pause(ctx, tr.ID, bob, ""); err != nil || again {
				t.Errorf("pause: %v, %v", again, err)
			}
			if again, err := st.Resume(ctx, tr.ID, bob); err != nil || again {
				t.Errorf("resume: %v, %v", again, err)
			}
			id, err := st.Run(ctx, tr.ID)
			if err != nil {
				t.Errorf("run: %v", err)
			}
			got := r.get(tr.ID)
			if got.Fired != 1 || got.LastTaskID != id || got.Paused() {
				t.Errorf("%+v", got)
			}
			once := Draft{Type: Scheduled, Prompt: fmt.Sprint("once ", i), Conversation: conv("c"), Requester: ann, RunAt: time.Now().Add(time.Hour)}
			o, err := st.Create(ctx, once)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := st.Settle(ctx, o, o.Judge(o.NextRunAt, Sights{}, 0), "", ""); err != nil {
				t.Errorf("settle: %v", err)
			}
			if _, err := st.Remove(ctx, tr.ID); err != nil {
				t.Errorf("remove: %v", err)
			}
		}
		f.late.Wait()
		if n := len(r.started()); n != 24 {
			t.Errorf("%d tasks, want 24", n)
		}
		r.checkClean()
		if f.lost < 12 {
			t.Errorf("only %d answers were lost", f.lost)
		}
	})
}

// What is due is taken by one of many, and by another when that one does nothing.
func TestTake(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1, func(o *Options) { o.Claim, o.Look = 2*time.Hour, time.Hour })
		brief := r.store(s, func(o *Options) { o.Claim, o.Look = time.Millisecond, time.Millisecond })
		ctx := t.Context()
		due := func(n int) (ids []string) {
			for i := range n {
				d := every("c", time.Hour)
				d.Title, d.NextRunAt = fmt.Sprint(i), time.Now().Add(-time.Minute)
				ids = append(ids, r.create(d).ID)
			}
			return ids
		}
		due(30)
		file := r.create(when("c", leaf(FileExists, "a")))
		later := r.create(every("c", 5*time.Hour))
		all := func(st *Store, storages ...string) (map[string]int, time.Duration) {
			got := map[string]int{}
			for {
				taken, err := st.Take(ctx, 0, storages)
				if err != nil {
					t.Fatal(err)
				}
				for _, tr := range taken.Triggers {
					got[tr.ID]++
				}
				if !taken.Full {
					return got, taken.Next
				}
			}
		}
		if got, next := all(r.st); len(got) != 30 || got[file.ID] != 0 || got[later.ID] != 0 || next <= time.Hour || next > 2*time.Hour {
			t.Errorf("took %d, the next is due in %s", len(got), next)
		}
		if got, next := all(r.st, "other", "disk"); len(got) != 1 || got[file.ID] != 1 || next <= 0 || next > time.Hour {
			t.Errorf("took %v, the next is due in %s", got, next)
		}
		// Who takes these is gone soon.
		more := due(7)
		taken := map[string]int{}
		storetest.Eventually(t, "due again", func() error {
			got, _ := all(brief, "disk")
			for id, n := range got {
				taken[id] += n
			}
			for _, id := range more {
				if taken[id] < 3 {
					return fmt.Errorf("took %v", taken)
				}
			}
			return nil
		})
		if len(taken) != len(more) {
			t.Errorf("took what others have claimed: %v", taken)
		}
	})
}

// What a step of a loop does to triggers is part of its commit, with lost and late
// calls too.
func TestCommits(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 2)
		mine := storetest.Another(t, s)
		f := newFlaky(3, 0.15, 0.15, mine)
		t.Cleanup(f.late.Wait)
		n, err := channel.New(channel.Options{
			Client: mine.Client, Blocking: mine.Blocking, Keys: r.tasks.Keys, NodeID: "n", Extensions: append(Extensions(), task.Extensions()...),
			Mini: s.Volatile(), Poll: 100 * time.Millisecond, StopGrace: time.Second, Generation: mine.Generation,
			Loops: []channel.Loop{{
				Name: "ask", Lane: channel.LaneTurn, From: []channel.Name{channel.UserInput},
				Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
					e := b.Entries(channel.UserInput)
					return e[:min(1, len(e))], 0
				},
				Step: func(_ context.Context, w *channel.Work) (channel.Effects, error) {
					in := w.Entries[0].Value.(*chat.UserInput)
					d := every("", time.Hour)
					d.Conversation, d.Title, d.ID = in.Conversation, in.Text, r.st.is.Derive(in.Conversation, epoch, in.Text)
					tr, create, err := r.st.is.Create(d)
					if err != nil {
						return channel.Effects{}, err
					}
					run, _, err := r.st.is.RunNow(tr, "", "")
					if err != nil {
						return channel.Effects{}, err
					}
					pause, err := r.st.is.Pause(in.Conversation, tr.ID, in.Author, "x")
					if err != nil {
						return channel.Effects{}, err
					}
					return channel.Effects{Calls: []channel.Call{create, run, pause, r.st.is.Heard(in.Conversation, tr.ID)}}, nil
				},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var over sync.WaitGroup
		over.Go(func() {
			if err := n.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() { cancel(); over.Wait() })
		const total = 30
		for i := range total {
			if _, err := n.Ingest(t.Context(), channel.Input{
				Value:  chat.UserInput{Conversation: conv(fmt.Sprintf("c%d", i%5)), Message: fmt.Sprint(i), Text: fmt.Sprintf("trigger %d", i), Author: ann, At: epoch},
				Dedupe: fmt.Sprint(i), At: epoch, TraceID: "trace",
			}); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Eventually(t, "all triggers", func() error {
			page, err := r.st.List(t.Context(), Filter{}, "", 100)
			if err == nil && len(page.Triggers) != total {
				err = fmt.Errorf("%d triggers", len(page.Triggers))
			}
			return err
		})
		page, err := r.st.List(t.Context(), Filter{}, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range page.Triggers {
			if tr.Fired != 1 || !tr.Paused() {
				t.Errorf("%+v", tr)
			}
		}
		if n := len(r.started()); n != total {
			t.Errorf("%d tasks", n)
		}
	})
}

// A commit that meets a key of another type changes nothing.
func TestRefusedCallLeavesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		for _, k := range []string{dueKey(r.tasks.Keys, 0), r.tasks.Keys.In(0, "t:parked"), r.tasks.Keys.Stream(0, channel.WorkerResult)} {
			s.Client.Set(t.Context(), k, "not ours", 0)
			if _, err := r.st.Create(t.Context(), every("c", time.Hour)); err == nil {
				t.Errorf("%s: it was created", k)
			}
			if n := s.Client.Exists(t.Context(), rowsKey(r.tasks.Keys, 0), stateKey(r.tasks.Keys, 0), indexKey(r.tasks.Keys, 0)).Val(); n != 0 {
				t.Errorf("%s: %d keys were left behind", k, n)
			}
			s.Client.Del(t.Context(), k)
		}
	})
}
