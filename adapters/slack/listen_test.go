package slack

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

func TestAMentionIsOneInput(t *testing.T) {
	t.Parallel()
	for _, order := range []int{0, 1} {
		t.Run(fmt.Sprint("order ", order), func(t *testing.T) {
			t.Parallel()
			in(t, Options{}, func(t *testing.T, r *rig) {
				r.run()
				ts := r.fake.Say(slackfake.Say{Text: "@bot: what is 6 &lt; 7?", Order: order})
				m := r.one()
				at, _ := stampTime(ts)
				if m.Text != "what is 6 < 7?" || m.Message != ts || !m.Addressed || m.Kind != chat.KindMessage || !m.At.Equal(at) {
					t.Errorf("stored %+v", m)
				}
				if m.Conversation != inThread(town, ts) {
					t.Errorf("it is answered in %s", m.Conversation)
				}
				if m.Author != (chat.Author{ID: "U0ANN", Name: "Ann", Role: chat.RoleUser}) {
					t.Errorf("said by %+v", m.Author)
				}
				r.stored("what is 6 < 7?")
				if r.fake.Acked() != 2 {
					t.Errorf("%d events are acknowledged, want the message and the mention", r.fake.Acked())
				}
			})
		})
	}
}

// The socket is lost twenty times while people talk. Everything is stored, once,
// and acknowledged.
func TestNothingIsLostWithTheSocket(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 4}, func(t *testing.T, r *rig) {
		r.fake.AddChannel(slackfake.Channel{ID: "D0ANN", Kind: "im", Members: []string{"U0ANN", slackfake.BotUser}})
		r.inbox.slow = 5 * time.Millisecond
		r.run()
		const messages, drops = 500, 20
		for i := range messages {
			r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: numbered(i)})
			switch i % (messages / drops) {
			case 12:
				time.Sleep(20 * time.Millisecond)
				r.fake.DropSockets() // with much on its way
			case 24:
				time.Sleep(12 * time.Second)
			}
		}
		if err := r.fake.Await(t.Context(), func() bool { return r.fake.Unacked() == 0 }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		seen := map[string]int{}
		for _, text := range r.inbox.texts() {
			seen[text]++
		}
		for i := range messages {
			if n := seen[numbered(i)]; n != 1 {
				t.Errorf("%q is stored %d times", numbered(i), n)
			}
		}
		if n := r.seen.count("socket dropped"); n < drops {
			t.Errorf("%d sockets were dropped, want at least %d", n, drops)
		}
		if r.fake.Retried() == 0 {
			t.Error("no event was delivered again, so this proves nothing")
		}
	})
}

// While the inbox stores nothing, nothing is acknowledged; then everything is.
func TestNothingIsAcknowledgedBeforeItIsStored(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		r.inbox.fail(errors.New("redis is away"))
		var want int
		for i := range 200 {
			r.fake.Say(slackfake.Say{Text: "@bot " + numbered(i), Quiet: i%2 == 1, Order: i % 3})
			if i%2 == 0 {
				want++
			}
		}
		r.wait(5 * time.Second)
		if n := r.fake.Acked(); n != 0 {
			t.Fatalf("%d events were acknowledged while none could be stored", n)
		}
		r.inbox.fail(nil)
		r.wait(10 * time.Second)
		if n := len(r.inbox.all()); n != want {
			t.Errorf("%d messages are stored, want %d", n, want)
		}
		if n := r.fake.Unacked(); n != 0 {
			t.Errorf("%d events are still not acknowledged", n)
		}
	})
}

// What cannot be stored for long is left to Slack, and does not hold up others.
func TestAnEventIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	in(t, Options{StoreFor: 10 * time.Second}, func(t *testing.T, r *rig) {
		r.run()
		r.inbox.fail(errors.New("redis is away"))
		r.fake.Say(slackfake.Say{Text: "@bot hello"})
		r.wait(2 * time.Minute)
		if r.seen.count("message unstored") == 0 || r.fake.Acked() != 0 {
			t.Errorf("unstored %d, acknowledged %d", r.seen.count("message unstored"), r.fake.Acked())
		}
		r.inbox.fail(nil)
		r.wait(time.Minute)
		r.stored("hello")
	})
}

