package thinker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/question"
	"mimikit/core/trigger"
	"mimikit/prompts"
)

// Past looks up what was said; a *history.Store is one.
type Past interface {
	Recent(ctx context.Context, conversation string, count int) (history.Found, error)
	ByTime(ctx context.Context, conversation string, from, to time.Time, limit int) (history.Found, error)
}

// Actions are those that need nothing but the conversation itself.
func Actions(past Past) []action.Definition {
	return []action.Definition{
		action.Define(action.CaptureFeedback, captureFeedback),
		action.Define(action.SummarizeTaskResult, summarizeTaskResult),
		action.Define(action.GetRecentHistory, func(ctx context.Context, t action.Turn, a action.RecentHistory) (action.Outcome, error) {
			return told(past.Recent(ctx, t.Conversation.Key(), a.Limit))
		}),
		action.Define(action.GetHistoryByTime, func(ctx context.Context, t action.Turn, a action.HistorySpan) (action.Outcome, error) {
			return told(past.ByTime(ctx, t.Conversation.Key(), a.From, a.To, a.Limit))
		}),
	}
}

func captureFeedback(_ context.Context, _ action.Turn, a action.Feedback) (action.Outcome, error) {
	return action.Outcome{Effects: []any{Effect{
		Said: "I have passed that on to those who run me.",
		Into: func(c *Commit) error {
			c.feedback(chat.Feedback{
				Kind: chat.FeedbackCaptured, Message: history.Cut(a.Message, maxFeedback),
				Category: a.Category, Severity: a.Severity, TaskID: a.TaskID,
			})
			return nil
		},
	}}}, nil
}

// A turn is what an action may know of the turn that it is part of.
type turn struct {
	digest *chat.TellerDigest
	work   *channel.Work
	so     *soFar
}

// soFar is what the turn's commit will do, of which the stores know nothing yet. The
// actions of a turn run one after the other.
type soFar struct {
	scheduled []trigger.Trigger
	asked     []question.Question
	removed   map[string]bool // :: id of a trigger → it will be gone
}

type turnKey struct{}

func current(ctx context.Context) (turn, error) {
	t, ok := ctx.Value(turnKey{}).(turn)
	if !ok {
		return turn{}, errors.New("there is no turn")
	}
	return t, nil
}

func summarizeTaskResult(ctx context.Context, _ action.Turn, a action.TaskSummary) (action.Outcome, error) {
	t, err := current(ctx)
	if err != nil {
		return action.Outcome{}, err
	}
	var ids []string
	for _, r := range t.digest.Results {
		if r.ID == a.TaskID {
			return action.Outcome{Effects: []any{Effect{
				Into: func(c *Commit) error {
					c.gists[a.TaskID] = a.Summary
					return nil
				},
			}}}, nil
		}
		ids = append(ids, r.ID)
	}
	if len(ids) == 0 {
		return action.Outcome{}, action.Mistakef("task_id: this turn has no results; what is in the history already is kept as it is")
	}
	return action.Outcome{}, action.Mistakef("task_id: %q is no result of this turn; its results are %s", a.TaskID, strings.Join(ids, ", "))
}

// told spells what a look-up found, as data.
func told(f history.Found, err error) (action.Outcome, error) {
	if err != nil {
		return action.Outcome{}, err
	}
	var notes []string
	if len(f.Lines) == 0 {
		notes = append(notes, "No lines.")
	}
	if f.More {
		notes = append(notes, "There are more lines than these.")
	}
	summary := ""
	if f.Folded {
		notes = append(notes, fmt.Sprintf("What was said from %s to %s is kept in short only.",
			f.Summary.From.UTC().Format(time.RFC3339), f.Summary.Upto.UTC().Format(time.RFC3339)))
		summary = f.Summary.Text
	}
	return action.Outcome{Answer: strings.TrimSpace(strings.Join(notes, " ") + "\n" + prompts.Past(summary, f.Lines))}, nil
}
