package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters/discord/gateway"
	"mimikit/core/chat"
)

// A Mode says what a mention in a place becomes.
type Mode string

// The modes. The empty one is OpenThread.
const (
	OpenThread Mode = "thread" // a thread of its own
	PlainReply Mode = "reply"  // an answer in the place itself
	Off        Mode = "off"    // nothing: only direct messages and threads are answered
)

// A Person is somebody who did something, as Discord verified it.
type Person struct {
	ID    string
	Name  string
	Bot   bool
	Guild string   // "" in a direct message
	Roles []string // ids of their roles in the guild
	// Admin says that they own the guild, or that a role lets them administrate or
	// manage it. In a direct message nobody does.
	Admin bool
}

// Options of a Bot. BotToken is needed. Every other zero value means its default.
type Options struct {
	BotToken string
	APIURL   string // of the REST API; default https://discord.com/api/v10
	// Dial connects; default: the operating system's dialer. The gateway and the
	// REST API use it alike.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	Mode Mode
	// NoContent runs without the privileged message content intent: then only
	// direct messages, mentions and replies that ping the bot are heard.
	NoContent bool
	Compress  bool   // ask the gateway for zlib-stream
	Shards    int    // default: as many as Discord recommends
	DevGuild  string // registers commands in this guild only, where they change at once

	// Role tells what a person may do. Default: who may manage the guild is an
	// admin, all others are users.
	Role func(p Person) chat.Role
	// AllowBot tells whether another bot is listened to when it mentions us.
	// Default: none is.
	AllowBot func(botID string) bool
	// Refuse says why somebody is not answered in a place, or "". Default: nobody
	// is refused.
	Refuse func(p Person, c chat.Conversation) string

	Commands Commands // default: there are none

	Leases   Leases // what nodes share; default: one Memory
	Sessions gateway.Sessions
	Places   Places
	Claims   Claims
	Notes    Notes
	Marks    Marks
	Budget   Budget

	StopGrace   time.Duration // for interactions under way when Run is to end (default 3 s)
	Reading     time.Duration // bound of what is looked up to tell more of a message (default 3 s)
	CatchUpAge  time.Duration // how far back missed messages are read (default 12 h; < 0: none are)
	CatchUpMost int           // missed messages read of one place (default 1,000)
	MaxParts    int           // messages of one reply; a longer one is sent as a file (default 5)
	StatusLasts time.Duration // how long it is seen to type after it was last said that it works (default 5 min)

	Hooks  Hooks
	Logger *slog.Logger // default: none
	Now    func() time.Time
	Chance func() float64 // in [0,1), spreads waits; default: random
}

// Hooks are told what happens, for metrics. All may be nil, all must be quick.
type Hooks struct {
	Event   func(kind string, o Outcome)                                         // kind is Discord's name of the event
	Gateway func(what string)                                                    // of a shard: see gateway.Options.Observe
	Call    func(ctx context.Context, route, outcome string, took time.Duration) // of the REST API; outcome is "ok", HTTP's status or "unreachable"
	Waited  func(route string, p Priority, wait time.Duration)                   // for a rate limit
	CatchUp func(places, messages int, took time.Duration)
}

// An Outcome is what became of an event.
type Outcome string

// The outcomes of events.
const (
	Stored     Outcome = "stored"
	Known      Outcome = "known"      // it was stored before
	Ignored    Outcome = "ignored"    // a guard says that it is nothing to us
	Refused    Outcome = "refused"    // by the inbox
	Unreadable Outcome = "unreadable" // passed by
	Unknown    Outcome = "unknown"    // a kind of event that holds no input
	Handled    Outcome = "handled"    // a command, a button
	Unstored   Outcome = "unstored"   // it comes again
	Panicked   Outcome = "panicked"   // passed by
	Late       Outcome = "late"       // an interaction that could not be acknowledged in time
	Dropped    Outcome = "dropped"    // an interaction for which there was no room
)

const defaultAPIURL = "https://discord.com/api/v10"

func (o *Options) complete() error {
	o.BotToken = strings.TrimPrefix(strings.TrimSpace(o.BotToken), "Bot ")
	switch {
	case o.BotToken == "":
		return errors.New("discord: no bot token; copy it from the Bot page of the application at https://discord.com/developers/applications")
	case strings.ContainsAny(o.BotToken, " \t\r\n"):
		return errors.New("discord: the bot token has a space or a line break in it; copy it anew")
	}
	o.APIURL = strings.TrimRight(cmp.Or(o.APIURL, defaultAPIURL), "/")
	if u, err := url.Parse(o.APIURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("discord: API URL %q: want https://host/path", o.APIURL)
	}
	switch o.Mode = cmp.Or(o.Mode, OpenThread); o.Mode {
	case OpenThread, PlainReply, Off:
	default:
		return fmt.Errorf("discord: mode %q: want thread, reply or off", o.Mode)
	}
	if o.Shards < 0 {
		return fmt.Errorf("discord: shards %d: want 1 or more, or 0 for as many as Discord recommends", o.Shards)
	}
	if o.DevGuild != "" && !isID(o.DevGuild) {
		return fmt.Errorf("discord: guild %q for commands: want its id, a number", o.DevGuild)
	}
	o.StopGrace = cmp.Or(o.StopGrace, 3*time.Second)
	o.Reading = cmp.Or(o.Reading, 3*time.Second)
	o.CatchUpAge = cmp.Or(o.CatchUpAge, 12*time.Hour)
	o.CatchUpMost = cmp.Or(max(o.CatchUpMost, 0), 1000)
	o.MaxParts = cmp.Or(max(o.MaxParts, 0), 5)
	o.StatusLasts = cmp.Or(o.StatusLasts, 5*time.Minute)
	if o.Role == nil {
		o.Role = func(p Person) chat.Role {
			if p.Admin {
				return chat.RoleAdmin
			}
			return chat.RoleUser
		}
	}
	if o.AllowBot == nil {
		o.AllowBot = func(string) bool { return false }
	}
	if o.Refuse == nil {
		o.Refuse = func(Person, chat.Conversation) string { return "" }
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	o.share()
	return nil
}

// share fills in what nodes share with one process' own memory.
func (o *Options) share() {
	m := NewMemory(o.Now)
	if o.Leases == nil {
		o.Leases = m
	}
	if o.Sessions == nil {
		o.Sessions = &m.LocalSessions
	}
	if o.Places == nil {
		o.Places = m
	}
	if o.Claims == nil {
		o.Claims = m
	}
	if o.Notes == nil {
		o.Notes = m
	}
	if o.Marks == nil {
		o.Marks = m
	}
	if o.Budget == nil {
		o.Budget = m
	}
}

// intents are what the gateway is asked for: guilds and their threads, messages
// in guilds, direct messages, and the text of messages unless NoContent is set.
func (o *Options) intents() int {
	i := discordgo.IntentsGuilds | discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages
	if !o.NoContent {
		i |= discordgo.IntentMessageContent
	}
	return int(i)
}

// httpClient makes the client of the REST API. The context of each request bounds
// it; the timeout is a last resort. A redirect would send a request a second time,
// to wherever it says, so there are none.
func (o *Options) httpClient() *http.Client {
	return &http.Client{
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: o.Dial, ForceAttemptHTTP2: true,
			MaxIdleConns: 32, MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		},
	}
}
