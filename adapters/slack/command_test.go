package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// commands are some, which remember who called them.
type commands struct {
	mu     sync.Mutex
	called []string
	slow   time.Duration
	err    error
	answer Answer
}

func (c *commands) note(words ...string) (Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.called = append(c.called, strings.Join(words, " "))
	return c.answer, c.err
}

func (c *commands) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.called)
}

func (c *commands) Parse(text string, direct bool) ([]string, bool) {
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		return strings.Fields(rest), true
	}
	return []string{"tasks"}, direct && text == "tasks"
}

func (c *commands) Run(ctx context.Context, who Caller, words []string) (Answer, error) {
	if err := pause(ctx, c.slow); err != nil {
		return Answer{}, err
	}
	return c.note(append([]string{"run", who.Author.ID, who.Author.Role.String(), who.Conversation.Key()}, words...)...)
}

func (c *commands) Press(_ context.Context, who Caller, value string) (Answer, error) {
	return c.note("press", who.Author.ID, who.Conversation.Key(), value)
}

func TestASlashCommandIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	in(t, Options{Commands: &commands{answer: Answer{Text: "**two** tasks", Buttons: []chat.Button{{Label: "Cancel", Value: "cancel t1"}}}}}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.run()
		id := r.fake.Slash("U0BOB", town, "/mimikit", "tasks &lt;all&gt;  2")
		r.wait(time.Second)
		got := r.fake.Answers()
		if len(got) != 1 || got[0].Interaction != id || !got[0].WithAck {
			t.Fatalf("answered %+v", got)
		}
		for _, want := range []string{`"response_type":"ephemeral"`, `"**two** tasks"`, `"text":"two tasks"`, `"value":"cancel t1"`} {
			if !strings.Contains(got[0].Body, want) {
				t.Errorf("the answer lacks %s: %s", want, got[0].Body)
			}
		}
		want := []string{"run U0BOB admin slack/T0FAKE/C0TOWN/ tasks <all> 2"}
		if called := r.bot.o.Commands.(*commands).list(); !slices.Equal(called, want) {
			t.Errorf("called %q, want %q", called, want)
		}
	})
}

// However much is going on, and however long it takes.
func TestASlashCommandUnderLoad(t *testing.T) {
	t.Parallel()
	c := &commands{slow: 10 * time.Second, answer: Answer{Text: "at last"}}
	in(t, Options{Commands: c}, func(t *testing.T, r *rig) {
		r.run()
		r.inbox.fail(errors.New("redis is away"))
		for i := range 300 {
			r.fake.Say(slackfake.Say{Text: "@bot " + numbered(i)})
		}
		id := r.fake.Slash("U0ANN", town, "/mimikit", "tasks")
		before := r.fake.Acked()
		r.wait(2900 * time.Millisecond)
		if r.fake.Acked() == before {
			t.Error("the command is not acknowledged after 2.9 s")
		}
		r.wait(10 * time.Second)
		got := r.fake.Answers()
		if len(got) != 1 || got[0].Interaction != id || got[0].WithAck || !strings.Contains(got[0].Body, "at last") {
			t.Errorf("answered %+v", got)
		}
		r.inbox.fail(nil)
		r.wait(time.Minute)
	})
}

// Slack drops an acknowledgement of 20 KB and more, so a long answer goes another way.
func TestALongAnswerIsNotLost(t *testing.T) {
	t.Parallel()
	in(t, Options{Commands: &commands{answer: Answer{Text: strings.Repeat("日本語の長い答え。\n", 2000)}}}, func(t *testing.T, r *rig) {
		r.run()
		r.fake.Slash("U0ANN", town, "/mimikit", "tasks")
		r.wait(time.Second)
		got := r.fake.Answers()
		if len(got) != 1 || got[0].WithAck || !strings.Contains(got[0].Body, "does not fit") || r.fake.Unacked() != 0 {
			t.Errorf("%d answers, %d not acknowledged", len(got), r.fake.Unacked())
		}
	})
}

