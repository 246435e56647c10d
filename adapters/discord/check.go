package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters/discord/gateway"
)

// A Finding is one thing that was checked.
type Finding struct {
	What string // in a few words
	OK   bool
	Say  string // what was found
	Mend string // what to do about it, when it is not OK
}

// Flags of an application that say which privileged intents it has: those that
// Discord has reviewed, and others.
const (
	flagContent        = 1 << 18
	flagContentLimited = 1 << 19
)

// Check tests the token, the intents, how many sessions may begin, and what the bot
// may do in each server, for `doctor`. It changes nothing, and stops at what makes
// the rest meaningless.
func (d *Bot) Check(ctx context.Context) []Finding {
	_, app, err := d.who(ctx)
	if err != nil {
		return []Finding{d.failed("Discord bot token", err)}
	}
	list := []Finding{{What: "Discord bot token", OK: true, Say: "bot " + d.bot.name + " of application " + app}, d.contentFound(ctx)}
	start, shards, err := d.start(ctx)
	if err != nil {
		return append(list, d.failed("Discord gateway", err))
	}
	f := Finding{What: "Discord gateway", OK: start.Remaining > 0, Say: fmt.Sprintf("%d new sessions may begin; %d shards are recommended", start.Remaining, shards)}
	if !f.OK {
		f.Mend = fmt.Sprintf("wait for %v, and find out what restarts so often", start.ResetAfter.Round(time.Minute))
	}
	return append(append(list, f), d.guildsFound(ctx, app)...)
}

func (d *Bot) failed(what string, err error) Finding {
	f := Finding{What: what, Say: err.Error(), Mend: "see whether this machine reaches discord.com, and which proxy it needs"}
	var e *apiError
	var fatal *gateway.Fatal
	switch {
	case errors.As(err, &fatal):
		f.Say, f.Mend = fatal.Reason, fatal.Mend
	case errors.As(err, &e) && e.Status == http.StatusUnauthorized:
		f.Say, f.Mend = "Discord does not accept it", "copy it anew from the Bot page of the application at https://discord.com/developers/applications"
	case errors.As(err, &e):
		f.Mend = "see https://discordstatus.com"
	}
	return f
}

func (d *Bot) contentFound(ctx context.Context) Finding {
	f := Finding{What: "Discord message content intent", OK: true, Say: "switched on"}
	var application struct {
		Flags int `json:"flags"`
	}
	err := d.api.do(ctx, request{method: "GET", path: "/applications/@me", route: "GET /applications/@me"}, &application)
	switch {
	case d.o.NoContent:
		f.Say = "not used: only direct messages, mentions and replies that ping the bot are heard"
	case err != nil:
		return d.failed(f.What, err)
	case application.Flags&(flagContent|flagContentLimited) == 0:
		f.OK, f.Say = false, "switched off"
		f.Mend = "switch it on, on the Bot page of the application, or run without it"
	}
	return f
}

func (d *Bot) guildsFound(ctx context.Context, app string) []Finding {
	guilds, err := d.listGuilds(ctx)
	if err != nil {
		return []Finding{d.failed("Discord servers", err)}
	}
	link, err := InviteLink(Invite{App: app, Mode: d.o.Mode})
	if err != nil {
		return []Finding{{What: "Discord servers", Say: err.Error(), Mend: "see https://discordstatus.com"}}
	}
	if len(guilds) == 0 {
		return []Finding{{What: "Discord servers", Say: "the bot is in none", Mend: "add it with " + link}}
	}
	var list []Finding
	for _, g := range guilds {
		f := Finding{What: "Discord server " + g.Name, OK: true, Say: "all permissions granted"}
		if missing := d.missing(g.Permissions); len(missing) > 0 {
			f.OK, f.Say = false, "missing: "+strings.Join(missing, "; ")
			f.Mend = "give them to the bot's role, or add it again with " + link
		}
		list = append(list, f)
	}
	return list
}

type guildSeen struct {
	ID          snowflake `json:"id"`
	Name        string    `json:"name"`
	Permissions string    `json:"permissions"`
}

func (d *Bot) listGuilds(ctx context.Context) ([]guildSeen, error) {
	var all []guildSeen
	err := d.api.do(ctx, request{method: "GET", path: "/users/@me/guilds", route: "GET /users/@me/guilds"}, &all)
	return all, err
}

// missing names the permissions that the bot lacks.
func (d *Bot) missing(has string) []string {
	bits := permissions(has)
	if bits&discordgo.PermissionAdministrator != 0 {
		return nil
	}
	var out []string
	for _, p := range needed {
		if p.bit == discordgo.PermissionCreatePublicThreads && d.o.Mode != OpenThread {
			continue
		}
		if bits&p.bit == 0 {
			out = append(out, fmt.Sprintf("%q (%s)", p.name, p.why))
		}
	}
	return out
}
