package teller

import (
	"context"
	"strings"
	"testing"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func filed(t *testing.T, fx channel.Effects) []chat.Feedback {
	t.Helper()
	var out []chat.Feedback
	for _, p := range fx.Publish {
		if f, ok := p.Value.(*chat.Feedback); ok && p.To == channel.Feedback {
			out = append(out, *f)
		}
	}
	return out
}

// Where the teller makes do without a model, that is filed; a budget that is spent
// is the thinker's to tell and to file.
func TestMakingDoIsFiled(t *testing.T) {
	t.Parallel()
	spent := llmtest.Answer{Err: &llm.Error{Kind: llm.OverBudget, Err: &llm.BudgetError{}}}
	draft := func(d *chat.ThinkerDecision) { d.Final = false }
	two := []*channel.Entry{in(0, "m1", "first"), in(1, "m2", "second")}
	for _, c := range []struct {
		name   string
		answer llmtest.Answer
		digest bool
		want   string // "" for nothing filed
	}{
		{"a digest fails", llmtest.Fail(llm.Refused, 0), true, "without a summary: model call (refused)"},
		{"a digest says nothing of use", llmtest.Say("two things"), true, ""},
		{"a digest is over budget", spent, true, ""},
		{"a digest", llmtest.Say(`@digest_context summary="s"`), true, ""},
		{"the words fail", llmtest.Fail(llm.Transient, 0), false, "posted as it was decided: model call (transient)"},
		{"the words are over budget", spent, false, ""},
		{"the words", llmtest.Say("42"), false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, llmtest.NewScripted(c.answer))
			loop, w := f.FormatLoop(), work(decided(draft))
			if c.digest {
				loop, w = f.DigestLoop(), work(two...)
			}
			fx, err := loop.Step(context.Background(), w)
			if err != nil {
				t.Fatal(err)
			}
			got := filed(t, fx)
			if c.want == "" {
				if len(got) != 0 {
					t.Errorf("filed %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Kind != chat.FeedbackTellerError || !strings.Contains(got[0].Message, c.want) || got[0].Conversation != thread || got[0].At.IsZero() {
				t.Errorf("filed %+v, want %q", got, c.want)
			}
		})
	}
}

// A notice stands below the reply, whoever worded it, and however long that is.
func TestNoticeIsPostedAsItIs(t *testing.T) {
	t.Parallel()
	noticed := func(d *chat.ThinkerDecision) { d.Notice = "_Note: 80 %._" }
	draft := func(d *chat.ThinkerDecision) { d.Final = false }
	for name, c := range map[string]struct {
		answers []llmtest.Answer
		change  []func(*chat.ThinkerDecision)
		want    string
	}{
		"final":  {nil, []func(*chat.ThinkerDecision){noticed}, "say 42\n\n_Note: 80 %._"},
		"worded": {[]llmtest.Answer{llmtest.Say("It is 42.")}, []func(*chat.ThinkerDecision){noticed, draft}, "It is 42.\n\n_Note: 80 %._"},
		"long":   {[]llmtest.Answer{llmtest.Say(strings.Repeat("x", chat.MaxText))}, []func(*chat.ThinkerDecision){noticed, draft}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, llmtest.NewScripted(c.answers...))
			fx, err := f.FormatLoop().Step(context.Background(), work(decided(c.change...)))
			if err != nil {
				t.Fatal(err)
			}
			r, _ := published[chat.Reply](t, fx, channel.TellerReply, "reply")
			if !strings.HasSuffix(r.Text, "\n\n_Note: 80 %._") || len(r.Text) > chat.MaxText || c.want != "" && r.Text != c.want {
				t.Errorf("posted %d bytes: %.200q", len(r.Text), r.Text)
			}
		})
	}
}
