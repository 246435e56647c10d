package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"mimikit/core/admin"
)

// asJSON is the flag of commands whose answers programs read.
type asJSON struct {
	JSON bool `name:"json" help:"Print the answer as JSON, whose fields are only ever added to."`
}

// withCommands gives f the commands on the store of the node that runs, and who
// calls them.
func withCommands(ctx context.Context, s *settings, f func(app *App, set *admin.Set, c admin.Caller) error) error {
	return withApp(ctx, s, func(app *App) error {
		return f(app, app.set, shell())
	})
}

// order carries out one command and prints its answer.
func order(ctx context.Context, std *streams, s *settings, j asJSON, words ...string) error {
	return withCommands(ctx, s, func(_ *App, set *admin.Set, c admin.Caller) error {
		a, err := set.Run(ctx, c, words)
		if err != nil {
			return err
		}
		return printAnswer(std.out, a, j.JSON)
	})
}

// printAnswer prints an answer for people, or for programs.
func printAnswer(w io.Writer, a admin.Answer, asJSON bool) error {
	if asJSON && a.Data != nil {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(a.Data)
	}
	for i, b := range a.Blocks {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := printBlock(w, b); err != nil {
			return err
		}
	}
	return nil
}

func printBlock(w io.Writer, b admin.Block) error {
	var t *table
	switch {
	case b.Table != nil:
		head := make([]string, len(b.Table.Head))
		for i, h := range b.Table.Head {
			head[i] = strings.ToUpper(h)
		}
		t = newTable(head...)
		for _, r := range b.Table.Rows {
			cells := make([]any, len(r))
			for i, c := range r {
				cells[i] = c
			}
			t.row(cells...)
		}
	case b.Facts != nil:
		t = &table{}
		for _, f := range b.Facts {
			t.row(f.Name, f.Value)
		}
	case b.Text != "":
		_, err := fmt.Fprintln(w, strings.TrimRight(b.Text, "\n"))
		return err
	default:
		_, err := fmt.Fprintln(w, admin.Unmark(b.Words))
		return err
	}
	return t.print(w)
}

// statusCmd is `mimikit status`.
type statusCmd struct{ asJSON }

// Run says how the bot is doing.
func (c *statusCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, "status")
}

// feedbackCmd is `mimikit feedback`.
type feedbackCmd struct {
	Words []string `arg:"" optional:"" name:"word" help:"Only of a kind, or as grave: review, captured, thinker_error, teller_error, worker_error, worker_retry, high_latency, high_usage; low, medium, high."`
	Limit int      `short:"n" default:"20" help:"How many at most, 1 to 200."`
	asJSON
}

// Help tells more.
func (*feedbackCmd) Help() string {
	return "Lists the newest first: what reviews of idle conversations found, what people said about the bot's work, turns that ended without a model's answer, runs of tasks that failed, and what took long or used many tokens. The newest 1,000 of each partition are kept."
}

// Run lists feedback.
func (c *feedbackCmd) Run(ctx context.Context, std *streams, s *settings) error {
	words := append([]string{"feedback"}, c.Words...)
	if !slices.ContainsFunc(c.Words, digitsOnly) {
		words = append(words, fmt.Sprint(c.Limit))
	}
	return order(ctx, std, s, c.asJSON, words...)
}

// usageCmd is `mimikit usage`.
type usageCmd struct {
	Of    string `arg:"" optional:"" default:"day" enum:"user,place,workspace,day,model,task" help:"What to sum up: ${enum}. Default: ${default}."`
	ID    string `arg:"" optional:"" help:"With task: its id, or enough of its beginning."`
	Limit int    `short:"n" default:"20" help:"How many rows at most, 1 to 100."`
	asJSON
}

// Help tells more.
func (*usageCmd) Help() string {
	return "day shows the whole deployment on each of the last seven UTC days, model the models of the same time. user, place and workspace list who used most tokens today. task and an id show what one task has used. Cached tokens are a part of those that went in. Costs are in the currency of the configured prices, and are shown where there are any."
}

// Run shows what models were used for.
func (c *usageCmd) Run(ctx context.Context, std *streams, s *settings) error {
	if c.Limit < 1 || c.Limit > 100 {
		return fmt.Errorf("--limit %d: 1 to 100 are allowed", c.Limit)
	}
	return withCommands(ctx, s, func(_ *App, set *admin.Set, who admin.Caller) error {
		who.PageSize = c.Limit
		words := []string{"usage", c.Of}
		if c.ID != "" {
			words = append(words, c.ID)
		}
		a, err := set.Run(ctx, who, words)
		if err != nil {
			return err
		}
		return printAnswer(std.out, a, c.JSON)
	})
}

// whyCmd is `mimikit why`.
type whyCmd struct {
	Message string `arg:"" help:"A link to the message, as Slack ('Copy link') and Discord ('Copy Message Link') give it, or the input's id, as logs and 'mimikit dead list' show it."`
	asJSON
}

// Help tells more.
func (*whyCmd) Help() string {
	return "Says in which channel a message is, since when, how often it was tried and when it passed each stage; or that it was given up, and why; or that it was answered. How an answered one went is known for a day; after that only the newest 100 lines of the 200 conversations that changed last are searched."
}

// Run tells where a message is.
func (c *whyCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, "why", c.Message)
}

// auditCmd is `mimikit audit`.
type auditCmd struct {
	Words   []string `arg:"" optional:"" name:"word" help:"The same in words, as in chat: a command's name, a door, refused, by and who, since and a time."`
	By      string   `placeholder:"WHO" help:"Only what this person did, by id or name."`
	Since   string   `placeholder:"TIME" help:"Only of the last minutes, hours or days, like 30m, 12h or 7d."`
	Refused bool     `help:"Only what was refused."`
	Limit   int      `short:"n" default:"50" help:"How many at most, 1 to 200."`
	asJSON
}

// Help tells more.
func (*auditCmd) Help() string {
	return "Lists who changed what, and who was refused, through which door, the newest first. About 10,000 acts are kept; the newest 1,000 are looked through."
}

// Run lists acts.
func (c *auditCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, c.order()...)
}

// order is the same as in chat. A number that says who is meant does not say how many.
func (c *auditCmd) order() []string {
	words := append([]string{"audit"}, c.Words...)
	if c.By != "" {
		words = append(words, "by", c.By)
	}
	if c.Since != "" {
		words = append(words, "since", c.Since)
	}
	if c.Refused {
		words = append(words, "refused")
	}
	for i, word := range c.Words {
		if digitsOnly(word) && len(word) < leastID && (i == 0 || !strings.EqualFold(c.Words[i-1], "by")) {
			return words
		}
	}
	return append(words, fmt.Sprint(c.Limit))
}

const leastID = 15 // digits of Discord's ids

func digitsOnly(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }
