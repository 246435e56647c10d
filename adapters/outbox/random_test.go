package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/store/faultproxy"
)

// seed is 1, or what SEED says.
func seed(t *testing.T) uint64 {
	n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		n = 1
	}
	t.Logf("SEED=%d", n)
	return n
}

// Everything at once: two nodes that are cut off and paused wherever they stand,
// a bad network to Redis, and a platform that loses answers, takes requests late
// and refuses some.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, addr string) {
		t.Parallel()
		seed := seed(t)
		r := newRig(t, addr, 4)
		r.platform.fate = func(p adapters.Part, try int) fate { return randomFate(seed, p, try) }
		r.platform.look = func(p adapters.Part, try int) error {
			if chance(seed, "look", p.ReplyID, p.Index, try).Float64() < 0.1 {
				return errors.New("no look-up now")
			}
			return nil
		}
		reaper := &reaper{seed: seed, visits: map[string]int{}, free: make(chan struct{}, 1)}
		r.at = reaper.at
		nodes := []*node{r.node("a"), r.node("b")}
		for _, n := range nodes {
			n.proxy.SetFaults(faultproxy.Faults{DelayMax: time.Millisecond, SwallowReply: 0.02, CutEvery: time.Second})
		}

		const places, replies = 10, 10
		want := map[string][]string{}
		notices := map[string]int{}
		for i := range replies {
			for c := range places {
				place := fmt.Sprintf("c%d", c)
				id := fmt.Sprintf("%s-%d", place, i)
				dice := chance(seed, "text", id)
				texts := make([]string, 1+dice.IntN(3))
				for j := range texts {
					texts[j] = fmt.Sprint(j)
					want[place] = append(want[place], fmt.Sprintf("%s.%d", id, j))
				}
				if dice.IntN(12) == 0 { // the platform will not have the last one
					texts[len(texts)-1] = "bad"
					want[place] = want[place][:len(want[place])-1]
					notices["n-"+id+".0"]++
				}
				r.say(place, id, strings.Join(texts, "|"))
			}
		}
		r.awaitSettled()
		reaper.stop()
		for _, n := range nodes {
			n.proxy.Block(false)
			n.steps.Wait()
		}
		r.awaitSettled()

		// A notice comes behind what was waiting when its reply was given up.
		for place := range want {
			var got []string
			for _, word := range r.platform.in(place) {
				if strings.HasPrefix(word, "n-") {
					notices[word]--
					continue
				}
				got = append(got, word)
			}
			if strings.Join(got, " ") != strings.Join(want[place], " ") {
				t.Errorf("%s shows %v\nwant %v", place, got, want[place])
			}
		}
		for id, n := range notices {
			if n != 0 {
				t.Errorf("notice %s: %d missing", id, n)
			}
		}
		r.dropDead(len(notices))
		r.checkNothingLeft()
		r.platform.mu.Lock()
		t.Logf("%d kills, %d parts shown, posts %s, look-ups %s", reaper.kills.Load(), len(r.platform.ids), sum(r.platform.tries), sum(r.platform.looks))
		r.platform.mu.Unlock()
	})
}

func sum(m map[shown]int) string {
	n := 0
	for _, v := range m {
		n += v
	}
	return strconv.Itoa(n)
}

// dropDead drops the dead letters, of which there must be so many.
func (r *rig) dropDead(want int) {
	r.t.Helper()
	dead, err := r.writer.Dead(context.Background(), 1000)
	if err != nil || len(dead) != want {
		r.t.Errorf("%d dead letters, %v; want %d", len(dead), err, want)
	}
	for _, d := range dead {
		if err := r.writer.Drop(context.Background(), d.ID); err != nil {
			r.t.Error(err)
		}
	}
}

func randomFate(seed uint64, p adapters.Part, try int) fate {
	if p.Text == "bad" {
		return fate{never: true, err: refusal(adapters.BadContent, 0)}
	}
	dice := chance(seed, "fate", p.ReplyID, p.Index, try)
	after := time.Duration(dice.Int64N(int64(postTimeout)))
	switch x := dice.IntN(100); {
	case x < 6:
		return fate{err: errNoAnswer}
	case x < 12:
		return fate{after: after, err: errNoAnswer}
	case x < 18:
		return fate{after: after, mute: true}
	case x < 21:
		return fate{never: true, mute: true}
	case x < 24:
		return fate{never: true, err: refusal(adapters.UnknownPost, 0)}
	case x < 30:
		return fate{never: true, err: refusal(adapters.RetryPost, after/4)}
	}
	return fate{}
}

// A reaper cuts nodes off at the points that posts pass, one at a time and for
// long enough that the other one takes over.
type reaper struct {
	seed  uint64
	kills atomic.Int64

	mu     sync.Mutex
	visits map[string]int
	free   chan struct{} // holds one while a node is cut off
	over   bool
	heals  sync.WaitGroup
}

func (k *reaper) at(n *node, point, reply string, part int) {
	k.mu.Lock()
	place := fmt.Sprint(point, reply, part)
	k.visits[place]++
	dice := chance(k.seed, "kill", place, k.visits[place])
	if k.over || dice.IntN(100) >= 6 {
		k.mu.Unlock()
		return
	}
	select {
	case k.free <- struct{}{}:
	default:
		k.mu.Unlock()
		return
	}
	k.heals.Add(1)
	k.mu.Unlock()
	k.kills.Add(1)
	n.proxy.Block(true)
	heal := func() {
		defer k.heals.Done()
		t := time.NewTimer(lease*7/4 + time.Duration(dice.Int64N(int64(lease))))
		<-t.C
		n.proxy.Block(false)
		<-k.free
	}
	if dice.IntN(2) == 0 {
		heal() // the step stands still too
		return
	}
	go heal()
}

func (k *reaper) stop() {
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	k.heals.Wait()
}
