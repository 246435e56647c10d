package slack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// reply makes a reply and its parts.
func (r *rig) reply(id, text string, buttons ...chat.Button) []adapters.Part {
	return r.bot.Poster.Split(chat.Reply{
		ID: id, Kind: chat.ReplyAnswer, Text: text, Buttons: buttons, ReplyTo: "1795255200.000001", CreatedAt: time.Now(),
	})
}

func (r *rig) post(c chat.Conversation, p adapters.Part) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 15*time.Second)
	defer cancel()
	return r.bot.Poster.Post(ctx, c, p)
}

func TestAReplyIsPostedInItsThread(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		root := r.fake.Say(slackfake.Say{Text: "@bot hi"})
		c := inThread(town, root)
		part := r.reply("r1", "**Yes** & <!channel> <@U0ANN> <!DOCTYPE html>\n\n| a | b |\n|---|---|\n| 1 | 2 |", chat.Button{Label: "Cancel", Value: "cmd:cancel t1", Style: "danger"})[0]
		if id, err := r.bot.Poster.Lookup(t.Context(), c, part); id != "" || err != nil {
			t.Errorf("found %q, %v before it was posted", id, err)
		}
		id, err := r.post(c, part)
		if err != nil {
			t.Fatal(err)
		}
		list := r.fake.Messages(town, root)
		if len(list) != 2 || list[1].TS != id {
			t.Fatalf("the thread has %+v", list)
		}
		m := list[1]
		for _, want := range []string{`"type":"markdown"`, `**Yes** \u0026`, "\u2060!channel", "\u2060@U0ANN", `\u003c!DOCTYPE html`, `| 1 | 2 |`, `"value":"cmd:cancel t1"`, `"style":"danger"`} {
			if !strings.Contains(m.Blocks, want) {
				t.Errorf("the blocks lack %s: %s", want, m.Blocks)
			}
		}
		if strings.Contains(m.Text, "<") || !strings.Contains(m.Text, "Yes &amp; ") || !strings.Contains(m.Text, "1 | 2") {
			t.Errorf("the fallback is %q", m.Text)
		}
		if got, err := r.bot.Poster.Lookup(t.Context(), c, part); got != id || err != nil {
			t.Errorf("found %q, %v; it is %s", got, err, id)
		}
		for _, other := range []adapters.Part{{ReplyID: "r1", Index: 1, At: part.At}, {ReplyID: "r2", Index: 0, At: part.At}} {
			if got, err := r.bot.Poster.Lookup(t.Context(), c, other); got != "" || err != nil {
				t.Errorf("part %d of %s: found %q, %v", other.Index, other.ReplyID, got, err)
			}
		}
	})
}

// The answer to a post is lost. The call is not repeated, its outcome is unknown,
// and the look-up finds what it did.
func TestALostAnswerIsLookedUp(t *testing.T) {
	t.Parallel()
	for _, c := range []chat.Conversation{place("D0ANN"), inThread(town, "")} {
		for _, lost := range []slackfake.Fault{{LoseAnswer: true}, {Hang: true}} {
			in(t, Options{}, func(t *testing.T, r *rig) {
				r.addPlaces()
				if c.Place == town {
					c.Thread = r.fake.Say(slackfake.Say{Text: "@bot hi"})
				}
				for range 300 { // others talk on
					r.fake.Say(slackfake.Say{Channel: c.Place, Thread: c.Thread, Text: "chatter", Quiet: true})
				}
				lost.Method = "chat.postMessage"
				r.fake.Inject(lost)
				part := r.reply("r1", "hello")[0]
				_, err := r.post(c, part)
				var pe *adapters.PostError
				if !errors.As(err, &pe) || pe.Kind != adapters.UnknownPost {
					t.Fatalf("the error is %v", err)
				}
				if n := r.fake.Calls("chat.postMessage"); n != 1 {
					t.Errorf("it was posted %d times", n)
				}
				for range 450 {
					r.fake.Say(slackfake.Say{Channel: c.Place, Thread: c.Thread, Text: "chatter", Quiet: true})
				}
				id, err := r.bot.Poster.Lookup(t.Context(), c, part)
				if err != nil || (id != "") != lost.LoseAnswer {
					t.Errorf("found %q, %v", id, err)
				}
			})
		}
	}
}

