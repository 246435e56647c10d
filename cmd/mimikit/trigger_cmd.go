package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mimikit/core/admin"
)

// triggersCmd is `mimikit triggers`.
type triggersCmd struct {
	Words []string `arg:"" optional:"" name:"word" help:"The same in words, as in chat: mine, all, the number of a page."`
	All   bool     `xor:"whose" help:"Everybody's triggers on all platforms (the default)."`
	Mine  bool     `xor:"whose" help:"Only what was asked for in this account's terminals."`
	Page  int      `default:"1" help:"Which page, from 1."`
	Limit int      `short:"n" default:"30" help:"How many a page has, 1 to 100."`
	asJSON
}

// Help tells more.
func (*triggersCmd) Help() string {
	return `Lists triggers, the newest first: what starts tasks again and again, at a time, or when something comes true. Times are shown in the trigger's own time zone; --json has them in UTC, and the ids whole.

Examples:
  mimikit triggers
  mimikit triggers mine 2
  mimikit triggers --json | jq '.[].next'`
}

// Run lists triggers.
func (c *triggersCmd) Run(ctx context.Context, std *streams, s *settings) error {
	if c.Limit < 1 || c.Limit > 100 {
		return fmt.Errorf("--limit %d: 1 to 100 are allowed", c.Limit)
	}
	words := []string{"triggers"}
	said := slices.ContainsFunc(c.Words, func(w string) bool { return slices.Contains([]string{"mine", "here", "all"}, strings.ToLower(w)) })
	switch {
	case said:
	case c.Mine:
		words = append(words, "mine")
	default:
		words = append(words, "all")
	}
	words = append(words, c.Words...)
	if c.Page != 1 {
		words = append(words, fmt.Sprint(c.Page))
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

// triggerCmd is `mimikit trigger`.
type triggerCmd struct {
	Words []string `arg:"" name:"word" help:"The trigger's id, or enough of its beginning; before it show, pause, resume, run or remove."`
	asJSON
}

// Help tells more.
func (*triggerCmd) Help() string {
	return `Shows one trigger: when it fires, the next three times, and what its task is told. Or changes it:

  pause    it does not fire until it is resumed, and makes up for nothing then
  resume   it goes on with its next regular time
  run      it starts its task now, paused or not, and keeps its times
  remove   it is gone; a task that it has started goes on

Examples:
  mimikit trigger g1m7z06qfa
  mimikit trigger pause g1m7z06qfa
  mimikit trigger run g1m7z06qfa --json | jq -r .taskId`
}

// Run shows or changes a trigger.
func (c *triggerCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, append([]string{"trigger"}, c.Words...)...)
}
