package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"mimikit/adapters/slack"
	"mimikit/config"
	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/cluster"
	"mimikit/core/llm"
)

// slack puts the bot's end of Slack together.
func (a *App) slack() (*platform, error) {
	c := a.cfg.Slack
	mode, agent := slack.SocketMode, slack.AgentAuto
	if c.Mode == config.HTTPEvents {
		mode = slack.HTTPMode
	}
	switch c.Agent {
	case "on":
		agent = slack.AgentOn
	case "off":
		agent = slack.AgentOff
	}
	catchUp := c.CatchUp
	if catchUp == 0 {
		catchUp = -1 // none; its own 0 means the default
	}
	// No node takes all sockets, so that each moment another has some open already.
	own := min(2, c.Sockets)
	shared := newSlackCluster(a.cluster, c.Sockets)
	d := slackDoor{door{app: a, name: "slack", prefix: c.Command + " "}}
	o := slack.Options{
		Mode: mode, BotToken: c.BotToken.Reveal(), AppToken: c.AppToken.Reveal(), SigningSecret: c.SigningSecret.Reveal(),
		APIURL: c.APIURL, Name: a.cfg.Name, Agent: agent, Streaming: c.Streaming,
		Role:     func(user string, admin bool) chat.Role { return a.access.role("slack", admin, user) },
		AllowBot: func(id string) bool { return slices.Contains(c.Bots, id) },
		Commands: d, Home: d,
		Sockets: own, CatchUpAge: catchUp, MaxParts: c.MaxParts, StopGrace: min(a.cfg.Channel.StopGrace, 3*time.Second),
		Hooks: slack.Hooks{
			Event: func(kind string, o slack.Outcome) {
				if o == slack.Unknown {
					kind = "other" // Slack's names, of which there may be any number
				}
				a.metrics.Event("slack", kind, string(o))
			},
			Socket: func(s slack.SocketChange) { a.metrics.SocketChange("slack", string(s)) },
			Call:   a.called("slack"),
			Waited: func(_ string, _ slack.Priority, wait time.Duration) { a.metrics.RateWait("slack", wait) },
			CatchUp: func(conversations, messages int, took time.Duration) {
				a.log.Info("slack_caught_up", "conversations", conversations, "messages", messages, "took_ms", took.Milliseconds())
			},
		},
		Logger: a.log,
	}
	if a.cluster != nil { // else there is but this process, which looks whether all is well
		o.Slots, o.Threads, o.Places, o.Claims, o.Notes, o.Marks, o.Budget = shared, shared, shared, shared, shared, shared, shared
	}
	bot, err := slack.New(o)
	if err != nil {
		return nil, err
	}
	a.groups = func(ctx context.Context, c chat.Conversation) (bool, error) {
		if c.Platform != "slack" {
			return false, nil
		}
		return bot.Group(ctx, c.Place)
	}
	p := &platform{
		name: "slack", listener: bot.Listener, poster: bot.Poster, feedback: bot.Status, edit: bot.Poster.Edit, close: bot.Close,
		fetch: func(ctx context.Context, _ string, f chat.Attachment, w io.Writer, most int64) error {
			return bot.Files.Fetch(ctx, f, w, most)
		},
		// A node that waits for a socket, since others hold them all, is as good.
		ready: func() bool {
			return bot.Listener.Ready() || mode == slack.SocketMode && int(shared.waiting.Load()) == own
		},
		progress: func(ctx context.Context, c chat.Conversation, p progress) error {
			return bot.Poster.Progress(ctx, c, slack.Progress{ID: p.task, Text: p.text, Buttons: p.buttons, Done: p.done})
		},
		check: func(ctx context.Context) []finding {
			var list []finding
			for _, f := range bot.Check(ctx) {
				list = append(list, finding{What: f.What, OK: f.OK, Say: f.Say, Mend: f.Mend})
			}
			return list
		},
	}
	if c.Streaming {
		p.stream = func(ctx context.Context, c chat.Conversation, replyID, person string) *llm.Show {
			return streamTo(ctx, a.log, bot.Poster, c, replyID, person)
		}
	}
	if mode == slack.HTTPMode {
		p.serve = &hook{listen: c.Listen, path: c.Path, handler: bot.Listener, setting: "slack.listen"}
	} else {
		p.sockets = func() int { return bot.Listener.State().Sockets }
	}
	return p, nil
}

// streamTo shows a reply while it is worded. A stream that is begun anew removes the
// one before.
func streamTo(ctx context.Context, log *slog.Logger, p *slack.Poster, c chat.Conversation, replyID, person string) *llm.Show {
	s := p.Stream(ctx, c, replyID, person)
	return &llm.Show{
		Delta: func(text string) { s.Write(text) },
		Restart: func() {
			s.Close()
			s = p.Stream(ctx, c, replyID, person)
		},
		End: func(kept bool) {
			s.Close()
			if kept {
				return
			}
			// The turn may be over because it was stopped, and this must be done all the same.
			short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			if err := p.Unstream(short, c, replyID); err != nil {
				log.Warn("slack_stream_not_removed", "conversation", c.Key(), "reply", replyID, "error", err)
			}
		},
	}
}