// Slack says that it will close the sockets. New ones are there before the old
// ones go, and what comes meanwhile is stored.
func TestSocketsAreReplacedBeforeTheyGo(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 2}, func(t *testing.T, r *rig) {
		r.run()
		r.wait(time.Minute)
		// To open one takes a while, in which the old one must still be read.
		r.fake.Inject(slackfake.Fault{Method: "apps.connections.open", Delay: 3 * time.Second, Times: 2})
		r.fake.Disconnect("warning")
		r.fake.Disconnect("refresh_requested")
		for i := range 100 {
			r.fake.Say(slackfake.Say{Text: "@bot " + numbered(i)})
			time.Sleep(200 * time.Millisecond)
			if n := r.bot.Listener.State().Sockets; n < 2 {
				t.Fatalf("only %d sockets live %d ms after the announcement", n, i*200)
			}
		}
		r.wait(time.Second)
		if n := len(r.inbox.all()); n != 100 {
			t.Errorf("%d messages are stored, want 100", n)
		}
		if r.fake.Retried() != 0 {
			t.Errorf("%d events had to be delivered again", r.fake.Retried())
		}
		if got := r.fake.Sockets(); got != 2 {
			t.Errorf("%d sockets are open, want 2", got)
		}
		if got := r.seen.count("socket replaced"); got != 2 {
			t.Errorf("%d sockets were replaced, want 2", got)
		}
	})
}

// A socket that says nothing any more is found out, and what it swallowed comes
// over another.
func TestADeafSocketIsReplaced(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		r.wait(time.Minute)
		r.fake.Silence()
		r.fake.Say(slackfake.Say{Text: "@bot are you there?"})
		r.wait(40 * time.Second)
		r.stored("are you there?")
		if r.seen.count("socket deaf") != 1 {
			t.Errorf("%d sockets were found deaf, want 1", r.seen.count("socket deaf"))
		}
	})
}

// A socket that answers pings may be deaf all the same, so none grows old.
func TestSocketsAreRenewed(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 2, MaxSession: time.Hour}, func(t *testing.T, r *rig) {
		r.run()
		r.wait(61 * time.Minute)
		if got := r.seen.count("socket replaced"); got != 2 {
			t.Errorf("%d sockets were renewed, want 2", got)
		}
		if got := r.fake.Sockets(); got != 2 {
			t.Errorf("%d sockets are open, want 2", got)
		}
	})
}

// A server that accepts and closes at once is not called again and again.
func TestSocketsThatFlapAreOpenedSlowly(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		for range 600 {
			r.fake.DropSockets()
			time.Sleep(100 * time.Millisecond)
		}
		if n := r.fake.Calls("apps.connections.open"); n > 12 {
			t.Errorf("%d sockets were opened in a minute", n)
		}
		r.wait(time.Minute)
		if !r.bot.Listener.Ready() {
			t.Error("the socket is not back")
		}
	})
}

func TestSocketModeSwitchedOff(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		r.wait(time.Minute)
		before := r.fake.Calls("apps.connections.open")
		r.fake.Disconnect("link_disabled")
		r.wait(time.Second)
		if r.bot.Listener.Ready() {
			t.Error("ready without a socket")
		}
		if n := r.fake.Calls("apps.connections.open") - before; n > 1 {
			t.Errorf("%d new sockets within a second", n)
		}
	})
}

// A slot that passes to another node takes its socket along.
func TestASlotIsGivenUp(t *testing.T) {
	t.Parallel()
	slots := &lostSlots{free: true}
	in(t, Options{Sockets: 1, Slots: slots}, func(t *testing.T, r *rig) {
		slots.slots = make(chan *lostSlot, 10)
		r.run()
		first := <-slots.slots
		if r.fake.Sockets() != 1 {
			t.Fatalf("%d sockets are open", r.fake.Sockets())
		}
		slots.free = false
		close(first.lost)
		r.wait(time.Second)
		if r.fake.Sockets() != 0 || !first.released || r.bot.Listener.Ready() {
			t.Errorf("%d sockets are open after the slot was lost; released %v", r.fake.Sockets(), first.released)
		}
	})
}

