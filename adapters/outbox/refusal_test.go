package outbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/outbox"
	"mimikit/core/channel"
	"mimikit/core/chat"
)

func TestRefusals(t *testing.T) {
	t.Run("again and again, with growing waits", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.opt.MaxAttempts = 4
			for _, after := range []time.Duration{0, 0, time.Minute, 0} {
				d.posts = append(d.posts, answer{err: refusal(adapters.RetryPost, after)})
			}
			d.run()
			d.pass(500 * time.Millisecond)
			d.run()
			d.pass(time.Second)
			d.run()
			d.pass(10 * time.Second)
			d.run() // a successor, which our Later does not hold
			d.pass(50 * time.Second)
			d.run()
			d.run() // an admin sends it again: counted anew
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack retry
		mark done= until=500ms failures=1
		later 500ms
		mark done= posting until=20.5s failures=1
		post 0 by 15.5s
		told slack retry
		mark done= until=1.5s failures=2
		later 1s
		mark done= posting until=21.5s failures=2
		post 0 by 16.5s
		told slack retry
		mark done= until=1m1.5s failures=3
		later 1m0s
		later 50s
		mark done= posting until=1m21.5s failures=3
		post 0 by 1m16.5s
		told slack retry
		mark done=
		give up: the platform did not take it, however often I tried
		publish notice to teller-reply
		mark done= posting until=1m21.5s since=1m1.5s
		post 0 by 1m16.5s
		told slack posted
		settle`)
	})
	t.Run("a wait has an upper bound", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.fresh, d.record = false, `{"failures":8}`
			d.posts = []answer{{err: refusal(adapters.RetryPost, 0)}}
			d.run()
		}, `
		mark done= posting until=20s failures=8
		post 0 by 15s
		told slack retry
		mark done= until=30s failures=9
		later 30s`)
	})
	t.Run("for too long", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.opt.GiveUpAfter = time.Minute
			d.posts = []answer{{err: refusal(adapters.RetryPost, time.Minute)}, {err: refusal(adapters.RetryPost, 0)}}
			d.run()
			d.pass(time.Minute)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack retry
		mark done= until=1m0s failures=1
		later 1m0s
		mark done= posting until=1m20s failures=1
		post 0 by 1m15s
		told slack retry
		mark done=
		give up: the platform did not take it, however often I tried
		publish notice to teller-reply`)
	})
	t.Run("all nodes were down for long: one more try", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.posts = []answer{{err: errLost}, {err: refusal(adapters.RetryPost, 0)}}
			d.run()
			d.pass(3 * time.Hour)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack unknown
		later 20s
		look up 0
		mark done= posting until=3h0m20s failures=1
		post 0 by 3h0m15s
		told slack retry
		mark done=
		give up: the platform did not take it, however often I tried
		publish notice to teller-reply`)
	})
	t.Run("the text is not taken", func(t *testing.T) {
		play(t, 2, func(d *desk) {
			d.posts = []answer{{}, {err: refusal(adapters.BadContent, 0)}}
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack posted
		mark done=m0 posting until=20s
		post 1 by 15s
		told slack given_up
		mark done=m0
		give up: the platform does not accept this text
		publish notice to teller-reply`)
	})
	t.Run("the place is gone: nobody is left to be told", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.posts = []answer{{err: refusal(adapters.PlaceGone, 0)}}
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack given_up
		mark done=
		give up: the conversation is closed to me`)
	})
}

func TestMisconfigIsJudgedByAgeOnly(t *testing.T) {
	play(t, 1, func(d *desk) {
		d.opt.MaxAttempts, d.opt.GiveUpAfter = 2, 100*time.Second
		for range 4 {
			d.posts = append(d.posts, answer{err: refusal(adapters.Misconfig, 0)})
			d.run()
			d.pass(30 * time.Second)
		}
		// The operator mends it: what was wrong before counts as no failure.
		d.posts = []answer{{err: refusal(adapters.RetryPost, 0)}}
		d.opt.GiveUpAfter = time.Hour
		d.run()
		d.opt.GiveUpAfter = 100 * time.Second
		d.pass(30 * time.Second)
		d.posts = []answer{{err: refusal(adapters.Misconfig, 0)}}
		d.run()
	}, `
	mark done= posting until=20s
	post 0 by 15s
	told slack retry
	mark done= until=30s
	later 30s
	mark done= posting until=50s
	post 0 by 45s
	told slack retry
	mark done= until=1m0s
	later 30s
	mark done= posting until=1m20s
	post 0 by 1m15s
	told slack retry
	mark done= until=1m30s
	later 30s
	mark done= posting until=1m50s
	post 0 by 1m45s
	told slack retry
	mark done= until=2m0s
	later 30s
	mark done= posting until=2m20s
	post 0 by 2m15s
	told slack retry
	mark done= until=2m0.5s failures=1
	later 500ms
	mark done= posting until=2m50s failures=1
	post 0 by 2m45s
	told slack retry
	mark done=
	give up: my connection to the platform is not set up right`)
}

func TestNoPosterLeavesTheMarkerAlone(t *testing.T) {
	play(t, 1, func(d *desk) {
		d.posts = []answer{{err: errLost}}
		d.run()
		posters := d.opt.Posters
		d.opt.Posters = nil // another node, which has no such platform
		d.run()
		d.pass(30 * time.Second)
		d.run()
		d.opt.Posters = posters
		d.looks = []answer{{id: "m0"}}
		d.run()
	}, `
	mark done= posting until=20s
	post 0 by 15s
	told slack unknown
	later 20s
	mark done= posting until=20s
	later 30s
	mark done= posting until=20s
	later 30s
	look up 0
	settle`)
	play(t, 1, func(d *desk) {
		d.opt.Posters = nil
		d.run()
		d.pass(time.Hour)
		d.run()
	}, `
	mark done=
	later 30s
	mark done=
	give up: my connection to the platform is not set up right`)
}

func TestNotices(t *testing.T) {
	t.Run("none for a notice", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.reply.Kind = chat.ReplyNotice
			d.posts = []answer{{err: refusal(adapters.BadContent, 0)}}
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack given_up
		mark done=
		give up: the platform does not accept this text`)
	})
	t.Run("for a reply, and for an entry that cannot be read", func(t *testing.T) {
		d := newDesk(t, 1)
		loop := outbox.New(d.opt).Loop()
		for want, value := range map[string]any{"n-r1 m9": d.reply, "n-5-0 ": nil} {
			w := d.work()
			w.Entries[0].Value = value
			fx := loop.Failed(w, "the reason")
			n, ok := fx.Publish[0].Value.(*chat.Reply)
			if !ok || n.ID+" "+n.ReplyTo != want || n.Kind != chat.ReplyNotice || n.Conversation != d.reply.Conversation ||
				!strings.Contains(n.Text, "the reason") || !n.CreatedAt.Equal(w.Now) {
				t.Errorf("notice %+v, want %s in the same conversation, with the reason", fx.Publish[0].Value, want)
			}
			// Who wrote must hear, and `mimikit why` must find that they did.
			if !slices.Equal(n.InputIDs, []string{"i1"}) || !slices.Equal(fx.Publish[0].InputIDs, n.InputIDs) {
				t.Errorf("the notice answers %v and %v, want i1", n.InputIDs, fx.Publish[0].InputIDs)
			}
		}
	})
	t.Run("none for what is no reply", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.entry.Value = "what"
			d.run()
		}, `give up: a reply was expected, got string`)
	})
}

func TestNewRefusesALookupWithinThePost(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New took a LookupAfter that a post may outlast")
		}
	}()
	outbox.New(outbox.Options{PostTimeout: time.Second, LookupAfter: time.Second})
}

// One reply at a time, the oldest first.
func TestReady(t *testing.T) {
	loop := outbox.New(outbox.Options{}).Loop()
	e := []*channel.Entry{{Channel: channel.TellerReply, ID: "1-0"}, {Channel: channel.TellerReply, ID: "2-0"}}
	got, wait := loop.Ready(channel.NewBuffer("c", time.Now(), e...))
	if len(got) != 1 || got[0] != e[0] || wait != 0 {
		t.Errorf("took %v, %s; want the first alone", got, wait)
	}
	if got, _ := loop.Ready(channel.NewBuffer("c", time.Now())); got != nil {
		t.Errorf("took %v of nothing", got)
	}
}
