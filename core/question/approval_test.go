package question

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// waiting is a task that asks whether it may, and whose answers are put into a channel.
func (r *rig) waiting(ask string) (id string, answers chan task.Task) {
	r.t.Helper()
	id, _, err := r.q.Enqueue(r.t.Context(), task.Draft{Profile: task.Standard, Prompt: ask, Conversation: conv("c"), Requester: ann})
	if err != nil {
		r.t.Fatal(err)
	}
	answers = make(chan task.Task, 1)
	pool, err := task.NewPool(task.PoolOptions{Queue: r.q, Node: "n", Runners: map[string]task.Runner{
		task.Standard: func(_ context.Context, run *task.Run) (task.Outcome, error) {
			if run.Task.Answer == "" {
				return task.Outcome{Ask: &chat.TaskQuestion{ID: ask, Question: "May I?", Options: []string{"Allow", "Refuse"}, Default: "Refuse"}}, nil
			}
			answers <- run.Task
			return task.Outcome{Output: "done"}, nil
		},
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	run, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { _ = pool.Run(run) })
	r.t.Cleanup(func() { cancel(); over.Wait() })
	storetest.Eventually(r.t, "it asks", func() error {
		if x, err := r.q.Get(r.t.Context(), id); err != nil || x.Status != task.Waiting {
			return fmt.Errorf("%s, %w", x.Status, err)
		}
		return nil
	})
	return id, answers
}

// may is the question of such a task.
func (r *rig) may(id, ask string, timeout time.Duration, role chat.Role) Draft {
	r.t.Helper()
	qid, err := r.st.Issuer().OfTask(conv("c"), id, ask)
	if err != nil {
		r.t.Fatal(err)
	}
	return Draft{
		ID: qid, Conversation: conv("c"), Text: "May I?", Options: []string{"Allow", "Refuse"}, Default: "Refuse", Timeout: timeout,
		AskedRole: role, OnlyOptions: true, TaskID: id, TaskQuestion: ask,
	}
}

func (r *rig) replies() []string {
	r.t.Helper()
	said, err := r.st.o.Client.XRange(r.t.Context(), r.keys.Stream(r.keys.Partition(conv("c").Key()), channel.TellerReply), "-", "+").Result()
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, e := range said {
		out = append(out, fmt.Sprint(e.Values["data"]))
	}
	return out
}

// A question that is put to a role is answered by whoever has it, and by one of its
// options alone.
func TestAskedRole(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		id, answers := r.waiting("a1")
		q := r.ask(r.may(id, "a1", time.Hour, chat.RoleOperator))
		if q.AskedRole != chat.RoleOperator || !q.OnlyOptions || q.For() != "operators and admins" || q.Deadline.IsZero() {
			t.Errorf("%+v", q)
		}
		user, bot, odd := ann, bob, bob
		user.Role, bot.Role, bot.Bot, odd.Role = chat.RoleUser, chat.RoleAdmin, true, 99
		for _, who := range []chat.Author{user, bot, odd, {Role: chat.RoleAdmin}} {
			if _, _, err := r.st.Answer(t.Context(), q, Answer{By: who, Text: "Allow", Option: "Allow", At: time.Now()}); !errors.Is(err, ErrNotAsked) {
				t.Errorf("%+v: %v", who, err)
			}
		}
		op := chat.Author{ID: "U9", Name: "Ola", Role: chat.RoleOperator}
		for _, a := range []Answer{{By: op, Text: "sure"}, {By: op, Text: "sure", Option: "sure"}, {By: op, Text: "Refuse", Option: "Allow"}, {By: op, Text: "Allow"}} {
			if _, _, err := r.st.Answer(t.Context(), q, a); !errors.Is(err, ErrNoOption) {
				t.Errorf("%+v: %v", a, err)
			}
		}
		if _, _, ok := q.Read("sure", true); ok {
			t.Error("other words are an answer")
		}
		if _, _, err := r.st.Answer(t.Context(), q, Answer{By: op, Text: "Allow", Option: "Allow", How: ByButton, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		select {
		case x := <-answers:
			if x.Answer != "Allow" || x.AnsweredBy != op {
				t.Errorf("%+v", x)
			}
		case <-time.After(30 * time.Second):
			t.Error("the task did not go on")
		}
	})
}

// At its deadline a task's question is answered with the default, by nobody; and the
// question of a task that is over is closed, whoever comes.
func TestATasksDeadline(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx, p := t.Context(), r.keys.Partition(conv("c").Key())
		id, answers := r.waiting("a1")
		q := r.ask(r.may(id, "a1", time.Millisecond, 0))
		storetest.Eventually(t, "it is late", func() error {
			if _, _, err := r.st.Due(ctx, p); err != nil {
				return err
			}
			if now := r.get(q.ID); now.Status != Answered || now.Answer != "Refuse" || now.How != ByDeadline {
				return fmt.Errorf("%+v", now)
			}
			return nil
		})
		select {
		case x := <-answers:
			if x.Answer != "Refuse" || !x.AnsweredBy.Bot {
				t.Errorf("%+v", x)
			}
		case <-time.After(30 * time.Second):
			t.Error("the task did not go on")
		}
		if said := r.replies(); len(said) != 1 || !strings.Contains(said[0], "the default is taken: Refuse") {
			t.Errorf("%q", said)
		}
		if list, _ := r.inputs(); len(list) != 0 {
			t.Errorf("%+v", list)
		}

		other := NewID(time.Now(), p, 7)
		over := r.may(id, "a2", time.Hour, 0)
		late := r.may(id, "a3", time.Millisecond, 0)
		q, gone := r.ask(over), r.ask(late)
		var closed *ClosedError
		said := Answer{By: ann, Text: "Allow", Option: "Allow", At: time.Now(), Dedupe: "m" + other}
		if _, _, err := r.st.Answer(ctx, q, said); !errors.As(err, &closed) || closed.Question.Status != Withdrawn {
			t.Errorf("%v", err)
		}
		// It was no answer, so the message may still be talk.
		again := r.ask(deploy("c"))
		if _, heard, err := r.st.Answer(ctx, again, said); err != nil || heard {
			t.Errorf("%v, %v", heard, err)
		}
		storetest.Eventually(t, "it is withdrawn", func() error {
			if _, _, err := r.st.Due(ctx, p); err != nil {
				return err
			}
			if now := r.get(gone.ID); now.Status != Withdrawn {
				return fmt.Errorf("%+v", now)
			}
			return nil
		})
		if said := r.replies(); len(said) != 1 {
			t.Errorf("%q", said)
		}
	})
}

func TestDraftsThatCannotBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t))
	for want, change := range map[string]func(*Draft){
		"nothing else would be an answer":    func(d *Draft) { d.Options, d.Default, d.OnlyOptions = nil, "", true },
		"put to a person or to a role":       func(d *Draft) { d.AskedRole = chat.RoleAdmin },
		"one of user, operator and admin":    func(d *Draft) { d.AskedTo, d.AskedRole = chat.Author{}, 9 },
		"a task that waits until a deadline": func(d *Draft) { d.TaskID, d.Default, d.Timeout = "t", "", time.Hour },
	} {
		d := deploy("c")
		change(&d)
		if _, _, _, err := r.st.Issuer().Create(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Of every question that is closed, whoever shows it is told, also when it was closed
// because its task waits no more, or by a call whose answer was lost.
func TestClosedIsTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		var mu sync.Mutex
		told := map[string]int{} // :: question → how often
		mine := storetest.Another(t, s)
		loses := &lossy{}
		mine.Client.AddHook(loses)
		st, err := New(Options{Issuer: Issuer{Tasks: r.q.Issuer()}, Client: mine.Client, Closed: func(id string) {
			mu.Lock()
			defer mu.Unlock()
			told[id]++
		}})
		if err != nil {
			t.Fatal(err)
		}
		id, _ := r.waiting("a1")
		if _, err := r.q.Cancel(ctx, id, ann, "no more"); err != nil {
			t.Fatal(err)
		}
		for round := range 6 { // of which some lose the answer of the first try
			over := r.ask(r.may(id, fmt.Sprint("b", round), time.Hour, 0))
			var closed *ClosedError
			said := Answer{By: ann, Text: "Allow", Option: "Allow", How: ByButton, At: time.Now()}
			if _, _, err := st.Answer(ctx, over, said); !errors.As(err, &closed) || closed.Question.Status != Withdrawn {
				t.Errorf("%v", err)
			}
			q := r.ask(deploy("c"))
			said = Answer{By: ann, Text: "staging", Option: "staging", How: ByText, At: time.Now(), Dedupe: fmt.Sprint("m", round)}
			if _, _, err := st.Answer(ctx, q, said); err != nil {
				t.Errorf("%v", err)
			}
			mu.Lock()
			if told[over.ID] == 0 || told[q.ID] == 0 {
				t.Errorf("round %d: told of the withdrawn one %d times, of the answered one %d times", round, told[over.ID], told[q.ID])
			}
			mu.Unlock()
		}
		if loses.lost == 0 {
			t.Error("no answer was lost")
		}
	})
}
