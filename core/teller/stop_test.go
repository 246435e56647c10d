package teller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm/llmtest"
)

func stopAt(ms int, n string) *channel.Entry {
	return in(ms, "m"+n, "stop", as(chat.KindStop, "i"+n))
}

func digested(ms int) *channel.Entry {
	return entry(channel.TellerDigest, ms, &chat.TellerDigest{
		ID: "d-1", Summary: "s",
		Inputs:  []chat.UserInput{{ID: "i5", Message: "m5", Author: ann, Text: "five", At: after(ms)}},
		Results: []chat.TaskResult{{ID: "w1", Title: "Read", Status: chat.TaskSucceeded, Output: "out", CompletedAt: after(ms + 1)}},
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	unread := in(0, "m8", "x")
	unread.Value = nil
	for _, c := range []struct {
		name    string
		entries []*channel.Entry
		text    string
		ids     string
		results string
		replyTo string
		history string // without the reply's own line
	}{
		{
			"nothing to stop", []*channel.Entry{stopAt(0, "1")},
			"There was nothing to stop.", "i1", "", "m1", "user i1/stopped stop",
		},
		{
			"stop said twice", []*channel.Entry{stopAt(0, "1"), stopAt(1, "2")},
			"There was nothing to stop.", "i1 i2", "", "m2", "user i1/stopped stop\nuser i2/stopped stop",
		},
		{
			"inputs that waited", []*channel.Entry{in(0, "m1", "a"), in(1, "m2", "b"), stopAt(2, "3")},
			"Stopped. I dropped the 2 messages that I had not answered yet.", "i1 i2 i3", "", "m3",
			"user i1/stopped a\nuser i2/stopped b\nuser i3/stopped stop",
		},
		{
			"a digest: its inputs and results are new to the history", []*channel.Entry{digested(0), stopAt(60, "6")},
			"Stopped. I dropped the message that I had not answered yet.", "i5 i6", "w1", "m6",
			"user i5/stopped five\nsystem w1/ Task w1 (Read) succeeded\nout\nuser i6/stopped stop",
		},
		{
			"a decision: its inputs are in the history", []*channel.Entry{decided(), stopAt(60, "6")},
			"Stopped. I dropped the 2 messages that I had not answered yet.", "i2 i1 i6", "", "m6",
			"user i6/stopped stop",
		},
		{
			"a decision on results", []*channel.Entry{entry(channel.ThinkerDecision, 0, &chat.ThinkerDecision{ID: "t-2", ResultIDs: []string{"w2"}}), stopAt(60, "6")},
			"Stopped.", "i6", "w2", "m6", "user i6/stopped stop",
		},
		{
			"what was taken back before is not kept", []*channel.Entry{in(0, "m1", "a"), in(1, "m1", "", as(chat.KindDelete, "x1")), stopAt(2, "3")},
			"Stopped.", "i1 x1 i3", "", "m3", "user i3/stopped stop",
		},
		{
			"edits count", []*channel.Entry{in(0, "m1", "a"), in(1, "m1", "A", as(chat.KindEdit, "e1")), stopAt(2, "3")},
			"Stopped. I dropped the message that I had not answered yet.", "i1 e1 i3", "", "m3", "user i1/stopped A\nuser i3/stopped stop",
		},
		{
			"a stop by a button has no message", []*channel.Entry{in(0, "m1", "a"), in(60, "", "", as(chat.KindStop, "s1"))},
			"Stopped. I dropped the message that I had not answered yet.", "i1 s1", "", "m1", "user i1/stopped a\nuser s1/stopped ",
		},
		{
			"an entry that cannot be read", []*channel.Entry{unread, stopAt(2, "3")},
			"Stopped.", "i8 i3", "", "m3", "user i3/stopped stop",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.NewScripted()
			fx, err := setup(t, m, always).StopLoop().Step(context.Background(), work(c.entries...))
			if err != nil {
				t.Fatal(err)
			}
			r, pub := published[chat.Reply](t, fx, channel.TellerReply, "reply")
			if r.Text != c.text || r.Kind != chat.ReplyStopped || r.ReplyTo != c.replyTo || r.Conversation != thread || pub.Kind != "stopped" {
				t.Errorf("reply is %+v", r)
			}
			if got := strings.Join(r.InputIDs, " "); got != c.ids || !cmp.Equal(r.InputIDs, pub.InputIDs) {
				t.Errorf("carries %q, published with %q, want %q", got, pub.InputIDs, c.ids)
			}
			if got := strings.Join(r.ResultIDs, " "); got != c.results {
				t.Errorf("results %q, want %q", got, c.results)
			}
			if diff := cmp.Diff(c.history+"\nassistant "+r.ID+"/ "+c.text, brief(lines(t, fx))); diff != "" {
				t.Errorf("history, -want +got:\n%s", diff)
			}
			if n := len(m.Requests()); n != 0 {
				t.Errorf("%d model calls", n)
			}
		})
	}
}

func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	var entries []*channel.Entry
	for range 500 {
		entries = append(entries, in(0, "", strings.Repeat("x", chat.MaxText)))
	}
	fx, err := setup(t, llmtest.Instant{}).StopLoop().Step(context.Background(), work(append(entries, stopAt(1, "1"))...))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, v := range fx.History {
		size += len(v)
	}
	if size > 512<<10 || len(fx.History) != 502 {
		t.Errorf("%d lines of %d bytes", len(fx.History), size)
	}
}

