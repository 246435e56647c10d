package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mimikit/core/channel"
)

// deadCmd is `mimikit dead`.
type deadCmd struct {
	List   deadListCmd   `cmd:"" help:"List what was given up, newest first."`
	Replay deadReplayCmd `cmd:"" help:"Put dead letters back at the end of the channel they came from."`
	Drop   deadDropCmd   `cmd:"" help:"Remove dead letters for good."`
}

type deadListCmd struct {
	Limit int  `default:"50" help:"How many at most."`
	Data  bool `help:"Also print the payloads. They hold what people wrote."`
}

// Run lists dead letters.
func (c *deadListCmd) Run(ctx context.Context, std *streams, s *settings) error {
	if c.Limit < 1 {
		return fmt.Errorf("--limit %d: 1 or more is allowed", c.Limit)
	}
	return withNode(ctx, s, func(n *channel.Node) error {
		dead, err := n.Dead(ctx, c.Limit)
		if err != nil {
			return err
		}
		if len(dead) == 0 {
			_, err := fmt.Fprintln(std.out, "No dead letters.")
			return err
		}
		t := newTable("ID", "GIVEN UP", "FROM", "TRIES", "CONVERSATION", "INPUTS", "REASON")
		for _, d := range dead {
			t.row(d.ID, d.At.Local().Format(time.DateTime), d.From, d.Attempts, d.Conversation, strings.Join(d.InputIDs, ","), d.Reason)
		}
		if err := t.print(std.out); err != nil || !c.Data {
			return err
		}
		for _, d := range dead {
			if _, err := fmt.Fprintf(std.out, "\n%s\n%q\n", d.ID, d.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

type deadReplayCmd struct {
	IDs []string `arg:"" name:"id" help:"Ids as 'dead list' shows them, or 'all'."`
}

// Run replays dead letters.
func (c *deadReplayCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return eachDead(ctx, std, s, c.IDs, "replayed", (*channel.Node).Replay)
}

type deadDropCmd struct {
	IDs []string `arg:"" name:"id" help:"Ids as 'dead list' shows them, or 'all'."`
}

// Run drops dead letters.
func (c *deadDropCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return eachDead(ctx, std, s, c.IDs, "dropped", (*channel.Node).Drop)
}

// mostAtOnce bounds what "all" takes in one call of the command.
const mostAtOnce = 10000

func eachDead(ctx context.Context, std *streams, s *settings, names []string, done string, do func(*channel.Node, context.Context, channel.DeadID) error) error {
	return withNode(ctx, s, func(n *channel.Node) error {
		var ids []channel.DeadID
		if len(names) == 1 && names[0] == "all" {
			dead, err := n.Dead(ctx, mostAtOnce)
			if err != nil {
				return err
			}
			for _, d := range dead {
				ids = append(ids, d.ID)
			}
		} else {
			for _, name := range names {
				id, err := channel.ParseDeadID(name)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
		}
		var errs []error
		for _, id := range ids {
			if err := do(n, ctx, id); err != nil {
				errs = append(errs, err)
				continue
			}
			if _, err := fmt.Fprintf(std.out, "%s %s\n", id, done); err != nil {
				return err
			}
		}
		if len(ids) == 0 {
			_, err := fmt.Fprintln(std.out, "No dead letters.")
			return err
		}
		return errors.Join(errs...)
	})
}
