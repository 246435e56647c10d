package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/question"
)

func TestQuestions(t *testing.T) {
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
	ask := func(to chat.Author, in chat.Conversation, text string) string {
		t.Helper()
		q, err := st.Ask(t.Context(), question.Draft{Conversation: in, Text: text, Options: []string{"*old*", "new"}, AskedTo: to})
		if err != nil {
			t.Fatal(err)
		}
		return q.ID
	}
	anns, bobs, any1, dm := ask(ann, thread, "anns?"), ask(bob, thread, "bobs?"), ask(chat.Author{}, thread, "anybody?"), ask(bob, bobsDM, "secret?")
	mine, a, _ := r.run(at(ann, thread), "questions")
	has(t, mine, anns[:10], "anns?", `\*old\*, new`, any1[:10], "everybody", "you", "in 59m")
	hasNot(t, mine, "bobs?", "secret?")
	if views := *a.Data.(*[]admin.QuestionView); len(views) != 2 || views[1].ID != anns || len(views[1].Options) != 2 {
		t.Errorf("told programs %+v", views)
	}
	hasNot(t, r.ok(at(ann, thread), "questions here"), "bobs?")
	has(t, r.ok(at(ola, thread), "questions here"), "anns?", "bobs?", "anybody?")
	all := r.ok(aloud(ola, thread), "questions all")
	has(t, all, "bobs?", dm[:10], "(said elsewhere)")
	hasNot(t, all, "secret?")
	has(t, r.no(at(ann, thread), "questions all"), "Only operators")
	has(t, r.no(at(ann, thread), "questions her"), "did you mean `here`?")

	r.audit.take()
	has(t, r.no(at(ann, thread), "answer "+bobs+" 1"), "There is no open question")
	has(t, r.no(at(ola, thread), "answer "+bobs+" 1"), "This question is for Bob")
	has(t, r.ok(at(ann, thread), "answer "+anns[:12]+" 2"), "You answered: new.")
	has(t, r.no(at(ann, thread), "answer "+anns+" 1"), "There is no open question")
	has(t, r.ok(at(bob, thread), "answer "+any1+" something else"), "You answered: something else.")
	has(t, r.no(at(bob, thread), "answer q1"), "Which question, and what?")
	if q, err := st.Get(t.Context(), anns); err != nil || q.Status != question.Answered || q.Option != "new" || q.AnsweredBy.ID != ann.ID {
		t.Errorf("%+v, %v", q, err)
	}
	if acts := strings.Join(r.audit.take(), "\n"); !strings.Contains(acts, "U3: answer "+bobs+" 1 → "+bobs+": refused") || !strings.Contains(acts, anns+": answered") {
		t.Errorf("recorded\n%s", acts)
	}
	for text, want := range map[string]bool{"questions": true, "questions here": true, "answer q1m7z06qfa 2": true, "answer me": false, "questions are good": false} {
		if _, ok := r.set.IsAddressed(text); ok != want {
			t.Errorf("%q is a command: %v", text, ok)
		}
	}
}

// One's own question is found however many others are open and newer.
func TestQuestionsAmongMany(t *testing.T) {
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
	ask := func(to chat.Author, in chat.Conversation, text string) string {
		t.Helper()
		q, err := st.Ask(t.Context(), question.Draft{Conversation: in, Text: text, Options: []string{"old", "new"}, AskedTo: to})
		if err != nil {
			t.Fatal(err)
		}
		return q.ID
	}
	anns := ask(ann, thread, "anns?")
	other := ask(ann, thread, "another?")
	const many = 1200
	for i := range many {
		elsewhere := thread
		elsewhere.Thread = fmt.Sprint("9.", i)
		ask(bob, elsewhere, "bobs?")
	}
	has(t, r.ok(at(ann, lobby), "questions"), "anns?", "another?")
	has(t, r.ok(at(ola, lobby), "questions all"), fmt.Sprintf("Page 1 of %d.", (many+2+9)/10))
	has(t, r.ok(at(ann, thread), "answer "+anns+" 2"), "You answered: new.")
	has(t, r.ok(at(ann, thread), "answer "+other[:14]+" 1"), "You answered: old.")
	has(t, r.no(at(ann, thread), "answer "+anns+" 2"), "There is no open question")
}
