package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest"
	"mimikit/core/chat"
	"mimikit/core/feed"
	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
	"mimikit/core/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(t *testing.T, try func(*testing.T, adaptertest.Rig)) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(epoch))
			c := newConformer(t, storetest.Mini(t))
			c.pass = func(d time.Duration) { time.Sleep(d); synctest.Wait() }
			c.lacks[adaptertest.HasLosses] = "a Redis in memory loses no connection"
			try(t, c)
		})
	})
}

// On a real server behind a network that loses what the check wants it to. Time is
// real here, so that what must not happen has less of it to happen in.
func TestConformanceOnRedis(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	server := storetest.NewServer(t)
	adaptertest.Run(t, func(t *testing.T, try func(*testing.T, adaptertest.Rig)) {
		t.Parallel()
		proxy, err := faultproxy.New(server.Addr(), faultproxy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = proxy.Close() })
		c := newConformer(t, storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{proxy.Addr()}}))
		c.proxy = proxy
		c.pass = func(time.Duration) {
			wait := time.NewTimer(20 * time.Millisecond)
			<-wait.C
		}
		c.lacks[adaptertest.HasLapse] = "the clock is the real one"
		try(t, c)
	})
}

// A conformer is the rig of the conformance suite: one person's terminal.
type conformer struct {
	t     *testing.T
	feed  *feed.Feed
	lacks map[adaptertest.Ability]string
	pass  func(time.Duration)
	proxy *faultproxy.Proxy

	mu   sync.Mutex
	said int
	keys chan string // what is entered; nil while no terminal is open
	next adaptertest.Failure
}

func newConformer(t *testing.T, s *store.Store) *conformer {
	key := storetest.Prefix(t)
	return &conformer{
		t: t,
		feed: feed.New(feed.Options{
			Client: s.Client, Blocking: s.Blocking, Key: func(c string) string { return "{" + key + "}:" + c },
		}),
		lacks: map[adaptertest.Ability]string{
			adaptertest.HasPlaces:    "one person is at a terminal",
			adaptertest.HasBots:      "one person is at a terminal",
			adaptertest.HasRedeliver: "what was entered stays with the terminal until it is stored",
			adaptertest.HasEdits:     "what was entered stays as it is",
			adaptertest.HasStopWord:  "a terminal has a command for it",
			adaptertest.HasBells:     "a text cannot ring anybody",
			adaptertest.HasButtons:   "they become a numbered list",
			adaptertest.HasRateLimit: "Redis has none",
			adaptertest.HasRefusal:   "Redis takes what it is given",
			adaptertest.HasSigns:     "the terminal itself says that it waits",
		},
	}
}

func (c *conformer) Lacks(a adaptertest.Ability) string { return c.lacks[a] }

// A counter gives messages the numbers of the lines that they were, since a
// terminal makes their ids itself.
type counter struct {
	adapters.Inbox
	mu    sync.Mutex
	from  int
	known map[string]string // :: id of the terminal → number
}

func (n *counter) Submit(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	n.mu.Lock()
	if n.known[m.Message] == "" {
		n.known[m.Message] = fmt.Sprint("line ", n.from+len(n.known))
	}
	m.Message = n.known[m.Message]
	n.mu.Unlock()
	return n.Inbox.Submit(ctx, m)
}

func (c *conformer) Listen(inbox adapters.Inbox) (stop func()) {
	in, out := io.Pipe()
	keys := make(chan string, 1000)
	c.mu.Lock()
	c.keys = keys
	n := &counter{Inbox: inbox, from: c.said, known: map[string]string{}}
	c.mu.Unlock()
	term := New(Options{
		Inbox: n, Feed: c.feed, User: "ann", Wait: 24 * time.Hour, In: in, Out: io.Discard, Err: io.Discard, Environ: []string{},
	})
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- term.Run(ctx) }()
	var typing sync.WaitGroup
	typing.Go(func() {
		for line := range keys {
			_, _ = io.WriteString(out, line+"\n") // a terminal that was closed reads no more
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, ErrNoAnswer) {
			c.t.Errorf("the terminal ended with %v", err)
		}
		c.mu.Lock()
		c.keys = nil
		c.mu.Unlock()
		close(keys)
		_ = out.Close()
		typing.Wait()
	})
}

func (c *conformer) Say(s adaptertest.Said) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := fmt.Sprint("line ", c.said)
	c.said++
	if c.keys != nil { // else it is chatter while no terminal is open
		c.keys <- s.Text
	}
	return id
}

func (c *conformer) Redeliver(string)    { c.t.Fatal(c.lacks[adaptertest.HasRedeliver]) }
func (c *conformer) Edit(string, string) { c.t.Fatal(c.lacks[adaptertest.HasEdits]) }
func (c *conformer) Delete(string)       { c.t.Fatal(c.lacks[adaptertest.HasEdits]) }
func (c *conformer) Bells() []string     { return nil }

func (c *conformer) Conversation(adaptertest.Where) chat.Conversation { return talk }

func (c *conformer) Poster() adapters.Poster { return &unlucky{Poster: NewPoster(c.feed), c: c} }

func (c *conformer) Fail(f adaptertest.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = f
}

// An unlucky poster has a network that fails when it is told to.
type unlucky struct {
	*Poster
	c *conformer
}

func (u *unlucky) Post(ctx context.Context, to chat.Conversation, part adapters.Part) (string, error) {
	u.c.mu.Lock()
	next := u.c.next
	u.c.next = 0
	u.c.mu.Unlock()
	switch next {
	case adaptertest.LoseAnswer:
		u.c.proxy.SwallowNext(1)
	case adaptertest.LosePost:
		u.c.proxy.Block(true)
		defer u.c.proxy.Block(false)
	}
	return u.Poster.Post(ctx, to, part)
}

func (c *conformer) Shown(in chat.Conversation) []adaptertest.Shown {
	m, err := c.feed.Missed(c.t.Context(), in.Key(), "nobody", 1000)
	if err != nil {
		c.t.Fatal(err)
	}
	var list []adaptertest.Shown
	for _, e := range m.Entries {
		list = append(list, adaptertest.Shown{ID: e.StreamID, Text: e.Item.Text})
	}
	return list
}

func (c *conformer) Feedback() adapters.Feedback { return NewPoster(c.feed) }

var errSeen = errors.New("seen")

// Working follows the feed from now on, which begins with the status that stands.
func (c *conformer) Working(in chat.Conversation) bool {
	last, err := c.feed.Last(c.t.Context(), in.Key())
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	status := ""
	err = c.feed.Follow(ctx, in.Key(), last, 10*time.Millisecond, func(_ string, it feed.Item) error {
		status = it.Text
		return errSeen
	})
	if !errors.Is(err, errSeen) && ctx.Err() == nil {
		c.t.Fatal(err)
	}
	return status != ""
}

func (c *conformer) Pass(d time.Duration) { c.pass(d) }