func TestAFailedCommandSaysSo(t *testing.T) {
	t.Parallel()
	in(t, Options{Commands: &commands{err: errors.New("dsn=redis://secret")}}, func(t *testing.T, r *rig) {
		r.run()
		r.fake.Slash("U0ANN", town, "/mimikit", "tasks")
		r.wait(time.Second)
		if got := r.fake.Answers(); len(got) != 1 || !strings.Contains(got[0].Body, "went wrong") || strings.Contains(got[0].Body, "secret") {
			t.Errorf("answered %+v", got)
		}
	})
}

// Slack has no slash commands in threads, so they are written; whoever else is
// there sees nothing of the answer. The command comes as a message and as a
// mention, and is run once.
func TestCommandsInMessages(t *testing.T) {
	t.Parallel()
	c := &commands{answer: Answer{Text: "no tasks"}}
	in(t, Options{Commands: c}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "@bot hello"})
		r.wait(time.Second)
		r.fake.Say(slackfake.Say{Text: "!tasks mine", Thread: root, User: "U0BOB"})
		r.wait(time.Second)
		r.fake.Say(slackfake.Say{Text: "@bot tasks", Thread: root})
		r.wait(time.Second)
		r.fake.Say(slackfake.Say{Text: "tasks", Thread: root})
		r.wait(time.Second)
		r.fake.Say(slackfake.Say{Text: "tasks", Channel: "D0ANN"})
		r.wait(time.Second)
		r.fake.Say(slackfake.Say{Text: "!tasks", User: "U0BOB"}) // not to us
		r.stored("hello", "tasks")
		key := "slack/T0FAKE/C0TOWN/" + root
		want := []string{"run U0BOB admin " + key + " tasks mine", "run U0ANN user " + key + " tasks", "run U0ANN user slack/T0FAKE/D0ANN/ tasks"}
		if got := c.list(); !slices.Equal(got, want) {
			t.Errorf("called %q\nwant %q", got, want)
		}
		list := r.fake.Whispers()
		if len(list) != 2 || list[0].User != "U0BOB" || list[1].User != "U0ANN" || list[0].Thread != root || list[0].Text != "no tasks" {
			t.Errorf("whispered %+v", list)
		}
		if dm := r.fake.Messages("D0ANN", ""); len(dm) != 2 || dm[1].Text != "no tasks" {
			t.Errorf("the DM has %+v", dm)
		}
	})
}

// Two nodes get the same command, one of them as a mention. It is run once.
func TestACommandIsRunOnce(t *testing.T) {
	t.Parallel()
	c := &commands{answer: Answer{Text: "done"}}
	in(t, Options{Commands: c, Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		second := r.newBot(Options{Commands: c, Sockets: 1})
		ctx, cancel := contextOf(t)
		ended := make(chan error, 1)
		go func() { ended <- second.Listener.Run(ctx, r.inbox) }()
		r.wait(time.Second)
		for range 10 {
			r.fake.Say(slackfake.Say{Text: "@bot !retry t1"})
		}
		r.wait(time.Second)
		if n := len(c.list()); n != 10 {
			t.Errorf("it was run %d times, want 10", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		second.Close()
	})
}

// What comes twice, whatever the reason, is run once.
func TestASlashCommandIsRunOnce(t *testing.T) {
	t.Parallel()
	c := &commands{answer: Answer{Text: "done"}}
	in(t, Options{Commands: c, Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		x := slash{Command: "/mimikit", Text: "tasks", UserID: "U0ANN", ChannelID: town, TriggerID: "1.2.3"}
		first, second := r.bot.Listener.slash(x), r.bot.Listener.slash(x)
		if first == nil || second != nil || len(c.list()) != 1 {
			t.Errorf("answered %+v and %+v after %d runs", first, second, len(c.list()))
		}
	})
}

// Answers go to Slack and nowhere else.
func TestAnswersGoToSlackOnly(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		for address, want := range map[string]bool{
			"https://hooks.slack.com/actions/T1/2/3": true, "https://hooks.slack-gov.com/x": true, r.fake.URL() + "x": true,
			"http://hooks.slack.com/x": false, "https://slack.com.evil.example/x": false, "https://evil.example/slack.com": false,
			"https://notslack.com/x": false, "https://slack.com@evil.example/": false, "": false, "://": false,
		} {
			if err := r.bot.api.slackHost(address); (err == nil) != want {
				t.Errorf("%q: %v", address, err)
			}
		}
		if err := r.bot.api.respond(t.Context(), "http://127.0.0.1:1/x", "secret"); err == nil || !strings.Contains(err.Error(), "only Slack's") {
			t.Errorf("an answer to somebody else: %v", err)
		}
	})
}

