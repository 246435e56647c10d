package discord

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

func TestDirectMessages(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		dm := r.fake.DirectChannel(r.ann)
		m := r.fake.Say(dm, r.ann, "hello <@"+r.bob.ID+"> :)")
		got := r.heard(1)[0]
		want := adapters.Message{
			Conversation: chat.Conversation{Platform: "discord", Place: dm}, Kind: chat.KindMessage, Message: m.ID,
			Author: chat.Author{ID: r.ann.ID, Name: "ann", Role: chat.RoleUser}, Text: "hello @bob :)", Addressed: true, At: discordfake.TimeOf(m.ID), Received: got.Received,
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || got.Received.IsZero() {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestMentionsOpenThreads(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		r.fake.Say(r.place, r.ann, "not for the bot")
		from := time.Now()
		m := r.fake.Say(r.place, r.ann, r.mentioned("what is **up**?"))
		got := r.heard(1)[0]
		if got.Conversation != r.thread(m.ID) || got.Text != "what is **up**?" || !got.Addressed {
			t.Errorf("got %+v", got)
		}
		thread, ok := r.fake.Thread(m.ID)
		if !ok || thread.Name != "what is up ?" && thread.Name != "what is up?" {
			t.Errorf("thread %+v", thread)
		}
		if s := r.reactions(m.ID); s != signHeard {
			t.Errorf("signs %q, want the one that it was heard", s)
		}
		if typed := r.fake.Typed(m.ID); len(typed) != 1 || typed[0].Sub(from) > time.Second {
			t.Errorf("typed %v after it was said at %v", typed, from)
		}
		// In the thread no mention is needed.
		r.fake.Say(m.ID, r.bob, "and me?")
		if got := r.heard(2)[1]; got.Conversation != r.thread(m.ID) || got.Author.Name != "bob" || !got.Addressed {
			t.Errorf("got %+v", got)
		}
	})
}

// What is no input, and why.
func TestGuards(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		other, webhook := r.fake.NewBot("other"), discordfake.User{ID: "5", Username: "hook"}
		refused := r.fake.NewUser("mallory")
		_, stop := r.start(func(o *Options) {
			o.Refuse = func(p Person, _ chat.Conversation) string {
				if p.Name == "mallory" {
					return "no"
				}
				return ""
			}
		})
		defer stop()
		foreign := r.fake.NewThread(r.place, "others", r.bob)
		r.fake.Say(r.place, r.ann, "hi")
		r.fake.Say(r.place, r.ann, "@everyone <@"+r.bob.ID+">")
		r.fake.Say(foreign, r.ann, "among us")
		r.fake.Say(r.place, other, r.mentioned("loop"))
		r.fake.Say(r.place, r.fake.Bot(), r.mentioned("me"))
		r.fake.Say(r.place, webhook, r.mentioned("hook"), func(m *discordfake.Message) { m.WebhookID = "5" })
		r.fake.Say(r.place, r.ann, r.mentioned("pinned"), func(m *discordfake.Message) { m.Type = 6 })
		r.fake.Say(r.place, refused, r.mentioned("let me"))
		by := r.fake.Say(r.place, r.bob, "someone's words")
		r.fake.Say(r.place, r.ann, "I answer bob", r.fake.Replying(by.ID, true))
		r.fake.Say(r.fake.DirectChannel(r.ann), r.ann, "")
		r.quiet()
		if n := r.seen[Ignored]; n < 10 {
			t.Errorf("%d events counted as ignored", n)
		}
	})
}

func TestOtherBotsMayBeAllowed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start(func(o *Options) { o.AllowBot = func(string) bool { return true } })
		defer stop()
		r.fake.Say(r.place, r.fake.NewBot("other"), r.mentioned("hi"))
		if got := r.heard(1)[0]; !got.Author.Bot {
			t.Errorf("got %+v", got)
		}
	})
}

