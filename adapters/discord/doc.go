// Package discord lets Mimikit live on Discord: a [Bot] hears direct messages,
// mentions, replies and the threads it takes part in, and answers there.
//
// It promises:
//
//   - What a person says is submitted before the gateway's sequence moves past it
//     (package gateway), and again in the same words whenever it is seen again, so
//     that the inbox can tell that it is one message.
//   - After a session that could not be resumed, the messages of live places since
//     then are fetched and submitted too; until that is done the gap is remembered.
//   - A message is posted with a nonce made of its reply and part, which Discord
//     enforces for some minutes; after that [Poster.Lookup] finds it by what it
//     says. No post is sent twice by itself.
//   - Nobody is pinged by what the bot says, whatever it says.
//   - An interaction is acknowledged at once and worked on after; what it says at
//     last is told at most once. A message that is a command is carried out at most
//     once.
//   - Nothing that Discord sends, or that pretends to be Discord, makes it panic;
//     an event that cannot be read is counted, logged and passed by.
//
// A conversation is a thread or a direct message. A mention in a place becomes a
// thread: its id is that of the message that opened it, so the conversation is
// known before Discord has made the thread, and whoever posts first makes it.
//
// What the nodes of a deployment must agree on stands behind the small interfaces
// of cluster.go. Memory keeps it within one process.
//
// discordgo lends its types and constants. Its gateway and its request path are
// not used: see [mimikit/adapters/discord/gateway] and the api type for why.
package discord

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Platform is the name of Discord in a conversation.
const Platform = "discord"

// A Bot is one application of Discord. Its parts are safe for concurrent use.
type Bot struct {
	o   Options
	api *api

	Listener *Listener
	Poster   *Poster
	Status   *StatusLine
	Files    *Files

	bot    identity
	places *placeCache
	guilds *guildCache
	talks  *talks
	lately *lately
	acts   *seenIDs
	typing *typists
	signs  *signs
	jobs   *jobs
	shards *shardStates
	shown  *progresses
}

// New checks the options. It connects to nothing until a part is used.
func New(o Options) (*Bot, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	d := &Bot{
		o: o, places: newPlaceCache(), guilds: newGuildCache(), acts: newSeenIDs(),
		lately: newLately(), typing: newTypists(), signs: newSigns(), jobs: newJobs(o.Logger), shards: newShardStates(), shown: newProgresses(),
	}
	d.api = &api{
		base: o.APIURL, token: o.BotToken, http: o.httpClient(), limits: newLimits(o.Now),
		budget: o.Budget, hooks: &d.o.Hooks, log: o.Logger, now: o.Now,
	}
	d.talks = newTalks(o.Notes, o.Now)
	d.Listener, d.Poster, d.Status, d.Files = &Listener{d}, &Poster{d}, &StatusLine{d}, &Files{d}
	return d, nil
}

// Close lets go of the connections that are kept for the next request.
func (d *Bot) Close() { d.api.http.CloseIdleConnections() }

// told tells the hooks what became of an event.
func (d *Bot) told(kind string, o Outcome) {
	if d.o.Hooks.Event != nil {
		d.o.Hooks.Event(kind, o)
	}
}

// An identity is who the bot is; asked for once.
type identity struct {
	mu     sync.Mutex
	id     string
	app    string
	name   string
	failed error
	tried  time.Time
}

// who gives the bot's user and application ids.
func (d *Bot) who(ctx context.Context) (id, app string, err error) {
	b := &d.bot
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.id != "" {
		return b.id, b.app, nil
	}
	if b.failed != nil && d.o.Now().Sub(b.tried) < time.Second {
		return "", "", b.failed // whoever else waited for the same answer
	}
	var me user
	var application struct {
		ID string `json:"id"`
	}
	b.tried = d.o.Now()
	defer func() {
		if ctx.Err() != nil {
			b.failed = nil // that this caller went away is nothing to the others
		}
	}()
	if b.failed = d.api.do(ctx, request{method: "GET", path: "/users/@me", route: "GET /users/@me"}, &me); b.failed != nil {
		return "", "", b.failed
	}
	if b.failed = d.api.do(ctx, request{method: "GET", path: "/applications/@me", route: "GET /applications/@me"}, &application); b.failed != nil {
		return "", "", b.failed
	}
	if me.ID == "" || application.ID == "" {
		b.failed = errors.New("discord does not say who the bot is")
		return "", "", b.failed
	}
	b.id, b.app, b.name = string(me.ID), application.ID, me.name("")
	return b.id, b.app, nil
}
