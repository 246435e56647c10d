package slack

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An inbox keeps what it is offered, once.
type inbox struct {
	mu    sync.Mutex
	list  []adapters.Message
	stops []adapters.Message
	known map[string]bool
	tries int
	err   error // of every offer
	slow  time.Duration
}

type refusal struct{}

func (refusal) Error() string   { return "refused" }
func (refusal) Refused() string { return "That is too much for me." }

func (b *inbox) Submit(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return b.take(ctx, m, false)
}

func (b *inbox) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return b.take(ctx, m, true)
}

func (b *inbox) take(ctx context.Context, m adapters.Message, stop bool) (adapters.Receipt, error) {
	if b.slow > 0 {
		if err := pause(ctx, b.slow); err != nil {
			return adapters.Receipt{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if b.err != nil {
		return adapters.Receipt{}, b.err
	}
	key := m.Conversation.Place + "/" + m.Message + "/" + m.Edit
	if m.Kind == chat.KindDelete {
		key += "deleted"
	}
	r := adapters.Receipt{InputID: key, Duplicate: b.known[key]}
	if b.known == nil {
		b.known = map[string]bool{}
	}
	b.known[key] = true
	if r.Duplicate {
		return r, nil
	}
	if stop {
		b.stops = append(b.stops, m)
	} else {
		b.list = append(b.list, m)
	}
	return r, nil
}

func (b *inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *inbox) all() []adapters.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.list)
}

func (b *inbox) stopped() []adapters.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.stops)
}

func (b *inbox) texts() []string {
	var list []string
	for _, m := range b.all() {
		list = append(list, m.Text)
	}
	return list
}

// A rig is a workspace and the bot in it. It lives in a bubble of fake time.
type rig struct {
	t     *testing.T
	fake  *slackfake.Server
	wire  *wire
	bot   *Bot
	inbox *inbox
	mem   *Memory
	seen  *seen
	stop  context.CancelFunc
	ended chan error
}

// seen counts what the hooks are told.
type seen struct {
	mu sync.Mutex
	n  map[string]int
}

func (s *seen) add(words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[strings.Join(words, " ")]++
}

func (s *seen) count(words string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[words]
}

// in runs a test in a bubble, with everything ended at its end.
func in(t *testing.T, o Options, f func(t *testing.T, r *rig), server ...func(*slackfake.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		r := setup(t, o, server...)
		defer r.end()
		f(t, r)
	})
}

func setup(t *testing.T, o Options, server ...func(*slackfake.Options)) *rig {
	t.Helper()
	// Long after the time at which bubbles begin, so that time stamps have the
	// length that they have today.
	time.Sleep(time.Until(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)))
	r := &rig{t: t, wire: newWire(), inbox: &inbox{}, mem: NewMemory(nil), seen: &seen{n: map[string]int{}}}
	so := slackfake.Options{Listener: r.wire, Host: "slack.fake"}
	for _, f := range server {
		f(&so)
	}
	var err error
	if r.fake, err = slackfake.Start(so); err != nil {
		t.Fatal(err)
	}
	r.bot = r.newBot(o)
	return r
}

// newBot makes a bot; more than one of a rig share what nodes share.
func (r *rig) newBot(o Options) *Bot {
	r.t.Helper()
	o.BotToken, o.AppToken, o.SigningSecret = slackfake.BotToken, slackfake.AppToken, slackfake.Secret
	o.APIURL, o.Dial = r.fake.URL(), r.wire.Dial
	if o.Threads == nil {
		o.Threads = r.mem
	}
	o.Places, o.Claims, o.Notes, o.Marks = r.mem, r.mem, r.mem, r.mem
	if o.Budget == nil {
		o.Budget = r.mem
	}
	if o.Slots == nil {
		o.Slots = r.mem.Slots(4)
	}
	o.Chance = func() float64 { return 0.5 }
	o.Hooks = Hooks{
		Event:  func(kind string, out Outcome) { r.seen.add(kind, string(out)) },
		Socket: func(c SocketChange) { r.seen.add("socket", string(c)) },
		Call:   func(_ context.Context, method, outcome string, _ time.Duration) { r.seen.add("call", method, outcome) },
	}
	if testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(r.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	b, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// run lets the bot listen.
func (r *rig) run() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	r.stop, r.ended = cancel, make(chan error, 1)
	go func() { r.ended <- r.bot.Listener.Run(ctx, r.inbox) }()
	synctest.Wait()
}

// rest stops the bot.
func (r *rig) rest() {
	r.t.Helper()
	if r.stop == nil {
		return
	}
	r.stop()
	if err := <-r.ended; err != nil {
		r.t.Errorf("the listener ended with %v", err)
	}
	r.stop = nil
}

func (r *rig) end() {
	r.t.Helper()
	r.rest()
	if n := r.fake.Sockets(); n != 0 && r.bot.o.Mode == SocketMode {
		synctest.Wait()
		if n := r.fake.Sockets(); n != 0 {
			r.t.Errorf("%d sockets are left open", n)
		}
	}
	r.bot.Close()
	r.fake.Close()
	_ = r.wire.Close()
	synctest.Wait()
}

// wait lets time pass until all is quiet.
func (r *rig) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// one gives the only message that was stored.
func (r *rig) one() adapters.Message {
	r.t.Helper()
	synctest.Wait()
	list := r.inbox.all()
	if len(list) != 1 {
		r.t.Fatalf("%d messages are stored, want 1: %q", len(list), r.inbox.texts())
	}
	return list[0]
}

// stored checks what is stored, in whatever order, and that everything is
// acknowledged.
func (r *rig) stored(want ...string) {
	r.t.Helper()
	r.wait(time.Second)
	got := r.inbox.texts()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("stored %q\n want %q", got, want)
	}
	if n := r.fake.Unacked(); n != 0 {
		r.t.Errorf("%d events are not acknowledged", n)
	}
}

func place(id string) chat.Conversation {
	return chat.Conversation{Platform: "slack", Workspace: slackfake.TeamID, Place: id}
}

func inThread(id, root string) chat.Conversation {
	c := place(id)
	c.Thread = root
	return c
}

const town = "C0TOWN"

// addPlaces adds a DM, a group DM and a second user.
func (r *rig) addPlaces() {
	r.fake.AddUser(slackfake.User{ID: "U0BOB", Name: "Bob", Admin: true})
	r.fake.Invite(town, "U0BOB")
	r.fake.AddChannel(slackfake.Channel{ID: "D0ANN", Kind: "im", Members: []string{"U0ANN", slackfake.BotUser}})
	r.fake.AddChannel(slackfake.Channel{ID: "G0TRIO", Kind: "mpim", Members: []string{"U0ANN", "U0BOB", slackfake.BotUser}})
}

// client speaks HTTP over the wire of another server.
func client(w *wire) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: w.Dial, DisableKeepAlives: true}}
}

func numbered(n int) string { return fmt.Sprintf("message %03d", n) }

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
