package thinker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestModelFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		answers  []llmtest.Answer
		want     string // beginning of the decision
		feedback string // "": it is no failure
	}{
		{"it answers", []llmtest.Answer{llmtest.Say("a")}, "a", ""},
		{"rate limited", []llmtest.Answer{llmtest.Fail(llm.RateLimited, 0)}, "I cannot answer right now: the language model is getting too many requests.", "rate_limited"},
		{"rate limited, with a time", []llmtest.Answer{llmtest.Fail(llm.RateLimited, 90*time.Second)}, "I cannot answer right now: the language model is getting too many requests. What you wrote is kept in this conversation; please ask again in 1m30s.", "rate_limited"},
		{"rate limited, for a moment", []llmtest.Answer{llmtest.Fail(llm.RateLimited, time.Millisecond)}, "I cannot answer right now: the language model is getting too many requests. What you wrote is kept in this conversation; please ask again in 1s.", "rate_limited"},
		{"refused", []llmtest.Answer{llmtest.Fail(llm.Refused, 0)}, "The language model refused", "refused"},
		{"too long", []llmtest.Answer{llmtest.Fail(llm.TooLong, 0)}, "This is more text than", "too_long"},
		{"unreachable", []llmtest.Answer{llmtest.Fail(llm.Transient, 0)}, "I cannot answer right now: the language model could not be reached", "transient"},
		{"misconfigured", []llmtest.Answer{llmtest.Fail(llm.Fatal, 0)}, "I cannot answer: the language model is not set up correctly", "fatal"},
		{"no answer", []llmtest.Answer{llmtest.Say(" ")}, "I asked the language model, but it answered nothing.", "answered nothing"},
		{"an error of another kind", []llmtest.Answer{{Err: errors.New("key sk-123 is wrong")}}, "Something went wrong while I was thinking", "sk-123"},
		{"a timeout of another kind", []llmtest.Answer{{Err: context.DeadlineExceeded}}, "I cannot answer right now: the language model could not be reached", "deadline"},
		{"a budget is spent", []llmtest.Answer{{Err: &llm.Error{Kind: llm.OverBudget, Err: &llm.BudgetError{Budget: llm.Budget{
			Subject: llm.Subject{Kind: llm.PlaceSubject, ID: "x/y/z"}, Unit: llm.Tokens, Limit: 10, Spent: 10, Resets: epoch.Add(14 * time.Hour),
		}}}}}, "I cannot answer: this channel's daily budget for the language model is used up. It begins anew at 00:00 UTC on November 22; an admin can raise it before that. What you wrote is kept in this conversation; ask me again then.", "over_budget"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.NewScripted(c.answers...)
			f := setup(t, m, func(o *Options) { o.Final = false })
			fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
			if err != nil {
				t.Fatal(err)
			}
			d, failed := decision(t, fx), c.feedback != ""
			if !strings.HasPrefix(d.Decision, c.want) || d.Fallback != failed || d.Final != failed {
				t.Errorf("decision is %+v, want %q", d, c.want)
			}
			if strings.Contains(d.Decision, "scripted") || strings.Contains(d.Decision, "sk-") || strings.Contains(d.Decision, "x/y/z") {
				t.Errorf("the error's own text is told to people: %q", d.Decision)
			}
			if got := brief(t, fx.History); got != heardAll {
				t.Errorf("history is %s", got)
			}
			fb := filed(t, fx)
			if failed != (len(fb) == 1) {
				t.Fatalf("feedback: %+v", fb)
			}
			if failed {
				f0 := fb[0]
				if f0.Kind != chat.FeedbackThinkerError || f0.Conversation != thread || f0.DigestID != "d-1" || f0.TraceID != "tr" || f0.Author != ann || !strings.Contains(f0.Message, c.feedback) {
					t.Errorf("feedback is %+v, want it to say %q", f0, c.feedback)
				}
				if !strings.Contains(f.log.String(), "level=ERROR msg=thinker_end") || !strings.Contains(f.log.String(), "ok=false") {
					t.Errorf("log:\n%s", f.log)
				}
			}
			for i, r := range m.Requests() {
				if r.Model != "large" || r.User != "discord/G1/U1" || r.Place != "discord/G1/P1" || r.Workspace != "discord/G1" {
					t.Errorf("call %d is for %s on account of %q, %q, %q", i+1, r.Model, r.User, r.Place, r.Workspace)
				}
			}
		})
	}
}

func TestACallHasABound(t *testing.T) {
	t.Parallel()
	f := setup(t, llmtest.NewBlocking("late"), func(o *Options) { o.Timeout = time.Nanosecond })
	fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
	if err != nil {
		t.Fatal(err)
	}
	if d := decision(t, fx); !d.Fallback || !strings.Contains(d.Decision, "took too long") {
		t.Errorf("decision is %+v", d)
	}
}

// A prompt that is too long is tried with less of what was said before, and in
// the end with none of it.
func TestShorterPrompts(t *testing.T) {
	t.Parallel()
	var lengths []int
	m := llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
		for round := 1; ; round++ {
			messages := req.Shorten(round)
			if messages == nil {
				return llm.Response{Text: "ok", Finish: "stop"}, nil
			}
			n := 0
			for _, msg := range messages {
				n += strings.Count(msg.Content, "<line")
			}
			lengths = append(lengths, n)
		}
	})
	f := setup(t, m)
	for range 8 {
		f.past.lines = append(f.past.lines, chat.Line{ID: "i0", Role: chat.LineUser, Author: ann, Text: "earlier", At: epoch})
	}
	if _, err := f.Loop().Step(context.Background(), work(entry(digest()))); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lengths, []int{4, 2, 0}) {
		t.Errorf("lines of history: %v, want 4, 2 and none", lengths)
	}
}
