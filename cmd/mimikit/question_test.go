package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/cluster"
	"mimikit/core/llm/llmtest"
	"mimikit/core/question"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// asking is an endpoint whose thinker asks where to deploy, and says what it was
// answered.
func asking(x *llmtest.Exchange) {
	messages := x.Call.Chat.Messages
	last := *messages[len(messages)-1].Content
	input := last[max(0, strings.LastIndex(last, "<input ")):]
	_, text, _ := strings.Cut(input, ">\n")
	text, _, _ = strings.Cut(text, "</input>")
	switch {
	case strings.Contains(input, `question="q`):
		_, option, _ := strings.Cut(input, `option="`)
		option, _, _ = strings.Cut(option, `"`)
		llmtest.Answers(fmt.Sprintf("You said %q, option %q.", strings.TrimSpace(text), option))(x)
	case strings.HasPrefix(text, "deploy"):
		llmtest.CallsTools("I ask first.", tool("ask_user", map[string]any{"question": "Where to?", "options": []string{"staging", "production"}, "default": "staging"}))(x)
	default:
		llmtest.Answers("Talk: " + strings.TrimSpace(text))(x)
	}
}

// open waits for the open question of a conversation.
func (d *deployment) open(talk string) (q question.Question) {
	d.Helper()
	st, _ := d.questions()
	c, err := chat.ParseConversation(conversation(talk))
	if err != nil {
		d.Fatal(err)
	}
	storetest.Eventually(d, "a question", func() error {
		var ok bool
		if q, ok, err = st.Newest(d.Context(), c); err == nil && !ok {
			err = fmt.Errorf("none is open")
		}
		return err
	})
	return q
}

// shown waits until it is known which message asks a question.
func (d *deployment) shown(id string) {
	d.Helper()
	r := d.record(nil)
	notes := cluster.New(cluster.Options{Client: r.client, Prefix: r.keys.Prefix})
	storetest.Eventually(d, "the question is shown", func() error {
		post, err := notes.Note(d.Context(), questionNote(id))
		if err == nil && post == "" {
			err = errors.New("no message asks it")
		}
		return err
	})
}

// questions is the store of the deployment's questions.
func (d *deployment) questions() (*question.Store, *App) {
	d.Helper()
	r := d.record(nil)
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: &task.Issuer{Keys: r.keys}}, Client: r.client})
	if err != nil {
		d.Fatal(err)
	}
	app := &App{questions: st, log: quiet}
	app.store, app.cfg.Redis.Prefix = &store.Store{Client: r.client}, r.keys.Prefix
	if app.trail, err = app.newTrail(); err != nil {
		d.Fatal(err)
	}
	return st, app
}

// overdue brings the deadline of a question forward to now, since the least that can be
// set takes longer than a test should.
func (r *record) overdue(id string) {
	r.Helper()
	_, p, err := question.ParseID(id)
	if err == nil {
		err = r.client.ZAddXX(r.Context(), r.keys.In(p, "q:due"), redis.Z{Score: 1, Member: id}).Err()
	}
	if err == nil { // as when one is asked that is due sooner than those before
		err = r.client.Publish(r.Context(), r.keys.Prefix+":q:signals", p).Err()
	}
	if err != nil {
		r.Fatal(err)
	}
}

