package fold

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

var errLost = errors.New("connection lost")

// A torn is histories whose calls may fail, before they reached Redis or, their
// answer lost, after.
type torn struct {
	Histories
	before, after func(step string) error
	unclaimed     func() bool // whether a claim is given without one; nil means never
}

func (h *torn) do(step string, call func() error) error {
	if err := h.before(step); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	return h.after(step)
}

func (h *torn) Length(ctx context.Context, c string) (n int, err error) {
	return n, h.do("length", func() (err error) { n, err = h.Histories.Length(ctx, c); return })
}

func (h *torn) Unfolded(ctx context.Context, c string, newest int) (u *history.Unfolded, err error) {
	err = h.do("read", func() (err error) { u, err = h.Histories.Unfolded(ctx, c, newest); return })
	return u, err
}

func (h *torn) Fold(ctx context.Context, c string, u *history.Unfolded, n int, text, model string, at time.Time) (left int, err error) {
	err = h.do("commit", func() (err error) { left, err = h.Histories.Fold(ctx, c, u, n, text, model, at); return })
	return left, err
}

func (h *torn) Claim(ctx context.Context, c, token string, ttl time.Duration) (ok bool, err error) {
	if h.unclaimed != nil && h.unclaimed() {
		return true, nil
	}
	err = h.do("claim", func() (err error) { ok, err = h.Histories.Claim(ctx, c, token, ttl); return })
	return ok, err
}

func (h *torn) Release(ctx context.Context, c, token string) error {
	return h.do("release", func() error { return h.Histories.Release(ctx, c, token) })
}

func never(string) error { return nil }

// Counted counts the folds that another one forestalled.
type counted struct {
	Histories
	changed *atomic.Int64
}

func (h counted) Fold(ctx context.Context, c string, u *history.Unfolded, n int, text, model string, at time.Time) (int, error) {
	left, err := h.Histories.Fold(ctx, c, u, n, text, model, at)
	if errors.Is(err, history.ErrChanged) {
		h.changed.Add(1)
	}
	return left, err
}

// A fold that breaks off at any one point leaves what it found, or what it should
// have made; the next one goes on from there.
func TestBreakingOffAtEveryStep(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		ctx := context.Background()
		for _, step := range []string{"length", "read", "read again", "claim", "model", "commit", "release"} {
			for _, late := range []bool{false, true} {
				r, m := newRig(t, s), &model{}
				r.say("c", 0, 11, 5)
				reads := 0
				fail := func(at string) error {
					if at == "read" {
						if reads++; reads == 2 {
							at = "read again"
						}
					}
					if at == step {
						return errLost
					}
					return nil
				}
				h := &torn{r.h, fail, never, nil}
				if late {
					h = &torn{r.h, never, fail, nil}
				}
				if step == "model" {
					m.set(errModel, nil)
				}
				if _, err := folder(t, h, m).fold(ctx, item{conversation: "c"}); (err == nil) != (step == "release") {
					t.Errorf("%s: fold ended with %v", step, err)
				}
				done := step == "release" || step == "commit" && late
				if n := r.check("c", 11); n != 7 && n != 0 || (n == 7) != done {
					t.Errorf("%s, late %v: %d are folded", step, late, n)
				}
				// A claim that is left behind ends in time; it is no state of the fold.
				s.Client.Del(ctx, history.ClaimKey(r.key("c")))
				m.set(nil, nil)
				if _, err := folder(t, r.h, m).fold(ctx, item{conversation: "c"}); err != nil {
					t.Errorf("%s: the next fold ended with %v", step, err)
				}
				if n := r.check("c", 11); n != 7 {
					t.Errorf("%s, late %v: %d are folded in the end", step, late, n)
				}
			}
		}
	})
}

// numbered adds a line as a step's commit does, with the next number of its
// conversation in it and a time of its own, so that the order of numbers is the
// order of the list.
var numbered = redis.NewScript(`
local n = redis.call('INCR', KEYS[2]) - 1
local line = string.gsub(ARGV[1], '@', string.format('%d', n))
redis.call('RPUSH', KEYS[1], (string.gsub(line, '10:00:00', string.format('10:00:00.%06d', n))))
return n`)