// A button carries all that is needed. Who pressed it sees the answer, and
// everybody sees what became of the question.
func TestAButton(t *testing.T) {
	t.Parallel()
	c := &commands{answer: Answer{Text: "Noted.", Note: "Ann chose <A> & B"}}
	in(t, Options{Commands: c}, func(t *testing.T, r *rig) {
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "@bot ask me"})
		part := r.reply("q1", "Which?", chat.Button{Label: "A", Value: "answer q1 0"}, chat.Button{Label: "B", Value: "answer q1 1"})[0]
		ts, err := r.post(inThread(town, root), part)
		if err != nil {
			t.Fatal(err)
		}
		id := r.fake.Press("U0ANN", town, ts, "answer q1 0")
		r.wait(time.Second)
		if want := []string{"press U0ANN slack/T0FAKE/C0TOWN/" + root + " answer q1 0"}; !slices.Equal(c.list(), want) {
			t.Errorf("called %q, want %q", c.list(), want)
		}
		if r.fake.Unacked() != 0 {
			t.Error("the press is not acknowledged")
		}
		var replaced, said bool
		for _, a := range r.fake.Answers() {
			if a.Interaction != id {
				t.Errorf("answered %+v", a)
			}
			if strings.Contains(a.Body, `"replace_original":true`) {
				replaced = true
				if strings.Contains(a.Body, `"actions"`) || !strings.Contains(a.Body, "Which?") || !strings.Contains(a.Body, `Ann chose \u0026lt;A\u0026gt; \u0026amp; B`) {
					t.Errorf("the message became %s", a.Body)
				}
			}
			if strings.Contains(a.Body, "Noted.") {
				said = strings.Contains(a.Body, "ephemeral") && strings.Contains(a.Body, root)
			}
		}
		if !replaced || !said {
			t.Errorf("answered %+v", r.fake.Answers())
		}
	})
}

// Many options become a list to choose from.
func TestManyButtonsAreAList(t *testing.T) {
	t.Parallel()
	c := &commands{}
	in(t, Options{Commands: c}, func(t *testing.T, r *rig) {
		r.run()
		var buttons []chat.Button
		for i := range 25 {
			buttons = append(buttons, chat.Button{Label: strings.Repeat("long label ", 10) + numbered(i), Value: "answer q1 " + numbered(i)})
		}
		ts, err := r.post(place(town), r.reply("q1", "Which?", buttons...)[0])
		if err != nil {
			t.Fatal(err)
		}
		if r.fake.Press("U0ANN", town, ts, "answer q1 "+numbered(24)) == "" {
			t.Fatalf("there is no such option: %s", r.fake.Posted()[0].Blocks)
		}
		r.wait(time.Second)
		if got := c.list(); len(got) != 1 || !strings.HasSuffix(got[0], numbered(24)) {
			t.Errorf("called %q", got)
		}
		buttons[3].Value = strings.Repeat("v", 1000) // too long for a list
		if _, err := r.post(place(town), r.reply("q2", "Which?", buttons...)[0]); err != nil {
			t.Error(err)
		}
	})
}

