package discord

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters/discord/gateway"
)

const (
	guildsKnown = 5_000
	guildFresh  = 10 * time.Minute
	admins      = discordgo.PermissionAdministrator | discordgo.PermissionManageGuild
)

// A guildInfo is what decides who runs a guild, and what it has.
type guildInfo struct {
	ID       snowflake     `json:"id"`
	OwnerID  snowflake     `json:"owner_id"`
	Roles    []roleInfo    `json:"roles"`
	Channels []channelInfo `json:"channels"` // of events only
	Threads  []channelInfo `json:"threads"`
}

type roleInfo struct {
	ID          snowflake `json:"id"`
	Permissions string    `json:"permissions"`
}

// permissions reads what Discord writes as a decimal number; 0 is that it is none.
func permissions(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// A guildCache knows who runs a guild: its owner and the roles that may manage it.
type guildCache struct {
	mu    sync.Mutex
	known map[string]running // :: guild
}

type running struct {
	owner string
	roles map[string]bool
	until time.Time
}

func newGuildCache() *guildCache { return &guildCache{known: map[string]running{}} }

func (g *guildCache) put(info guildInfo, now time.Time) running {
	r := running{owner: string(info.OwnerID), roles: map[string]bool{}, until: now.Add(guildFresh)}
	for _, role := range info.Roles {
		if permissions(role.Permissions)&admins != 0 {
			r.roles[string(role.ID)] = true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= guildsKnown {
		clear(g.known)
	}
	g.known[string(info.ID)] = r
	return r
}

// forget makes a guild be one that nobody runs, for a short while.
func (g *guildCache) forget(id string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[id] = running{until: now.Add(time.Minute)}
}

func (g *guildCache) drop(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, id)
}

// learnGuild takes over what an event tells of who runs a guild.
func (d *Bot) learnGuild(e gateway.Event) {
	switch e.Type {
	case "GUILD_CREATE", "GUILD_UPDATE":
		var g guildInfo
		if json.Unmarshal(e.Data, &g) == nil && g.ID != "" && g.OwnerID != "" {
			d.guilds.put(g, d.o.Now())
		}
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE", "GUILD_DELETE":
		var g struct {
			ID    snowflake `json:"id"`
			Guild snowflake `json:"guild_id"`
		}
		if json.Unmarshal(e.Data, &g) == nil {
			d.guilds.drop(string(g.Guild))
			d.guilds.drop(string(g.ID))
		}
	}
}

// runs reports whether somebody runs a guild. When that cannot be found out they
// do not.
func (d *Bot) runs(ctx context.Context, p Person) bool {
	if p.Guild == "" || p.Bot {
		return false
	}
	d.guilds.mu.Lock()
	r, ok := d.guilds.known[p.Guild]
	d.guilds.mu.Unlock()
	if !ok || !d.o.Now().Before(r.until) {
		ctx, cancel := context.WithTimeout(ctx, d.o.Reading)
		defer cancel()
		var g guildInfo
		err := d.api.do(ctx, request{method: "GET", path: "/guilds/" + p.Guild, route: "GET /guilds/" + p.Guild}, &g)
		switch {
		case err == nil:
			g.ID = snowflake(p.Guild)
			r = d.guilds.put(g, d.o.Now())
		case !ok:
			d.o.Logger.Warn("discord_guild_unknown", "guild", p.Guild, "error", err)
			d.guilds.forget(p.Guild, d.o.Now())
			return false
		}
	}
	if r.owner == p.ID || r.roles[p.Guild] { // the role of everybody has the guild's id
		return true
	}
	for _, role := range p.Roles {
		if r.roles[role] {
			return true
		}
	}
	return false
}
