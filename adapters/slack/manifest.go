package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// ManifestOptions say for which app a manifest is. The zero value is one in
// Socket Mode that is called Mimikit.
type ManifestOptions struct {
	Mode    Mode
	Name    string // at most 35 characters; default Mimikit
	Command string // the slash command; default /mimikit
	// URL is where this deployment takes what Slack sends over HTTP, such as
	// https://bot.example.org/slack/events. Only with HTTPMode.
	URL     string
	NoAgent bool // do not declare the app an agent; it then shows that it works by reactions
}

// Scopes are what the bot's token must be allowed, sorted, each for what the
// comment beside it says.
var Scopes = []string{
	"app_mentions:read",     // hear mentions
	"assistant:write",       // the status line of an agent
	"channels:history",      // hear public channels it is in, and read threads
	"channels:read",         // what sort of conversation a place is
	"chat:write",            // reply
	"commands",              // the slash command and the shortcut
	"files:read",            // read what people send
	"files:write",           // long replies
	"groups:history",        // private channels
	"groups:read",           //
	"im:history",            // direct messages
	"im:read",               //
	"metadata.message:read", // find its own messages again
	"mpim:history",          // group messages
	"mpim:read",             //
	"reactions:write",       // show that it works
	"users:read",            // names and workspace admins
}

// Events are what the app must be told.
var Events = []string{
	"agent_session_stopped",
	"app_home_opened",
	"app_mention",
	"app_uninstalled",
	"message.channels",
	"message.groups",
	"message.im",
	"message.mpim",
	"tokens_revoked",
}

// The SDK's types are not used for this: they leave out what is false, and then
// Slack takes its own default, which forbids people to write to the app.
type manifest struct {
	Metadata struct {
		Major int `json:"major_version"`
		Minor int `json:"minor_version"`
	} `json:"_metadata"`
	Display struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Long        string `json:"long_description"`
		Background  string `json:"background_color"`
	} `json:"display_information"`
	Features struct {
		AgentView *agentView `json:"agent_view,omitempty"`
		AppHome   struct {
			Home     bool `json:"home_tab_enabled"`
			Messages bool `json:"messages_tab_enabled"`
			ReadOnly bool `json:"messages_tab_read_only_enabled"`
		} `json:"app_home"`
		BotUser struct {
			Name   string `json:"display_name"`
			Online bool   `json:"always_online"`
		} `json:"bot_user"`
		Shortcuts []shortcut        `json:"shortcuts"`
		Commands  []manifestCommand `json:"slash_commands"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		Events struct {
			URL string   `json:"request_url,omitempty"`
			Bot []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool   `json:"is_enabled"`
			URL     string `json:"request_url,omitempty"`
		} `json:"interactivity"`
		OrgDeploy  bool `json:"org_deploy_enabled"`
		SocketMode bool `json:"socket_mode_enabled"`
		Rotation   bool `json:"token_rotation_enabled"`
	} `json:"settings"`
}

type agentView struct {
	Description string `json:"agent_description"`
}

type shortcut struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	CallbackID  string `json:"callback_id"`
	Description string `json:"description"`
}

type manifestCommand struct {
	Command     string `json:"command"`
	URL         string `json:"url,omitempty"`
	Description string `json:"description"`
	Hint        string `json:"usage_hint"`
	Escape      bool   `json:"should_escape"`
}

// What Slack allows, in characters.
const (
	maxAppName      = 35
	maxShortcutName = 24
	maxCommand      = 32
)

var commandName = regexp.MustCompile(`^/[a-z0-9_-]+$`)

// Manifest is the app as JSON to be pasted into Slack ("Create New App", "From a
// manifest"). Nothing in it needs to be edited.
func Manifest(o ManifestOptions) ([]byte, error) {
	if o.Mode == 0 {
		o.Mode = SocketMode
	}
	if o.Name = strings.TrimSpace(o.Name); o.Name == "" {
		o.Name = "Mimikit"
	}
	if o.Command == "" {
		o.Command = "/mimikit"
	}
	switch u, err := url.Parse(o.URL); {
	case units(o.Name) > maxAppName:
		return nil, fmt.Errorf("manifest: name %q has %d characters; Slack allows %d", o.Name, units(o.Name), maxAppName)
	case !commandName.MatchString(o.Command) || len(o.Command) > maxCommand:
		return nil, fmt.Errorf("manifest: command %q: want a slash and up to %d small letters, digits, - or _", o.Command, maxCommand-1)
	case o.Mode == HTTPMode && (err != nil || u.Scheme != "https" || u.Host == ""):
		return nil, fmt.Errorf("manifest: URL %q: over HTTP Slack needs the https address at which it reaches this deployment", o.URL)
	case o.Mode == SocketMode && o.URL != "":
		return nil, fmt.Errorf("manifest: URL %q: Socket Mode needs none", o.URL)
	case o.Mode != HTTPMode && o.Mode != SocketMode:
		return nil, fmt.Errorf("manifest: mode %d: want SocketMode or HTTPMode", o.Mode)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is read by people
	e.SetIndent("", "  ")
	if err := e.Encode(o.manifest()); err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	return b.Bytes(), nil
}

func (o ManifestOptions) manifest() manifest {
	var m manifest
	m.Metadata.Major, m.Metadata.Minor = 2, 1
	m.Display.Name = o.Name
	m.Display.Description = "An AI teammate that answers, works in the background and keeps its word"
	m.Display.Long = o.Name + " is a self-hosted AI teammate. Mention it in a channel, write to it directly, or go on talking in a thread: " +
		"it answers where it was asked. What takes longer becomes a background task that shows its progress, survives restarts and comes back " +
		"to the same thread with a result. Its tasks can be listed and cancelled at any time."
	m.Display.Background = "#2c2d72"
	if !o.NoAgent {
		m.Features.AgentView = &agentView{Description: "Answers questions, and takes on tasks that run for minutes or hours."}
	}
	m.Features.AppHome.Home, m.Features.AppHome.Messages = true, true
	m.Features.BotUser.Name, m.Features.BotUser.Online = o.Name, true
	m.Features.Shortcuts = []shortcut{{
		Name: shortcutName(o.Name), Type: "message", CallbackID: askAbout, Description: "Ask about a message, in its thread",
	}}
	m.Features.Commands = []manifestCommand{{
		Command: o.Command, URL: o.URL, Description: "Tasks, status and help of " + o.Name, Hint: "tasks | task <id> | cancel <id> | status | help",
	}}
	m.OAuth.Scopes.Bot = o.scopes()
	m.Settings.Events.URL, m.Settings.Events.Bot = o.URL, o.events()
	m.Settings.Interactivity.Enabled, m.Settings.Interactivity.URL = true, o.URL
	m.Settings.SocketMode = o.Mode == SocketMode
	return m
}

func shortcutName(name string) string {
	for _, n := range []string{"Ask " + name + " about this", "Ask " + name} {
		if units(n) <= maxShortcutName {
			return n
		}
	}
	return "Ask about this"
}

// scopes leaves out what only an agent may have.
func (o ManifestOptions) scopes() []string { return without(Scopes, "assistant:write", o.NoAgent) }

func (o ManifestOptions) events() []string {
	return without(Events, "agent_session_stopped", o.NoAgent)
}

func without(all []string, one string, really bool) []string {
	var list []string
	for _, s := range all {
		if !really || s != one {
			list = append(list, s)
		}
	}
	return list
}
