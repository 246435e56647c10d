package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEventsComeInOrder(t *testing.T) {
	for _, compress := range []bool{false, true} {
		t.Run(fmt.Sprint("compress=", compress), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				stop := r.start(func(o *Options) { o.Compress = compress })
				r.connected()
				want := r.say(300)
				r.await("messages", func() bool { return len(r.has()) >= len(want) })
				if got := r.has(); !slices.Equal(got, want) {
					t.Errorf("%d messages stored, want the %d said, in order", len(got), len(want))
				}
				r.stopped(stop)
				if st, _ := r.sess.Load(t.Context(), Shard{0, 1}); st.Seq != r.storedSeq[r.session] || st.SessionID != r.session {
					t.Errorf("kept %+v, want sequence %d of %s", st, r.storedSeq[r.session], r.session)
				}
			})
		})
	}
}

// 500 messages while the connection is cut 20 times, with requests to reconnect
// and sessions declared invalid, and a handler that fails at times.
func TestNothingIsLostOnBadLines(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				rnd, faults := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
				r.fault = func(e Event) error {
					if e.Type == "MESSAGE_CREATE" && faults.IntN(40) == 0 {
						return errors.New("the store is away")
					}
					return nil
				}
				stop := r.start(func(o *Options) { o.Compress = seed%2 == 1 })
				r.connected()
				var want []string
				for i := range 20 {
					want = append(want, r.say(12)...)
					switch i % 5 {
					case 1:
						r.fake.AskReconnect()
					case 3:
						r.fake.InvalidateSessions(true)
					}
					want = append(want, r.say(13)...)
					if i%2 == 0 {
						r.fake.DropAfter(1 + rnd.IntN(5))
					} else {
						r.fake.DropConnections()
					}
					time.Sleep(time.Duration(rnd.IntN(8000)) * time.Millisecond)
				}
				r.await("all messages", func() bool { return len(r.has()) >= len(want) })
				got := r.has()
				if !slices.Equal(got, want) {
					t.Errorf("stored %d messages, want the %d said, each once and in order", len(got), len(want))
				}
				r.stopped(stop)
				s := r.fake.Stats()
				if s.Resumes < 20 || len(s.Identifies) != 1 {
					t.Errorf("%d resumes and %d identifies, want at least 20 and 1", s.Resumes, len(s.Identifies))
				}
			})
		})
	}
}

func TestAnotherNodeResumes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		stop := r.start()
		r.connected()
		want := r.say(3)
		r.await("messages", func() bool { return len(r.has()) == 3 })
		r.stopped(stop)
		want = append(want, r.say(4)...) // while nobody is connected
		stop = r.start()
		r.await("the missed messages", func() bool { return len(r.has()) == 7 })
		r.stopped(stop)
		if got := r.has(); !slices.Equal(got, want) {
			t.Errorf("stored %v, want %v", got, want)
		}
		if s := r.fake.Stats(); s.Resumes != 1 || len(s.Identifies) != 1 {
			t.Errorf("%d resumes, %d identifies, want 1 and 1", s.Resumes, len(s.Identifies))
		}
		if len(r.lost) != 1 { // of the very first session
			t.Errorf("told %d times of lost events, want once", len(r.lost))
		}
	})
}

// A node that died without a word has kept an older sequence; what came after it
// comes again.
func TestAfterAKill(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, kill := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- New(r.options()).Run(ctx, r.handle) }()
		r.connected()
		time.Sleep(2 * time.Second)
		want := r.say(5)
		r.await("messages", func() bool { return len(r.has()) == 5 })
		r.mu.Lock()
		r.saveErr = errors.New("killed") // the last state is not kept
		r.mu.Unlock()
		kill(errStop)
		if err := <-ended; !errors.Is(err, errStop) {
			t.Errorf("Run ended with %v", err)
		}
		r.mu.Lock()
		r.saveErr = nil
		r.mu.Unlock()
		want = append(want, r.say(2)...)
		stop := r.start()
		r.await("the missed messages", func() bool { return slices.Contains(r.has(), want[6]) })
		r.stopped(stop)
		for _, id := range want {
			if !slices.Contains(r.has(), id) {
				t.Errorf("message %s is lost", id)
			}
		}
	})
}

func TestLostSessionsAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		stop := r.start()
		r.connected()
		r.say(1)
		r.await("the message", func() bool { return len(r.has()) == 1 })
		until := time.Now()
		r.stopped(stop)
		time.Sleep(time.Hour)
		r.fake.ForgetSessions()
		var fill func()
		stop = r.start(func(o *Options) {
			o.Lost = func(since time.Time, filled func()) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.lost = append(r.lost, since)
				fill = filled
			}
		})
		r.connected()
		if since := r.lost[len(r.lost)-1]; since.After(until) || until.Sub(since) > time.Minute {
			t.Errorf("events are said to be missing since %v; the last was stored by %v", since, until)
		}
		// The gap stays known until it is filled, whatever happens.
		r.stopped(stop)
		stop = r.start(func(o *Options) {
			o.Lost = func(since time.Time, filled func()) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.lost = append(r.lost, since)
				fill = filled
			}
		})
		r.connected()
		n := len(r.lost)
		if n < 3 || !r.lost[n-1].Equal(r.lost[n-2]) {
			t.Errorf("told of %v, want the last gap again", r.lost)
		}
		fill()
		r.say(1)
		time.Sleep(2 * time.Second)
		r.stopped(stop)
		if st, _ := r.sess.Load(t.Context(), Shard{0, 1}); !st.Lost.IsZero() {
			t.Errorf("the filled gap is kept: %+v", st)
		}
	})
}

func TestStaleOwnersStop(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.sess.Fence(Shard{0, 1}, "mine")
		ended := make(chan error, 1)
		go func() {
			ended <- New(r.options(func(o *Options) { o.Fence = "mine" })).Run(t.Context(), r.handle)
		}()
		r.connected()
		r.sess.Fence(Shard{0, 1}, "theirs")
		r.say(1)
		if err := <-ended; !errors.Is(err, ErrFenced) {
			t.Errorf("Run ended with %v, want ErrFenced", err)
		}
		if r.fake.Stats().Sessions != 1 {
			t.Error("the session was ended, not left to the new owner")
		}
	})
}

// Nothing is stored while the store is away, attempts get fewer, and everything
// comes in the end.
func TestTheStoreIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		away := true
		r.fault = func(e Event) error {
			if away && e.Type == "MESSAGE_CREATE" {
				return errors.New("away")
			}
			return nil
		}
		stop := r.start()
		r.connected()
		want := r.say(50)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		r.mu.Lock()
		if len(r.stored) != 0 {
			t.Errorf("%d messages are stored by a store that is away", len(r.stored))
		}
		away = false
		r.mu.Unlock()
		if s := r.fake.Stats(); s.Resumes < 3 || s.Resumes > 20 || len(s.Identifies) != 1 {
			t.Errorf("%d resumes and %d identifies in five minutes", s.Resumes, len(s.Identifies))
		}
		r.await("all messages", func() bool { return len(r.has()) >= 50 })
		if got := r.has(); !slices.Equal(got, want) {
			t.Errorf("stored %d, want 50 in order", len(got))
		}
		r.stopped(stop)
	})
}