// A slackDoor lets people on Slack give commands.
type slackDoor struct{ door }

// Parse tells whether a message is a command.
func (d slackDoor) Parse(text string, direct bool) ([]string, bool) { return d.parse(text, direct) }

// Run carries out a command. Its answer is for the caller's eyes.
func (d slackDoor) Run(ctx context.Context, c slack.Caller, words []string) (slack.Answer, error) {
	prefix := d.prefix
	if c.Message != "" {
		prefix = "!" // in a thread Slack has no slash commands
	}
	a, err := d.run(ctx, c.Author, c.Conversation, true, prefix, words)
	return slack.Answer{Text: a.text, Buttons: a.buttons}, err
}

// Press does what a button stands for.
func (d slackDoor) Press(ctx context.Context, c slack.Caller, value string) (slack.Answer, error) {
	a, err := d.press(ctx, c.Author, c.Conversation, value)
	if c.Conversation.Place == "" { // in App Home, where words stand as they are
		a.text = admin.Unmark(a.text)
	}
	return slack.Answer{Text: a.text, Buttons: a.buttons, Note: a.note}, err
}

// Home shows somebody what they have asked for.
func (d slackDoor) Home(ctx context.Context, c slack.Caller) (slack.HomeView, error) {
	v, err := d.app.home(ctx, c.Author, c.Conversation)
	if err != nil {
		return slack.HomeView{}, err
	}
	out := slack.HomeView{Intro: v.intro}
	for _, s := range v.sections {
		section := slack.HomeSection{Title: s.title, Empty: s.empty}
		for _, r := range s.rows {
			section.Rows = append(section.Rows, slack.HomeRow{Title: r.title, Whole: r.whole, Detail: r.detail, Buttons: r.buttons})
		}
		out.Sections = append(out.Sections, section)
	}
	return out, nil
}

// A slackCluster is what nodes share, as Slack's adapter asks for it.
type slackCluster struct {
	sharedState
	sockets int          // of all nodes together
	waiting atomic.Int32 // for a socket
}

func newSlackCluster(c *cluster.Cluster, sockets int) *slackCluster {
	return &slackCluster{sharedState: sharedState{c: c, platform: "slack", timeOf: func(ts string) (time.Time, error) {
		whole, _, _ := strings.Cut(ts, ".")
		seconds, err := strconv.ParseInt(whole, 10, 64)
		if err != nil {
			return time.Time{}, errors.New("want a time stamp of Slack's")
		}
		return time.Unix(seconds, 0), nil
	}}, sockets: sockets}
}

// Acquire waits for one of the sockets that all nodes may have together.
func (s *slackCluster) Acquire(ctx context.Context) (slack.Slot, error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	return s.c.Acquire(ctx, "slack-socket", s.sockets)
}

// Live lists the conversations that were heard of late.
func (s *slackCluster) Live(ctx context.Context, since time.Time, most int) ([]slack.Live, error) {
	list, err := s.live(ctx, since, most)
	out := make([]slack.Live, len(list))
	for i, h := range list {
		out[i] = slack.Live{Conversation: h.conversation, Heard: h.id}
	}
	return out, err
}

// Draw takes one call out of what Slack grants.
func (s *slackCluster) Draw(ctx context.Context, d slack.Draw, patience time.Duration) (time.Duration, error) {
	reserve := map[slack.Priority]float64{slack.Question: 0.2, slack.Status: 0.5, slack.Edit: 0.7}[d.Priority]
	return s.draw(ctx, slackBudgets(d), reserve, d.Priority <= slack.Question, patience)
}

// Limited closes what Slack refused for a while.
func (s *slackCluster) Limited(ctx context.Context, d slack.Draw, wait time.Duration) error {
	return s.limited(ctx, slackBudgets(d), wait)
}

// slackBudgets are those that a call draws from: that of the method, and for a
// message that of the place.
func slackBudgets(d slack.Draw) []rateBudget {
	var list []rateBudget
	if n := slack.MethodRate(d.Method); n > 0 {
		list = append(list, rateBudget{d.Method, cluster.Rate{Calls: int(n), Per: time.Minute}})
	}
	if slack.ShowsMessage(d.Method) && d.Place != "" {
		burst := time.Duration(slack.PlaceBurst / slack.PlaceRate * float64(time.Second))
		list = append(list, rateBudget{"place/" + d.Place, cluster.Rate{Calls: int(slack.PlaceBurst), Per: burst}})
	}
	return list
}