// A question with options is posted with a numbered list, and answered by number, by
// its words, by free text, or by a button; also when every process was killed in
// between. Afterwards the same words are talk.
func TestQuestions(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, asking)
	node, _ := d.serve()
	for talk, answer := range map[string]string{"number": "2", "words": "Production!", "free": "to the moon"} {
		if got := d.once(talk, "deploy"); !strings.Contains(got, "I ask first.") {
			t.Errorf("%s: %q", talk, got)
		}
		q := d.open(talk)
		if texts := d.told(talk, 2); !strings.Contains(strings.Join(texts, "\n"), "Where to?\n\nWithout an answer until ") {
			t.Errorf("%s: posted %q", talk, texts)
		}
		if q.Text != "Where to?" || (q.Deadline.Sub(q.CreatedAt)-time.Hour).Abs() > time.Minute || q.AskedTo.ID == "" {
			t.Errorf("%+v", q)
		}
		if talk == "words" {
			node.kill()
			node, _ = d.serve()
		}
		want := `You said "production", option "production".`
		if talk == "free" {
			want = `You said "to the moon", option "".`
		}
		if got := d.once(talk, answer); got != want {
			t.Errorf("%s: %q, want %q", talk, got, want)
		}
		if got := d.once(talk, answer); got != "Talk: "+answer {
			t.Errorf("%s: %q", talk, got)
		}
	}

	d.once("press", "deploy")
	q := d.open("press")
	_, app := d.questions()
	press := func(who chat.Author, in chat.Conversation, value string) string {
		t.Helper()
		said, _, known, err := app.pressed(t.Context(), who, in, value)
		if err != nil || !known {
			t.Errorf("press %s: %v, %v", value, known, err)
		}
		return said
	}
	eve := chat.Author{ID: "eve", Name: "Eve", Role: chat.RoleAdmin}
	if said := press(eve, q.Conversation, q.Buttons()[0].Value); !strings.Contains(said, "This question is for") {
		t.Errorf("%q", said)
	}
	if said := press(q.AskedTo, chat.Conversation{Platform: "console", Workspace: "local", Place: "elsewhere"}, q.Buttons()[0].Value); said != staleButton {
		t.Errorf("%q", said)
	}
	if said := press(q.AskedTo, q.Conversation, q.Buttons()[1].Value); said != "You answered: production." {
		t.Errorf("%q", said)
	}
	if said := press(q.AskedTo, q.Conversation, q.Buttons()[0].Value); !strings.Contains(said, "You are late") || !strings.Contains(said, "answered already: production") {
		t.Errorf("%q", said)
	}
	if texts := d.told("press", 3); !strings.Contains(strings.Join(texts, "\n"), `You said "production", option "production".`) {
		t.Errorf("posted %q", texts)
	}
	if _, _, known, err := app.pressed(t.Context(), eve, q.Conversation, "admin:tasks"); known || err != nil {
		t.Errorf("%v, %v", known, err)
	}
}

// What the planner must know is asked, and the plan goes on with the answer.
func TestAPlannerAsks(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	tm := &team{hung: make(chan struct{})}
	asked := false
	tm.plan = func() (string, map[string]any) {
		tm.mu.Lock()
		defer tm.mu.Unlock()
		if asked {
			return comparison()
		}
		asked = true
		return "needs_input", map[string]any{"question": "Which B?", "options": []string{"the old one", "the new one"}}
	}
	d := deploy(t, tm.behave)
	node, _ := d.serve()
	d.once("t", "plan: compare A and B, then write a report")
	d.open("t")
	node.kill()
	d.serve()
	if got := d.once("t", "2"); got != "Thank you, I go on with: the new one" {
		t.Errorf("%q", got)
	}
	storetest.Eventually(t, "the report", func() error {
		texts, _ := d.record(nil).posted("t")
		if all := strings.Join(texts, "\n"); strings.Count(all, "Over: A is red, B is blue.") != 1 || strings.Count(all, "Which B?") != 1 {
			return fmt.Errorf("%q", texts)
		}
		return nil
	})
}

// Open questions are listed and answered from the shell, too.
func TestQuestionsFromTheShell(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, asking)
	d.serve()
	out, _ := d.run(0, "", "questions")
	has(t, out, "There are no open questions.")
	d.once("t", "deploy")
	q := d.open("t")
	out, _ = d.run(0, "", "questions")
	plain(t, out)
	has(t, out, q.ID[:10], "Where to?", "staging, production", "in 59m")
	out, _ = d.run(0, "", "answer", q.ID[:10], "2")
	has(t, out, "You answered: production.")
	storetest.Eventually(t, "it is told", func() error {
		texts, _ := d.record(nil).posted("t")
		if !strings.Contains(strings.Join(texts, "\n"), `You said "production", option "production".`) {
			return fmt.Errorf("%q", texts)
		}
		return nil
	})
	_, stderr := d.run(1, "", "answer", q.ID[:10], "1")
	has(t, stderr, "There is no open question")
}
