package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/discord"
	"mimikit/core/admin"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A guild is a fake Discord with a server, a channel in it and a person.
type guild struct {
	*discordfake.Server
	ann       discordfake.User
	id, place string
	settings  []string // of a bot that is there
}

func guildAt(t *testing.T) *guild {
	t.Helper()
	g := &guild{Server: discordfake.New()}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	g.ann = g.NewUser("ann")
	g.id = g.NewGuild("home", g.ann)
	g.place = g.NewChannel(g.id, "general", discordfake.Text)
	g.settings = []string{"MIMIKIT_DISCORD_TOKEN=" + discordfake.Token, "MIMIKIT_DISCORD_API_URL=" + g.URL(), "MIMIKIT_OUTBOX_POST_TIMEOUT=5s", "MIMIKIT_OUTBOX_LOOKUP_AFTER=6s", "MIMIKIT_ACCESS_MAX_PER_MINUTE=0"}
	return g
}

// said waits until the bot has said just this in a channel or thread.
func (g *guild) said(t *testing.T, channel string, want ...string) {
	t.Helper()
	storetest.Eventually(t, "the answers in "+channel, func() error {
		var got []string
		for _, m := range g.Said(channel) {
			got = append(got, m.Content)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("said %q, want %q", got, want)
		}
		return nil
	})
}

// A direct message is answered there, a mention in a thread of its own, in which
// people go on without mentioning the bot; that it works is shown before.
func TestDiscordTalk(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	g := guildAt(t)
	d := deploy(t, echo, g.settings...)
	node, _ := d.serve()
	dm := g.DirectChannel(g.ann)
	g.Say(dm, g.ann, "say one")
	g.said(t, dm, "You said one")
	if len(g.Typed(dm)) == 0 {
		t.Error("the bot was never seen to type")
	}
	m := g.Say(g.place, g.ann, g.Mention()+" say two")
	g.said(t, m.ID, "You said two") // a thread has the id of the message that opened it
	g.Say(m.ID, g.ann, "say three")
	g.said(t, m.ID, "You said two", "You said three")
	g.Say(g.place, g.ann, "say nothing of this")
	d.record(nil).settled()
	if got := g.Said(g.place); len(got) != 0 {
		t.Errorf("said %q in the channel itself", got[0].Content)
	}
	node.signal(syscall.SIGTERM)
	node.ends(0)
}

// Slash commands are answered to the caller alone; tasks' ids are offered while
// they are typed; a press of Cancel ends a task.
func TestDiscordCommands(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	needSandbox(t)
	g := guildAt(t)
	m := &mind{steps: []llm.ToolCall{tool("exec_shell", map[string]any{"command": "sleep 100"})}, hung: make(chan struct{})}
	d := deploy(t, m.behave, g.settings...)
	d.serve()
	answer := func(token string) discordfake.Interaction {
		t.Helper()
		storetest.Eventually(t, "an answer", func() error {
			if !g.Interaction(token).Done() {
				return errors.New("none yet")
			}
			return nil
		})
		i := g.Interaction(token)
		t.Logf("the first response took %s, and Discord waits for three seconds", i.Answered.Sub(i.At))
		return i
	}
	if i := answer(g.Slash(g.place, g.ann, "mimikit", discordfake.Sub("tasks"))); !i.Ephemeral || !strings.Contains(i.Content, "no tasks") {
		t.Errorf("tasks: %+v", i)
	}
	if i := answer(g.Slash(g.place, g.ann, "mimikit", discordfake.Sub("audit"))); !strings.Contains(i.Content, "Only admins") {
		t.Errorf("audit: %q", i.Content)
	}
	said := g.Say(g.place, g.ann, g.Mention()+" work: wait for a while")
	var shown discordfake.Message
	storetest.Eventually(t, "the progress", func() error {
		for _, x := range g.Said(said.ID) {
			if strings.Contains(x.Content, "⏳") {
				shown = x
				return nil
			}
		}
		return errors.New("none yet")
	})
	var ids []string
	typing := g.Complete(g.place, g.ann, "mimikit", discordfake.Sub("cancel", discordfake.Typing("id", "t")))
	storetest.Eventually(t, "ids while they are typed", func() error {
		if ids = g.Interaction(typing).Choices; len(ids) != 1 {
			return fmt.Errorf("offered %q", ids)
		}
		return nil
	})
	_, custom, _ := strings.Cut(string(shown.Components), `"custom_id":"`)
	custom, _, _ = strings.Cut(custom, `"`)
	answer(g.Press(shown.ID, g.ann, custom))
	storetest.Eventually(t, "the end of the task", func() error {
		var all []string
		for _, x := range g.Said(said.ID) {
			all = append(all, x.Content)
		}
		if text := strings.Join(all, "|"); !strings.Contains(text, "🛑") || !strings.Contains(text, "The task is over") {
			return fmt.Errorf("said %q", text)
		}
		return nil
	})
	if i := answer(g.Slash(g.place, g.ann, "mimikit", discordfake.Sub("task", discordfake.Opt("id", ids[0])))); !strings.Contains(i.Content, "canceled") {
		t.Errorf("task: %q", i.Content)
	}
	if n := g.Synced(); n != 1 {
		t.Errorf("the commands were written %d times, want once", n)
	}
}

