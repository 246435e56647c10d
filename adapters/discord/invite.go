package discord

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/bwmarrin/discordgo"
)

// permission is one that the bot needs, and for what.
type permission struct {
	bit  int64
	name string
	why  string
}

// needed are the least with which everything works.
var needed = []permission{
	{discordgo.PermissionViewChannel, "View Channels", "to hear mentions"},
	{discordgo.PermissionSendMessages, "Send Messages", "to answer where no thread can be"},
	{discordgo.PermissionSendMessagesInThreads, "Send Messages in Threads", "to answer"},
	{discordgo.PermissionCreatePublicThreads, "Create Public Threads", "to open a thread for a mention"},
	{discordgo.PermissionReadMessageHistory, "Read Message History", "to find what it posted, and what it missed"},
	{discordgo.PermissionAddReactions, "Add Reactions", "to show that it heard"},
	{discordgo.PermissionAttachFiles, "Attach Files", "to send what is too long for messages"},
}

// An Invite is what an invite link may say.
type Invite struct {
	App   string // the application's id
	Mode  Mode   // without threads opened, the permission for that is left out
	Guild string // a server to choose beforehand; may be ""
}

// InviteLink is the address under which somebody who manages a server adds the bot
// to it, with the least permissions and scopes: that of a bot, and of commands.
func InviteLink(i Invite) (string, error) {
	if !isID(i.App) {
		return "", fmt.Errorf("invite link: the application id %q is no number", i.App)
	}
	if i.Guild != "" && !isID(i.Guild) {
		return "", fmt.Errorf("invite link: the server id %q is no number", i.Guild)
	}
	var bits int64
	for _, p := range needed {
		if p.bit == discordgo.PermissionCreatePublicThreads && i.Mode != "" && i.Mode != OpenThread {
			continue
		}
		bits |= p.bit
	}
	q := url.Values{"client_id": {i.App}, "scope": {"bot applications.commands"}, "permissions": {strconv.FormatInt(bits, 10)}, "integration_type": {"0"}}
	if i.Guild != "" {
		q.Set("guild_id", i.Guild)
		q.Set("disable_guild_select", "true")
	}
	return "https://discord.com/oauth2/authorize?" + q.Encode(), nil
}

// InviteLink is the link of this bot, whose application Discord is asked for.
func (d *Bot) InviteLink(ctx context.Context, guild string) (string, error) {
	_, app, err := d.who(ctx)
	if err != nil {
		return "", fmt.Errorf("invite link: %w", explain(err))
	}
	return InviteLink(Invite{App: app, Mode: d.o.Mode, Guild: guild})
}
