package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// Whether a task may do something is asked of who decides; it goes on with the answer,
// and the question goes with the task.
func TestATaskAsksWhetherItMay(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: r.tasks}, Client: s.Client})
		if err != nil {
			t.Fatal(err)
		}
		sup := r.supervisor(r.trig, func(o *Options) {
			o.Questions, o.Approvals = st, Approvals{By: chat.RoleOperator, Timeout: 2 * time.Hour}
		})
		r.node(sup)
		r.run(sup.Run)
		asks := func(_ context.Context, run *task.Run) (task.Outcome, error) {
			if run.Task.Answer == "" {
				return task.Outcome{Ask: &chat.TaskQuestion{Question: "May I?", Options: []string{"Allow", "Refuse"}, Default: "Refuse"}}, nil
			}
			return task.Outcome{Output: "it said " + run.Task.Answer}, nil
		}
		r.pool(map[string]task.Runner{task.Standard: asks})
		open := func() (q question.Question) {
			t.Helper()
			storetest.Eventually(t, "a question", func() error {
				list, err := st.Open(t.Context(), conv("c"))
				if err == nil && len(list) != 1 {
					err = fmt.Errorf("%d questions", len(list))
				}
				if err == nil {
					q = list[0]
				}
				return err
			})
			return q
		}
		draft := task.Draft{Profile: task.Standard, Title: "x", Prompt: "x", Conversation: conv("c"), Requester: ann, Storage: "disk"}
		id := r.enqueue(draft)
		q := open()
		if q.AskedTo.ID != "" || q.AskedRole != chat.RoleOperator || !q.OnlyOptions || q.TaskID != id || q.Text != "May I? Only operators and admins can answer." || (q.Deadline.Sub(q.CreatedAt)-2*time.Hour).Abs() > time.Minute {
			t.Errorf("%+v", q)
		}
		allow := question.Answer{By: ann, Text: "Allow", Option: "Allow", How: question.ByButton, At: time.Now()}
		if _, _, err := st.Answer(t.Context(), q, allow); !errors.Is(err, question.ErrNotAsked) {
			t.Errorf("who wanted the task decides: %v", err)
		}
		allow.By = bob
		if _, _, err := st.Answer(t.Context(), q, allow); err != nil {
			t.Fatal(err)
		}
		if heard := r.awaitHeard(1); heard[0].Output != "it said Allow" {
			t.Errorf("heard %+v", heard)
		}
		draft.Prompt = "y"
		id = r.enqueue(draft)
		q = open()
		if _, err := r.q.Cancel(t.Context(), id, ann, "no more"); err != nil {
			t.Fatal(err)
		}
		storetest.Eventually(t, "it is withdrawn", func() error {
			now, err := st.Get(t.Context(), q.ID)
			if err == nil && (now.Status != question.Withdrawn || now.Reason != "the task is canceled") {
				err = fmt.Errorf("%+v", now)
			}
			return err
		})
	})
}

// Who is asked, and what becomes of a task that cannot ask.
func TestWhoDecides(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	r := newRig(t, s, 1)
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: r.tasks}, Client: s.Client})
	if err != nil {
		t.Fatal(err)
	}
	sup := func(by chat.Role) *Supervisor {
		return r.supervisor(r.trig, func(o *Options) { o.Questions, o.Approvals.By = st, by })
	}
	res := planResult(r, "")
	res.Profile, res.Status = task.Standard, task.Waiting
	res.Question = &chat.TaskQuestion{ID: "a1", Question: "May I?", Options: []string{"Allow", "Refuse"}, Default: "Refuse"}
	bot := chat.Author{ID: "B1", Bot: true}
	for _, c := range []struct {
		by        chat.Role
		requester chat.Author
		role      chat.Role
		to        string
	}{
		{0, ann, 0, ann.ID},
		{0, bot, chat.RoleOperator, ""},
		{0, chat.Author{}, chat.RoleOperator, ""},
		{chat.RoleAdmin, ann, chat.RoleAdmin, ""},
	} {
		res.Requester = c.requester
		d, err := sup(c.by).draft(st.Issuer(), res)
		if err != nil || d.AskedRole != c.role || d.AskedTo.ID != c.to || !d.OnlyOptions || d.Timeout != question.DefaultTimeout || d.Default != "Refuse" {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
		if strings.Contains(d.Text, "Only ") != (c.role > 0) {
			t.Errorf("%+v: %q", c, d.Text)
		}
	}
	fx, err := sup(0).step(t.Context(), work(res))
	if err != nil || len(fx.Calls) != 2 || fx.Calls[0].Args[0] != "create" || fx.Calls[1].Args[0] != "watch" || len(fx.Publish) != 1 {
		t.Fatalf("%+v, %v", fx, err)
	}
	for range question.MaxOpen {
		if _, err := st.Ask(t.Context(), question.Draft{Conversation: conv("c"), Text: "?"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, sup := range map[string]*Supervisor{"full": sup(0), "deaf": r.supervisor(r.trig)} {
		fx, err := sup.step(t.Context(), work(res))
		if err != nil || len(fx.Calls) != 1 || fx.Calls[0].Args[0] != "answer" || !strings.Contains(fmt.Sprint(fx.Calls[0].Args), "Refuse") || len(fx.Publish) != 0 {
			t.Errorf("%s: %+v, %v", name, fx, err)
		}
	}
}
