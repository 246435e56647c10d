package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/channel"
)

func TestParts(t *testing.T) {
	t.Run("in order, each under a marker of its own", func(t *testing.T) {
		play(t, 3, func(d *desk) {
			d.posts = []answer{{takes: time.Second}, {takes: 2 * time.Second}}
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack posted
		mark done=m0 posting until=21s
		post 1 by 16s
		told slack posted
		mark done=m0,m1 posting until=23s
		post 2 by 18s
		told slack posted
		settle`)
	})
	t.Run("from where an earlier run came", func(t *testing.T) {
		play(t, 3, func(d *desk) {
			d.fresh, d.record = false, `{"done":["m0","m1"]}`
			d.run()
		}, `
		mark done=m0,m1 posting until=20s
		post 2 by 15s
		told slack posted
		settle`)
	})
	t.Run("all there, only the settling was lost", func(t *testing.T) {
		play(t, 2, func(d *desk) {
			d.fresh, d.record = false, `{"done":["m0"],"posting":true}`
			d.looks = []answer{{id: "m1"}}
			d.run()
		}, `
		look up 1
		settle`)
	})
	t.Run("shown by its last part", func(t *testing.T) {
		play(t, 2, func(d *desk) {
			d.opt.Posted = nil
			d.opt.Shown = d.shown(0)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		mark done=m0 posting until=20s
		post 1 by 15s
		r1 shown by m1
		settle`)
	})
	t.Run("shown by its last part, which an earlier run posted", func(t *testing.T) {
		play(t, 2, func(d *desk) {
			d.fresh, d.record = false, `{"done":["m0"],"posting":true}`
			d.looks = []answer{{id: "m1"}}
			d.opt.Shown = d.shown(0)
			d.run()
		}, `
		look up 1
		r1 shown by m1
		settle`)
	})
	t.Run("what cannot be told is told before it is settled", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.opt.Posted = nil
			d.opt.Shown = d.shown(2)
			d.run()
			d.pass(500 * time.Millisecond)
			d.run() // of another node, perhaps
			d.pass(time.Second)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		r1 cannot be shown by m0
		mark done=m0 until=500ms failures=1
		later 500ms
		r1 cannot be shown by m0
		mark done=m0 until=1.5s failures=2
		later 1s
		r1 shown by m0
		settle`)
	})
	t.Run("what took long to post is told all the same", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.fresh, d.record = false, fmt.Sprintf(`{"posting":true,"since":%d}`, d.zero.Add(-2*time.Hour).UnixMilli())
			d.looks = []answer{{id: "m0"}}
			d.opt.Shown = d.shown(2)
			d.run()
			d.pass(500 * time.Millisecond)
			d.run()
			d.pass(time.Second)
			d.run()
		}, `
		look up 0
		r1 cannot be shown by m0
		mark done=m0 until=500ms failures=1
		later 500ms
		r1 cannot be shown by m0
		mark done=m0 until=1.5s failures=2
		later 1s
		r1 shown by m0
		settle`)
	})
	t.Run("what can never be told holds nothing up for ever", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.opt.Posted, d.opt.GiveUpAfter = nil, time.Minute
			d.opt.Shown = d.shown(2)
			d.run()
			d.pass(time.Minute)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		r1 cannot be shown by m0
		mark done=m0 until=500ms failures=1
		later 500ms
		r1 cannot be shown by m0
		settle`)
	})
	t.Run("a reply that shows nothing", func(t *testing.T) {
		play(t, 0, func(d *desk) { d.run() }, `settle`)
	})
	t.Run("a refusal in the middle keeps what is done", func(t *testing.T) {
		play(t, 2, func(d *desk) {
			d.posts = []answer{{}, {err: refusal(adapters.RetryPost, 0)}}
			d.run()
			d.pass(500 * time.Millisecond)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack posted
		mark done=m0 posting until=20s
		post 1 by 15s
		told slack retry
		mark done=m0 until=500ms failures=1
		later 500ms
		mark done=m0 posting until=20.5s failures=1
		post 1 by 15.5s
		told slack posted
		settle`)
	})
}

func TestUnknownOutcome(t *testing.T) {
	t.Run("is found", func(t *testing.T) {
		play(t, 2, func(d *desk) {
			d.posts = []answer{{takes: 3 * time.Second, err: errLost}}
			d.looks = []answer{{id: "m0"}}
			d.run()
			d.pass(16 * time.Second)
			d.run() // another node does not wait for our Later, but for the marker
			d.pass(time.Second)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack unknown
		later 17s
		later 1s
		look up 0
		mark done=m0 posting until=40s
		post 1 by 35s
		told slack posted
		settle`)
	})
	t.Run("is not there", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.posts = []answer{{takes: time.Minute}} // until the deadline
			d.run()
			d.pass(5 * time.Second)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack unknown
		later 5s
		look up 0
		mark done= posting until=40s failures=1
		post 0 by 35s
		told slack posted
		settle`)
	})
	t.Run("said so by the adapter, or with a kind that nobody knows", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.posts = []answer{{err: refusal(adapters.UnknownPost, 0)}, {err: refusal(77, 0)}}
			d.run()
			d.pass(20 * time.Second)
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack unknown
		later 20s
		look up 0
		mark done= posting until=40s failures=1
		post 0 by 35s
		told slack unknown
		later 20s`)
	})
	t.Run("an adapter that overruns its deadline", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.posts = []answer{{takes: 25 * time.Second, deaf: true, err: errLost}}
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack unknown
		later 0s`)
	})
	t.Run("never there: given up after as many posts as may fail", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.opt.MaxAttempts = 2
			d.posts = []answer{{err: errLost}, {err: errLost}}
			for range 3 {
				d.run()
				d.pass(20 * time.Second)
			}
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack unknown
		later 20s
		look up 0
		mark done= posting until=40s failures=1
		post 0 by 35s
		told slack unknown
		later 20s
		look up 0
		mark done=
		give up: the platform did not take it, however often I tried
		publish notice to teller-reply`)
	})
}

