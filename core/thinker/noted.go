package thinker

import (
	"context"
	"fmt"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
)

// NearEnd gives the budgets of a turn that are near their end, those of who it is
// for, of its place and workspace, of which people were not told yet. The same turn
// is given the same again.
type NearEnd func(ctx context.Context, c chat.Conversation, who chat.Author, turn string) ([]llm.BudgetWarning, error)

// near are the budgets to tell of. The model's own warnings come with whichever
// call crossed the share, which may be one that speaks to nobody; they only serve
// where nothing better is there.
func (t *Thinker) near(ctx context.Context, c *Commit, got action.Result) []llm.BudgetWarning {
	if t.o.NearEnd == nil {
		return got.Warnings
	}
	all, err := t.o.NearEnd(ctx, c.Turn.Conversation, c.Turn.OnBehalfOf, c.Digest.ID)
	if err != nil { // what could be told is given all the same, and the rest is told by a later turn
		t.o.Logger.WarnContext(ctx, "thinker_budgets_unread", "conversation", c.Turn.Conversation.Key(), "error", err)
	}
	return all
}

// longest is the time beyond which a turn was not slow but waited for somebody: a
// dead letter that was replayed has the times of its first way.
const longest = 24 * time.Hour

// noted files what whoever runs the bot should know of a turn besides its failure:
// that it took long, or very many tokens. Nothing that was said stands in it.
func (t *Thinker) noted(c *Commit, e *channel.Entry, w *channel.Work, got action.Result, thought time.Duration) {
	accepted := e.At()
	if len(e.Hops) > 0 {
		accepted = e.Hops[0].At
	}
	if took := t.now(w).Sub(accepted) + thought; t.o.Slow > 0 && took >= t.o.Slow && took < longest {
		c.feedback(chat.Feedback{
			Kind: chat.FeedbackSlow, Category: "speed", Severity: severity(took >= 3*t.o.Slow),
			Message: fmt.Sprintf("It took %s from the first message to the decision, %s of them to think, in %d calls of %s.",
				took.Round(time.Second), thought.Round(time.Second), got.Rounds, modelName(got)),
		})
	}
	if used := got.Usage.Prompt + got.Usage.Completion; t.o.Heavy > 0 && used >= t.o.Heavy {
		c.feedback(chat.Feedback{
			Kind: chat.FeedbackUsage, Category: "other", Severity: severity(used >= 3*t.o.Heavy),
			Message: fmt.Sprintf("One turn used %d tokens (%d in, %d out) in %d calls of %s.",
				used, got.Usage.Prompt, got.Usage.Completion, got.Rounds, modelName(got)),
		})
	}
}

func severity(much bool) string {
	if much {
		return "medium"
	}
	return "low"
}

func modelName(got action.Result) string {
	if got.Model == "" {
		return "a model that did not answer"
	}
	return got.Model
}
