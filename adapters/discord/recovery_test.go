package discord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/discord/gateway"
)

// 500 messages while the connection is cut 20 times, with requests to reconnect,
// sessions declared invalid, and a store that is away now and then: every one is
// submitted, none is heard twice, and each place keeps its order.
func TestNothingIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		rnd, faults := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 2))
		r.inbox.fault = func(adapters.Message) error {
			if faults.IntN(30) == 0 {
				return errors.New("away")
			}
			return nil
		}
		r.fake.SetLimit("", discordfake.Limit{})
		_, stop := r.start()
		dm := r.fake.DirectChannel(r.ann)
		var want []string
		for i := range 20 {
			for range 13 {
				want = append(want, r.fake.Say(dm, r.ann, "x").ID)
			}
			switch i % 4 {
			case 0:
				r.fake.AskReconnect()
			case 1:
				r.fake.InvalidateSessions(true)
			case 2:
				r.fake.InvalidateSessions(false) // then the gap is fetched
			}
			for range 12 {
				want = append(want, r.fake.Say(dm, r.ann, "y").ID)
			}
			r.fake.DropConnections()
			time.Sleep(time.Duration(rnd.IntN(9000)) * time.Millisecond)
		}
		r.await("all messages", func() bool { return len(r.inbox.all()) >= len(want) })
		time.Sleep(time.Minute)
		stop()
		got := r.inbox.ids()
		slices.SortFunc(got, compareIDs)
		if !slices.Equal(got, want) {
			t.Errorf("%d messages submitted, want %d, each once", len(got), len(want))
		}
	})
}

// Two nodes, one shard: the second takes over when the first stops, resumes, and
// hears what was said meanwhile.
func TestStandbyTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stopFirst := r.start()
		second := r.discord()
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- second.Listener.Run(ctx, r.inbox) }()
		dm := r.fake.DirectChannel(r.ann)
		var want []string
		for i := range 10 {
			if i == 5 {
				stopFirst()
			}
			want = append(want, r.fake.Say(dm, r.ann, "x").ID)
		}
		r.await("all messages", func() bool { return len(r.inbox.all()) == 10 })
		if got := r.inbox.ids(); !slices.Equal(got, want) {
			t.Errorf("submitted %v, want %v", got, want)
		}
		if s := r.fake.Stats(); s.Resumes != 1 || len(s.Identifies) != 1 {
			t.Errorf("%d resumes, %d identifies", s.Resumes, len(s.Identifies))
		}
		cancel(errStop)
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// After a session that could not be resumed the messages of live places are
// fetched, in the words in which the gateway would have told them.
func TestGap(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		m := r.fake.Say(r.place, r.ann, r.mentioned("begin"))
		dm := r.fake.DirectChannel(r.bob)
		r.fake.Say(dm, r.bob, "hi")
		gone := r.fake.Say(r.place, r.ann, r.mentioned("gone soon"))
		r.heard(3)
		stop()
		r.fake.ForgetSessions()
		r.fake.DeleteChannel(gone.ID)
		var want []string
		for i := range 120 {
			want = append(want, r.fake.Say(m.ID, r.ann, fmt.Sprint("missed ", i)).ID)
		}
		want = append(want, r.fake.Say(dm, r.bob, "missed too").ID, r.fake.Say(r.place, r.bob, r.mentioned("missed as well")).ID)
		r.fake.Say(r.place, r.bob, "not for the bot")
		time.Sleep(time.Hour)
		_, stop = r.start()
		defer stop()
		r.await("the missed messages", func() bool { return len(r.inbox.all()) >= 3+len(want) })
		r.quiet()
		for _, id := range want {
			if !slices.Contains(r.inbox.ids(), id) {
				t.Errorf("message %s is lost", id)
			}
		}
		for _, got := range r.inbox.all()[3:] {
			if got.Conversation.Place == r.place && got.Conversation.Workspace != r.guild {
				t.Errorf("got %+v, want it in its guild", got)
			}
		}
		st, err := r.shared.Load(t.Context(), gateway.Shard{ID: 0, Of: 1})
		if err != nil || st.SessionID == "" {
			t.Errorf("state %+v, %v", st, err)
		}
	})
}

// A gap is fetched again by whoever comes next, when the first one dies over it.
func TestGapSurvivesACrash(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		dm := r.fake.DirectChannel(r.ann)
		r.fake.Say(dm, r.ann, "hi")
		r.heard(1)
		stop()
		r.fake.ForgetSessions()
		missed := r.fake.Say(dm, r.ann, "missed")
		r.fake.Fail(discordfake.Fault{Route: "GET /channels/{channel}/messages", Status: 503})
		_, stop = r.start()
		time.Sleep(10 * time.Minute)
		live := r.fake.Say(dm, r.ann, "live")
		r.heard(2)
		stop()
		r.fake.Heal()
		_, stop = r.start()
		defer stop()
		if got := r.heard(3); !slices.Contains(r.inbox.ids(), missed.ID) || !slices.Contains(r.inbox.ids(), live.ID) {
			t.Errorf("heard %+v", got)
		}
	})
}

func TestFatal(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.AllowIntents(0)
		var fatal *gateway.Fatal
		if err := r.discord().Listener.Run(t.Context(), r.inbox); !errors.As(err, &fatal) || !strings.Contains(err.Error(), "Message Content Intent") {
			t.Errorf("Run ended with %v", err)
		}
		if err := r.discord(func(o *Options) { o.BotToken = "wrong" }).Listener.Run(t.Context(), r.inbox); !errors.As(err, &fatal) || !strings.Contains(err.Error(), "token") {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func TestShards(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.SetShards(3, 3)
		_, stop := r.start()
		defer stop()
		r.await("three sessions", func() bool { return r.fake.Stats().Connected == 3 })
		var want []string
		for i := range 6 {
			g := r.fake.NewGuild(fmt.Sprint("g", i), r.ann)
			want = append(want, r.fake.Say(r.fake.NewChannel(g, "c", discordfake.Text), r.ann, r.mentioned("hi")).ID)
			time.Sleep(time.Second)
		}
		got := r.heard(len(want))
		if len(got) != len(want) || r.inbox.again != 0 {
			t.Errorf("%d heard, %d again", len(got), r.inbox.again)
		}
	})
}
