package discord

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

const (
	messagesRoute = "POST /channels/{channel}/messages"
	threadsRoute  = "POST /channels/{channel}/messages/{message}/threads"
)

// kind is what a post's error says can be done.
func kind(t *testing.T, err error) adapters.PostErrorKind {
	t.Helper()
	var p *adapters.PostError
	if !errors.As(err, &p) {
		t.Fatalf("%v is no PostError", err)
	}
	return p.Kind
}

func answers(id string) func(*adapters.Part) { return func(p *adapters.Part) { p.ReplyTo = id } }

func named(reply string) func(*adapters.Part) { return func(p *adapters.Part) { p.ReplyID = reply } }

// post posts within the time that an outbox gives.
func (r *rig) post(d *Bot, c chat.Conversation, p adapters.Part) (string, error) {
	ctx, cancel := r.ctx()
	defer cancel()
	return d.Poster.Post(ctx, c, p)
}

func (r *rig) lookup(d *Bot, c chat.Conversation, p adapters.Part) string {
	r.t.Helper()
	ctx, cancel := r.ctx()
	defer cancel()
	id, err := d.Poster.Lookup(ctx, c, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) dm() chat.Conversation {
	return chat.Conversation{Platform: Platform, Place: r.fake.DirectChannel(r.ann)}
}

func TestPost(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		text := "hello @everyone <@" + r.ann.ID + "> https://example.com"
		// The thread is opened by whoever posts first.
		id, err := r.post(d, r.thread(m.ID), r.part(text, answers(m.ID)))
		if err != nil {
			t.Fatal(err)
		}
		said := r.fake.Said(m.ID)
		if len(said) != 1 || said[0].ID != id {
			t.Fatalf("said %+v", said)
		}
		got := said[0]
		if string(got.Allowed) != `{"parse":[],"replied_user":false}` {
			t.Errorf("allowed mentions %s", got.Allowed)
		}
		if got.Flags != 4 || len(got.Nonce) != 20 || strings.Trim(got.Nonce, "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("flags %d, nonce %q", got.Flags, got.Nonce)
		}
		if thread, _ := r.fake.Thread(m.ID); thread.Name != "hi" {
			t.Errorf("thread %+v", thread)
		}
		// The same part again is the same message.
		again, err := r.post(d, r.thread(m.ID), r.part(text))
		if err != nil || again != id || len(r.fake.Said(m.ID)) != 1 {
			t.Errorf("again %s, %v; want %s and no second message", again, err, id)
		}
		r.fake.Delete(id)
		if again, err = r.post(d, r.thread(m.ID), r.part(text)); err != nil || again != removed {
			t.Errorf("after it was removed: %s, %v", again, err)
		}
	})
}

func TestWhereThreadsCannotBeOpened(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		r.fake.Forbid(r.place, "threads", 50013)
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		p := r.part("hello", answers(m.ID))
		id, err := r.post(d, r.thread(m.ID), p)
		if err != nil {
			t.Fatal(err)
		}
		said := r.fake.Said(r.place)
		if len(said) != 1 || said[0].ID != id || said[0].Reference == nil || said[0].Reference.MessageID != m.ID {
			t.Errorf("said %+v, want an answer to %s in the place", said, m.ID)
		}
		if got := r.lookup(d, r.thread(m.ID), p); got != id {
			t.Errorf("looked up %q, want %s", got, id)
		}
	})
}

