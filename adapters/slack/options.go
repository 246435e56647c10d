package slack

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

	"mimikit/core/chat"
)

// A Mode is how events reach us.
type Mode int

// The modes. The zero Mode means SocketMode.
const (
	SocketMode Mode = 1
	HTTPMode   Mode = 2
)

// AgentMode says whether the app is declared an agent, which decides how it shows
// that it works.
type AgentMode int

// The agent modes. The zero AgentMode means AgentAuto.
const (
	AgentAuto AgentMode = 1 // try the status line; where Slack refuses it, react
	AgentOn   AgentMode = 2
	AgentOff  AgentMode = 3 // reactions only
)

// Options of a Bot. BotToken is needed, and AppToken or SigningSecret by the
// mode. Every other zero value means its default.
type Options struct {
	Mode          Mode
	BotToken      string // xoxb-…
	AppToken      string // xapp-…, for Socket Mode
	SigningSecret string // for HTTP

	APIURL string // default https://slack.com/api/
	// Dial connects; default: the operating system's dialer. Sockets and the Web
	// API use it alike.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	Name string // what the bot calls itself; default Mimikit
	// Role tells what a person may do. workspaceAdmin is true for an owner or
	// admin of this workspace, never for a guest of another one. Default: admins of
	// the workspace are admins, all others users.
	Role func(userID string, workspaceAdmin bool) chat.Role
	// AllowBot tells whether another bot is listened to when it mentions us.
	// Default: none is.
	AllowBot func(botID string) bool

	Agent    AgentMode
	Commands Commands // default: there are none
	Home     Home     // default: App Home says how to begin

	Slots   Slots // what nodes share; default: one Memory
	Threads Threads
	Places  Places
	Claims  Claims
	Notes   Notes
	Marks   Marks
	Budget  Budget

	Sockets     int           // that this node tries to hold, 1 to 8 (default 4)
	MaxSession  time.Duration // age at which a socket is replaced unasked (default 1 h)
	Idle        time.Duration // silence after which a socket counts as deaf (default 30 s)
	StoreFor    time.Duration // how long an event is held while it cannot be stored (default 60 s)
	StopGrace   time.Duration // for events under way when Run is to end (default 3 s)
	Reading     time.Duration // bound of what is looked up to understand one message (default 1.5 s)
	CatchUpAge  time.Duration // how far back missed messages are read (default 12 h; < 0: none are)
	CatchUpMost int           // missed messages read of one conversation (default 200)
	MaxBody     int64         // bytes of an HTTP request (default 1 MiB)
	MaxParts    int           // messages of one reply; a longer one is sent as a file (default 2)
	Streaming   bool          // show a reply while it is worded, where somebody calls Poster.Stream
	StatusLasts time.Duration // how long a status is kept alive after it was last set (default 5 min)

	Hooks  Hooks
	Logger *slog.Logger // default: none
	Now    func() time.Time
	Chance func() float64 // in [0,1), spreads waits; default: random
}

// Hooks are told what happens, for metrics. All may be nil, all must be quick.
type Hooks struct {
	Event   func(kind string, o Outcome)                                          // kind is Slack's name of the event
	Socket  func(c SocketChange)                                                  // of one connection
	Call    func(ctx context.Context, method, outcome string, took time.Duration) // of the Web API; outcome is "ok" or Slack's error
	Waited  func(method string, p Priority, wait time.Duration)                   // by the budget
	CatchUp func(conversations, messages int, took time.Duration)
}

// An Outcome is what became of an event.
type Outcome string

// The outcomes of events.
const (
	Stored      Outcome = "stored"
	Known       Outcome = "known"       // it was stored before
	Ignored     Outcome = "ignored"     // a guard says that it is nothing to us
	Refused     Outcome = "refused"     // by the inbox
	Unreadable  Outcome = "unreadable"  // acknowledged nevertheless
	Unknown     Outcome = "unknown"     // a kind of event that we do not use
	Handled     Outcome = "handled"     // a command, a button, App Home
	Unstored    Outcome = "unstored"    // left unacknowledged: Slack delivers it again
	Unauthentic Outcome = "unauthentic" // an HTTP request that Slack did not sign, or not now
)

// A SocketChange is something that happened to a connection.
type SocketChange string

// The changes.
const (
	Opened   SocketChange = "opened"
	Replaced SocketChange = "replaced" // as announced
	Dropped  SocketChange = "dropped"
	Deaf     SocketChange = "deaf"
	NotOpen  SocketChange = "not_open" // could not be opened
)

const defaultAPIURL = "https://slack.com/api/"

