package outbox_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/adapters"
)

// A conversation whose place is rate limited holds its own order and nobody
// else up, also when its neighbours live in the same partition.
func TestRateLimitHoldsOneConversation(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, addr string) {
		t.Parallel()
		r := newRig(t, addr, 1)
		const limit = 300 * time.Millisecond
		var limited atomic.Bool
		limited.Store(true)
		var last atomic.Int64 // unix ns of the last refusal
		r.platform.fate = func(p adapters.Part, _ int) fate {
			if !strings.HasPrefix(p.ReplyID, "slow") || !limited.Load() {
				return fate{}
			}
			now := time.Now()
			if before := last.Swap(now.UnixNano()); before != 0 && now.Sub(time.Unix(0, before)) < limit {
				t.Errorf("posted again %s after a refusal that asked for %s", now.Sub(time.Unix(0, before)), limit)
			}
			return fate{never: true, err: refusal(adapters.RetryPost, limit)}
		}
		r.node("a")
		var slow []string
		others := map[string][]string{}
		for i := range 5 {
			id := fmt.Sprintf("slow-%d", i)
			r.say("slow", id, "one|two")
			slow = append(slow, id+".0", id+".1")
			for c := range 4 {
				place := fmt.Sprintf("c%d", c)
				id := fmt.Sprintf("%s-%d", place, i)
				r.say(place, id, "one|two")
				others[place] = append(others[place], id+".0", id+".1")
			}
		}
		for place, want := range others {
			r.platform.await(t, place, len(want))
			r.platform.check(t, place, want)
		}
		if got := r.platform.in("slow"); len(got) > 0 {
			t.Errorf("the limited place shows %v", got)
		}
		limited.Store(false)
		r.platform.await(t, "slow", len(slow))
		r.checkNothingLeft()
		r.platform.check(t, "slow", slow)
	})
}

// A reply that is given up does not hold up those behind it, and its notice
// comes when they are said.
func TestGivenUpReplyLetsOthersPass(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, addr string) {
		t.Parallel()
		r := newRig(t, addr, 1)
		var mended atomic.Bool
		r.platform.fate = func(p adapters.Part, _ int) fate {
			if p.Text == "bad" && !mended.Load() {
				return fate{never: true, err: refusal(adapters.BadContent, 0)}
			}
			return fate{}
		}
		r.say("c", "r1", "one|bad")
		r.say("c", "r2", "two")
		r.node("a")
		r.platform.await(t, "c", 3)
		r.awaitSettled()
		r.platform.check(t, "c", []string{"r1.0", "r2.0", "n-r1.0"})

		// Sent again, it goes on where it ended.
		mended.Store(true)
		dead, err := r.writer.Dead(t.Context(), 10)
		if err != nil || len(dead) != 1 || dead[0].Reason != "the platform does not accept this text" {
			t.Fatalf("dead letters %+v, %v; want one, with the reason", dead, err)
		}
		if err := r.writer.Replay(t.Context(), dead[0].ID); err != nil {
			t.Fatal(err)
		}
		r.platform.await(t, "c", 4)
		r.checkNothingLeft()
		r.platform.check(t, "c", []string{"r1.0", "r2.0", "n-r1.0", "r1.1"})
	})
}