func TestPlacesThatAreGone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		open := func() (chat.Conversation, string) {
			t.Helper()
			m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
			if _, err := r.post(d, r.thread(m.ID), r.part("first", named("first "+m.ID))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			return r.thread(m.ID), m.ID
		}
		want := func(c chat.Conversation, k adapters.PostErrorKind, why string) {
			t.Helper()
			_, err := r.post(d, c, r.part("second", named(why)))
			if got := kind(t, err); got != k {
				t.Errorf("%s: %v is of kind %d, want %d", why, err, got, k)
			}
			time.Sleep(10 * time.Second)
		}
		c, id := open()
		r.fake.SetThread(id, true, true)
		want(c, adapters.PlaceGone, "locked")
		c, id = open()
		r.fake.SetThread(id, true, false)
		if _, err := r.post(d, c, r.part("wakes it", named("archived"))); err != nil {
			t.Errorf("an archived thread: %v", err)
		}
		c, id = open()
		r.fake.Forbid(id, "view", 50001)
		want(c, adapters.PlaceGone, "hidden")
		c, id = open()
		r.fake.Forbid(id, "send", 50013)
		want(c, adapters.Misconfig, "forbidden")
		c, id = open()
		r.fake.DeleteChannel(id)
		r.fake.Delete(id)
		want(c, adapters.PlaceGone, "thread and message removed")
		want(chat.Conversation{Platform: Platform, Workspace: r.guild, Place: "12345"}, adapters.PlaceGone, "unknown")
		want(chat.Conversation{Platform: Platform, Place: "../users"}, adapters.PlaceGone, "no id")
		r.fake.Forbid(r.dm().Place, "send", 50007)
		want(r.dm(), adapters.PlaceGone, "direct messages closed")
	})
}

func TestPostErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fault discordfake.Fault
		kind  adapters.PostErrorKind
		wait  time.Duration
	}{
		"rate limit":    {discordfake.Fault{Status: 429, RetryAfter: 40 * time.Second}, adapters.RetryPost, 40 * time.Second},
		"global limit":  {discordfake.Fault{Status: 429, RetryAfter: 3 * time.Second, Global: true}, adapters.RetryPost, 3 * time.Second},
		"server error":  {discordfake.Fault{Status: 502}, adapters.UnknownPost, 0},
		"lost reply":    {discordfake.Fault{LoseReply: true}, adapters.UnknownPost, 0},
		"cut":           {discordfake.Fault{Break: true}, adapters.UnknownPost, 0},
		"hang":          {discordfake.Fault{Hang: true}, adapters.UnknownPost, 0},
		"token":         {discordfake.Fault{Status: 401}, adapters.Misconfig, 0},
		"permission":    {discordfake.Fault{Status: 403, Code: 50013}, adapters.Misconfig, 0},
		"access":        {discordfake.Fault{Status: 403, Code: 50001}, adapters.PlaceGone, 0},
		"bad form":      {discordfake.Fault{Status: 400, Code: 50035}, adapters.BadContent, 0},
		"moderated":     {discordfake.Fault{Status: 400, Code: 200000}, adapters.BadContent, 0},
		"too large":     {discordfake.Fault{Status: 413, Code: 40005}, adapters.BadContent, 0},
		"slow mode":     {discordfake.Fault{Status: 400, Code: 20016}, adapters.RetryPost, 0},
		"cloudflare":    {discordfake.Fault{Status: 403, Code: 40333}, adapters.RetryPost, 0},
		"timeout there": {discordfake.Fault{Status: 504}, adapters.UnknownPost, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				d := r.discord()
				c.fault.Route, c.fault.Times = messagesRoute, 1
				r.fake.Fail(c.fault)
				_, err := r.post(d, r.dm(), r.part("hi"))
				if got := kind(t, err); got != c.kind {
					t.Errorf("%v is of kind %d, want %d", err, got, c.kind)
				}
				var p *adapters.PostError
				if errors.As(err, &p); p.RetryAfter != c.wait {
					t.Errorf("retry after %v, want %v", p.RetryAfter, c.wait)
				}
				if n := len(r.fake.Calls(messagesRoute)); n > 1 {
					t.Errorf("sent %d times", n)
				}
			})
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			d := r.discord()
			_ = r.pipe.Close()
			_, err := r.post(d, r.dm(), r.part("hi"))
			if got := kind(t, err); got != adapters.RetryPost {
				t.Errorf("%v is of kind %d, want one that was not posted", err, got)
			}
		})
	})
}

