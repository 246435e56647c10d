package admin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// What is put to a role is listed whole for those who have it, wherever it was asked,
// and answered by them alone.
func TestQuestionsForARole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: r.q.Issuer(), Now: r.tick}, Client: r.redis.Client, CallTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.o.Questions = st
	if r.set, err = admin.New(r.o); err != nil {
		t.Fatal(err)
	}
	ask := func(in chat.Conversation, role chat.Role) string {
		t.Helper()
		text := "May I?\n\n```\n" + strings.Repeat("x", 200) + " && rm -rf *\n```"
		q, err := st.Ask(t.Context(), question.Draft{Conversation: in, Text: text, Options: []string{"Allow", "Refuse"}, Default: "Refuse", AskedRole: role, OnlyOptions: true})
		if err != nil {
			t.Fatal(err)
		}
		return q.ID
	}
	ops, secret, admins := ask(thread, chat.RoleOperator), ask(bobsDM, chat.RoleOperator), ask(thread, chat.RoleAdmin)
	elsewhere := thread
	elsewhere.Workspace = "T999"
	far := ask(elsewhere, chat.RoleOperator)
	has(t, r.ok(at(ann, thread), "questions here"), "No question is open in this conversation.")
	list := r.ok(at(ola, thread), "questions")
	has(t, list, ops[:10], secret[:10], "operators and admins", " && rm -rf *\n```")
	hasNot(t, list, far[:12], admins[:12])
	hasNot(t, r.ok(aloud(ola, thread), "questions all"), secret[:12]+" | May")

	r.audit.take()
	has(t, r.no(at(ann, thread), "answer "+ops+" 1"), "There is no open question")
	has(t, r.no(at(bob, bobsDM), "answer "+secret+" 1"), "There is no open question")
	has(t, r.no(at(ola, thread), "answer "+far+" 1"), "There is no open question")
	has(t, r.no(at(ola, thread), "answer "+admins+" 1"), "This question is for admins")
	has(t, r.no(at(ola, thread), "answer "+ops+" go on"), "which are: Allow, Refuse")
	has(t, r.ok(at(ola, thread), "answer "+ops+" 1"), "You answered: Allow.")
	has(t, r.ok(at(ola, thread), "answer "+secret+" refuse"), "You answered: Refuse.")
	if q, err := st.Get(t.Context(), ops); err != nil || q.Option != "Allow" || q.AnsweredBy.ID != ola.ID {
		t.Errorf("%+v, %v", q, err)
	}
	if acts := strings.Join(r.audit.take(), "\n"); !strings.Contains(acts, admins+": refused") || !strings.Contains(acts, ops+": answered") {
		t.Errorf("recorded\n%s", acts)
	}
}

// All of what a task waits for somebody's word about is shown to who may read the task,
// and to who decides, wherever it was asked; to nobody else.
func TestTaskShowsWhatItAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: r.q.Issuer(), Now: r.tick}, Client: r.redis.Client, CallTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.o.Questions = st
	if r.set, err = admin.New(r.o); err != nil {
		t.Fatal(err)
	}
	id := r.task(bob, bobsDM, "Tidy up")
	r.work(func(context.Context, *task.Run) (task.Outcome, error) {
		return task.Outcome{Ask: &chat.TaskQuestion{ID: "a", Question: "May I, in short?", Detail: "```\nall of the rm -rf\n```", Options: []string{"Allow", "Refuse"}, Default: "Refuse"}}, nil
	})
	storetest.Eventually(t, "it asks", func() error {
		if s := r.status(id); s != task.Waiting {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
	has(t, r.ok(at(bob, bobsDM), "task "+id), "May I, in short?", "waits for somebody's word about this:\n\n```\nall of the rm -rf\n```")
	hasNot(t, r.ok(at(ola, thread), "task "+id), "rm -rf") // nobody has asked her
	qid, err := st.Issuer().OfTask(bobsDM, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Ask(t.Context(), question.Draft{
		ID: qid, Conversation: bobsDM, Text: "May I?", Options: []string{"Allow", "Refuse"}, Default: "Refuse", Timeout: time.Hour, AskedRole: chat.RoleOperator, OnlyOptions: true, TaskID: id, TaskQuestion: "a",
	}); err != nil {
		t.Fatal(err)
	}
	has(t, r.ok(at(ola, thread), "task "+id), "all of the rm -rf")
	hasNot(t, r.ok(aloud(ola, thread), "task "+id), "rm -rf")
}