// A Bot is one app in one workspace.
type Bot struct {
	o      Options
	api    *api
	people *people
	kinds  *kinds

	Listener *Listener
	Poster   *Poster
	Status   *StatusLine
	Files    *Files
}

// New makes a Bot. It opens no connection.
func New(o Options) (*Bot, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	b := &Bot{o: o}
	b.api = newAPI(&b.o)
	b.people = newPeople(b.api)
	b.kinds = newKinds(b.api)
	b.Files = &Files{api: b.api}
	b.Status = newStatusLine(b.api)
	b.Poster = &Poster{api: b.api, status: b.Status}
	b.Listener = newListener(b)
	return b, nil
}

// Close lets go of the connections that are kept for the next call.
func (b *Bot) Close() { b.api.http.CloseIdleConnections() }

func (o *Options) complete() error {
	o.Mode = cmp.Or(o.Mode, SocketMode)
	o.APIURL = cmp.Or(o.APIURL, defaultAPIURL)
	if !strings.HasSuffix(o.APIURL, "/") {
		o.APIURL += "/"
	}
	if u, err := url.Parse(o.APIURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("slack: API URL %q: want https://host/path/", o.APIURL)
	}
	if err := o.tokens(); err != nil {
		return err
	}
	o.Sockets = cmp.Or(o.Sockets, 4)
	if o.Sockets < 1 || o.Sockets > 8 {
		return fmt.Errorf("slack: sockets %d: want 1 to 8, since Slack allows an app ten", o.Sockets)
	}
	o.Name = cmp.Or(o.Name, "Mimikit")
	o.Agent = cmp.Or(o.Agent, AgentAuto)
	o.MaxSession = cmp.Or(o.MaxSession, time.Hour)
	o.Idle = cmp.Or(o.Idle, 30*time.Second)
	o.StoreFor = cmp.Or(o.StoreFor, time.Minute)
	o.StopGrace = cmp.Or(o.StopGrace, 3*time.Second)
	o.Reading = cmp.Or(o.Reading, 1500*time.Millisecond)
	o.CatchUpAge = cmp.Or(o.CatchUpAge, 12*time.Hour)
	o.CatchUpMost = cmp.Or(o.CatchUpMost, 200)
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	o.MaxParts = cmp.Or(o.MaxParts, 2)
	o.StatusLasts = cmp.Or(o.StatusLasts, 5*time.Minute)
	o.share()
	if o.Role == nil {
		o.Role = func(_ string, workspaceAdmin bool) chat.Role {
			if workspaceAdmin {
				return chat.RoleAdmin
			}
			return chat.RoleUser
		}
	}
	if o.AllowBot == nil {
		o.AllowBot = func(string) bool { return false }
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
	return nil
}

// share fills in what nodes share with one process' own memory.
func (o *Options) share() {
	if o.Slots != nil && o.Threads != nil && o.Places != nil && o.Claims != nil && o.Notes != nil && o.Marks != nil && o.Budget != nil {
		return
	}
	m := NewMemory(o.Now)
	if o.Slots == nil {
		o.Slots = m.Slots(4)
	}
	if o.Threads == nil {
		o.Threads = m
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

// tokens checks that each secret is of its kind, since they are easily mixed up
// and Slack's own answer to the wrong one explains little.
func (o *Options) tokens() error {
	var errs []error
	if !strings.HasPrefix(o.BotToken, "xoxb-") {
		errs = append(errs, errors.New(`slack: the bot token must begin with "xoxb-"; it stands under "OAuth & Permissions" of the app`))
	}
	switch o.Mode {
	case SocketMode:
		if !strings.HasPrefix(o.AppToken, "xapp-") {
			errs = append(errs, errors.New(`slack: Socket Mode needs an app-level token that begins with "xapp-"; make one with the scope connections:write under "Basic Information" of the app`))
		}
	case HTTPMode:
		if o.SigningSecret == "" {
			errs = append(errs, errors.New(`slack: HTTP needs the signing secret; it stands under "Basic Information" of the app`))
		}
	default:
		errs = append(errs, fmt.Errorf("slack: mode %d: want SocketMode or HTTPMode", o.Mode))
	}
	return errors.Join(errs...)
}

// httpClient makes the client of the Web API. The context of each call bounds it;
// the timeout is a last resort.
func (o *Options) httpClient() *http.Client {
	return &http.Client{
		Timeout:       time.Minute,
		CheckRedirect: o.redirect,
		Transport: o.guard(&http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: o.Dial, ForceAttemptHTTP2: true,
			MaxIdleConns: 32, MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		}),
	}
}