// Anybody may write the metadata of our messages. Only our own messages count.
func TestForgedMetadataIsNotOurs(t *testing.T) {
	t.Parallel()
	me := Identity{UserID: "U1", BotID: "B1"}
	meta := []byte(`{"event_type":"mimikit_reply","event_payload":{"reply_id":"r1","part":0}}`)
	part := adapters.Part{ReplyID: "r1"}
	for _, c := range []struct {
		m    post
		want bool
	}{
		{post{TS: "1", User: "U1", RawMetadata: meta}, true},
		{post{TS: "1", BotID: "B1", RawMetadata: meta}, true},
		{post{TS: "1", User: "U2", RawMetadata: meta}, false},
		{post{TS: "1", User: "U2", BotID: "B2", RawMetadata: meta}, false},
		{post{TS: "1", User: "U1", RawMetadata: []byte(`{"event_type":"mimikit_reply","event_payload":{"reply_id":"r1"}}`)}, false},
		{post{TS: "1", User: "U1", RawMetadata: []byte(`{"event_type":"x","event_payload":{"reply_id":"r1","part":0}}`)}, false},
		{post{TS: "1", User: "U1"}, false},
	} {
		if got := shows(c.m, me, part) != ""; got != c.want {
			t.Errorf("%+v: %v", c.m, got)
		}
	}
}

func TestFailuresAreSorted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault slackfake.Fault
		want  adapters.PostErrorKind
		after time.Duration
	}{
		{slackfake.Fault{Status: 429, RetryAfter: 7}, adapters.RetryPost, 7 * time.Second},
		{slackfake.Fault{Status: 429}, adapters.RetryPost, 0},
		{slackfake.Fault{Status: http.StatusBadGateway}, adapters.UnknownPost, 0},
		{slackfake.Fault{Error: "internal_error"}, adapters.UnknownPost, 0},
		{slackfake.Fault{Error: "an_error_of_2027"}, adapters.UnknownPost, 0},
		{slackfake.Fault{Error: "ratelimited"}, adapters.RetryPost, 0},
		{slackfake.Fault{Error: "is_archived"}, adapters.PlaceGone, 0},
		{slackfake.Fault{Error: "not_in_channel"}, adapters.PlaceGone, 0},
		{slackfake.Fault{Error: "msg_too_long"}, adapters.BadContent, 0},
		{slackfake.Fault{Error: "token_revoked"}, adapters.Misconfig, 0},
		{slackfake.Fault{Error: "missing_scope"}, adapters.Misconfig, 0},
		{slackfake.Fault{LoseAnswer: true}, adapters.UnknownPost, 0},
	} {
		in(t, Options{}, func(t *testing.T, r *rig) {
			c.fault.Method = "chat.postMessage"
			r.fake.Inject(c.fault)
			_, err := r.post(place(town), r.reply("r1", "hi")[0])
			var pe *adapters.PostError
			if !errors.As(err, &pe) || pe.Kind != c.want || pe.RetryAfter != c.after {
				t.Errorf("%+v: %#v", c.fault, err)
			}
			if n := r.fake.Calls("chat.postMessage"); n != 1 {
				t.Errorf("%+v: %d calls were made", c.fault, n)
			}
		})
	}
}

func TestSlackCannotBeReached(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		part := r.reply("r1", "hi")[0]
		_ = r.wire.Close()
		_, err := r.post(place(town), part)
		var pe *adapters.PostError
		if !errors.As(err, &pe) || pe.Kind != adapters.RetryPost {
			t.Errorf("nothing was sent, but the error is %v", err)
		}
	})
}

// Blocks that Slack refuses are certainly not posted; plain words go instead.
func TestRefusedBlocksBecomeWords(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.fake.Inject(slackfake.Fault{Method: "chat.postMessage", Error: "invalid_blocks"})
		part := r.reply("r1", "1 < 2")[0]
		id, err := r.post(place(town), part)
		if err != nil {
			t.Fatal(err)
		}
		list := r.fake.Posted()
		if len(list) != 1 || list[0].Text != "1 &lt; 2" || list[0].Blocks != "" {
			t.Errorf("posted %+v", list)
		}
		if got, err := r.bot.Poster.Lookup(t.Context(), place(town), part); got != id || err != nil {
			t.Errorf("found %q, %v", got, err)
		}
	})
}

