package slack

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// Each guard turns away what it is there for, and what no guard turns away is an
// input.
func TestGuards(t *testing.T) {
	t.Parallel()
	me := Identity{TeamID: "T1", UserID: "U1", BotID: "B1"}
	all := Options{AllowBot: func(string) bool { return true }}
	none := Options{AllowBot: func(string) bool { return false }}
	edited := func(p post) post {
		if err := json.Unmarshal([]byte(`{"edited":{"user":"U2","ts":"1795255201.000100"}}`), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for what, c := range map[string]struct {
		s    sighting
		o    Options
		want string // of the reason; "" is an input
	}{
		"a mention":                     {sighting{said: post{User: "U2"}, change: isNew, mentioned: true}, none, ""},
		"our own post":                  {sighting{said: post{User: "U1"}, change: isNew, mentioned: true, kind: direct}, all, "our own"},
		"our own post, as a bot":        {sighting{said: post{BotID: "B1"}, change: isNew, mentioned: true, kind: direct}, all, "our own"},
		"nobody's":                      {sighting{change: isNew, mentioned: true, kind: direct}, all, "nobody"},
		"we joined":                     {sighting{said: post{User: "U2", Subtype: "channel_join"}, change: isNew, mentioned: true}, all, "no talk"},
		"Slackbot":                      {sighting{said: post{User: "USLACKBOT"}, change: isNew, kind: direct}, all, "no talk"},
		"a hidden message":              {sighting{said: post{User: "U2", Hidden: true}, change: isNew, mentioned: true}, all, "hidden"},
		"a change, which is hidden":     {sighting{said: edited(post{User: "U2", Hidden: true, Text: "b"}), before: post{Text: "a"}, change: isEdit, joined: true}, all, ""},
		"a bot":                         {sighting{said: post{BotID: "B2"}, change: isNew, mentioned: true}, none, "another bot"},
		"a bot that is allowed":         {sighting{said: post{BotID: "B2"}, change: isNew, mentioned: true}, all, ""},
		"an allowed bot in our thread":  {sighting{said: post{BotID: "B2"}, change: isNew, joined: true}, all, "another bot"},
		"an allowed bot, directly":      {sighting{said: post{BotID: "B2"}, change: isNew, kind: direct}, all, ""},
		"a preview":                     {sighting{said: post{User: "U2", Text: "a"}, before: post{Text: "a"}, change: isEdit, kind: direct}, all, "words"},
		"a preview of an edited one":    {sighting{said: edited(post{User: "U2", Text: "a"}), before: post{Text: "a"}, change: isEdit, kind: direct}, all, "words"},
		"people among themselves":       {sighting{said: post{User: "U2"}, change: isNew, kind: channel}, all, "not spoken to"},
		"a direct message":              {sighting{said: post{User: "U2"}, change: isNew, kind: direct}, all, ""},
		"a group's message":             {sighting{said: post{User: "U2"}, change: isNew, kind: group}, all, ""},
		"in a thread of ours":           {sighting{said: post{User: "U2"}, change: isNew, joined: true}, all, ""},
		"an edit among people":          {sighting{said: edited(post{User: "U2", Text: "b"}), before: post{Text: "a"}, change: isEdit}, all, "not spoken to"},
		"an edit that mentions us anew": {sighting{said: edited(post{User: "U2", Text: "b"}), before: post{Text: "a"}, change: isEdit, mentioned: true, newly: true}, all, ""},
		"a removal among people":        {sighting{said: post{User: "U2"}, change: isDelete, mentioned: true}, all, "not spoken to"},
		"a removal in our thread":       {sighting{said: post{User: "U2"}, change: isDelete, joined: true}, all, ""},
	} {
		c.s.me = me
		err := c.s.judge(&c.o)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.want != "" && (!errors.Is(err, ErrIgnored) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want a reason with %q", what, err, c.want)
		}
	}
}

// Whatever bots are listened to, we are not one of them.
func TestOwnPostsAreNotHeardAmongAllowedBots(t *testing.T) {
	t.Parallel()
	in(t, Options{AllowBot: func(string) bool { return true }}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.run()
		for _, p := range []string{"D0ANN", town} {
			part := parts(chat.Reply{ID: "r" + p, Text: "hello"}, 2)[0]
			part.Text = "hello <@" + slackfake.BotUser + ">" // as no text of ours can be
			if _, err := r.bot.Poster.Post(t.Context(), place(p), part); err != nil {
				t.Fatal(err)
			}
		}
		r.fake.Say(slackfake.Say{Text: "<@" + slackfake.BotUser + "> has joined the channel", Subtype: "channel_join", User: "U0BOB"})
		r.stored()
		if r.fake.Acked() != 3 {
			t.Error("the fake did not tell us of all this, so this proves nothing")
		}
	})
}