// A mention in a thread of others makes the bot take part, and tells it what was
// said before.
func TestCalledIntoAThread(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		thread := r.fake.NewThread(r.place, "plans", r.bob)
		r.fake.Say(thread, r.bob, "shall we go on Monday?")
		r.fake.Say(thread, r.ann, "or on Tuesday")
		r.fake.Say(thread, r.bob, r.mentioned("what do you think"))
		got := r.heard(1)[0]
		if got.Conversation != r.thread(thread) {
			t.Errorf("conversation %v", got.Conversation)
		}
		if len(got.Attachments) != 1 || got.Attachments[0].Text != "bob: shall we go on Monday?\nann: or on Tuesday" {
			t.Errorf("attachments %+v", got.Attachments)
		}
		r.fake.Say(thread, r.ann, "thanks")
		if got := r.heard(2)[1]; len(got.Attachments) != 0 || got.Conversation != r.thread(thread) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestForumPosts(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		forum := r.fake.NewChannel(r.guild, "questions", discordfake.Forum)
		post := r.fake.NewThread(forum, "how?", r.ann)
		r.fake.Say(post, r.ann, r.mentioned("how does it work?"))
		want := chat.Conversation{Platform: "discord", Workspace: r.guild, Place: forum, Thread: post}
		if got := r.heard(1)[0]; got.Conversation != want {
			t.Errorf("conversation %v, want %v", got.Conversation, want)
		}
	})
}

func TestReplyMode(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d, stop := r.start(func(o *Options) { o.Mode = PlainReply })
		defer stop()
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		first := r.heard(1)[0]
		if first.Conversation != r.thread(chainMark+m.ID) {
			t.Errorf("conversation %v", first.Conversation)
		}
		ctx, cancel := r.ctx()
		defer cancel()
		id, err := d.Poster.Post(ctx, first.Conversation, r.part("hello", func(p *adapters.Part) { p.ReplyTo = m.ID }))
		if err != nil {
			t.Fatal(err)
		}
		if said := r.fake.Said(r.place); len(said) != 1 || said[0].Reference == nil || said[0].Reference.MessageID != m.ID {
			t.Errorf("said %+v", said)
		}
		// An answer to the answer is the same conversation, also without a ping.
		again := r.fake.Say(r.place, r.bob, "and then?", r.fake.Replying(id, false))
		if got := r.heard(2)[1]; got.Conversation != first.Conversation || got.ReplyTo != id {
			t.Errorf("got %+v, want it in %v", got, first.Conversation)
		}
		id, err = d.Poster.Post(ctx, first.Conversation, r.part("then this", func(p *adapters.Part) { p.ReplyID, p.ReplyTo = "reply-2", again.ID }))
		if err != nil {
			t.Fatal(err)
		}
		r.fake.Say(r.place, r.ann, "ok", r.fake.Replying(id, true))
		if got := r.heard(3)[2]; got.Conversation != first.Conversation {
			t.Errorf("got %+v, want it in %v", got, first.Conversation)
		}
		other := r.fake.Say(r.place, r.bob, r.mentioned("something else"))
		if got := r.heard(4)[3]; got.Conversation != r.thread(chainMark+other.ID) {
			t.Errorf("got %+v, want a conversation of its own", got)
		}
		if _, ok := r.fake.Thread(m.ID); ok {
			t.Error("a thread was opened")
		}
	})
}

func TestOffMode(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start(func(o *Options) { o.Mode = Off })
		defer stop()
		r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		r.quiet()
		r.fake.Say(r.fake.NewThread(r.place, "t", r.ann), r.ann, r.mentioned("hi"))
		r.heard(1)
	})
}

// Voice channels have a chat, but no threads.
func TestPlacesWithoutThreads(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		voice := r.fake.NewChannel(r.guild, "voice", discordfake.Voice)
		m := r.fake.Say(voice, r.ann, r.mentioned("hi"))
		if got := r.heard(1)[0]; got.Conversation.Thread != chainMark+m.ID || got.Conversation.Place != voice {
			t.Errorf("got %+v", got)
		}
	})
}