func TestTheShortcut(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.fake.AddChannel(slackfake.Channel{ID: "C0AWAY", Name: "away", Members: []string{"U0ANN"}})
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "the deploy failed with code 3", User: "U0BOB"})
		r.wait(time.Second)
		r.fake.Shortcut("U0ANN", town, root, askAbout)
		m := r.one()
		if m.Author.ID != "U0ANN" || m.Conversation != inThread(town, root) || !m.Addressed || m.ReplyTo != root || m.Text == "" {
			t.Errorf("stored %+v", m)
		}
		if len(m.Attachments) != 1 || !strings.Contains(m.Attachments[0].Text, "Bob: the deploy failed with code 3") {
			t.Errorf("it comes with %+v", m.Attachments)
		}
		r.wait(time.Second)
		r.fake.Say(slackfake.Say{Text: "go on", Thread: root})
		r.wait(time.Second)
		if n := len(r.inbox.all()); n != 2 {
			t.Errorf("%d messages are stored; the thread should be ours", n)
		}
		far := r.fake.Say(slackfake.Say{Channel: "C0AWAY", Text: "elsewhere"})
		r.fake.Shortcut("U0ANN", "C0AWAY", far, askAbout)
		r.wait(time.Second)
		if got := r.fake.Answers(); len(got) != 1 || !strings.Contains(got[0].Body, "Invite me") {
			t.Errorf("answered %+v", got)
		}
	})
}

// home shows one task until it is cancelled.
type home struct{ c *commands }

func (h home) Home(_ context.Context, who Caller) (HomeView, error) {
	v := HomeView{Intro: "Hello <" + who.Author.Name + ">", Sections: []HomeSection{{Title: "Tasks", Empty: "Nothing runs."}, {Title: "More"}}}
	if len(h.c.list()) == 0 {
		v.Sections[0].Rows = []HomeRow{{Title: "Count *sheep* & <!here>", Detail: "3 min", Buttons: []chat.Button{{Label: "Cancel", Value: "cancel t1"}}}}
	}
	return v, nil
}

func TestAppHome(t *testing.T) {
	t.Parallel()
	c := &commands{answer: Answer{Text: "Cancelled."}}
	in(t, Options{Commands: c, Home: home{c}}, func(t *testing.T, r *rig) {
		r.run()
		r.fake.OpenHome("U0ANN")
		r.wait(time.Second)
		for _, want := range []string{`Hello \u0026lt;Ann\u0026gt;`, `*Count ∗sheep∗ \u0026amp; \u0026lt;!here\u0026gt;*`, "3 min", `"value":"cancel t1"`} {
			if !strings.Contains(r.fake.Home("U0ANN"), want) {
				t.Errorf("App Home lacks %s: %s", want, r.fake.Home("U0ANN"))
			}
		}
		if r.fake.PressHome("U0ANN", "cancel t1") == "" {
			t.Fatal("there is no such button")
		}
		r.wait(time.Second)
		got := r.fake.Home("U0ANN")
		if !strings.Contains(got, "Cancelled.") || !strings.Contains(got, "Nothing runs.") || strings.Contains(got, "cancel t1") {
			t.Errorf("App Home became %s", got)
		}
	})
}

func TestAppHomeWithoutData(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		r.fake.OpenHome("U0ANN")
		r.wait(time.Second)
		if got := r.fake.Home("U0ANN"); !strings.Contains(got, "I am Mimikit") {
			t.Errorf("App Home is %q", got)
		}
	})
}

// Interactions that we know nothing of are acknowledged.
func TestStrangeInteractions(t *testing.T) {
	t.Parallel()
	in(t, Options{Commands: &commands{}, Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		for i, p := range []string{
			`{"type":"view_submission","user":{"id":"U0ANN"}}`, `{"type":"block_actions","user":{"id":"U0ANN"},"actions":[{"action_id":"a_link"}]}`,
			`{"type":"message_action","callback_id":"ask_about","user":{"id":"U0ANN"}}`, `{"type":7}`, `[]`, `null`,
		} {
			r.fake.Frame(`{"type":"interactive","envelope_id":"x` + string(rune('0'+i)) + `","payload":` + p + `}`)
		}
		r.fake.Frame(`{"type":"slash_commands","envelope_id":"y","payload":{}}`)
		r.stored()
		if n := r.seen.count("interactive unreadable"); n != 3 {
			t.Errorf("%d were unreadable: %v", n, r.seen.n)
		}
	})
}
