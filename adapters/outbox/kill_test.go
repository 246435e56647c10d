package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/adapters"
)

// A killing says at which point of which part a node dies, and how.
type killing struct {
	point string
	part  int
	how   string
}

// killings lists every point of a reply in three parts, in every way.
func killings() []killing {
	var all []killing
	for part := range 3 {
		// Before the first one is "before it is posted", before the others
		// "between two parts".
		for _, point := range []string{"marking", "marked", "posting", "posted"} {
			all = append(all, killing{point, part, "cut off"}, killing{point, part, "paused"})
		}
		all = append(all, killing{"posting", part, "cut off, shown late"}, killing{"posted", part, "paused, shown late"})
	}
	// Posted, and not yet told which message shows it; told, and not settled.
	for _, point := range []string{"showing", "settling"} {
		all = append(all, killing{point, 2, "cut off"}, killing{point, 2, "paused"})
	}
	return all
}

// At every point of a reply its node is cut off from Redis, and another one
// takes over. The first one either goes on for as long as it can, or stands still
// as a paused process does, and wakes up when all is over.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, addr string) {
		var wg sync.WaitGroup
		defer wg.Wait()
		room := make(chan struct{}, 6) // they mostly wait
		for _, k := range killings() {
			room <- struct{}{}
			wg.Go(func() {
				defer func() { <-room }()
				t.Run(fmt.Sprintf("%s part %d, %s", k.point, k.part, k.how), func(t *testing.T) { k.run(t, addr) })
			})
		}
	})
}

func (k killing) run(t *testing.T, addr string) {
	r := newRig(t, addr, 1)
	told := r.keys.Prefix + ":told" // hash: reply → the message that shows it
	r.shown = func(ctx context.Context, n *node, reply, message string) error {
		return n.store.Client.HSet(ctx, told, reply, message).Err()
	}
	if strings.Contains(k.how, "late") {
		r.platform.fate = func(p adapters.Part, try int) fate {
			if p.ReplyID == "r1" && p.Index == k.part && try == 1 {
				// When the lease is over and b looks, it is not there yet.
				return fate{after: postTimeout - 30*time.Millisecond, mute: true}
			}
			return fate{}
		}
	}
	died, wake := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.at = func(n *node, point, reply string, part int) {
		if n.name != "a" || point != k.point || reply != "r1" || part != k.part {
			return
		}
		once.Do(func() {
			n.proxy.Block(true)
			close(died)
			if strings.HasPrefix(k.how, "paused") {
				<-wake
			}
		})
	}
	a := r.node("a")
	r.say("c", "r0", "first")
	r.platform.await(t, "c", 1) // so it is a that owns the partition
	r.say("c", "r1", "one|two|three")
	r.say("c", "r2", "last")
	<-died
	r.node("b")
	r.platform.await(t, "c", 5)
	r.awaitSettled()
	close(wake)
	a.proxy.Block(false)
	a.steps.Wait()
	r.checkNothingLeft()
	r.platform.check(t, "c", []string{"r0.0", "r1.0", "r1.1", "r1.2", "r2.0"})
	shows, err := r.direct.Client.HGetAll(t.Context(), told).Result()
	if err != nil || len(shows) != 3 || shows["r1"] == "" {
		t.Errorf("told of the messages that show replies: %v, %v", shows, err)
	}
}
