package slack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// streaming makes a rig that streams, and a thread in it.
func streaming(t *testing.T, f func(t *testing.T, r *rig, c chat.Conversation)) {
	t.Helper()
	in(t, Options{Streaming: true}, func(t *testing.T, r *rig) {
		f(t, r, inThread(town, r.fake.Say(slackfake.Say{Text: "@bot tell me", Quiet: true})))
	})
}

// ours lists what the bot shows in a thread.
func (r *rig) ours(c chat.Conversation) []slackfake.Message {
	var list []slackfake.Message
	for _, m := range r.fake.Messages(c.Place, c.Thread) {
		if m.User == slackfake.BotUser {
			list = append(list, m)
		}
	}
	return list
}

// deliver posts a reply as the outbox does: an attempt whose outcome is not known
// is looked up before there is another, by another node if it is told so.
func (r *rig) deliver(p *Poster, c chat.Conversation, reply chat.Reply) {
	r.t.Helper()
	for _, part := range p.Split(reply) {
		for tries := 0; ; tries++ {
			if tries == 20 {
				r.t.Fatal("it is never posted")
			}
			id, err := p.Lookup(r.t.Context(), c, part)
			if err == nil && id != "" {
				break
			}
			if err == nil {
				if _, err = r.attempt(p, c, part); err == nil {
					break
				}
			}
			time.Sleep(20 * time.Second)
		}
	}
}

func (r *rig) attempt(p *Poster, c chat.Conversation, part adapters.Part) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 15*time.Second)
	defer cancel()
	return p.Post(ctx, c, part)
}

// committed checks that a thread shows one message of ours, which is finished and says
// what was committed.
func (r *rig) committed(c chat.Conversation, reply chat.Reply) {
	r.t.Helper()
	list := r.ours(c)
	if len(list) != 1 {
		r.t.Fatalf("the thread has %d messages of ours: %+v", len(list), list)
	}
	m := list[0]
	said := m.Text
	if strings.Contains(m.Blocks, `"markdown"`) {
		said = m.Blocks
	}
	if !strings.Contains(said, reply.Text) || strings.Count(said, reply.Text) != 1 || m.Streaming {
		r.t.Errorf("it shows %+v, want %q", m, reply.Text)
	}
	if id, err := r.bot.Poster.Lookup(r.t.Context(), c, r.bot.Poster.Split(reply)[0]); id != m.TS || err != nil {
		r.t.Errorf("it is found as %q, %v; it is %q", id, err, m.TS)
	}
}

func wording(id, text string) chat.Reply {
	return chat.Reply{ID: id, Kind: chat.ReplyAnswer, Text: text, CreatedAt: time.Now()}
}

// words are written one after the other, half a second apart.
func (s *Stream) say(list ...string) {
	for _, w := range list {
		s.Write(w)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
	}
}

func TestAStreamBecomesTheReply(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
		s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		synctest.Wait()
		if n := len(r.ours(c)); n != 0 {
			t.Errorf("%d messages are shown before there is a text", n)
		}
		s.say("One, ", "two, ", "three <", "!chan", "nel> ", "four.")
		time.Sleep(2 * time.Second)
		list := r.ours(c)
		if len(list) != 1 || !list[0].Streaming || list[0].Rang || !strings.HasPrefix(list[0].Text, "One, two, three") {
			t.Fatalf("meanwhile the thread has %+v", list)
		}
		s.say(" And five,")
		s.Close()
		reply := wording("r1", "One, two, three <!channel> four. And five, and six.")
		reply.Buttons = []chat.Button{{Label: "More", Value: "more"}}
		first := list[0].TS
		r.deliver(r.bot.Poster, c, reply)
		list = r.ours(c)
		if len(list) != 1 || list[0].TS != first || list[0].Rang || list[0].Streaming ||
			list[0].Text != "One, two, three <\u2060!channel> four. And five, and six." || !strings.Contains(list[0].Blocks, `"more"`) {
			t.Errorf("in the end the thread has %+v", list)
		}
		if n := r.fake.Calls("chat.postMessage"); n != 0 {
			t.Errorf("%d messages were posted besides", n)
		}
		if n := r.fake.Calls("chat.appendStream"); n > 5 {
			t.Errorf("it was added to %d times in 6 s", n)
		}
	})
}

// What was committed is not what was streamed: the committed text is the record.
func TestACommittedTextReplacesAnother(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"It is 42.", "You may be sure that it is 42, and nothing else."} {
		streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
			s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
			s.say("I think that ", "it is 41.")
			s.Close()
			reply := wording("r1", text)
			r.deliver(r.bot.Poster, c, reply)
			r.committed(c, reply)
		})
	}
}

