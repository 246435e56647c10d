package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rig is a fake Discord, an inbox behind the listener, and what nodes share.
type rig struct {
	t      *testing.T
	fake   *discordfake.Server
	pipe   *discordfake.Pipe
	shared *Memory
	inbox  *inbox

	ann, bob     discordfake.User
	guild, place string

	mu   sync.Mutex
	seen map[Outcome]int
	bots []*Bot
}

// An inbox stores messages once, as the real one does.
type inbox struct {
	mu       sync.Mutex
	messages []adapters.Message // each once
	stops    int
	again    int
	fault    func(m adapters.Message) error
}

type refusedError string

func (r refusedError) Error() string   { return "refused: " + string(r) }
func (r refusedError) Refused() string { return string(r) }

func (b *inbox) Submit(_ context.Context, m adapters.Message) (adapters.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault != nil {
		if err := b.fault(m); err != nil {
			return adapters.Receipt{}, err
		}
	}
	same := func(o adapters.Message) bool {
		return o.Message == m.Message && o.Edit == m.Edit && o.Kind == m.Kind && o.Conversation.Place == m.Conversation.Place
	}
	if slices.ContainsFunc(b.messages, same) {
		b.again++
		return adapters.Receipt{InputID: "in-" + m.Message, Duplicate: true}, nil
	}
	b.messages = append(b.messages, m)
	return adapters.Receipt{InputID: "in-" + m.Message}, nil
}

func (b *inbox) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	b.mu.Lock()
	b.stops++
	b.mu.Unlock()
	return b.Submit(ctx, m)
}

func (b *inbox) all() []adapters.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.messages)
}

func (b *inbox) ids() []string {
	var out []string
	for _, m := range b.all() {
		out = append(out, m.Message)
	}
	return out
}

// bubble runs a test in a synctest bubble with a rig.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))) // Discord's ids begin in 2015
		r := &rig{t: t, fake: discordfake.New(), pipe: discordfake.NewPipe(), shared: NewMemory(nil), inbox: &inbox{}, seen: map[Outcome]int{}}
		r.fake.Serve(r.pipe, "http://discord.test")
		r.ann, r.bob = r.fake.NewUser("ann"), r.fake.NewUser("bob")
		r.guild = r.fake.NewGuild("home", r.ann, r.bob)
		r.place = r.fake.NewChannel(r.guild, "general", discordfake.Text)
		defer r.fake.Close()
		defer r.hangUp()
		test(t, r)
	})
}

func (r *rig) options(change ...func(*Options)) Options {
	o := Options{
		BotToken: discordfake.Token, APIURL: r.fake.URL(), Dial: r.pipe.Dial,
		Leases: r.shared, Sessions: &r.shared.LocalSessions, Places: r.shared, Claims: r.shared, Notes: r.shared, Marks: r.shared, Budget: r.shared,
		Chance: func() float64 { return 0.5 }, Logger: slog.New(slog.NewTextHandler(logTo{r.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Hooks: Hooks{Event: func(_ string, o Outcome) {
			r.mu.Lock()
			r.seen[o]++
			r.mu.Unlock()
		}},
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

var _ io.Writer = logTo{}

func (r *rig) discord(change ...func(*Options)) *Bot {
	r.t.Helper()
	d, err := New(r.options(change...))
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.bots = append(r.bots, d)
	r.mu.Unlock()
	return d
}

// hangUp closes what the bots keep for their next requests.
func (r *rig) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.bots {
		d.Close()
	}
}

var errStop = errors.New("the test stops it")

// start runs a listener and waits until it is connected. stop ends it.
func (r *rig) start(change ...func(*Options)) (d *Bot, stop func()) {
	r.t.Helper()
	d = r.discord(change...)
	return d, r.run(d)
}

func (r *rig) run(d *Bot) (stop func()) { return r.runOn(d, r.inbox) }

func (r *rig) runOn(d *Bot, inbox adapters.Inbox) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancelCause(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Listener.Run(ctx, inbox) }()
	r.connected()
	return sync.OnceFunc(func() {
		cancel(errStop)
		if err := <-ended; err != nil {
			r.t.Errorf("Run ended with %v", err)
		}
	})
}

func (r *rig) connected() {
	r.t.Helper()
	r.await("a session", func() bool { return r.fake.Stats().Connected > 0 })
	synctest.Wait()
}

// await lets time pass until cond holds.
func (r *rig) await(what string, cond func() bool) {
	r.t.Helper()
	synctest.Wait()
	from := time.Now()
	for step := 20 * time.Millisecond; !cond(); {
		if time.Since(from) > time.Hour {
			r.t.Fatalf("no %s within an hour", what)
		}
		if time.Since(from) > 5*time.Second {
			step = time.Second
		}
		time.Sleep(step) // of the bubble
		synctest.Wait()
	}
}

// heard waits for n messages in the inbox.
func (r *rig) heard(n int) []adapters.Message {
	r.t.Helper()
	r.await(fmt.Sprint(n, " messages"), func() bool { return len(r.inbox.all()) >= n })
	time.Sleep(time.Second)
	synctest.Wait()
	all := r.inbox.all()
	if len(all) != n {
		r.t.Fatalf("%d messages in the inbox, want %d: %+v", len(all), n, all)
	}
	return all
}

// quiet checks that nothing comes into the inbox.
func (r *rig) quiet() {
	r.t.Helper()
	n := len(r.inbox.all())
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if all := r.inbox.all(); len(all) != n {
		r.t.Fatalf("%+v came into the inbox", all[n:])
	}
}

func (r *rig) mentioned(text string) string { return r.fake.Mention() + " " + text }

func (r *rig) thread(id string) chat.Conversation {
	return chat.Conversation{Platform: Platform, Workspace: r.guild, Place: r.place, Thread: id}
}

func (r *rig) part(text string, change ...func(*adapters.Part)) adapters.Part {
	p := adapters.Part{ReplyID: "reply-1", Count: 1, Text: text, Kind: chat.ReplyAnswer, At: time.Now()}
	for _, f := range change {
		f(&p)
	}
	return p
}

// reactions are the bot's signs on a message.
func (r *rig) reactions(id string) string {
	m, _ := r.fake.Message(id)
	var out []string
	for emoji := range m.Reactions {
		out = append(out, emoji)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (r *rig) ctx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.t.Context(), 15*time.Second)
}