func TestLookupFails(t *testing.T) {
	marked := func(d *desk) {
		d.fresh, d.record = false, fmt.Sprintf(`{"posting":true,"until":%d}`, d.zero.UnixMilli())
	}
	t.Run("the marker stands, and waits grow", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			marked(d)
			d.looks = []answer{{err: errLost}, {takes: time.Minute}, {err: errLost}, {id: "m0"}}
			for _, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 0} {
				d.run()
				d.pass(pause)
			}
		}, `
		look up 0
		mark done= posting until=500ms unseen=1
		later 500ms
		look up 0
		mark done= posting until=16.5s unseen=2
		later 1s
		look up 0
		mark done= posting until=18.5s unseen=3
		later 2s
		look up 0
		settle`)
	})
	t.Run("the platform's Retry-After is obeyed, by a successor too", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			marked(d)
			d.looks = []answer{{err: refusal(adapters.RetryPost, 40*time.Second)}}
			d.run()
			d.pass(30 * time.Second)
			d.run()
		}, `
		look up 0
		mark done= posting until=40s unseen=1
		later 40s
		later 10s`)
	})
	t.Run("for too long", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			marked(d)
			d.looks = []answer{{err: errLost}, {err: errLost}}
			d.run()
			d.pass(2 * time.Hour)
			d.run()
			d.looks = []answer{{id: "m0"}}
			d.run() // an admin sends it again: it is still looked up first
		}, `
		look up 0
		mark done= posting until=500ms unseen=1
		later 500ms
		look up 0
		mark done= posting until=500ms
		give up: the platform did not say whether it took it
		publish notice to teller-reply
		look up 0
		settle`)
	})
	t.Run("the place is gone: nobody can see it, nobody can be told", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			marked(d)
			d.looks = []answer{{err: refusal(adapters.PlaceGone, 0)}}
			d.run()
		}, `
		look up 0
		mark done= posting until=0s
		give up: the platform did not say whether it took it`)
	})
}