// Slack ends a stream after five minutes. We end it before, and post.
func TestALongStreamIsPosted(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
		s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		text := ""
		for range 400 {
			text += "word "
			s.say("word ")
			time.Sleep(500 * time.Millisecond)
		}
		s.Close()
		reply := wording("r1", strings.TrimSpace(text)+" end.")
		r.deliver(r.bot.Poster, c, reply)
		r.committed(c, reply)
		if n := r.seen.count("call chat.appendStream message_not_in_streaming_state"); n != 0 {
			t.Errorf("Slack ended the stream, and we found out %d times", n)
		}
	})
}

// Where it is off, or there is no thread, nothing is shown and nothing is asked.
func TestStreamingIsAnOption(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		c := inThread(town, r.fake.Say(slackfake.Say{Text: "@bot hi"}))
		s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		s.say("hello", " there")
		s.Close()
		if len(r.ours(c)) != 0 || r.fake.Calls("chat.startStream") != 0 {
			t.Errorf("the thread has %+v", r.ours(c))
		}
	})
	in(t, Options{Streaming: true}, func(t *testing.T, r *rig) {
		r.addPlaces()
		s := r.bot.Poster.Stream(t.Context(), place("D0ANN"), "r1", "U0ANN")
		s.say("hello", " there")
		s.Close()
		if r.fake.Calls("chat.startStream") != 0 {
			t.Error("a stream was begun outside of a thread")
		}
	})
}

// A turn that ends without this reply leaves nothing behind.
func TestAStreamIsTakenBack(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
		s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		s.say("I begin ", "to say")
		for range 2 {
			if err := r.bot.Poster.Unstream(t.Context(), c, "r1"); err != nil {
				t.Fatal(err)
			}
		}
		s.Write("nobody sees this")
		if list := r.ours(c); len(list) != 0 {
			t.Errorf("the thread has %+v", list)
		}
	})
}

// A model call is repeated. The second wording replaces the first.
func TestAStreamBeginsAnew(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
		one := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		one.say("First try, ", "broken off")
		two := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		two.say("Second ", "try, ", "which ", "works")
		two.Close()
		reply := wording("r1", "Second try, which works.")
		r.deliver(r.bot.Poster, c, reply)
		r.committed(c, reply)
		one.Close()
	})
}

// What is committed is too long for one message.
func TestALongTextIsNotStreamedToItsEnd(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
		s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		line := strings.Repeat("All work and no play. ", 50) + "\n\n"
		for range 12 {
			s.say(line)
			time.Sleep(time.Second)
		}
		s.Close()
		if list := r.ours(c); len(list) != 1 || len(list[0].Text) > maxPart || len(list[0].Text) < maxPart*3/4 {
			t.Errorf("before the end %d bytes are shown", len(list[0].Text))
		}
		reply := wording("r1", strings.TrimSpace(strings.Repeat(line, 12)))
		r.deliver(r.bot.Poster, c, reply)
		list := r.ours(c)
		all := ""
		for _, m := range list {
			if m.Streaming {
				t.Errorf("a stream is left: %+v", m)
			}
			all += m.Blocks + m.Text
		}
		if len(list) != 2 {
			t.Errorf("%d messages are shown, want 2 parts", len(list))
		}
	})
}

// What is committed becomes a file. The beginning that was streamed goes.
func TestAStreamBecomesAFile(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
		line := strings.Repeat("All work and no play. ", 50) + "\n\n"
		s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		s.say(line, line, line)
		s.Close()
		r.deliver(r.bot.Poster, c, wording("r1", strings.Repeat(line, 40)))
		if list := r.ours(c); len(list) != 2 || len(list[0].Files) != 1 || list[1].Streaming {
			t.Errorf("the thread has %+v", list)
		}
	})
}

