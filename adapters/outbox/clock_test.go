package outbox_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/outbox"
)

// Redis is away for a moment just when a step is about to start, so that by the
// time of its mark the step's idea of now is old. Its marker must outlast its
// post all the same.
func TestMarkerOfADelayedStart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, addr string) {
		t.Parallel()
		r := newRig(t, addr, 1)
		r.change = func(o *outbox.Options) { o.PostTimeout, o.LookupAfter = 900*time.Millisecond, time.Second }
		r.platform.fate = func(p adapters.Part, try int) fate {
			switch {
			case p.ReplyID == "r1" && try == 1: // so that the start of the next try is counted by a call of its own
				return fate{never: true, err: refusal(adapters.RetryPost, 0)}
			case p.ReplyID == "r1" && try == 2:
				return fate{after: 800 * time.Millisecond, mute: true}
			}
			return fate{}
		}
		var starts atomic.Int32 // of r1
		var posting sync.Once
		armed, died := make(chan struct{}), make(chan struct{})
		r.ready = func(n *node) {
			select {
			case <-armed:
			default:
				return
			}
			// Before the start is committed. It may take a third one: the second can
			// come a millisecond before the wait is over.
			if i := starts.Add(1); n.name == "a" && (i == 2 || i == 3) {
				n.proxy.Block(true)
				time.AfterFunc(700*time.Millisecond, func() { n.proxy.Block(false) })
			}
		}
		r.at = func(n *node, point, reply string, _ int) {
			if n.name == "a" && point == "posting" && reply == "r1" && starts.Load() >= 2 {
				posting.Do(func() {
					n.proxy.Block(true)
					close(died)
				})
			}
		}
		a := r.node("a")
		r.say("c", "r0", "first")
		r.platform.await(t, "c", 1)
		r.awaitSettled()
		close(armed)
		r.say("c", "r1", "one")
		<-died
		r.node("b")
		r.platform.await(t, "c", 2)
		a.steps.Wait()
		a.proxy.Block(false)
		r.checkNothingLeft()
		r.platform.check(t, "c", []string{"r0.0", "r1.0"})
	})
}