func TestSuspectLooksFirst(t *testing.T) {
	play(t, 3, func(d *desk) {
		d.suspect = true
		d.looks = []answer{{id: "m0"}, {}, {err: errLost}}
		d.run()
	}, `
	look up 0
	look up 1
	mark done=m0 posting until=20s
	post 1 by 15s
	told slack posted
	look up 2
	mark done=m0,m1 until=500ms unseen=1
	later 500ms`)
}

// Whatever stood in a damaged record, an attempt may be on its way, and any part
// may be there. That holds until the reply is settled, whoever goes on.
func TestDamagedRecord(t *testing.T) {
	play(t, 3, func(d *desk) {
		d.fresh, d.record = false, `{"done":["m0","m`
		d.run()
		d.pass(20 * time.Second)
		d.looks = []answer{{id: "m0"}, {}, {id: "m2"}}
		d.posts = []answer{{err: refusal(adapters.RetryPost, 0)}}
		d.run()
		d.pass(500 * time.Millisecond)
		d.looks = []answer{{id: "m1"}, {id: "m2"}}
		d.run()
	}, `
	mark done= posting unsure until=20s
	later 20s
	look up 0
	look up 1
	mark done=m0 posting unsure until=40s
	post 1 by 35s
	told slack retry
	mark done=m0 unsure until=20.5s failures=1
	later 500ms
	look up 1
	look up 2
	settle`)
}

func TestMarks(t *testing.T) {
	t.Run("a slow one leaves less for the post", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.slow = 6 * time.Second
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 9s
		told slack posted
		settle`)
	})
	t.Run("one that took too long leaves nothing, and costs nothing", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.opt.MaxAttempts = 1
			d.slow = 15 * time.Second
			d.run()
			d.slow = 0
			d.pass(500 * time.Millisecond)
			d.run()
		}, `
		mark done= posting until=20s
		mark done= until=30.5s
		later 500ms
		mark done= posting until=50.5s
		post 0 by 45.5s
		told slack posted
		settle`)
	})
	t.Run("one that fails posts nothing", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.markErr = channel.ErrLost
			d.run()
		}, `
		mark fails
		error: `+channel.ErrLost.Error())
	})
	t.Run("a table that cannot be read posts nothing", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			d.fresh, d.fieldErr = false, errLost
			d.run()
		}, `error: `+errLost.Error())
	})
}

func TestCutOff(t *testing.T) {
	t.Run("in the middle of a post", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			ctx, cancel := context.WithCancelCause(d.base)
			whole := d.base
			d.base = ctx
			d.posts = []answer{{takes: time.Minute, first: func() { cancel(channel.ErrStopping) }}}
			d.run()
			d.base = whole
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 15s
		told slack unknown
		error: this node is stopping
		later 20s`)
	})
	t.Run("in the middle of a look-up", func(t *testing.T) {
		play(t, 1, func(d *desk) {
			ctx, cancel := context.WithCancelCause(d.base)
			d.base = ctx
			d.suspect = true
			d.looks = []answer{{takes: time.Minute, first: func() { cancel(channel.ErrLost) }}}
			d.run()
		}, `
		look up 0
		error: `+channel.ErrLost.Error())
	})
	t.Run("between two parts", func(t *testing.T) {
		play(t, 2, func(d *desk) {
			ctx, cancel := context.WithCancelCause(d.base)
			d.base = ctx
			d.slow = time.Second
			d.posts = []answer{{first: func() { cancel(channel.ErrStopping) }, deaf: true}}
			d.run()
		}, `
		mark done= posting until=20s
		post 0 by 14s
		told slack posted
		error: this node is stopping`)
	})
}