// What is too long for two messages is a file and its beginning.
func TestALongReplyIsAFile(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		root := r.fake.Say(slackfake.Say{Text: "@bot hi"})
		c := inThread(town, root)
		text := strings.Repeat("A line of a long answer, <!here>.\n", 1000)
		list := r.reply("n-01ABC/../x", text, chat.Button{Label: "More", Value: "more"})
		if len(list) != 2 || !isFile(list[0]) || isFile(list[1]) || len(list[0].Buttons) != 0 || len(list[1].Buttons) != 1 {
			t.Fatalf("%d parts: %+v", len(list), list)
		}
		if id, err := r.bot.Poster.Lookup(t.Context(), c, list[0]); id != "" || err != nil {
			t.Errorf("found %q, %v before it was posted", id, err)
		}
		r.fake.Inject(slackfake.Fault{Method: "upload", Status: 500})
		var pe *adapters.PostError
		if _, err := r.post(c, list[0]); !errors.As(err, &pe) || pe.Kind != adapters.RetryPost {
			t.Errorf("before anything could be seen: %v", err)
		}
		r.fake.Inject(slackfake.Fault{Method: "files.completeUploadExternal", LoseAnswer: true})
		if _, err := r.post(c, list[0]); !errors.As(err, &pe) || pe.Kind != adapters.UnknownPost {
			t.Errorf("when the last answer was lost: %v", err)
		}
		id, err := r.bot.Poster.Lookup(t.Context(), c, list[0])
		if err != nil || id == "" {
			t.Errorf("the file was not found: %v", err)
		}
		if _, err := r.post(c, list[1]); err != nil {
			t.Fatal(err)
		}
		name := fileName(list[0])
		if name != "reply-n-01ABC____x-0.md" {
			t.Errorf("the file is called %s", name)
		}
		if got, _ := r.fake.Content(name); got != text {
			t.Errorf("the file has %d bytes, want %d", len(got), len(text))
		}
		shown := r.fake.Messages(town, root)
		if len(shown) != 3 || len(shown[1].Files) != 1 || !strings.Contains(shown[2].Blocks, "whole text is in the file") {
			t.Errorf("the thread has %+v", shown)
		}
	})
}

// The budget has no room: the call is not made, and the outbox learns when.
func TestPostsArePaced(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		var pe *adapters.PostError
		n := 0
		for ; n < 20; n++ {
			if _, err := r.post(place(town), r.reply(numbered(n), "hi")[0]); err != nil {
				if !errors.As(err, &pe) || pe.Kind != adapters.RetryPost || pe.RetryAfter <= 0 || pe.RetryAfter > 10*time.Second {
					t.Fatalf("post %d: %v", n, err)
				}
				break
			}
		}
		if n != 20 { // one a second is waited for within the call
			t.Errorf("only %d posts were made", n)
		}
		r.fake.Inject(slackfake.Fault{Method: "chat.postMessage", Status: 429, RetryAfter: 30})
		if _, err := r.post(place(town), r.reply("a", "hi")[0]); !errors.As(err, &pe) || pe.RetryAfter != 30*time.Second {
			t.Errorf("refused: %v", err)
		}
		calls := r.fake.Calls("chat.postMessage")
		if _, err := r.post(place(town), r.reply("b", "hi")[0]); !errors.As(err, &pe) || pe.RetryAfter < 25*time.Second || r.fake.Calls("chat.postMessage") != calls {
			t.Errorf("while Slack wants to be left alone: %v after %d more calls", err, r.fake.Calls("chat.postMessage")-calls)
		}
		time.Sleep(31 * time.Second)
		if _, err := r.post(place(town), r.reply("b", "hi")[0]); err != nil {
			t.Errorf("after that: %v", err)
		}
	})
}

func TestAQuestionIsEdited(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		part := r.reply("q1", "Which one?", chat.Button{Label: "A", Value: "a"})[0]
		id, err := r.post(place(town), part)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.bot.Poster.Edit(t.Context(), place(town), id, "Which one?\n\n_Ann: A_", nil); err != nil {
			t.Fatal(err)
		}
		m := r.fake.Posted()[0]
		if !m.Edited || strings.Contains(m.Blocks, "actions") || !strings.Contains(m.Blocks, "Ann: A") {
			t.Errorf("it is %+v", m)
		}
		if got, _ := r.bot.Poster.Lookup(t.Context(), place(town), part); got != id {
			t.Error("it cannot be found any more")
		}
	})
}