func TestStopElsewhere(t *testing.T) {
	t.Parallel()
	w := work(stopAt(0, "1"))
	w.Conversation = "nowhere"
	_, err := setup(t, llmtest.Instant{}).StopLoop().Step(context.Background(), w)
	if _, ok := errors.AsType[*channel.GiveUp](err); !ok {
		t.Errorf("got %v, want it given up", err)
	}
}

func TestFailed(t *testing.T) {
	t.Parallel()
	unread := func(c channel.Name, ids ...string) *channel.Entry {
		return &channel.Entry{Channel: c, ID: "7-0", Conversation: conv, InputIDs: ids}
	}
	const tail = " Nothing is lost: it is kept where an admin can see it and have it run again. You can also just ask me once more."
	const head = "Something went wrong on my side, and I could not deal with "
	for _, c := range []struct {
		name    string
		loop    func(*Teller) channel.Loop
		entries []*channel.Entry
		reason  string
		text    string // empty: nobody is told
		ids     string
		replyTo string
		history string
	}{
		{
			"inputs", (*Teller).DigestLoop, []*channel.Entry{in(0, "m1", "a"), in(1, "m2", "b")}, "it failed 5 times: dial tcp 10.0.0.1:6379",
			head + "your messages (it failed 5 times)." + tail, "i1 i2", "m2", "user i1/ a\nuser i2/ b",
		},
		{
			"an input that cannot be read", (*Teller).DigestLoop, []*channel.Entry{unread(channel.UserInput, "i1")}, "",
			head + "your message." + tail, "i1", "", "",
		},
		{
			"one can be read, one cannot", (*Teller).DigestLoop, []*channel.Entry{in(0, "m1", "a"), unread(channel.UserInput, "i2")}, "it cannot be read.",
			head + "your messages (it cannot be read)." + tail, "i1 i2", "m1", "user i1/ a",
		},
		{
			"a result", (*Teller).DigestLoop, []*channel.Entry{result(0, "w1", "out")}, "x",
			head + "the result of a task (x)." + tail, "", "", "system w1/ Task w1 (Read) succeeded\nout",
		},
		{
			"a decision", (*Teller).FormatLoop, []*channel.Entry{decided()}, "x",
			head + "your messages (x)." + tail, "i2 i1", "m2", "",
		},
		{
			"a decision that cannot be read", (*Teller).FormatLoop, []*channel.Entry{unread(channel.ThinkerDecision, "i1")}, "x",
			head + "your message (x)." + tail, "i1", "", "",
		},
		{
			"a stop", (*Teller).StopLoop, []*channel.Entry{digested(0), stopAt(60, "6")}, "x",
			head + "your messages (x)." + tail, "i5 i6", "m6", "user i5/ five\nsystem w1/ Task w1 (Read) succeeded\nout\nuser i6/stopped stop",
		},
		{
			"overheard only", (*Teller).DigestLoop, []*channel.Entry{in(0, "m1", "a", addressed(false))}, "x",
			"", "", "", "user i1/ a",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, llmtest.Instant{})
			fx := c.loop(f.Teller).Failed(work(c.entries...), c.reason)
			r, pub := published[chat.Reply](t, fx, channel.TellerReply, "reply")
			want := c.history
			if c.text == "" {
				if r != nil {
					t.Fatalf("told %+v", r)
				}
			} else {
				if r.Text != c.text || r.Kind != chat.ReplyNotice || r.ReplyTo != c.replyTo || pub.Kind != "notice" {
					t.Errorf("reply is %+v,\nwant %s", r, c.text)
				}
				if got := strings.Join(r.InputIDs, " "); got != c.ids || !cmp.Equal(r.InputIDs, pub.InputIDs) {
					t.Errorf("carries %q, want %q", got, c.ids)
				}
				want = strings.TrimPrefix(want+"\nassistant "+r.ID+"/ "+c.text, "\n")
			}
			if diff := cmp.Diff(want, brief(lines(t, fx))); diff != "" {
				t.Errorf("history, -want +got:\n%s", diff)
			}
		})
	}
}
