package main

import (
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// What was said before a risky call was shown allows nothing.
func TestAnApprovalIsNotAnsweredByWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	keys := channel.Keys{Prefix: storetest.Prefix(t), Partitions: 1}
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: &task.Issuer{Keys: keys}}, Client: s.Client})
	if err != nil {
		t.Fatal(err)
	}
	ann := chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	for place, thread := range map[string]string{"D1": "", "C1": "1.2"} {
		c := chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: thread}
		q, err := st.Ask(t.Context(), question.Draft{
			Conversation: c, Text: "May I?\n\n```\nrm -rf old\n```", Options: []string{"Allow once", "Refuse"}, Default: "Refuse", AskedTo: ann, OnlyOptions: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		h := hearing{questions: st}
		said := func(text string, at time.Time) channel.Input {
			return channel.Input{Value: chat.UserInput{ID: "i", Conversation: c, Author: ann, Text: text, Addressed: true, At: at}}
		}
		for _, text := range []string{"1", "allow once"} {
			if _, a, ok, err := h.reads(t.Context(), said(text, q.CreatedAt.Add(-50*time.Second))); ok || err != nil {
				t.Errorf("%s: %q of 50 s before the question counts as %q, %v", place, text, a.Option, err)
			}
			if _, a, ok, err := h.reads(t.Context(), said(text, q.CreatedAt.Add(time.Second))); !ok || err != nil || a.Option != "Allow once" {
				t.Errorf("%s: %q of afterwards counts as %q, %v", place, text, a.Option, err)
			}
		}
	}
}