// A long answer is a file below its beginning, which a look-up knows by its name.
func TestLongAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		text := strings.Repeat("A sentence that is not very long. ", 500)
		parts := d.Poster.Split(chat.Reply{ID: "r", Text: text, CreatedAt: time.Now()})
		if len(parts) != 1 {
			t.Fatalf("%d parts", len(parts))
		}
		r.fake.Fail(discordfake.Fault{Route: messagesRoute, LoseReply: true, Times: 1})
		if _, err := r.post(d, r.dm(), parts[0]); kind(t, err) != adapters.UnknownPost {
			t.Error(err)
		}
		said := r.fake.Said(r.dm().Place)
		if len(said) != 1 || len(said[0].Attachments) != 1 || string(r.fake.File(said[0].Attachments[0])) != text {
			t.Fatalf("said %+v", said)
		}
		if !strings.HasPrefix(said[0].Content, "A sentence") || !strings.Contains(said[0].Content, "file below") {
			t.Errorf("content %q", said[0].Content)
		}
		if id := r.lookup(d, r.dm(), parts[0]); id != said[0].ID {
			t.Errorf("found %q", id)
		}
	})
}

func TestSplitIsPure(t *testing.T) {
	t.Parallel()
	d, err := New(Options{BotToken: "x"})
	if err != nil {
		t.Fatal(err)
	}
	reply := chat.Reply{
		ID: "r", Text: strings.Repeat("word ", 900), Kind: chat.ReplyQuestion, ReplyTo: "7", InputIDs: []string{"i"}, CreatedAt: time.Unix(1, 0),
		Buttons: []chat.Button{{Label: "Yes", Value: "q1:yes", Style: "primary"}, {Label: "No", Value: "q1:no"}},
	}
	a, b := d.Poster.Split(reply), d.Poster.Split(reply)
	if fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 3 {
		t.Fatalf("%d and %d parts", len(a), len(b))
	}
	for i, p := range a {
		if p.Index != i || p.Count != 3 || p.ReplyID != "r" || p.ReplyTo != "7" || p.Kind != chat.ReplyQuestion || len(p.InputIDs) != 1 || !p.At.Equal(reply.CreatedAt) {
			t.Errorf("part %+v", p)
		}
		if (len(p.Buttons) > 0) != (i == 2) {
			t.Errorf("buttons on part %d", i)
		}
	}
	// What cannot be a button is written out.
	reply.Text, reply.Buttons[0].Value = "Choose", strings.Repeat("v", 98)
	if p := d.Poster.Split(reply); len(p) != 1 || len(p[0].Buttons) != 0 || !strings.Contains(p[0].Text, "1. Yes\n2. No") {
		t.Errorf("parts %+v", p)
	}
	for _, text := range []string{"", " \n ", "\x00"} {
		if p := d.Poster.Split(chat.Reply{Text: text}); len(p) != 1 || strings.TrimSpace(p[0].Text) == "" {
			t.Errorf("%q is split into %+v", text, p)
		}
	}
}

func TestButtonsAndSelects(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		for n, want := range map[int]string{
			1: `"custom_id":"mk:v0"`, 5: `"type":2`, 6: `"type":3`, 25: `"type":3`,
		} {
			p := r.part("Choose", named(fmt.Sprint(n)))
			for i := range n {
				p.Buttons = append(p.Buttons, chat.Button{Label: fmt.Sprint("option ", i, strings.Repeat("!", 90)), Value: fmt.Sprint("v", i)})
			}
			id, err := r.post(d, r.dm(), p)
			if err != nil {
				t.Errorf("%d buttons: %v", n, err)
				continue
			}
			if m, _ := r.fake.Message(id); !strings.Contains(string(m.Components), want) {
				t.Errorf("%d buttons: %s", n, m.Components)
			}
		}
	})
}

func TestThreadIsOpenedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d, stop := r.start()
		defer stop()
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		if _, err := r.post(d, r.thread(m.ID), r.part("hello")); err != nil {
			t.Fatal(err)
		}
		r.heard(1)
		made := 0
		for _, c := range r.fake.Calls(threadsRoute) {
			if c.Status == 200 {
				made++
			}
		}
		if made != 1 || len(r.fake.Said(m.ID)) != 1 || len(r.fake.Said(r.place)) != 0 {
			t.Errorf("%d threads, said %+v", made, r.fake.Said(m.ID))
		}
	})
}
