package thinker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/telemetry"
	"mimikit/prompts"
)

// errSilent is a model that said nothing and did nothing.
var errSilent = errors.New("the model answered nothing")

// think asks the model until it has decided.
func (t *Thinker) think(ctx context.Context, w *channel.Work, c *Commit, d prompts.Data) (action.Result, error) {
	offer := t.o.Actions.For(action.Thinker, c.Turn.Rights)
	d.Actions = offer.Describe(t.o.Style)
	p, err := t.o.Prompts.Compose("thinker", d)
	if err != nil {
		return action.Result{}, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, t.o.Timeout, fmt.Errorf("no decision within %s: %w", t.o.Timeout, context.DeadlineExceeded))
	defer cancel()
	conv, who := c.Turn.Conversation, c.Turn.OnBehalfOf
	req := llm.Request{
		Agent: "thinker", Model: t.o.ModelName, Messages: p.Messages(),
		Conversation: w.Conversation, TraceID: c.Turn.TraceID,
		User: conv.UserKey(who.ID), Place: conv.PlaceKey(), Workspace: conv.WorkspaceKey(),
		Shorten: func(round int) []llm.Message { return t.shorter(d, round) },
	}
	show := t.show(bounded, c)
	show.On(&req)
	hooks := t.hooks(w.Conversation)
	hooks.Round = func(context.Context, []llm.Message) error {
		show.Again()
		return nil
	}
	got, err := action.Run(context.WithValue(bounded, turnKey{}, turn{c.Digest, w, &soFar{removed: map[string]bool{}}}), t.o.Model, req, offer, c.Turn, action.Bounds{
		Rounds: t.o.Rounds, Errors: t.o.Mistakes, Style: t.o.Style, Hooks: hooks,
	})
	got.Text = strings.TrimSpace(got.Text)
	if err == nil && got.Text == "" && len(got.Effects) == 0 {
		err = errSilent
	}
	show.Close(err == nil && ctx.Err() == nil && got.Text != "")
	return got, err
}

// show shows the turn's answer while it is worded, where it is posted as it is.
func (t *Thinker) show(ctx context.Context, c *Commit) *llm.Show {
	if t.o.Show == nil || !t.o.Final || len(c.Digest.Inputs) == 0 {
		return nil
	}
	return t.o.Show(ctx, c.Turn.Conversation, "r-t-"+strings.TrimPrefix(c.Digest.ID, "d-"), c.Turn.OnBehalfOf)
}

// hooks log what the model does.
func (t *Thinker) hooks(conversation string) action.Hooks {
	attrs := func(s action.Step) []any {
		return []any{"conversation", conversation, "action", s.Named(), "round", s.Round, "on_behalf_of", s.OnBehalfOf.ID}
	}
	var watch telemetry.Watch
	return action.Hooks{
		Start: func(context.Context, action.Step) { watch.Begin() },
		Done: func(ctx context.Context, s action.Step) {
			watch.Acted(ctx, s.Call.Name, s.Kind != 0, string(s.Verdict))
			t.o.Logger.InfoContext(ctx, "thinker_action", append(attrs(s), "verdict", s.Verdict)...)
		},
		Failed: func(ctx context.Context, s action.Step, err error) {
			t.o.Logger.ErrorContext(ctx, "thinker_action_failed", append(attrs(s), "error", err)...)
		},
		Panicked: func(ctx context.Context, s action.Step, value any, stack []byte) {
			t.o.Logger.ErrorContext(ctx, "thinker_action_panicked", append(attrs(s), "panic", value, "stack", string(stack))...)
		},
	}
}

