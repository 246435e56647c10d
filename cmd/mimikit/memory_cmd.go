package main

import (
	"context"
	"fmt"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/thinker"
)

// memoryCmd is `mimikit memory`.
type memoryCmd struct {
	Words []string `arg:"" optional:"" name:"word" help:"list (the default), the number of a page, or forget and ids."`
	In    string   `placeholder:"CONVERSATION" help:"As seen from this conversation: platform/workspace/place/thread, as tasks and logs show it. Default: this account's terminal."`
	Of    string   `placeholder:"USER" help:"As seen by this person, by their id on the platform. Default: this account."`
	Limit int      `short:"n" default:"20" help:"How many a page has, 1 to 100."`
	asJSON
}

// Help tells more.
func (*memoryCmd) Help() string {
	return `Lists what is remembered about a person and in a conversation, or has it forgotten. What is forgotten reaches no prompt any more; what was said in the conversation itself stays in its history.

Examples:
  mimikit memory
  mimikit memory --in slack/T024/C07/1763692800.000100 --of U07
  mimikit memory forget nabc23 --in slack/T024/C07/1763692800.000100`
}

// Run lists notes, or has them forgotten.
func (c *memoryCmd) Run(ctx context.Context, std *streams, s *settings) error {
	if c.Limit < 1 || c.Limit > 100 {
		return fmt.Errorf("--limit %d: 1 to 100 are allowed", c.Limit)
	}
	words := append([]string{"memory"}, c.Words...)
	if c.In != "" {
		words = append(words, "in", c.In)
	}
	if c.Of != "" {
		words = append(words, "of", c.Of)
	}
	return withCommands(ctx, s, func(_ *App, set *admin.Set, who admin.Caller) error {
		who.PageSize = c.Limit
		a, err := set.Run(ctx, who, words)
		if err != nil {
			return err
		}
		return printAnswer(std.out, a, c.JSON)
	})
}

// budgetCmd is `mimikit budget`.
type budgetCmd struct {
	Words []string `arg:"" optional:"" name:"word" help:"user, place or workspace, whose it is by its key, and what to set: tokens or money and how much, off, or default."`
	asJSON
}

// Help tells more.
func (*budgetCmd) Help() string {
	return `Shows the budgets that were set with this command or in chat, or sets one in place of what is configured. A budget is for a day (UTC) and holds on every node from its next call of a model on. Keys are those that 'mimikit usage user' and the like show; one that ends in /* stands for each user or place of a workspace.

Examples:
  mimikit budget
  mimikit budget workspace slack/T024 tokens 2M
  mimikit budget user 'slack/T024/*' money 1.50
  mimikit budget user slack/T024/U07 off
  mimikit budget user slack/T024/U07 default`
}

// Run shows or sets budgets.
func (c *budgetCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, append([]string{"budget"}, c.Words...)...)
}

func subjectOf(kind, id string) llm.Subject {
	return llm.Subject{Kind: llm.SubjectKind(kind), ID: id}
}

// SetLimit sets what a subject may spend in a day.
func (v ledgerView) SetLimit(ctx context.Context, kind, id string, money bool, limit int64) error {
	unit := llm.Tokens
	if money {
		unit = llm.Money
	}
	return v.l.SetLimit(ctx, subjectOf(kind, id), unit, limit)
}

// UnsetLimit has the configured limits of a subject hold again.
func (v ledgerView) UnsetLimit(ctx context.Context, kind, id string) error {
	return v.l.UnsetLimit(ctx, subjectOf(kind, id))
}

// SetLimits lists the limits that were set.
func (v ledgerView) SetLimits(ctx context.Context) ([]admin.Limit, error) {
	list, err := v.l.SetLimits(ctx)
	out := make([]admin.Limit, len(list))
	for i, l := range list {
		out[i] = admin.Limit{Kind: string(l.Subject.Kind), ID: l.Subject.ID, Money: l.Unit == llm.Money, Limit: l.Limit}
	}
	return out, err
}

// nearEnd gives the thinker the budgets of a turn that nobody was told of yet.
func (a *App) nearEnd() thinker.NearEnd {
	l := a.ledger
	if l == nil {
		return nil
	}
	return func(ctx context.Context, c chat.Conversation, who chat.Author, turn string) ([]llm.BudgetWarning, error) {
		return l.Tell(ctx, turn,
			llm.Subject{Kind: llm.UserSubject, ID: c.UserKey(who.ID)},
			llm.Subject{Kind: llm.PlaceSubject, ID: c.PlaceKey()},
			llm.Subject{Kind: llm.WorkspaceSubject, ID: c.WorkspaceKey()})
	}
}