// Heartbeats tell what is stored, and go on while the store takes its time.
func TestHeartbeatsTellWhatIsStored(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.SetHeartbeat(time.Second)
		var slow atomic.Bool
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- New(r.options()).Run(ctx, func(ctx context.Context, e Event) error {
				if slow.Load() {
					time.Sleep(10 * time.Second)
				}
				return r.handle(ctx, e)
			})
		}()
		r.connected()
		r.say(3)
		r.await("messages", func() bool { return len(r.has()) == 3 })
		time.Sleep(3 * time.Second)
		stored := r.storedSeq[r.session]
		slow.Store(true)
		if told := r.fake.Stats().BeatSeq; told != stored {
			t.Errorf("heartbeats told sequence %d, and %d is stored", told, stored)
		}
		beats := r.fake.Stats().Beats
		r.say(1)
		time.Sleep(8 * time.Second)
		s := r.fake.Stats()
		if s.BeatSeq != stored || s.Beats < beats+7 || s.Dials != 1 {
			t.Errorf("%d heartbeats told sequence %d on %d connections, while nothing after %d was stored", s.Beats-beats, s.BeatSeq, s.Dials, stored)
		}
		r.await("the slow one", func() bool { return len(r.has()) == 4 })
		cancel(errStop)
		if err := <-ended; !errors.Is(err, errStop) {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func TestIdentifiesAreSpacedOut(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.SetStartLimit(0, 20*time.Minute)
		from := time.Now()
		stop := r.start()
		r.await("an identify", func() bool { return len(r.fake.Stats().Identifies) > 0 })
		if took := time.Since(from); took < 20*time.Minute {
			t.Errorf("identified after %v, though none was left for 20 minutes", took)
		}
		r.stopped(stop)
	})
	t.Run("shards", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.fake.SetShards(3, 1)
			var stops []func() error
			for i := range 3 {
				stops = append(stops, r.start(func(o *Options) { o.Shard = Shard{i, 3} }))
			}
			r.await("three sessions", func() bool { return r.fake.Stats().Connected == 3 })
			at := r.fake.Stats().Identifies
			for i := 1; i < len(at); i++ {
				if at[i].Sub(at[i-1]) < 5*time.Second {
					t.Errorf("identified at %v and %v", at[i-1], at[i])
				}
			}
			for _, stop := range stops {
				r.stopped(stop)
			}
		})
	})
}

// A thousand reconnects leave nothing behind: the bubble ends only when every
// goroutine has.
func TestManyReconnects(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		stop := r.start()
		for i := range 1000 {
			r.connected()
			want := r.say(1)
			r.await("a message", func() bool { return slices.Contains(r.has(), want[0]) })
			if i%2 == 0 {
				r.fake.DropConnections()
			} else {
				r.fake.AskReconnect()
			}
			r.await("the end", func() bool { return r.fake.Stats().Dials > i+1 })
		}
		r.stopped(stop)
		if s := r.fake.Stats(); len(s.Identifies) != 1 {
			t.Errorf("%d identifies, want 1", len(s.Identifies))
		}
	})
}

// A resume goes to the address that Discord gave for it; when that one is dead, to
// the general one, with the same session.
func TestResumeAddress(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		stop := r.start()
		r.connected()
		r.stopped(stop)
		st, _ := r.sess.Load(t.Context(), Shard{0, 1})
		st.ResumeURL = strings.Replace(st.ResumeURL, "discord.test", "resume.test", 1)
		if err := r.sess.Save(t.Context(), Shard{0, 1}, "", st); err != nil {
			t.Fatal(err)
		}
		missed := r.say(1)
		var mu sync.Mutex
		var dialed []string
		stop = r.start(func(o *Options) {
			o.NetDial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				dialed = append(dialed, addr)
				if addr == "resume.test:80" {
					return nil, errors.New("no such host")
				}
				return r.pipe.Dial(ctx, network, addr)
			}
		})
		r.await("the message", func() bool { return slices.Contains(r.has(), missed[0]) })
		r.stopped(stop)
		if len(dialed) != 4 || dialed[0] != "resume.test:80" || dialed[3] != "discord.test:80" {
			t.Errorf("dialed %v", dialed)
		}
		if s := r.fake.Stats(); s.Resumes != 1 || len(s.Identifies) != 1 {
			t.Errorf("%d resumes, %d identifies", s.Resumes, len(s.Identifies))
		}
	})
}
