package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mimikit/adapters/adaptertest/discordfake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testIntents = 1<<0 | 1<<9 | 1<<12 | 1<<15

// watched are sessions that are checked on every write: what is kept must not be
// ahead of what the handler has stored.
type watched struct {
	LocalSessions
	r *rig
}

func (w *watched) Save(ctx context.Context, s Shard, fence string, st State) error {
	w.r.mu.Lock()
	if w.r.saveErr != nil {
		defer w.r.mu.Unlock()
		return w.r.saveErr
	}
	if top := w.r.storedSeq[st.SessionID]; st.Seq > top {
		w.r.t.Errorf("sequence %d of %s is kept, but only %d is stored", st.Seq, st.SessionID, top)
	}
	w.r.saves++
	w.r.mu.Unlock()
	return w.LocalSessions.Save(ctx, s, fence, st)
}

// A rig is a fake Discord with one place in it, and a handler that stores.
type rig struct {
	t    *testing.T
	fake *discordfake.Server
	pipe *discordfake.Pipe
	sess *watched
	gate *LocalGate

	guild, place string
	ann          discordfake.User

	mu        sync.Mutex
	session   string
	storedSeq map[string]int64 // :: session → highest stored
	stored    []string         // ids of messages, in the order in which they were stored
	types     []string
	lost      []time.Time
	observed  []string
	fault     func(e Event) error
	saveErr   error
	saves     int
}

// bubble runs a test in a synctest bubble with a rig.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))) // Discord's ids begin in 2015
		r := &rig{t: t, fake: discordfake.New(), pipe: discordfake.NewPipe(), gate: NewGate(), storedSeq: map[string]int64{}}
		r.sess = &watched{r: r}
		r.fake.Serve(r.pipe, "http://discord.test")
		r.ann = r.fake.NewUser("ann")
		r.guild = r.fake.NewGuild("home", r.ann)
		r.place = r.fake.NewChannel(r.guild, "general", discordfake.Text)
		defer r.fake.Close()
		test(t, r)
	})
}

func (r *rig) options(change ...func(*Options)) Options {
	o := Options{
		Token: discordfake.Token, Intents: testIntents, Shard: Shard{0, 1}, Sessions: r.sess, Gate: r.gate,
		NetDial: r.pipe.Dial, Rand: func() float64 { return 0.5 },
		Lost: func(since time.Time, filled func()) {
			r.mu.Lock()
			r.lost = append(r.lost, since)
			r.mu.Unlock()
			filled()
		},
		Observe: func(what string) {
			r.mu.Lock()
			r.observed = append(r.observed, what)
			r.mu.Unlock()
		},
		Start: func(ctx context.Context) (Start, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.fake.URL()+"/gateway/bot", nil)
			if err != nil {
				return Start{}, err
			}
			req.Header.Set("Authorization", "Bot "+discordfake.Token)
			req.Header.Set("User-Agent", "test")
			client := r.pipe.Client()
			defer client.CloseIdleConnections()
			resp, err := client.Do(req)
			if err != nil {
				return Start{}, err
			}
			defer resp.Body.Close()
			var b struct {
				URL   string `json:"url"`
				Limit struct {
					Remaining      int   `json:"remaining"`
					ResetAfter     int64 `json:"reset_after"`
					MaxConcurrency int   `json:"max_concurrency"`
				} `json:"session_start_limit"`
			}
			if err := json.NewDecoder(resp.Body).Decode(&b); err != nil {
				return Start{}, err
			}
			return Start{b.URL, b.Limit.Remaining, time.Duration(b.Limit.ResetAfter) * time.Millisecond, b.Limit.MaxConcurrency}, nil
		},
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

// handle stores messages, as a listener does.
func (r *rig) handle(_ context.Context, e Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != nil {
		if err := r.fault(e); err != nil {
			return err
		}
	}
	var d struct {
		ID        string `json:"id"`
		SessionID string `json:"session_id"`
	}
	_ = json.Unmarshal(e.Data, &d)
	r.types = append(r.types, e.Type)
	switch e.Type {
	case "READY":
		r.session = d.SessionID
	case "MESSAGE_CREATE":
		r.stored = append(r.stored, d.ID)
	}
	r.storedSeq[r.session] = max(r.storedSeq[r.session], e.Seq)
	return nil
}

// start runs a client until stop is called, which gives how Run ended.
func (r *rig) start(change ...func(*Options)) (stop func() error) {
	ctx, cancel := context.WithCancelCause(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(r.options(change...)).Run(ctx, r.handle) }()
	return func() error {
		cancel(errStop)
		return <-ended
	}
}

var errStop = errors.New("the test stops it")

// connected waits until the client has a session.
func (r *rig) connected() {
	r.t.Helper()
	r.await("a session", func() bool { return r.fake.Stats().Connected > 0 })
	synctest.Wait()
}

func (r *rig) await(what string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Hour); !cond(); {
		if time.Now().After(end) {
			r.t.Fatalf("no %s within an hour", what)
		}
		time.Sleep(50 * time.Millisecond) // of the bubble
		synctest.Wait()
	}
}

// say writes n messages and gives their ids.
func (r *rig) say(n int) []string {
	var ids []string
	for i := range n {
		ids = append(ids, r.fake.Say(r.place, r.ann, fmt.Sprint("message ", i)).ID)
	}
	return ids
}

func (r *rig) has() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stored)
}

func (r *rig) saw(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.observed, what)
}

// stopped checks that a client ended because it was asked to.
func (r *rig) stopped(stop func() error) {
	r.t.Helper()
	if err := stop(); !errors.Is(err, errStop) {
		r.t.Errorf("Run ended with %v", err)
	}
}
