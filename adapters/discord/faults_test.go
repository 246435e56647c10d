package discord

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/discord/gateway"
)

// Whatever the gateway does, the bot hears again in the end, once each and without
// a new session where the old one lives; or it ends with what is to be mended.
func TestGatewayFaults(t *testing.T) {
	for name, f := range map[string]struct {
		harm, mend func(f *discordfake.Server)
		fresh      bool // the session cannot live on
	}{
		"op 7 first":      {harm: func(f *discordfake.Server) { f.AskReconnectFirst(5); f.DropConnections() }},
		"op 7":            {harm: func(f *discordfake.Server) { f.AskReconnect() }},
		"silence":         {harm: func(f *discordfake.Server) { f.Mute(true) }, mend: func(f *discordfake.Server) { f.Mute(false) }},
		"zombie":          {harm: func(f *discordfake.Server) { f.WithholdAcks(true) }, mend: func(f *discordfake.Server) { f.WithholdAcks(false) }},
		"resume ignored":  {harm: func(f *discordfake.Server) { f.IgnoreHello(1); f.DropConnections() }, fresh: true},
		"bad JSON":        {harm: func(f *discordfake.Server) { f.SendRaw([]byte(`{"op":0,"t":"MESSAGE_CREATE","s":`)) }},
		"binary nonsense": {harm: func(f *discordfake.Server) { f.SendRaw([]byte("\x00\xff\x1b")) }},
		"op 9, resumable": {harm: func(f *discordfake.Server) { f.InvalidateSessions(true) }},
		"op 9":            {harm: func(f *discordfake.Server) { f.InvalidateSessions(false) }, fresh: true},
		"4000":            {harm: func(f *discordfake.Server) { f.CloseConnections(4000) }},
		"4009":            {harm: func(f *discordfake.Server) { f.CloseConnections(4009) }, fresh: true},
		"1001":            {harm: func(f *discordfake.Server) { f.CloseConnections(1001) }},
		"events twice":    {harm: func(f *discordfake.Server) { f.SendTwice(true); f.DropConnections() }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				_, stop := r.start()
				defer stop()
				dm := r.dm().Place
				want := []string{r.fake.Say(dm, r.ann, "before").ID}
				r.heard(1)
				dials := r.fake.Stats().Dials
				f.harm(r.fake)
				want = append(want, r.fake.Say(dm, r.ann, "meanwhile").ID)
				r.await("a new attempt", func() bool { return r.fake.Stats().Dials > dials })
				if f.mend != nil {
					f.mend(r.fake)
				}
				want = append(want, r.fake.Say(dm, r.ann, "after").ID)
				r.heard(3)
				if got := r.inbox.ids(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
					t.Errorf("heard %v, want %v", got, want)
				}
				if n := len(r.fake.Stats().Identifies); (n > 1) != f.fresh {
					t.Errorf("%d sessions were begun", n)
				}
			})
		})
	}
}

// A fatal code is tried once, however long one waits.
func TestFatalFaults(t *testing.T) {
	for code, word := range map[int]string{4004: "token", 4010: "shard", 4011: "shards", 4012: "release", 4013: "intents", 4014: "Message Content Intent"} {
		t.Run(word, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				_, stop := r.start()
				stop()
				r.fake.ForgetSessions()
				dials := r.fake.Stats().Dials
				r.fake.RefuseIdentify(code)
				err := r.discord().Listener.Run(t.Context(), r.inbox)
				var fatal *gateway.Fatal
				if !errors.As(err, &fatal) || fatal.Code != code || !strings.Contains(err.Error(), word) || fatal.Mend == "" {
					t.Errorf("Run ended with %v", err)
				}
				time.Sleep(time.Hour)
				if n := r.fake.Stats().Dials - dials; n != 2 { // the resume that failed, and the identify
					t.Errorf("%d dials, want 2", n)
				}
			})
		})
	}
}

// Two nodes: the holder is cut off, and dies without keeping its last state. The
// other takes over, resumes from what was kept, and what comes again is known.
func TestTheHolderIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		cut := make(chan struct{})
		first := r.discord(func(o *Options) {
			o.Sessions = &severed{Sessions: o.Sessions, cut: cut}
		})
		stopFirst := r.run(first)
		dm := r.dm().Place
		var want []string
		say := func(n int) {
			for range n {
				want = append(want, r.fake.Say(dm, r.ann, "x").ID)
			}
		}
		say(3)
		r.heard(3)
		time.Sleep(5 * time.Second)
		close(cut) // from here on nothing of what it does is kept
		say(4)
		r.heard(7)
		second := r.discord()
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- second.Listener.Run(ctx, r.inbox) }()
		synctest.Wait()
		if s := second.Listener.State(); s.Held != 0 || !second.Listener.Ready() {
			t.Errorf("the standby is %+v, want one that waits", s)
		}
		from := time.Now()
		r.shared.Revoke(gateway.Shard{ID: 0, Of: 1})
		say(5)
		r.await("a take-over", func() bool { return second.Listener.State().Connected == 1 })
		if took := time.Since(from); took > 10*time.Second {
			t.Errorf("taken over after %v", took)
		}
		r.heard(len(want))
		if got := r.inbox.ids(); !slices.Equal(got, want) {
			t.Errorf("heard %v, want %v", got, want)
		}
		if r.inbox.again == 0 {
			t.Error("nothing came again, though the last state was not kept")
		}
		if s := r.fake.Stats(); len(s.Identifies) != 1 || s.Connected != 1 {
			t.Errorf("%d sessions were begun, %d are connected", len(s.Identifies), s.Connected)
		}
		if s := first.Listener.State(); s.Held != 0 {
			t.Errorf("the first still believes to hold the shard: %+v", s)
		}
		stopFirst()
		say(1)
		r.heard(len(want))
		cancel(errStop)
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// severed are sessions that can be read by all, and not be written any more once
// they are cut off.
type severed struct {
	gateway.Sessions
	cut chan struct{}
}

func (s *severed) Save(ctx context.Context, shard gateway.Shard, fence string, st gateway.State) error {
	select {
	case <-s.cut:
		return errors.New("cut off")
	default:
		return s.Sessions.Save(ctx, shard, fence, st)
	}
}

// What cannot be stored comes again, and until then no state is kept that says it
// was; what else is said waits behind it.
func TestTheStoreIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		dm := r.dm().Place
		r.fake.Say(dm, r.ann, "before")
		r.heard(1)
		time.Sleep(5 * time.Second)
		kept := func() int64 {
			st, err := r.shared.Load(t.Context(), gateway.Shard{ID: 0, Of: 1})
			if err != nil {
				t.Fatal(err)
			}
			return st.Seq
		}
		before := kept()
		r.inbox.mu.Lock()
		r.inbox.fault = func(adapters.Message) error { return errors.New("away") }
		r.inbox.mu.Unlock()
		for range 5 {
			r.fake.Say(dm, r.ann, "meanwhile")
		}
		time.Sleep(3 * time.Minute)
		if now := kept(); now != before {
			t.Errorf("sequence %d is kept, though nothing was stored after %d", now, before)
		}
		r.inbox.mu.Lock()
		r.inbox.fault = nil
		r.inbox.mu.Unlock()
		r.heard(6)
		time.Sleep(5 * time.Second)
		if now := kept(); now < before+5 {
			t.Errorf("sequence %d is kept in the end", now)
		}
	})
}