func TestEditsAndRemovals(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		m := r.fake.Say(r.place, r.ann, r.mentioned("wat?"))
		r.heard(1)
		r.fake.Unfurl(m.ID)
		r.quiet()
		r.fake.Edit(m.ID, r.mentioned("what?"))
		e := r.heard(2)[1]
		if e.Kind != chat.KindEdit || e.Edit == "" || e.Text != "what?" || e.Conversation != r.thread(m.ID) || e.Addressed || e.Message != m.ID {
			t.Errorf("edit %+v", e)
		}
		// An edit that first adds the mention is addressed.
		late := r.fake.Say(r.place, r.ann, "what time is it?")
		r.quiet()
		r.fake.Edit(late.ID, r.mentioned("what time is it?"))
		e = r.heard(3)[2]
		if e.Kind != chat.KindEdit || !e.Addressed || e.Conversation != r.thread(late.ID) {
			t.Errorf("edit %+v", e)
		}
		a, b := r.fake.Say(m.ID, r.ann, "one"), r.fake.Say(m.ID, r.bob, "two")
		r.heard(5)
		r.fake.Delete(a.ID, b.ID)
		r.fake.Delete(m.ID)
		r.fake.Delete(r.fake.Say(r.place, r.ann, "nobody heard this").ID)
		all := r.heard(8)
		for i, id := range []string{a.ID, b.ID, m.ID} {
			got := all[5+i]
			if got.Kind != chat.KindDelete || got.Message != id || got.Conversation != r.thread(m.ID) || got.At.IsZero() {
				t.Errorf("removal %+v, want that of %s", got, id)
			}
		}
	})
}

func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		for i, text := range []string{r.mentioned("Stop!"), r.mentioned("!stop"), r.mentioned("stop the press")} {
			r.fake.Say(r.place, r.ann, text)
			want := chat.KindStop
			if i == 2 {
				want = chat.KindMessage
			}
			if got := r.heard(i + 1)[i]; got.Kind != want {
				t.Errorf("%q is %s, want %s", text, got.Kind, want)
			}
		}
		if r.inbox.stops != 2 {
			t.Errorf("%d stops, want 2", r.inbox.stops)
		}
	})
}

func TestWhatComesAlong(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		by := r.fake.Say(r.place, r.bob, "the build is red")
		r.fake.Say(r.place, r.ann, r.fake.Mention(), r.fake.Replying(by.ID, false),
			r.fake.Attaching("log.txt", "text/plain", []byte("line 1")),
			r.fake.Attaching("photo.png", "image/png", []byte("png")),
			func(m *discordfake.Message) { m.Snapshots = []string{"forwarded words"} })
		got := r.heard(1)[0]
		var texts []string
		for _, a := range got.Attachments {
			texts = append(texts, a.Name+"="+a.Text)
		}
		want := []string{"log.txt=line 1", "photo.png=", "the message that this answers, by bob=the build is red", "a forwarded message=forwarded words"}
		if !slices.Equal(texts, want) {
			t.Errorf("attachments %q, want %q", texts, want)
		}
		if got.ReplyTo != by.ID {
			t.Errorf("reply to %q", got.ReplyTo)
		}
	})
}

func TestWithoutMessageContent(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.AllowIntents(0)
		_, stop := r.start(func(o *Options) { o.NoContent = true })
		defer stop()
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		r.heard(1)
		r.fake.Say(m.ID, r.ann, "unseen")
		r.quiet()
		r.fake.Say(m.ID, r.ann, r.mentioned("seen"))
		r.fake.Say(r.fake.DirectChannel(r.ann), r.ann, "seen too")
		r.heard(3)
	})
}

// What is refused is told to the person, and is not offered again.
func TestRefusals(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.inbox.fault = func(adapters.Message) error {
			return fmt.Errorf("take: %w", refusedError("Too many messages wait here."))
		}
		_, stop := r.start()
		defer stop()
		dm := r.fake.DirectChannel(r.ann)
		m := r.fake.Say(dm, r.ann, "hi")
		r.await("the reason", func() bool { return len(r.fake.Said(dm)) == 1 })
		if said := r.fake.Said(dm)[0]; said.Content != "Too many messages wait here." {
			t.Errorf("said %+v", said)
		}
		if s := r.reactions(m.ID); s != signFailed {
			t.Errorf("signs %q", s)
		}
		if s := r.fake.Stats(); s.Dials != 1 {
			t.Errorf("%d dials: a refusal is no fault of the line", s.Dials)
		}
		// Told once, however often it comes, and also when it was missed.
		r.fake.Redeliver(m.ID)
		time.Sleep(10 * time.Minute)
		stop()
		r.fake.ForgetSessions()
		missed := r.fake.Say(dm, r.ann, "hi?")
		_, stop = r.start()
		defer stop()
		r.await("the reason", func() bool { return len(r.fake.Said(dm)) == 2 })
		time.Sleep(time.Minute)
		if said := r.fake.Said(dm); len(said) != 2 || said[1].Reference.MessageID != missed.ID {
			t.Errorf("said %+v", said)
		}
	})
}

