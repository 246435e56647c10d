package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// What a step of a loop does to tasks is part of its commit: it happens once, with
// lost and late calls, and its results come back to the loop that hears them.
func TestCommits(t *testing.T) { storetest.Each(t, commits) }

func commits(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	mine := storetest.Another(t, s)
	f := newFlaky(3, 0.15, 0.15, mine)
	t.Cleanup(f.late.Wait)
	var mu sync.Mutex
	heard := map[string]map[string]bool{} // :: title -> entries
	news := make(chan struct{}, 1)
	first := func(b *channel.Buffer, n channel.Name) ([]*channel.Entry, time.Duration) {
		e := b.Entries(n)
		return e[:min(1, len(e))], 0
	}
	loops := []channel.Loop{
		{
			Name: "ask", Lane: channel.LaneTurn, From: []channel.Name{channel.UserInput},
			Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) { return first(b, channel.UserInput) },
			Step: func(_ context.Context, w *channel.Work) (channel.Effects, error) {
				in := w.Entries[0].Value.(*chat.UserInput)
				d := Draft{Profile: Standard, Title: in.Text, Prompt: in.Text, Conversation: in.Conversation, Requester: in.Author}
				created, create, err := r.q.is.Create(d)
				if err != nil {
					return channel.Effects{}, err
				}
				_, same, err := r.q.is.Create(d)
				if err != nil {
					return channel.Effects{}, err
				}
				fx := channel.Effects{Calls: []channel.Call{create, same}}
				if in.Message == "canceled" {
					cancel, err := r.q.is.Cancel(in.Conversation, created.ID, in.Author, "changed my mind")
					if err != nil {
						return fx, err
					}
					fx.Calls = append(fx.Calls, cancel)
				}
				return fx, nil
			},
		},
		{
			Name: "hear", Lane: channel.LaneTurn, From: []channel.Name{channel.WorkerResult},
			Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) { return first(b, channel.WorkerResult) },
			Step: func(_ context.Context, w *channel.Work) (channel.Effects, error) {
				res := w.Entries[0].Value.(*chat.TaskResult)
				if w.Entries[0].TraceID == "" {
					t.Errorf("the result of %q has no trace", res.Title)
				}
				mu.Lock()
				if heard[res.Title] == nil {
					heard[res.Title] = map[string]bool{}
				}
				heard[res.Title][w.Entries[0].ID] = true // a step may be run again
				mu.Unlock()
				nudge(news)
				return channel.Effects{}, nil
			},
		},
	}
	n, err := channel.New(channel.Options{
		Client: mine.Client, Blocking: mine.Blocking, Keys: r.q.keys, NodeID: "n", Loops: loops, Extensions: Extensions(),
		Mini: s.Volatile(), Poll: 100 * time.Millisecond, StopGrace: time.Second, Generation: mine.Generation,
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
	r.pool("n", echo)

	const total = 20
	for i := range total {
		c := conv(fmt.Sprintf("c%d", i%5))
		message := fmt.Sprint(i)
		if i%10 == 7 {
			message = "canceled"
		}
		_, err := n.Ingest(t.Context(), channel.Input{
			Value:  chat.UserInput{Conversation: c, Message: message, Text: fmt.Sprintf("task %d", i), Author: ann, At: epoch},
			Dedupe: fmt.Sprint(i), At: epoch, TraceID: "trace",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit := time.NewTimer(60 * time.Second)
	for done := false; !done; {
		select {
		case <-news:
		case <-limit.C:
			t.Fatalf("heard of %d tasks", len(heard))
		}
		mu.Lock()
		done = len(heard) == total
		mu.Unlock()
	}
	r.awaitOver()
	st, err := r.q.Stats(t.Context())
	if err != nil || st.ByStatus[Succeeded] != total-2 || st.ByStatus[Canceled] != 2 {
		t.Errorf("%v, %v", st, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for title, list := range heard {
		if len(list) != 1 {
			t.Errorf("%s was heard of %d times", title, len(list))
		}
	}
	if f.losses() < 5 {
		t.Errorf("only %d answers were lost", f.losses())
	}
}

// A commit that Redis refuses leaves no task behind.
func TestRefusedCommitLeavesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		s.Client.Set(t.Context(), r.q.keys.In(0, "t:parked"), "not ours", 0)
		tries := make(chan int, 10)
		n, err := channel.New(channel.Options{
			Client: s.Client, Blocking: s.Blocking, Keys: r.q.keys, NodeID: "n", Extensions: Extensions(), Mini: s.Volatile(), Poll: 100 * time.Millisecond,
			Loops: []channel.Loop{{
				Name: "ask", Lane: channel.LaneTurn, From: []channel.Name{channel.UserInput},
				Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) { return b.Entries(channel.UserInput), 0 },
				Step: func(_ context.Context, w *channel.Work) (channel.Effects, error) {
					tries <- w.Attempt
					if w.Attempt == 2 {
						s.Client.Del(context.Background(), r.q.keys.In(0, "t:parked"))
						if keys := r.keysLike("t:"); len(keys) > 0 {
							t.Errorf("the refused commit left %v", keys)
						}
					}
					_, call, err := r.q.is.Create(draft("c", "x"))
					return channel.Effects{Calls: []channel.Call{call}}, err
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
		over.Go(func() { _ = n.Run(ctx) })
		t.Cleanup(func() { cancel(); over.Wait() })
		if _, err := n.Ingest(t.Context(), channel.Input{Value: chat.UserInput{Conversation: conv("c"), Text: "x", Author: ann}, Dedupe: "1", At: epoch}); err != nil {
			t.Fatal(err)
		}
		storetest.Eventually(t, "the task is made", func() error {
			st, err := r.q.Stats(context.Background())
			if err == nil && st.ByStatus[Pending] != 1 {
				err = fmt.Errorf("%v", st.ByStatus)
			}
			return err
		})
		if len(tries) != 2 {
			t.Errorf("%d tries, want 2", len(tries))
		}
	})
}

// On a Cluster every script keeps to one slot, and signals reach every node.
func TestOnCluster(t *testing.T) {
	t.Parallel()
	s := storetest.Cluster(t)
	r := newRig(t, s, func(o *Options) { o.Issuer.Keys.Partitions = 8 })
	f := newFlaky(3, 0.1, 0, s)
	rnd := rand.New(rand.NewPCG(1, 1))
	r.pool("a", echo)
	r.poolOn(r.beside(storetest.Another(t, s)), "b", echo)
	var ids []string
	for i := range 60 {
		d := draft(fmt.Sprintf("c%d", i), fmt.Sprint(i))
		if rnd.IntN(3) == 0 {
			d.DeferUntil = time.Now().Add(500 * time.Millisecond)
		}
		ids = append(ids, r.enqueue(d))
	}
	if _, err := r.q.Cancel(t.Context(), ids[59], bob, ""); err != nil {
		t.Fatal(err)
	}
	r.awaitOver()
	told := map[string]bool{}
	for p := range r.parts {
		entries, err := s.Client.XRange(t.Context(), r.q.keys.Stream(p, channel.WorkerResult), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			told[fmt.Sprint(e.Values["data"])] = true
		}
	}
	if len(told) != len(ids) {
		t.Errorf("%d results of %d tasks", len(told), len(ids))
	}
	page, err := r.q.List(t.Context(), Filter{}, "", 100)
	if err != nil || len(page.Tasks) != len(ids) {
		t.Errorf("%d tasks, %v", len(page.Tasks), err)
	}
	if f.losses() == 0 {
		t.Error("no answer was lost")
	}
}
