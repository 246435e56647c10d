package config

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Slack sets the bot's end of one Slack workspace. Without a bot token the bot is
// not on Slack.
type Slack struct {
	Mode              string        `koanf:"mode" allow:"socket|http"`
	BotToken          Secret        `koanf:"botToken"` // MIMIKIT_SLACK_BOT_TOKEN or BotTokenFile only
	BotTokenFile      string        `koanf:"botTokenFile" path:"y"`
	AppToken          Secret        `koanf:"appToken"` // for Socket Mode; likewise
	AppTokenFile      string        `koanf:"appTokenFile" path:"y"`
	SigningSecret     Secret        `koanf:"signingSecret"` // for HTTP; likewise
	SigningSecretFile string        `koanf:"signingSecretFile" path:"y"`
	Listen            string        `koanf:"listen"`  // host:port at which Slack's requests are taken; with HTTPEvents only
	Path              string        `koanf:"path"`    // where they are taken there
	Command           string        `koanf:"command"` // the slash command, as in the app's manifest
	Agent             string        `koanf:"agent" allow:"auto|on|off"`
	Streaming         bool          `koanf:"streaming"`                // replies are seen in threads while they are worded
	Sockets           int           `koanf:"sockets" allow:"1..8"`     // of all nodes together; Slack allows an app ten
	MaxParts          int           `koanf:"maxParts" allow:"1..20"`   // messages of one reply before it becomes a file
	CatchUp           time.Duration `koanf:"catchUp" allow:"0s..168h"` // how far back missed messages are read; 0 reads none
	Bots              []string      `koanf:"bots"`                     // ids of other bots that are answered when they mention this one
	APIURL            string        `koanf:"apiURL"`                   // of the Web API; empty: Slack's own
}

// The values of Slack.Mode: how what happens reaches the bot.
const (
	SocketEvents = "socket" // over connections that it opens itself; needs no public address
	HTTPEvents   = "http"   // by requests of Slack's
)

// Enabled reports whether the bot is on Slack.
func (s Slack) Enabled() bool { return s.BotToken != "" || s.BotTokenFile != "" }

// Discord sets the bot's end of Discord. Without a token it is not there.
type Discord struct {
	Token     Secret        `koanf:"token"` // MIMIKIT_DISCORD_TOKEN or TokenFile only
	TokenFile string        `koanf:"tokenFile" path:"y"`
	Mention   string        `koanf:"mention" allow:"thread|reply|off"`
	Content   bool          `koanf:"content"`                  // the application has the privileged message content intent
	Bots      bool          `koanf:"bots"`                     // other bots are answered, too
	Shards    int           `koanf:"shards" allow:"0..1024"`   // 0: as many as Discord recommends
	Guild     string        `koanf:"guild"`                    // commands are registered in this one only, where they change at once; empty: everywhere
	MaxParts  int           `koanf:"maxParts" allow:"1..20"`   // messages of one reply before it becomes a file
	CatchUp   time.Duration `koanf:"catchUp" allow:"1m..168h"` // how far back missed messages are read where a session was lost
	APIURL    string        `koanf:"apiURL"`                   // of the REST API; empty: Discord's own
}

// Enabled reports whether the bot is on Discord.
func (d Discord) Enabled() bool { return d.Token != "" || d.TokenFile != "" }

// Access says who may do what. A person, a place, a workspace or a role of
// Discord's is named as platform:id, such as slack:U024BE7LH.
type Access struct {
	Admins         []string `koanf:"admins"`    // people, or roles on Discord
	Operators      []string `koanf:"operators"` // likewise
	PlatformAdmins string   `koanf:"platformAdmins" allow:"admin|operator|user"`
	Users          []string `koanf:"users"`                          // empty: everybody may speak with the bot; else only these
	DeniedUsers    []string `koanf:"deniedUsers"`                    // may not
	Places         []string `koanf:"places"`                         // channels and workspaces in which it answers; empty: wherever it is invited
	DeniedPlaces   []string `koanf:"deniedPlaces"`                   // in which it does not
	DirectMessages bool     `koanf:"directMessages"`                 // it answers in direct messages, also of a group
	MaxPerMinute   int      `koanf:"maxPerMinute" allow:"0..100000"` // messages and commands of one person a minute; 0 bounds nothing
}