// shorter gives the prompt with less in it: half the history, then a quarter,
// then none, and the texts of the turn cut each time.
func (t *Thinker) shorter(d prompts.Data, round int) []llm.Message {
	if round > 3 {
		return nil
	}
	keep := len(d.History) >> round
	if round == 3 {
		keep = 0
		d.Summary = history.Cut(d.Summary, 1<<10)
	}
	d.History = d.History[len(d.History)-keep:]
	most := chat.MaxText >> (round + 1)
	d.Inputs, d.Results = slices.Clone(d.Inputs), slices.Clone(d.Results)
	for i := range d.Inputs {
		in := &d.Inputs[i]
		in.Text = history.Cut(in.Text, most)
		in.Attachments = slices.Clone(in.Attachments)
		for j := range in.Attachments {
			in.Attachments[j].Text = history.Cut(in.Attachments[j].Text, most)
		}
	}
	for i := range d.Results {
		d.Results[i].Output = history.Cut(d.Results[i].Output, most)
	}
	p, err := t.o.Prompts.Compose("thinker", d)
	if err != nil {
		return nil // unreachable: the longer one was composed
	}
	return p.Messages()
}

// clock spells when a budget begins anew.
const clock = "15:04 UTC on January 2"

// warnings are the lines that tell of budgets near their end.
func warnings(all []llm.BudgetWarning) string {
	var b strings.Builder
	for _, w := range all {
		if w.Limit <= 0 {
			continue
		}
		fmt.Fprintf(&b, "\n\n_Note: %d %% of %s budget is used.", 100*(w.Spent+w.Reserved)/w.Limit, whose(w.Budget))
		switch until := w.Resets.UTC().Format(clock); {
		case w.Resets.IsZero():
		case w.Spent >= w.Limit:
			b.WriteString(" I cannot answer again before " + until + ", unless an admin raises it.")
		default:
			b.WriteString(" Once all of it is, I cannot answer before " + until + ", unless an admin raises it.")
		}
		b.WriteString("_")
	}
	return strings.TrimSpace(b.String())
}

// whose says in a person's words whose budget it is.
func whose(b llm.Budget) string {
	switch b.Subject.Kind {
	case llm.UserSubject:
		return "your daily"
	case llm.PlaceSubject:
		return "this channel's daily"
	case llm.WorkspaceSubject:
		return "the workspace's daily"
	}
	return "the task's"
}

// apology says in plain words why there is no answer and what a person can do.
// It carries nothing of the error's own text, which may hold addresses or parts
// of keys.
func apology(err error) string {
	var spent *llm.BudgetError
	if errors.As(err, &spent) {
		s := "I cannot answer: " + whose(spent.Budget) + " budget for the language model is used up."
		if !spent.Resets.IsZero() {
			s += " It begins anew at " + spent.Resets.UTC().Format(clock) + "; an admin can raise it before that."
		} else {
			s += " An admin can raise it."
		}
		return s + " What you wrote is kept in this conversation; ask me again then."
	}
	var e *llm.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, errSilent):
		return "I asked the language model, but it answered nothing. What you wrote is kept in this conversation; please ask again, perhaps in other words."
	case errors.Is(err, context.DeadlineExceeded):
		e = &llm.Error{Kind: llm.Transient}
	default:
		e = &llm.Error{}
	}
	switch e.Kind {
	case llm.RateLimited:
		when := "in a few minutes"
		if e.RetryAfter > 0 {
			when = "in " + cmp.Or(e.RetryAfter.Round(time.Second), time.Second).String()
		}
		return "I cannot answer right now: the language model is getting too many requests. What you wrote is kept in this conversation; please ask again " + when + "."
	case llm.Refused:
		return "The language model refused to answer this, so I have no answer for you. Asking it in other words may help."
	case llm.TooLong:
		return "This is more text than the language model can read at once, so I could not answer. Please send less of it, or ask about one part at a time."
	case llm.Transient:
		return "I cannot answer right now: the language model could not be reached or took too long. What you wrote is kept in this conversation; please ask again in a moment."
	case llm.Fatal:
		return "I cannot answer: the language model is not set up correctly, and only an admin can mend that. What you wrote is kept in this conversation; ask again once it is mended."
	}
	return "Something went wrong while I was thinking about this, and I have no answer. What you wrote is kept in this conversation; please ask again."
}