// Many add lines, and two nodes with several workers each fold them, mostly both
// at once, since claims guard nothing, while their calls fail before and after
// they take effect, models fail, and the nodes are killed at any step and started
// again. Whatever happens, the summary and the list together have every line
// once and in order, at every moment.
func TestNothingIsLostNorFoldedTwice(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		const conversations, adders, each = 2, 3, 200
		ctx := context.Background()
		r := newRig(t, s)
		var calls, folds, lost, changed, lives atomic.Int64

		node := func(s *store.Store, seed uint64) func(ctx context.Context) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			chance := func(n int) bool {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n) == 0
			}
			var kill atomic.Value // the running life's cancel
			fail := func(string) error {
				if chance(40) {
					kill.Load().(context.CancelFunc)()
				}
				if chance(40) {
					lost.Add(1)
					return errLost
				}
				return nil
			}
			m := &model{}
			h := &torn{counted{r.histories(s), &changed}, fail, fail, func() bool { return !chance(4) }}
			f := folder(t, h, m, func(o *Options) {
				o.Workers, o.Pause, o.Backoff, o.MaxBackoff = 2, time.Millisecond, time.Millisecond, 4*time.Millisecond
				o.Batch, o.Rand = 60, rand.Uint64
				o.Folded = func(string, int, time.Duration) { folds.Add(1) }
				o.Summarize = func(ctx context.Context, c, previous string, lines []chat.Line) (string, error) {
					calls.Add(1)
					if chance(10) {
						return "", errModel
					}
					select { // long enough for another node to begin
					case <-time.After(time.Duration(rand.IntN(5000)) * time.Microsecond):
					case <-ctx.Done():
					}
					return join(ctx, c, previous, lines)
				}
			})
			return func(ctx context.Context) {
				for ctx.Err() == nil {
					life, end := context.WithCancel(ctx)
					kill.Store(end)
					lives.Add(1)
					for c := range conversations {
						f.Offer(fmt.Sprint("c", c))
					}
					offering := make(chan struct{})
					go func() { // as commits do
						defer close(offering)
						for every := time.NewTicker(5 * time.Millisecond); ; {
							select {
							case <-every.C:
								f.Offer(fmt.Sprint("c", rand.IntN(conversations)))
							case <-life.Done():
								every.Stop()
								return
							}
						}
					}()
					if err := f.Run(life); err != nil {
						t.Error(err)
					}
					end()
					<-offering
				}
			}
		}

		nodes, stop := context.WithCancel(ctx)
		var running, adding sync.WaitGroup
		for i, st := range []*store.Store{s, storetest.Another(t, s)} {
			run := node(st, uint64(i))
			running.Go(func() { run(nodes) })
		}
		for c := range conversations {
			for a := range adders {
				adding.Go(func() {
					l := chat.Line{ID: fmt.Sprintf("i@-%d", a), Role: chat.LineUser, Text: "#@ word", At: epoch}
					keys := []string{r.key(fmt.Sprint("c", c)), r.key(fmt.Sprint("c", c)) + ":n"}
					for range each {
						if err := numbered.Run(ctx, s.Client, keys, history.Encode(l)).Err(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		added := make(chan struct{})
		go func() { adding.Wait(); close(added) }()
		for over := false; !over; { // at every moment
			select {
			case <-added:
				over = true
			default:
			}
			for c := range conversations {
				r.check(fmt.Sprint("c", c), -1)
			}
		}
		storetest.Eventually(t, "all that is long is folded", func() error {
			for c := range conversations {
				if n := len(r.past(fmt.Sprint("c", c)).Lines); n > 10 {
					return fmt.Errorf("%d lines are not folded", n)
				}
			}
			return nil
		})
		stop()
		running.Wait()
		for c := range conversations {
			r.check(fmt.Sprint("c", c), adders*each)
		}
		t.Logf("%d calls lost, %d lives, %d model calls, %d folds, %d came too late", lost.Load(), lives.Load(), calls.Load(), folds.Load(), changed.Load())
		if lost.Load() == 0 || lives.Load() < 4 || changed.Load() == 0 || folds.Load() == 0 {
			t.Error("the test shows nothing")
		}
	})
}