// Page sets the operator's page. It is off unless Listen is set.
type Page struct {
	Listen    string `koanf:"listen"`
	Token     Secret `koanf:"token"` // MIMIKIT_PAGE_TOKEN or TokenFile only; needed unless Listen is of this machine alone
	TokenFile string `koanf:"tokenFile" path:"y"`
}

// Local reports whether only this machine reaches the page.
func (p Page) Local() bool {
	host, _, err := net.SplitHostPort(p.Listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

const (
	accessForm = "platform:id, like slack:U024BE7LH or discord:80351110224678912" + listed
	listenForm = "host:port or :port"
)

// platformForms are the rules of the platforms' keys.
var platformForms = map[string]form{
	"slack.listen":        {listenForm, isListen},
	"page.listen":         {listenForm, optional(isListen)},
	"slack.path":          {"a path like /slack/events", pathForm.MatchString},
	"slack.command":       {"a slash and 1 to 31 small letters, digits, dashes or underscores", commandForm.MatchString},
	"slack.bots":          {"ids of bots, like B024BE7LH" + listed, idForm.MatchString},
	"slack.apiURL":        {baseURLForm, optional(isBaseURL)},
	"discord.guild":       {"a guild's id, a number", optional(isSnowflake)},
	"discord.apiURL":      {baseURLForm, optional(isBaseURL)},
	"access.admins":       {accessForm, isNamed},
	"access.operators":    {accessForm, isNamed},
	"access.users":        {accessForm, isNamed},
	"access.deniedUsers":  {accessForm, isNamed},
	"access.places":       {accessForm, isNamed},
	"access.deniedPlaces": {accessForm, isNamed},
}

var (
	pathForm    = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)
	commandForm = regexp.MustCompile(`^/[a-z0-9_-]{1,31}$`)
	idForm      = regexp.MustCompile(`^[A-Z0-9]{2,20}$`)
)

func isSnowflake(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && len(s) >= 15
}

// isNamed reports whether a text names somebody or something on a platform.
func isNamed(s string) bool {
	platform, id, _ := strings.Cut(s, ":")
	switch platform {
	case "slack":
		return idForm.MatchString(id)
	case "discord":
		return isSnowflake(id)
	}
	return platform == "console" && id != "" && plain(id)
}

// platformsTogether checks that each platform has the secrets of its mode, and
// each secret its kind: they are easily mixed up, and what the platform says to
// the wrong one explains little.
func (c *Config) platformsTogether() []error {
	var out []error
	bad := func(ok bool, key, want string) {
		if !ok {
			out = append(out, c.problem(key, "", want))
		}
	}
	s, p := c.Slack, c.Page
	bad(p.Listen == "" || p.Local() || p.Token != "" || p.TokenFile != "", "page.token",
		"is not set, and others than this machine reach page.listen; set MIMIKIT_PAGE_TOKEN, or listen on 127.0.0.1")
	bad(p.Token == "" || len(p.Token) >= 16, "page.token", "is too short: want at least 16 characters")
	has := func(secret Secret, file string) bool { return secret != "" || file != "" } // a file that cannot be read is told already
	starts := func(key string, secret Secret, with, where string) {
		bad(secret == "" || strings.HasPrefix(secret.Reveal(), with), key, "must begin with "+with+"; it stands under "+where+" of the app")
	}
	starts("slack.botToken", s.BotToken, "xoxb-", `"OAuth & Permissions"`)
	starts("slack.appToken", s.AppToken, "xapp-", `"Basic Information"`)
	if !s.Enabled() {
		const alone = "is set, but slack.botToken is not, so the bot is not on Slack"
		bad(!has(s.AppToken, s.AppTokenFile), "slack.appToken", alone)
		bad(!has(s.SigningSecret, s.SigningSecretFile), "slack.signingSecret", alone)
		return out
	}
	bad(s.Mode != SocketEvents || has(s.AppToken, s.AppTokenFile), "slack.appToken",
		`is not set; slack.mode socket wants the app-level token (xapp-…) with the scope connections:write, made under "Basic Information" of the app`)
	bad(s.Mode != HTTPEvents || has(s.SigningSecret, s.SigningSecretFile), "slack.signingSecret",
		`is not set; slack.mode http wants the signing secret, which stands under "Basic Information" of the app`)
	return out
}
