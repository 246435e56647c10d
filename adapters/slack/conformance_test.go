package slack

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

func TestConformanceOverSockets(t *testing.T) {
	t.Parallel()
	conform(t, Options{Sockets: 2})
}

func TestConformanceOverHTTP(t *testing.T) {
	t.Parallel()
	conform(t, Options{Mode: HTTPMode})
}

// An app that is no agent shows by reactions that it works.
func TestConformanceWithoutAnAgent(t *testing.T) {
	t.Parallel()
	conform(t, Options{Agent: AgentOff}, func(o *slackfake.Options) { o.NotAgent = true })
}

// Under the limits that Slack's methods really have.
func TestConformanceUnderLimits(t *testing.T) {
	t.Parallel()
	conform(t, Options{}, func(o *slackfake.Options) { o.Tiers = true })
}

func conform(t *testing.T, o Options, server ...func(*slackfake.Options)) {
	t.Helper()
	o.StopGrace = time.Second // less than Slack waits, so that what is held then is not delivered anew already
	adaptertest.Run(t, func(t *testing.T, try func(*testing.T, adaptertest.Rig)) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &conformer{o: o}
			over := slices.Clone(server)
			if o.Mode == HTTPMode {
				front := newWire()
				defer c.serve(front)()
				over = append(over, func(so *slackfake.Options) { so.Target, so.Client = "http://bot.example/slack/events", client(front) })
			}
			c.rig = setup(t, o, over...)
			c.addPlaces()
			defer func() {
				for _, b := range c.others {
					b.Close()
				}
				c.end()
			}()
			try(t, c)
			if n := c.fake.Limited(); n > 0 {
				t.Errorf("Slack refused %d calls for their number", n)
			}
		})
	})
}

// A conformer is the rig of the conformance suite.
type conformer struct {
	*rig
	o      Options
	front  atomic.Pointer[Listener]
	node   *Bot // whose listener runs
	others []*Bot
	root   string // of the thread to post in
}

// serve takes what comes over HTTP, for whichever listener runs.
func (c *conformer) serve(front *wire) (end func()) {
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l := c.front.Load(); l != nil {
			l.ServeHTTP(w, r)
			return
		}
		http.Error(w, "nobody is here", http.StatusBadGateway)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(front) }()
	return func() { _ = srv.Close(); <-done }
}

func (c *conformer) Lacks(a adaptertest.Ability) string {
	if a == adaptertest.HasStatus && c.o.Agent == AgentOff {
		return "without an agent there are only reactions to what was said"
	}
	return ""
}

func (c *conformer) another() *Bot {
	b := c.newBot(c.o)
	c.others = append(c.others, b)
	return b
}

func (c *conformer) Listen(inbox adapters.Inbox) (stop func()) {
	b := c.another()
	c.node = b
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Listener.Run(ctx, inbox) }()
	c.front.Store(b.Listener)
	synctest.Wait()
	if !b.Listener.Ready() {
		c.t.Fatal("the listener is not ready")
	}
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("the listener ended with %v", err)
		}
		c.front.Store(nil)
		c.node = nil
	})
}

func (c *conformer) in(w adaptertest.Where) string {
	if w == adaptertest.Direct {
		return "D0ANN"
	}
	return town
}

func (c *conformer) Say(s adaptertest.Said) string {
	x := slackfake.Say{Channel: c.in(s.In), Thread: s.Thread, Text: s.Text}
	if s.Mention {
		x.Text = "@bot " + x.Text
	}
	if s.Bot {
		x.Bot = "B0OTHER"
	}
	return c.fake.Say(x)
}

// where finds the place of a message.
func (c *conformer) where(ts string) string {
	for _, id := range []string{town, "D0ANN"} {
		if c.fake.Has(id, ts) {
			return id
		}
	}
	c.t.Fatalf("there is no message %s", ts)
	return ""
}

func (c *conformer) Redeliver(ts string)  { c.fake.Redeliver(c.where(ts), ts) }
func (c *conformer) Edit(ts, text string) { c.fake.Change(c.where(ts), ts, text) }
func (c *conformer) Delete(ts string)     { c.fake.Remove(c.where(ts), ts) }

func (c *conformer) Conversation(w adaptertest.Where) chat.Conversation {
	if w == adaptertest.Direct {
		return place("D0ANN")
	}
	if c.root == "" {
		c.root = c.fake.Say(slackfake.Say{Text: "let us talk", Quiet: true})
	}
	return inThread(town, c.root)
}

func (c *conformer) Poster() adapters.Poster {
	if c.node != nil {
		return c.node.Poster
	}
	return c.another().Poster
}

func (c *conformer) Fail(f adaptertest.Failure) {
	c.fake.Inject(map[adaptertest.Failure]slackfake.Fault{
		adaptertest.LoseAnswer: {Method: "chat.postMessage", LoseAnswer: true},
		adaptertest.LosePost:   {Method: "chat.postMessage", LoseCall: true},
		adaptertest.RateLimit:  {Method: "chat.postMessage", Status: 429, RetryAfter: int(adaptertest.RetryIn / time.Second)},
		adaptertest.Refuse:     {Method: "chat.postMessage", Error: "is_archived"},
	}[f])
}

func (c *conformer) Shown(in chat.Conversation) []adaptertest.Shown {
	var list []adaptertest.Shown
	for _, m := range c.fake.Messages(in.Place, in.Thread) {
		if m.User != slackfake.BotUser {
			continue
		}
		s := adaptertest.Shown{ID: m.TS, Text: m.Text, Rang: m.Rang}
		for i, name := range m.Files {
			content, _ := c.fake.Content(name)
			s.ID, s.Files = m.FileIDs[i], append(s.Files, content)
		}
		var blocks []struct {
			Type, Text string
			Elements   []struct {
				Value   string
				Options []struct{ Value string }
			}
		}
		if m.Blocks != "" {
			if err := json.Unmarshal([]byte(m.Blocks), &blocks); err != nil {
				c.t.Fatal(err)
			}
			s.Text = ""
		}
		for _, b := range blocks {
			s.Text += b.Text
			for _, e := range b.Elements {
				if e.Value != "" {
					s.Buttons = append(s.Buttons, e.Value)
				}
				for _, o := range e.Options {
					s.Buttons = append(s.Buttons, o.Value)
				}
			}
		}
		list = append(list, s)
	}
	return list
}

func (c *conformer) Bells() []string {
	return []string{
		"<@U0ANN>", "<@U0ANN|ann>", "<!subteam^S0ALL>", "<!subteam^S0ALL|@all>", "<!channel|channel>", "<!here|here>",
		"&lt;!channel&gt;", "<<!channel>>", "<!<!channel>channel>", "`<!here>`", "```\n<!channel>\n```", "\\<!channel>", "<@W0ANN>",
	}
}

func (c *conformer) Feedback() adapters.Feedback { return c.node.Status }

func (c *conformer) Working(in chat.Conversation) bool {
	if in.Thread != "" && c.fake.Status(in.Place, in.Thread) != "" {
		return true
	}
	for _, m := range c.fake.Messages(in.Place, in.Thread) {
		if strings.Contains(strings.Join(m.Reactions, " "), eyes) {
			return true
		}
	}
	return false
}

func (c *conformer) Pass(d time.Duration) { c.wait(d) }