// Killed and started again a while later, the bot resumes its session, hears what
// was said meanwhile, and answers it once. The same when Discord has forgotten the
// session.
func TestDiscordAway(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for _, forgotten := range []bool{false, true} {
		t.Run(fmt.Sprintf("forgotten %v", forgotten), func(t *testing.T) {
			t.Parallel()
			g := guildAt(t)
			d := deploy(t, echo, g.settings...)
			node, _ := d.serve()
			dm := g.DirectChannel(g.ann)
			g.Say(dm, g.ann, "say 0")
			g.said(t, dm, "You said 0")
			node.kill()
			for i := 1; i <= 3; i++ {
				g.Say(dm, g.ann, fmt.Sprint("say ", i))
			}
			if forgotten {
				g.ForgetSessions()
			}
			d.serve()
			// What waited together is answered together: the newest is what it echoes.
			storetest.Eventually(t, "an answer to the last", func() error {
				list := g.Said(dm)
				if last := list[len(list)-1].Content; last != "You said 3" {
					return fmt.Errorf("said %q", last)
				}
				return nil
			})
			d.record(nil).settled()
			count := map[string]int{}
			for _, m := range g.Said(dm) {
				if count[m.Content]++; count[m.Content] > 1 {
					t.Errorf("said %q again", m.Content)
				}
			}
			if got := g.Stats(); (got.Resumes > 0 && len(got.Identifies) == 1) == forgotten {
				t.Errorf("%d resumes, %d new sessions", got.Resumes, len(got.Identifies))
			}
		})
	}
}

// Of two nodes one holds the gateway. When it is killed the other takes over
// within a lease, resumes, and nothing is lost or doubled.
func TestDiscordTwoNodes(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	g := guildAt(t)
	settings := append(g.settings, "MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr(), "MIMIKIT_TELLER_DEBOUNCE=0s")
	d := deploy(t, echo, settings...)
	first, _ := d.serve()
	d.with("MIMIKIT_DATA_DIR=" + d.dir + "-second").serve()
	dm := g.DirectChannel(g.ann)
	g.Say(dm, g.ann, "say 0")
	g.said(t, dm, "You said 0")
	first.kill()
	g.Say(dm, g.ann, "say 1")
	g.said(t, dm, "You said 0", "You said 1")
	g.Say(dm, g.ann, "say 2")
	g.said(t, dm, "You said 0", "You said 1", "You said 2")
	// A machine that is too busy to renew a lease of a second costs a further resume.
	if got := g.Stats(); got.Resumes < 1 || len(got.Identifies) != 1 {
		t.Errorf("%d resumes and %d new sessions, want one session that was resumed", got.Resumes, len(got.Identifies))
	}
}

// Killed after Discord has the post and before the node knows: no second post.
func TestDiscordKilledAfterPost(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	g := guildAt(t)
	d := deploy(t, echo, g.settings...)
	node, _ := d.serve()
	dm := g.DirectChannel(g.ann)
	g.Fail(discordfake.Fault{Route: "POST /channels/{channel}/messages", Times: 1, LoseReply: true})
	g.Say(dm, g.ann, "say one")
	g.said(t, dm, "You said one")
	node.kill()
	d.serve()
	d.record(nil).settled()
	g.said(t, dm, "You said one")
}

// What cannot be mended by trying again ends the node with the mend.
func TestDiscordFatal(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for code, want := range map[int]string{4004: "token", 4014: "intent"} {
		g := guildAt(t)
		g.RefuseIdentify(code)
		d := deploy(t, echo, g.settings...)
		_, stderr := d.run(1, "", "serve")
		has(t, strings.ToLower(stderr), want)
		if n := g.Stats().Dials; n != 1 {
			t.Errorf("%d: tried %d times", code, n)
		}
	}
}

func TestDiscordInviteAndDoctor(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	g := guildAt(t)
	d := deploy(t, llmtest.Answers("ready"), g.settings...)
	out, _ := d.run(0, "", "discord", "invite")
	has(t, out, "https://discord.com/oauth2/authorize?", "client_id=", "permissions=", "scope=")
	out, _ = d.run(1, "", "doctor")
	has(t, out, "✗ Discord server home", "View Channels", "→ give them to the bot's role")
	g.Permit(g.id, g.Bot(), 309237746752) // what the link asks for
	out, _ = d.run(0, "", "doctor")
	has(t, out, "✓ Discord bot token", "✓ Discord server home")
	if strings.Contains(out, discordfake.Token) {
		t.Error("the output has the token")
	}
	g.AllowIntents(0)
	out, _ = d.run(1, "", "doctor")
	has(t, out, "✗", "intent", "→")
	_, stderr := d.with("MIMIKIT_DISCORD_TOKEN").run(1, "", "discord", "invite")
	has(t, stderr, "--app", "MIMIKIT_DISCORD_TOKEN")
}

// Who answered is told to all with the name as it is, whatever that name would mean
// in Markdown: the words are the bot's.
func TestNameInANoteIsNoMarkdown(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, asking)
	d.serve()
	d.once("note", "deploy")
	q := d.open("note")
	_, app := d.questions()
	who := q.AskedTo
	who.Name = "[log in](https://evil.example)"
	a, err := discordDoor{door{app: app, name: "discord"}}.Press(t.Context(), discord.Caller{Author: who, Conversation: q.Conversation}, q.Buttons()[0].Value)
	if err != nil || !strings.HasPrefix(a.Note, `\[`) || admin.Unmark(a.Note) != who.Name+" answered: staging" {
		t.Errorf("the note is %q, %v", a.Note, err)
	}
}
