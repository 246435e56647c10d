package review

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// What is noted of a task that is over, and how often.
func TestNotes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		made := func(id string, waited time.Duration, tokens int64) task.Task {
			return task.Task{
				ID: id, Profile: "standard", Conversation: thread, Requester: ann, CreatedAt: noon, StartedAt: noon.Add(waited),
				Usage: chat.TaskUsage{Calls: 3, Prompt: tokens},
			}
		}
		put := made("put", 2*time.Hour, 0)
		put.DeferUntil = noon.Add(2*time.Hour - 5*time.Second) // it waited 5 s
		again := made("again", time.Second, 0)
		again.DeferUntil = noon.Add(time.Hour) // it failed, and began again much later
		never := made("never", 0, 0)
		never.StartedAt = time.Time{}
		inner := made("inner", time.Hour, 0)
		inner.Internal = true
		tasks := map[string]task.Task{
			"quick": made("quick", 9*time.Second, 999), "slow": made("slow", 10*time.Second, 0), "slower": made("slower", 20*time.Second, 0),
			"slowest": made("slowest", 200*time.Second, 0), "heavy": made("heavy", 0, 1000), "put": put, "again": again, "never": never, "inner": inner,
		}
		n := NewNotes(NotesOptions{
			Client: s.Client, Keys: r.keys, Slow: 10 * time.Second, Heavy: 1000, Now: r.o.Now,
			Get: func(_ context.Context, id string) (task.Task, error) {
				if got, ok := tasks[id]; ok {
					return got, nil
				}
				return task.Task{}, task.ErrUnknown
			},
		})
		look := func(ids ...string) {
			t.Helper()
			for _, id := range ids {
				if err := n.look(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}
		look("quick", "put", "again", "never", "inner", "gone")
		if got := r.feedback(); len(got) != 0 {
			t.Errorf("noted %+v", got)
		}
		look("slow", "slower", "slower", "heavy")
		r.pass(waitEvery)
		look("slowest")
		var got []string
		for _, f := range r.feedback() {
			got = append([]string{string(f.Kind) + " " + f.Severity + " " + f.TaskID + ": " + f.Message}, got...)
			if f.Conversation != thread || f.Author != ann || f.At.IsZero() {
				t.Errorf("noted %+v", f)
			}
		}
		want := "high_latency low slow: A standard task waited 10s for a worker.\n" +
			"high_usage low heavy: A standard task used 1000 tokens (1000 in, 0 out) in 3 calls.\n" +
			"high_latency medium slowest: A standard task waited 3m20s for a worker. So did 2 others before it."
		if s := strings.Join(got, "\n"); s != want {
			t.Errorf("noted\n%s\nwant\n%s", s, want)
		}
	})
}

func TestNotesRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Mini(t)
		r := newRig(t, s)
		looked := 0
		n := NewNotes(NotesOptions{Client: s.Client, Keys: r.keys, Heavy: 1, Get: func(_ context.Context, id string) (task.Task, error) {
			looked++
			if id == "bad" {
				return task.Task{}, errors.New("away")
			}
			return task.Task{ID: id, Conversation: thread, Usage: chat.TaskUsage{Prompt: 1}}, nil
		}})
		for range mostEnded + 50 { // nobody looks yet: the rest is left out
			n.Ended("bad")
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- n.Run(ctx) }()
		synctest.Wait()
		if looked != mostEnded {
			t.Errorf("looked %d times", looked)
		}
		n.Ended("t1")
		synctest.Wait()
		cancel()
		if err := <-over; err != nil || len(r.feedback()) != 1 {
			t.Errorf("filed %d, %v", len(r.feedback()), err)
		}
	})
}
