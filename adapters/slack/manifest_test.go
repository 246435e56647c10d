package slack

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]ManifestOptions{
		"socket":   {},
		"http":     {Mode: HTTPMode, URL: "https://bot.example.org/slack/events"},
		"no-agent": {Name: "A name that is as long as one may be", Command: "/bot", NoAgent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "no-agent" {
				o.Name = prefix(o.Name, maxAppName)
			}
			got, err := Manifest(o)
			if err != nil {
				t.Fatal(err)
			}
			golden := "testdata/manifest-" + name + ".json"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("made:\n%s\nwant:\n%s", got, want)
			}
			checkManifest(t, got, o)
		})
	}
}

// checkManifest holds a manifest against what Slack documents of its fields.
func checkManifest(t *testing.T, data []byte, o ManifestOptions) {
	t.Helper()
	var m struct {
		Metadata map[string]int    `json:"_metadata"`
		Display  map[string]string `json:"display_information"`
		Features map[string]json.RawMessage
		Settings map[string]json.RawMessage
		OAuth    struct {
			Scopes struct{ Bot []string }
		} `json:"oauth_config"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	within := func(what, text string, least, most int) {
		t.Helper()
		if n := units(text); n < least || n > most {
			t.Errorf("%s has %d characters, want %d to %d: %q", what, n, least, most, text)
		}
	}
	within("name", m.Display["name"], 1, 35)
	within("description", m.Display["description"], 1, 140)
	within("long description", m.Display["long_description"], 174, 4000)
	if !regexp.MustCompile(`^#[0-9a-f]{6}$`).MatchString(m.Display["background_color"]) {
		t.Errorf("background %q", m.Display["background_color"])
	}
	var home struct {
		Home     *bool `json:"home_tab_enabled"`
		Messages *bool `json:"messages_tab_enabled"`
		ReadOnly *bool `json:"messages_tab_read_only_enabled"`
	}
	_ = json.Unmarshal(m.Features["app_home"], &home)
	if home.Home == nil || !*home.Home || home.Messages == nil || !*home.Messages || home.ReadOnly == nil || *home.ReadOnly {
		t.Errorf("people could not write to the app: %s", m.Features["app_home"])
	}
	var user map[string]any
	_ = json.Unmarshal(m.Features["bot_user"], &user)
	within("display name", user["display_name"].(string), 1, 80)
	var shortcuts, commands []map[string]any
	_ = json.Unmarshal(m.Features["shortcuts"], &shortcuts)
	_ = json.Unmarshal(m.Features["slash_commands"], &commands)
	within("shortcut", shortcuts[0]["name"].(string), 1, 24)
	within("shortcut's description", shortcuts[0]["description"].(string), 1, 150)
	within("command", commands[0]["command"].(string), 2, 32)
	within("command's hint", commands[0]["usage_hint"].(string), 1, 1000)
	var socket bool
	_ = json.Unmarshal(m.Settings["socket_mode_enabled"], &socket)
	url, _ := commands[0]["url"].(string)
	if socket == (o.Mode == HTTPMode) || url != o.URL || (o.URL != "") != strings.Contains(string(m.Settings["interactivity"]), "request_url") {
		t.Errorf("socket mode %v, command URL %q", socket, url)
	}
	if !slices.IsSorted(m.OAuth.Scopes.Bot) || slices.Contains(m.OAuth.Scopes.Bot, "assistant:write") == o.NoAgent {
		t.Errorf("scopes %q", m.OAuth.Scopes.Bot)
	}
	// What each event needs, by Slack's own tables.
	needs := map[string]string{
		"app_mention": "app_mentions:read", "message.channels": "channels:history", "message.groups": "groups:history",
		"message.im": "im:history", "message.mpim": "mpim:history",
	}
	for event, scope := range needs {
		if !strings.Contains(string(m.Settings["event_subscriptions"]), `"`+event+`"`) || !slices.Contains(m.OAuth.Scopes.Bot, scope) {
			t.Errorf("event %s or scope %s is missing", event, scope)
		}
	}
}

func TestManifestErrors(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]ManifestOptions{
		"Slack allows 35": {Name: strings.Repeat("x", 36)},
		"a slash and":     {Command: "mimikit"},
		"up to 31":        {Command: "/" + strings.Repeat("x", 32)},
		"https address":   {Mode: HTTPMode, URL: "http://bot.example.org"},
		"needs none":      {URL: "https://bot.example.org"},
		"mode 7":          {Mode: 7},
	} {
		if _, err := Manifest(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	good := Options{BotToken: "xoxb-1", AppToken: "xapp-1"}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		`begin with "xoxb-"`:   func(o *Options) { o.BotToken, o.AppToken = o.AppToken, o.BotToken },
		`begins with "xapp-"`:  func(o *Options) { o.AppToken = "" },
		"signing secret":       func(o *Options) { o.Mode = HTTPMode },
		"want 1 to 8":          func(o *Options) { o.Sockets = 9 },
		"want https://host":    func(o *Options) { o.APIURL = "slack.com/api" },
		"mode 5: want":         func(o *Options) { o.Mode = 5 },
		`app-level token that`: func(o *Options) { o.AppToken = "xoxb-1" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.fake.Scopes(Scopes...)
		for _, f := range r.bot.Check(t.Context()) {
			if !f.OK || f.Say == "" {
				t.Errorf("%+v", f)
			}
		}
		if n := r.fake.Calls("apps.connections.open"); n != 1 {
			t.Errorf("%d sockets were opened", n)
		}
	})
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.fake.Scopes("chat:write", "users:read")
		r.fake.Inject(slackfake.Fault{Method: "apps.connections.open", Error: "not_allowed_token_type"})
		list := r.bot.Check(t.Context())
		if len(list) != 3 || !list[0].OK || list[1].OK || list[2].OK {
			t.Fatalf("%+v", list)
		}
		if !strings.Contains(list[1].Say, "app_mentions:read") || !strings.Contains(list[1].Mend, "slack manifest") || !strings.Contains(list[2].Mend, "xapp-") {
			t.Errorf("%+v", list)
		}
	})
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.fake.Inject(slackfake.Fault{Method: "auth.test", Error: "token_revoked"})
		if list := r.bot.Check(t.Context()); len(list) != 1 || list[0].OK || !strings.Contains(list[0].Mend, "reinstall") {
			t.Errorf("%+v", list)
		}
	})
}
