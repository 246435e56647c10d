package thinker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// A turn that took long, or very much, is filed, with how long and how much and
// with nothing that was said.
func TestSlowAndHeavyTurnsAreFiled(t *testing.T) {
	t.Parallel()
	answer := func(tokens int, err error) llm.Model {
		return llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{Text: "secret answer", Finish: "stop", Model: "large", Usage: llm.Usage{Prompt: tokens - 10, Completion: 10}}, err
		})
	}
	for _, c := range []struct {
		name   string
		waited time.Duration // from the first message to the step
		tokens int
		err    error
		slow   time.Duration
		heavy  int
		want   []string
	}{
		{"quick and light", 9 * time.Second, 99, nil, 10 * time.Second, 100, nil},
		{"slow", 10 * time.Second, 99, nil, 10 * time.Second, 100, []string{"high_latency low"}},
		{"very slow", 30 * time.Second, 99, nil, 10 * time.Second, 100, []string{"high_latency medium"}},
		{"heavy", time.Second, 100, nil, 10 * time.Second, 100, []string{"high_usage low"}},
		{"both", time.Hour, 500, nil, 10 * time.Second, 100, []string{"high_latency medium", "high_usage medium"}},
		{"a replayed dead letter waited for somebody", 25 * time.Hour, 99, nil, 10 * time.Second, 100, nil},
		{"neither is asked for", time.Hour, 500, nil, 0, 0, nil},
		{"failed and slow", time.Minute, 50, &llm.Error{Kind: llm.Refused, Err: errors.New("no")}, 10 * time.Second, 100, []string{"thinker_error ", "high_latency medium"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := epoch.Add(time.Minute)
			f := setup(t, answer(c.tokens, c.err), func(o *Options) {
				o.Slow, o.Heavy, o.Now = c.slow, c.heavy, func() time.Time { return at }
			})
			e := entry(digest())
			e.Hops = channel.Hops{{Stage: "accept", At: at.Add(-c.waited)}}
			fx, err := f.Loop().Step(context.Background(), work(e))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range filed(t, fx) {
				got = append(got, string(n.Kind)+" "+n.Severity)
				if n.DigestID != "d-1" || n.Conversation != thread || n.TraceID != "tr" || strings.Contains(n.Message, "secret") {
					t.Errorf("filed %+v", n)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The budgets of who the turn is for are told of, by the turn's own name, and not
// when there is no answer to tell them with.
func TestNearEndIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer llmtest.Answer
		err    error
		want   string
		asked  int
	}{
		{"an answer", llmtest.Say("Yes."), nil, "_Note: 90 % of the workspace's daily budget is used._", 1},
		{"nobody knows", llmtest.Say("Yes."), errors.New("away"), "_Note: 90 % of the workspace's daily budget is used._", 1},
		{"no answer", llmtest.Fail(llm.Refused, 0), nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			f := setup(t, llmtest.NewScripted(c.answer), func(o *Options) {
				o.NearEnd = func(_ context.Context, in chat.Conversation, who chat.Author, turn string) ([]llm.BudgetWarning, error) {
					asked = append(asked, fmt.Sprint(in.Key(), " ", who.ID, " ", turn))
					return []llm.BudgetWarning{{Budget: llm.Budget{Subject: llm.Subject{Kind: llm.WorkspaceSubject}, Limit: 100, Spent: 90}}}, c.err
				}
			})
			fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
			if err != nil {
				t.Fatal(err)
			}
			if got := decision(t, fx).Notice; got != c.want {
				t.Errorf("notice %q, want %q", got, c.want)
			}
			if len(asked) != c.asked || c.asked > 0 && asked[0] != fmt.Sprint(conv, " ", ann.ID, " d-1") {
				t.Errorf("asked %q", asked)
			}
		})
	}
}
