package discord

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t)
}

func TestConformanceCompressed(t *testing.T) {
	t.Parallel()
	conform(t, func(o *Options) { o.Compress = true })
}

// Where the bot answers in the place itself, a thread among people is still one.
func TestConformanceOfReplies(t *testing.T) {
	t.Parallel()
	conform(t, func(o *Options) { o.Mode = PlainReply })
}

func conform(t *testing.T, change ...func(*Options)) {
	adaptertest.Run(t, func(t *testing.T, try func(*testing.T, adaptertest.Rig)) {
		bubble(t, func(t *testing.T, r *rig) {
			c := &conformer{rig: r, change: change}
			try(t, c)
			for _, call := range r.fake.Calls("") {
				if call.Status == 429 && !c.limited {
					t.Errorf("Discord refused %s for the number of requests", call.Route)
				}
			}
		})
	})
}

// A conformer is the rig of the conformance suite.
type conformer struct {
	*rig
	change  []func(*Options)
	node    *Bot   // whose listener runs
	root    string // of the thread to post in
	limited bool   // a post was refused on purpose
}

func (c *conformer) Lacks(a adaptertest.Ability) string { return "" }

func (c *conformer) Listen(inbox adapters.Inbox) (stop func()) {
	c.t.Helper()
	d := c.discord(c.change...)
	c.node = d
	end := c.runOn(d, inbox)
	return func() {
		end()
		if c.node == d {
			c.node = nil
		}
	}
}

func (c *conformer) in(s adaptertest.Said) string {
	switch {
	case s.In == adaptertest.Direct:
		return c.dm().Place
	case s.Thread == "":
		return c.place
	}
	if _, ok := c.fake.Thread(s.Thread); !ok {
		c.fake.ThreadFrom(s.Thread, "a thread", c.bob)
	}
	return s.Thread
}

func (c *conformer) Say(s adaptertest.Said) string {
	text, by := s.Text, c.ann
	if s.Mention {
		text = c.mentioned(text)
	}
	if s.Bot {
		by = c.fake.NewBot("another")
	}
	return c.fake.Say(c.in(s), by, text).ID
}

func (c *conformer) Redeliver(id string) { c.fake.Redeliver(id) }

func (c *conformer) Edit(id, text string) {
	c.fake.Edit(id, strings.ReplaceAll(text, "@bot", c.fake.Mention()))
}

func (c *conformer) Delete(id string) { c.fake.Delete(id) }

func (c *conformer) Conversation(w adaptertest.Where) chat.Conversation {
	if w == adaptertest.Direct {
		return c.dm()
	}
	if c.root == "" {
		c.root = c.fake.Say(c.place, c.ann, "let us talk").ID
		c.fake.ThreadFrom(c.root, "talk", c.ann)
	}
	return c.thread(c.root)
}

func (c *conformer) Poster() adapters.Poster {
	if c.node != nil {
		return c.node.Poster
	}
	return c.discord(c.change...).Poster
}

func (c *conformer) Fail(f adaptertest.Failure) {
	fault := map[adaptertest.Failure]discordfake.Fault{
		adaptertest.LoseAnswer: {LoseReply: true},
		adaptertest.LosePost:   {Break: true},
		adaptertest.RateLimit:  {Status: 429, RetryAfter: adaptertest.RetryIn},
		adaptertest.Refuse:     {Status: 403, Code: 50013},
	}[f]
	fault.Route, fault.Times = messagesRoute, 1
	c.limited = c.limited || f == adaptertest.RateLimit
	c.fake.Fail(fault)
}

func (c *conformer) Shown(in chat.Conversation) []adaptertest.Shown {
	c.t.Helper()
	channel, _ := target(in)
	var list []adaptertest.Shown
	for _, m := range c.fake.Said(channel) {
		s := adaptertest.Shown{ID: m.ID, Text: m.Content, Rang: m.Rang}
		for _, a := range m.Attachments {
			s.Files = append(s.Files, string(c.fake.File(a)))
		}
		var rows []struct {
			Components []struct {
				ID      string `json:"custom_id"`
				Options []struct{ Value string }
			}
		}
		if m.Components != nil {
			if err := json.Unmarshal(m.Components, &rows); err != nil {
				c.t.Fatal(err)
			}
		}
		for _, row := range rows {
			for _, x := range row.Components {
				var i interaction
				i.Data.CustomID = x.ID
				for _, o := range x.Options {
					i.Data.Values = []string{o.Value}
					value, _ := i.pressed()
					s.Buttons = append(s.Buttons, value)
				}
				if value, ours := i.pressed(); ours && x.Options == nil {
					s.Buttons = append(s.Buttons, value)
				}
			}
		}
		list = append(list, s)
	}
	return list
}

func (c *conformer) Bells() []string {
	return []string{
		"<@" + c.ann.ID + ">", "<@!" + c.ann.ID + ">", "<@&" + c.guild + ">", "`@everyone`", "```\n@here\n```", "\\@everyone", "&#64;everyone",
		"<<@" + c.ann.ID + ">>", "@everyone@here",
	}
}

func (c *conformer) Feedback() adapters.Feedback { return c.node.Status }

// Working: somebody is seen to type for ten seconds, or until they have said
// something; and a message that waits for its answer carries a sign.
func (c *conformer) Working(in chat.Conversation) bool {
	channel, _ := target(in)
	typed := c.fake.Typed(channel)
	if n := len(typed); n > 0 && time.Since(typed[n-1]) < 10*time.Second {
		said := c.fake.Said(channel)
		if len(said) == 0 || discordfake.TimeOf(said[len(said)-1].ID).Before(typed[n-1]) {
			return true
		}
	}
	for _, m := range append(c.fake.Messages(channel), c.fake.Messages(in.Place)...) {
		if strings.Contains(c.reactions(m.ID), signHeard) && (m.ChannelID == channel || m.ID == in.Thread) {
			return true
		}
	}
	return false
}

func (c *conformer) Pass(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}
