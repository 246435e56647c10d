package outbox_test

import (
	"testing"
	"time"

	"mimikit/adapters/outbox"
	"mimikit/core/channel"
)

// committed commits the marker together with the reply, as the engine does:
// the answer took so long, and a step begins so much later.
func (d *desk) committed(took, later time.Duration) {
	d.t.Helper()
	puts := outbox.New(d.opt).Loop().Ahead(d.reply, time.Now().Add(redisAhead))
	if len(puts) != 1 || puts[0].Table != channel.PostTable || puts[0].Field != d.reply.ID {
		d.t.Fatalf("marked ahead: %+v", puts)
	}
	d.record = puts[0].Value
	d.ahead = channel.Ahead{Puts: puts, At: time.Now().Add(redisAhead), Sent: time.Now()}
	d.pass(took + later)
}

func TestMarkerCommittedWithTheReply(t *testing.T) {
	t.Parallel()
	t.Run("saves a mark of the first part", func(t *testing.T) {
		t.Parallel()
		play(t, 2, func(d *desk) {
			d.committed(0, 0)
			d.run()
		}, `
		post 0 by 15s
		told slack posted
		mark done=m0 posting until=20s
		post 1 by 15s
		told slack posted
		settle`)
	})
	t.Run("a slow answer leaves less for the post", func(t *testing.T) {
		t.Parallel()
		play(t, 1, func(d *desk) {
			d.committed(6*time.Second, 0)
			d.run()
		}, `
		post 0 by 15s
		told slack posted
		settle`)
	})
	t.Run("one that has run out is renewed, and nothing looked up", func(t *testing.T) {
		t.Parallel()
		play(t, 1, func(d *desk) {
			d.committed(0, time.Minute) // the reply before it took that long
			d.run()
		}, `
		mark done= posting until=1m20s
		post 0 by 1m15s
		told slack posted
		settle`)
	})
	t.Run("is waited for and looked behind by a successor", func(t *testing.T) {
		t.Parallel()
		play(t, 1, func(d *desk) {
			d.committed(0, 0)
			d.fresh, d.ahead = false, channel.Ahead{}
			d.run()
			d.pass(20 * time.Second)
			d.run()
		}, `
		later 20s
		look up 0
		mark done= posting until=40s failures=1
		post 0 by 35s
		told slack posted
		settle`)
	})
	t.Run("a suspect Redis is looked behind", func(t *testing.T) {
		t.Parallel()
		play(t, 1, func(d *desk) {
			d.committed(0, 0)
			d.suspect = true
			d.run()
		}, `
		look up 0
		mark done= posting until=20s
		post 0 by 15s
		told slack posted
		settle`)
	})
	t.Run("none without a connection to the platform", func(t *testing.T) {
		t.Parallel()
		play(t, 1, func(d *desk) {
			d.opt.Posters = nil
			if puts := outbox.New(d.opt).Loop().Ahead(d.reply, time.Now()); puts != nil {
				t.Errorf("marked %+v", puts)
			}
		}, "")
	})
}
