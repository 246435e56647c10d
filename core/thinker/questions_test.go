package thinker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/task"
)

// asked is open questions in memory.
type asked struct {
	open []question.Question
	err  error
}

func (a asked) Open(_ context.Context, c chat.Conversation) ([]question.Question, error) {
	if c != thread {
		return nil, errors.New("another conversation")
	}
	return a.open, a.err
}

func TestAskUser(t *testing.T) {
	t.Parallel()
	is := &question.Issuer{Tasks: &task.Issuer{Keys: channel.Keys{Prefix: "x", Partitions: 1}}, Now: func() time.Time { return epoch }}
	args := map[string]any{"question": "Where to?", "options": []string{"staging", "production"}, "default": "staging", "timeout": 60}
	turn := func(open asked) (channel.Effects, string) {
		f, _ := acting(t, &found{}, QuestionActions(QuestionOptions{Issuer: is, Store: open}), call(t, "ask_user", args))
		fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
		if err != nil {
			t.Fatal(err)
		}
		return fx, decision(t, fx).Decision
	}
	fx, _ := turn(asked{})
	if ops(fx) != "question create" || len(fx.Publish) != 2 {
		t.Fatalf("%q, %+v", ops(fx), fx.Publish)
	}
	reply, ok := fx.Publish[1].Value.(*chat.Reply)
	if !ok || fx.Publish[1].To != channel.TellerReply || len(reply.Buttons) != 2 || !strings.Contains(reply.Text, "Without an answer until 2026-11-21 10:01 UTC I take: staging") {
		t.Errorf("%+v", fx.Publish[1])
	}
	if row := strings.Join(fx.Calls[0].Args, " "); !strings.Contains(row, `"askedTo":{"id":"U1"`) || !strings.Contains(row, `"traceId":"tr"`) {
		t.Errorf("kept %s", row)
	}
	if got := brief(t, fx.History); !strings.Contains(got, "Where to?\n\n1. staging") {
		t.Errorf("the history is\n%s", got)
	}
	if fx, told := turn(asked{open: []question.Question{{ID: "q7", Text: "Where to?"}}}); len(fx.Calls) != 0 || !strings.Contains(told, "asked already, as q7") {
		t.Errorf("%q, %q", ops(fx), told)
	}
	if fx, told := turn(asked{open: make([]question.Question, question.MaxOpen)}); len(fx.Calls) != 0 || !strings.Contains(told, "20 open questions") {
		t.Errorf("%q, %q", ops(fx), told)
	}
	// What the same turn has asked counts.
	other := map[string]any{"question": "When?"}
	f, _ := acting(t, &found{}, QuestionActions(QuestionOptions{Issuer: is, Store: asked{open: make([]question.Question, question.MaxOpen-1)}}), call(t, "ask_user", args), call(t, "ask_user", other))
	fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
	if err != nil {
		t.Fatal(err)
	}
	if told := decision(t, fx).Decision; ops(fx) != "question create" || !strings.Contains(told, "this was not asked: there are 20 open questions") {
		t.Errorf("%q, %q", ops(fx), told)
	}
	same := map[string]any{"question": args["question"]}
	f, _ = acting(t, &found{}, QuestionActions(QuestionOptions{Issuer: is, Store: asked{}}), call(t, "ask_user", args), call(t, "ask_user", same))
	if fx, err = f.Loop().Step(context.Background(), work(entry(digest()))); err != nil {
		t.Fatal(err)
	}
	if told := decision(t, fx).Decision; ops(fx) != "question create" || !strings.Contains(told, "asked already") {
		t.Errorf("%q, %q", ops(fx), told)
	}
}