// Who may manage the guild is an admin, in a message as well as in an interaction,
// and no more as soon as that ends. In a direct message nobody is.
func TestRolesInMessages(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		n := 0
		role := func(channel string, by discordfake.User) chat.Role {
			t.Helper()
			r.fake.Say(channel, by, r.mentioned("hi"))
			n++
			return r.heard(n)[n-1].Author.Role
		}
		want := func(what string, got, want chat.Role) {
			t.Helper()
			if got != want {
				t.Errorf("%s: role %v, want %v", what, got, want)
			}
		}
		want("a member", role(r.place, r.ann), chat.RoleUser)
		r.fake.Permit(r.guild, r.ann, 1<<5)
		want("who may manage the server", role(r.place, r.ann), chat.RoleAdmin)
		want("in a direct message", role(r.dm().Place, r.ann), chat.RoleUser)
		want("somebody else", role(r.place, r.bob), chat.RoleUser)
		r.fake.Permit(r.guild, r.ann, 1<<11)
		want("whose role was taken away", role(r.place, r.ann), chat.RoleUser)
		r.fake.Own(r.guild, r.bob)
		want("the owner", role(r.place, r.bob), chat.RoleAdmin)
		// What cannot be found out gives no rights, and keeps nobody from being heard.
		r.fake.Permit(r.guild, r.ann, 1<<3)
		r.fake.Fail(discordfake.Fault{Route: "GET /guilds/{guild}", Status: 500, Times: 1})
		want("when Discord does not say", role(r.place, r.ann), chat.RoleUser)
		time.Sleep(2 * time.Minute)
		want("when it says so again", role(r.place, r.ann), chat.RoleAdmin)
	})
}

// What was said in a thread before is told once, with an input that was stored.
func TestWhatWasSaidBeforeIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		fails := 2
		r.inbox.fault = func(adapters.Message) error {
			if fails--; fails >= 0 {
				return errors.New("away")
			}
			return nil
		}
		_, stop := r.start()
		thread := r.fake.NewThread(r.place, "plans", r.bob)
		r.fake.Say(thread, r.bob, "Monday?")
		r.fake.Say(thread, r.ann, r.mentioned("what do you think"))
		if got := r.heard(1)[0]; len(got.Attachments) != 1 || got.Attachments[0].Text != "bob: Monday?" {
			t.Errorf("attachments %+v", got.Attachments)
		}
		stop()
		_, stop = r.start() // on another node
		defer stop()
		r.fake.Say(thread, r.bob, "well?")
		if got := r.heard(2)[1]; len(got.Attachments) != 0 {
			t.Errorf("attachments %+v", got.Attachments)
		}
	})
}

// A message that is a command is carried out once, whichever nodes see it, also
// when it was missed; when there is no room for it, later rather than not at all.
func TestCommandsInMessages(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{say: Answer{Text: "ok"}}
		_, stop := r.start(with(c))
		m := r.fake.Say(r.place, r.ann, r.mentioned("tasks"))
		r.await("an answer", func() bool { return len(r.fake.Said(r.place)) == 1 })
		r.fake.Redeliver(m.ID)
		dm := r.dm().Place
		r.fake.Say(dm, r.ann, "!one")
		r.await("an answer", func() bool { return len(r.fake.Said(dm)) == 1 })
		stop()
		r.fake.ForgetSessions()
		r.fake.Say(dm, r.ann, "!two")
		_, stop = r.start(with(c))
		defer stop()
		r.await("the missed command", func() bool { return len(r.fake.Said(dm)) == 2 })
		r.fake.Redeliver(m.ID)
		r.quiet()
		if got := c.was(); !slices.Equal(got, []string{"tasks", "one", "two"}) {
			t.Errorf("carried out %q", got)
		}
		if n := len(r.inbox.all()); n != 0 {
			t.Errorf("%d of them were inputs, too", n)
		}
		c.slow = time.Minute
		for i := range laneMost[laneAct] + 3 {
			r.fake.Say(r.fake.DirectChannel(r.fake.NewUser(fmt.Sprint("u", i))), r.bob, "!more")
		}
		r.await("all of them", func() bool { return len(c.was()) == 3+laneMost[laneAct]+3 })
	})
}
