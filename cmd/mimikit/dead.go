package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mimikit/core/admin"
	"mimikit/core/channel"
)

// deadCmd is `mimikit dead`.
type deadCmd struct {
	List   deadListCmd   `cmd:"" default:"withargs" help:"List what was given up, newest first (the default)."`
	Replay deadReplayCmd `cmd:"" help:"Put dead letters back at the end of the channel they came from."`
	Drop   deadDropCmd   `cmd:"" help:"Remove dead letters for good."`
}

type deadListCmd struct {
	Words []string `arg:"" optional:"" name:"word" help:"The same in words, as in chat: a channel, such as user-input, and how many."`
	Limit int      `short:"n" default:"50" help:"How many at most, 1 to 200."`
	Data  bool     `help:"Also print the payloads. They hold what people wrote."`
	asJSON
}

// Run lists dead letters.
func (c *deadListCmd) Run(ctx context.Context, std *streams, s *settings) error {
	if c.Limit < 1 || c.Limit > admin.MaxDeadListed {
		return fmt.Errorf("--limit %d: 1 to %d are allowed", c.Limit, admin.MaxDeadListed)
	}
	words := append([]string{"dead", "list"}, c.Words...)
	if !slices.ContainsFunc(c.Words, digitsOnly) {
		words = append(words, fmt.Sprint(c.Limit))
	}
	return withCommands(ctx, s, func(app *App, set *admin.Set, who admin.Caller) error {
		a, err := set.Run(ctx, who, words)
		if err != nil {
			return err
		}
		if err := printAnswer(std.out, a, c.JSON); err != nil || !c.Data || c.JSON {
			return err
		}
		listed, _ := a.Data.([]admin.Dead)
		all, err := app.node.Dead(ctx, mostDeadSought)
		if err != nil {
			return err
		}
		for _, d := range all {
			if !slices.ContainsFunc(listed, func(l admin.Dead) bool { return l.ID == d.ID.String() }) {
				continue
			}
			if _, err := fmt.Fprintf(std.out, "\n%s\n%q\n", d.ID, d.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

// whichDead are the letters that are meant.
type whichDead struct {
	IDs []string `arg:"" name:"id" help:"Ids as 'dead list' shows them, or 'all'."`
	Yes bool     `short:"y" help:"Confirm that all are meant."`
	asJSON
}

type deadReplayCmd struct{ whichDead }

// Run replays dead letters.
func (c *deadReplayCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return c.bury(ctx, std, s, "replay")
}

type deadDropCmd struct{ whichDead }

// Run drops dead letters.
func (c *deadDropCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return c.bury(ctx, std, s, "drop")
}

func (c *whichDead) bury(ctx context.Context, std *streams, s *settings, what string) error {
	words := append([]string{"dead", what}, c.IDs...)
	all := strings.EqualFold(c.IDs[0], "all") // what follows it is not read here
	for _, id := range c.IDs {
		if _, err := channel.ParseDeadID(id); err != nil && !all {
			return err
		}
	}
	if c.Yes && all && len(c.IDs) == 1 {
		words = append(words, "yes")
	}
	return confirmed(ctx, std, s, c.asJSON, words...)
}

// confirmed carries out a command that may ask for a confirmation, which then is said
// beside the answer, and is a failure.
func confirmed(ctx context.Context, std *streams, s *settings, j asJSON, words ...string) error {
	return withCommands(ctx, s, func(_ *App, set *admin.Set, who admin.Caller) error {
		a, err := set.Run(ctx, who, words)
		if err != nil {
			return err
		}
		if a.Data == nil {
			if err := printAnswer(std.err, a, false); err != nil {
				return err
			}
			return exitCode(1)
		}
		return printAnswer(std.out, a, j.JSON)
	})
}
