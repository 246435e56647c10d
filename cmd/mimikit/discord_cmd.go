package main

import (
	"context"
	"errors"
	"fmt"

	"mimikit/adapters/discord"
)

// discordCmds is `mimikit discord`.
type discordCmds struct {
	Invite discordInviteCmd `cmd:"" help:"Print the link that adds the bot to a server, with the least permissions."`
}

type discordInviteCmd struct {
	App   string `placeholder:"ID" help:"The application's id. Without it Discord is asked, which needs the token."`
	Guild string `placeholder:"ID" help:"A server to choose beforehand."`
}

// Run prints the link.
func (c *discordInviteCmd) Run(ctx context.Context, std *streams, s *settings) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	o := cfg.Discord
	var link string
	switch {
	case c.App != "":
		link, err = discord.InviteLink(discord.Invite{App: c.App, Mode: discord.Mode(o.Mention), Guild: c.Guild})
	case o.Token == "":
		return errors.New("the link names the application: add --app with its id (General Information of the application), or set MIMIKIT_DISCORD_TOKEN and Discord is asked")
	default:
		var bot *discord.Bot
		if bot, err = discord.New(discord.Options{BotToken: o.Token.Reveal(), APIURL: o.APIURL, Mode: discord.Mode(o.Mention)}); err != nil {
			return err
		}
		defer bot.Close()
		link, err = bot.InviteLink(ctx, c.Guild)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, link)
	return err
}
