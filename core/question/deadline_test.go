package question

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// At the deadline the default is taken, or the question withdrawn; once, whoever
// looks.
func TestDeadline(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		d := deploy("c")
		d.Timeout = time.Millisecond
		with := r.ask(d)
		d.Default = ""
		without := r.ask(d)
		d.Timeout = time.Hour
		r.ask(d)
		d.Timeout = -1
		never := r.ask(d)
		p := r.keys.Partition(conv("c").Key())
		storetest.Eventually(t, "both are late", func() error {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if _, _, err := r.st.Due(ctx, p); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if r.get(with.ID).Status == Open || r.get(without.ID).Status == Open {
				return errors.New("open")
			}
			return nil
		})
		if q := r.get(with.ID); q.Status != Answered || q.Answer != "staging" || q.How != ByDeadline {
			t.Errorf("%+v", q)
		}
		if q := r.get(without.ID); q.Status != Withdrawn || q.Reason == "" {
			t.Errorf("%+v", q)
		}
		list, _ := r.inputs()
		if len(list) != 2 || list[0].Question != with.ID && list[1].Question != with.ID {
			t.Fatalf("%+v", list)
		}
		for _, in := range list {
			if !in.Author.Bot || in.Kind != chat.KindAnswer || (in.Option == "staging") != (in.Question == with.ID) || !strings.Contains(in.Text, "Nobody answered in time") {
				t.Errorf("%+v", in)
			}
		}
		closed, next, err := r.st.Due(ctx, p)
		if err != nil || len(closed) != 0 || next < 59*time.Minute || next > time.Hour {
			t.Errorf("%v, %s, %v", closed, next, err)
		}
		if _, next, err := r.st.Due(ctx, 1-p); err != nil || next >= 0 {
			t.Errorf("%s, %v", next, err)
		}
		if q := r.get(never.ID); q.Status != Open || !q.Deadline.IsZero() {
			t.Errorf("%+v", q)
		}
		var late *ClosedError
		if _, _, err := r.st.Answer(ctx, with, Answer{By: ann, Text: "production", At: time.Now()}); !errors.As(err, &late) || !strings.Contains(err.Error(), "default was taken: staging") {
			t.Errorf("%v", err)
		}
	})
}

// The answer to a task's question makes the task go on, and is no input.
func TestATasksQuestion(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		id, _, err := r.q.Enqueue(ctx, task.Draft{Profile: task.Planner, Prompt: "plan", Conversation: conv("c"), Requester: ann})
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan task.Task, 1)
		run, cancel := context.WithCancel(context.Background())
		var over sync.WaitGroup
		pool, err := task.NewPool(task.PoolOptions{Queue: r.q, Node: "n", Runners: map[string]task.Runner{
			task.Planner: func(_ context.Context, run *task.Run) (task.Outcome, error) {
				if run.Task.Answer == "" {
					return task.Outcome{Ask: &chat.TaskQuestion{ID: "q1", Question: "Which?"}}, nil
				}
				answered <- run.Task
				return task.Outcome{Output: "{}"}, nil
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		over.Go(func() { _ = pool.Run(run) })
		t.Cleanup(func() { cancel(); over.Wait() })
		storetest.Eventually(t, "it asks", func() error {
			if x, err := r.q.Get(ctx, id); err != nil || x.Status != task.Waiting {
				return fmt.Errorf("%s, %w", x.Status, err)
			}
			return nil
		})
		qid, err := r.st.Issuer().OfTask(conv("c"), id, "q1")
		if err != nil {
			t.Fatal(err)
		}
		d := Draft{ID: qid, Conversation: conv("c"), Text: "Which?", AskedTo: ann, TaskID: id, TaskQuestion: "q1"}
		q := r.ask(d)
		if again := r.ask(d); again.CreatedAt != q.CreatedAt || !q.Deadline.IsZero() {
			t.Errorf("%+v", again)
		}
		if _, _, err := r.st.Answer(ctx, q, Answer{By: ann, Text: "the old ones", How: ByText, At: time.Now(), Dedupe: "m"}); err != nil {
			t.Fatal(err)
		}
		select {
		case x := <-answered:
			if x.Answer != "the old ones" || x.AnsweredBy != ann {
				t.Errorf("%+v", x)
			}
		case <-time.After(30 * time.Second):
			t.Error("the task did not go on")
		}
		if list, _ := r.inputs(); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		said, err := s.Client.XRange(ctx, r.keys.Stream(r.keys.Partition(conv("c").Key()), channel.TellerReply), "-", "+").Result()
		if err != nil || len(said) != 1 || !strings.Contains(fmt.Sprint(said[0].Values["data"]), "I go on with: the old ones") {
			t.Errorf("%+v, %v", said, err)
		}
	})
}

// A question that was closed a month ago is forgotten when another one is closed.
func TestOldOnesAreForgotten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		old, q := r.ask(deploy("c")), r.ask(deploy("c"))
		if err := r.st.Withdraw(t.Context(), old, "x"); err != nil {
			t.Fatal(err)
		}
		over := r.keys.In(r.keys.Partition(conv("c").Key()), "q:over")
		s.Client.ZAdd(t.Context(), over, redis.Z{Score: float64(time.Now().Add(-31 * 24 * time.Hour).UnixMilli()), Member: old.ID})
		if err := r.st.Withdraw(t.Context(), q, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.st.Get(t.Context(), old.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
		if list, err := r.st.List(t.Context(), 100); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