// The process dies at every step of a stream, or the step's answer is lost. Another
// one posts what was committed, once, and nothing else of ours is left.
func TestAStreamDiesAtEachStep(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]slackfake.Fault{
		"before it begins":              {Method: "chat.startStream", LoseCall: true},
		"when it has begun":             {Method: "chat.startStream", LoseAnswer: true},
		"before the first text":         {Method: "chat.appendStream", LoseCall: true},
		"after the first text":          {Method: "chat.appendStream", LoseAnswer: true},
		"before the second text":        {Method: "chat.appendStream", LoseCall: true, After: 1},
		"after the second text":         {Method: "chat.appendStream", LoseAnswer: true, After: 1},
		"before the end":                {Method: "chat.stopStream", LoseCall: true},
		"after the end":                 {Method: "chat.stopStream", LoseAnswer: true},
		"in the clearing":               {Method: "chat.delete", LoseAnswer: true},
		"before the clearing":           {Method: "chat.delete", LoseCall: true},
		"Slack ends it":                 {Method: "auth.test", After: 100},
		"Slack ends it before the end":  {Method: "auth.test", After: 100},
		"Slack has no room for it":      {Method: "chat.startStream", Status: 429, RetryAfter: 2},
		"Slack has no room for more":    {Method: "chat.appendStream", Status: 429, RetryAfter: 2, After: 1},
		"Slack has no room for its end": {Method: "chat.stopStream", Status: 429, RetryAfter: 2},
		"Slack does not know it":        {Method: "chat.startStream", Error: "unknown_method"},
		"nothing":                       {Method: "auth.test", After: 100},
	} {
		for _, dies := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " and it dies"}[dies], func(t *testing.T) {
				t.Parallel()
				streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
					r.fake.Inject(f)
					ctx, kill := context.WithCancelCause(t.Context())
					s := r.bot.Poster.Stream(ctx, c, "r1", "U0ANN")
					for i, w := range []string{"One, ", "two, ", "three, ", "four, "} {
						if i == 2 && name == "Slack ends it" {
							r.fake.EndStreams()
						}
						s.say(w)
						time.Sleep(time.Second)
					}
					if name == "Slack ends it before the end" {
						r.fake.EndStreams()
					}
					reply := wording("r1", "One, two, three, four, five.")
					poster := r.bot.Poster
					if dies {
						kill(errors.New("kill -9"))
						other := r.newBot(Options{Streaming: true})
						defer other.Close()
						poster = other.Poster
					} else {
						s.Close()
					}
					r.deliver(poster, c, reply)
					r.committed(c, reply)
					posts, starts := r.fake.Calls("chat.postMessage"), r.fake.Calls("chat.startStream")
					switch {
					case name == "after the end" && !dies && posts != 0:
						t.Error("a stream that was finished is posted again")
					case name == "Slack has no room for it" && starts < 2:
						t.Error("a stream that could not begin never did")
					case name == "Slack has no room for more" && !dies && posts != 0:
						t.Error("a stream that had to wait was given up")
					}
					kill(nil)
				})
			})
		}
	}
}

// A view that cannot be removed does not hold up the record.
func TestAStreamThatStaysHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for _, f := range []slackfake.Fault{
		{Method: "chat.delete", Error: "cant_delete_message", Times: 100}, {Method: "chat.delete", Error: "an_error_of_2027", Times: 100},
		{Method: "chat.stopStream", Error: "an_error_of_2027", Times: 100},
	} {
		streaming(t, func(t *testing.T, r *rig, c chat.Conversation) {
			s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
			s.say("I think that ", "it is 41.")
			s.Close()
			r.fake.Inject(f)
			part := r.bot.Poster.Split(wording("r1", "It is 42."))[0]
			id, err := r.post(c, part)
			if err != nil || id == "" {
				t.Fatalf("%+v: %q, %v", f, id, err)
			}
			list := r.ours(c)
			if last := list[len(list)-1]; last.TS != id || !strings.Contains(last.Blocks, "It is 42.") {
				t.Errorf("%+v: the thread has %+v", f, list)
			}
		})
	}
}

// While what keeps the notes is away, nothing is posted over a stream.
func TestAStreamWithoutNotes(t *testing.T) {
	t.Parallel()
	notes := &awayNotes{}
	in(t, Options{Streaming: true}, func(t *testing.T, r *rig) {
		notes.Notes = r.mem
		r.bot.o.Notes = notes
		c := inThread(town, r.fake.Say(slackfake.Say{Text: "@bot tell me", Quiet: true}))
		notes.away = true
		s := r.bot.Poster.Stream(t.Context(), c, "r1", "U0ANN")
		s.say("I think ", "so")
		s.Close()
		if len(r.ours(c)) != 0 {
			t.Errorf("the thread has %+v", r.ours(c))
		}
		part := r.bot.Poster.Split(wording("r1", "It is 42."))[0]
		var pe *adapters.PostError
		if _, err := r.post(c, part); !errors.As(err, &pe) || pe.Kind != adapters.RetryPost {
			t.Errorf("posting ends with %v", err)
		}
		notes.away = false
		if _, err := r.post(c, part); err != nil || len(r.ours(c)) != 1 {
			t.Errorf("then it ends with %v, and the thread has %+v", err, r.ours(c))
		}
	})
}

type awayNotes struct {
	Notes
	away bool
}

var errAway = errors.New("redis is away")

func (n *awayNotes) Note(ctx context.Context, key string) (string, error) {
	if n.away {
		return "", errAway
	}
	return n.Notes.Note(ctx, key)
}

func (n *awayNotes) SetNote(ctx context.Context, key, text string, ttl time.Duration) error {
	if n.away {
		return errAway
	}
	return n.Notes.SetNote(ctx, key, text, ttl)
}

func TestSteady(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "abc": "abc", "a <": "a ", "a <!cha": "a ", "a < b and more": "a < b and more", "a <!channel> b": "a <!channel> b",
		"é": "é", "a\xc3": "a", "a\xe6\x97": "a", "a\xf0\x9f\x98": "a", "日": "日", "\xff": "\xff",
	} {
		if got := steady(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