// Stopping finishes what is under way, acknowledges it, and leaves no connection.
func TestStopIsClean(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 2}, func(t *testing.T, r *rig) {
		r.inbox.slow = 500 * time.Millisecond
		r.run()
		r.fake.Say(slackfake.Say{Text: "@bot one"})
		r.fake.Say(slackfake.Say{Text: "@bot two"})
		r.wait(100 * time.Millisecond)
		begin := time.Now()
		r.rest()
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("stopping took %v", took)
		}
		synctest.Wait()
		if n := len(r.inbox.all()); n != 2 {
			t.Errorf("%d messages are stored, want 2", n)
		}
		if n := r.fake.Unacked(); n != 0 {
			t.Errorf("%d events are not acknowledged", n)
		}
	})
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.inbox.slow = time.Hour
		r.run()
		r.fake.Say(slackfake.Say{Text: "@bot one"})
		r.wait(100 * time.Millisecond)
		begin := time.Now()
		r.rest()
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("stopping took %v", took)
		}
		if n := r.fake.Acked(); n > 0 && len(r.inbox.all()) == 0 {
			t.Errorf("%d events are acknowledged and none stored", n)
		}
	})
}

func TestWrongTokensEndIt(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.fake.Inject(slackfake.Fault{Method: "auth.test", Error: "invalid_auth", Times: 5})
		err := r.bot.Listener.Run(t.Context(), r.inbox)
		if code(err) != "invalid_auth" {
			t.Errorf("ended with %v", err)
		}
	})
}

// Slack cannot be reached when the process starts. That is no reason to give up.
func TestSlackIsAwayAtFirst(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.fake.Inject(slackfake.Fault{Method: "auth.test", Status: 503, Times: 3})
		r.fake.Inject(slackfake.Fault{Method: "apps.connections.open", Status: 503, Times: 2})
		r.run()
		r.wait(time.Minute)
		r.fake.Say(slackfake.Say{Text: "@bot hello"})
		r.stored("hello")
	})
}

// Frames and events that nobody knows are acknowledged and counted.
func TestUnknownThingsAreAcknowledged(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		r.fake.Event(map[string]any{"type": "brand_new_event_2027", "thing": []any{1, 2}})
		r.fake.Event(map[string]any{"type": "message", "channel": town, "ts": "not a time", "user": "U0ANN", "text": "hi"})
		r.fake.Event(map[string]any{"type": "message", "subtype": "message_changed", "channel": town, "ts": "1.000000"})
		r.fake.Event(map[string]any{"type": "message", "channel": 42})
		r.fake.Callback(map[string]any{"type": "event_callback", "event": "a string"})
		r.fake.Callback(map[string]any{"type": "something_else"})
		r.fake.Frame("no JSON at all {")
		r.fake.Frame(`{"type":"new_kind_of_frame","envelope_id":"x1"}`)
		r.stored()
		for _, c := range []string{"brand_new_event_2027 unknown", "message unreadable", "event_callback unreadable", "new_kind_of_frame unknown", "unreadable unreadable"} {
			if r.seen.count(c) == 0 {
				t.Errorf("%q was not counted: %v", c, r.seen.n)
			}
		}
		r.fake.Say(slackfake.Say{Text: "@bot still there?"})
		r.stored("still there?")
	})
}

// A message with blocks and files of shapes that nobody has seen is still heard.
func TestOddMessagesAreHeard(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.run()
		r.fake.Event(map[string]any{
			"type": "message", "channel": town, "channel_type": "channel", "ts": "1795255201.000100", "user": "U0ANN", "text": "<@" + slackfake.BotUser + "> hi",
			"blocks": []any{map[string]any{"type": "rich_text", "elements": 7}}, "files": []any{"odd", map[string]any{"id": 5}},
			"attachments": map[string]any{"not": "a list"}, "metadata": "odd",
		})
		r.stored("hi")
	})
}

// lostSlots are slots that a test takes away.
type lostSlots struct {
	free  bool
	slots chan *lostSlot
}

type lostSlot struct {
	lost     chan struct{}
	released bool
}

func (l *lostSlots) Acquire(ctx context.Context) (Slot, error) {
	if !l.free {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s := &lostSlot{lost: make(chan struct{})}
	l.slots <- s
	return s, nil
}

func (s *lostSlot) Lost() <-chan struct{} { return s.lost }
func (s *lostSlot) Release()              { s.released = true }
