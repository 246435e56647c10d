package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/inbox"
	"mimikit/config"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/store/storetest"
)

// A board is a platform that keeps what is posted on it.
type board struct {
	mu       sync.Mutex
	answered map[string]int      // :: input id → answers
	notices  map[string][]string // :: place → their texts
	more     chan struct{}       // closed and replaced with every post
}

func newBoard() *board {
	return &board{answered: map[string]int{}, notices: map[string][]string{}, more: make(chan struct{})}
}

func (*board) Split(r chat.Reply) []adapters.Part {
	return []adapters.Part{{ReplyID: r.ID, Count: 1, Text: r.Text, Kind: r.Kind, InputIDs: r.InputIDs, At: r.CreatedAt}}
}

func (b *board) Post(_ context.Context, c chat.Conversation, p adapters.Part) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range p.InputIDs {
		b.answered[id]++
	}
	if p.Kind == chat.ReplyNotice {
		b.notices[c.Place] = append(b.notices[c.Place], p.Text)
	}
	close(b.more)
	b.more = make(chan struct{})
	return "m-" + p.ReplyID, nil
}

func (*board) Lookup(context.Context, chat.Conversation, adapters.Part) (string, error) {
	return "", nil
}

// await waits until what was posted satisfies a test's wish.
func (b *board) await(t *testing.T, what string, wish func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		b.mu.Lock()
		more, done := b.more, wish()
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-more:
		case <-limit.C:
			t.Fatalf("waited for %s", what)
		}
	}
}

// A gate is a model that answers nobody in one conversation before it is opened.
type gate struct {
	shut  string // its place
	open  chan struct{}
	calls atomic.Int64
}

func (g *gate) Complete(ctx context.Context, r llm.Request) (llm.Response, error) {
	if strings.Contains(r.Conversation, "/"+g.shut+"/") {
		g.calls.Add(1)
		select {
		case <-g.open:
		case <-ctx.Done():
			return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: ctx.Err()}
		}
	}
	return llm.Response{Text: "Noted.", Finish: "stop"}, nil
}

// One conversation is fed 10,000 messages while its model call hangs. What is
// over the bound is refused with one notice, what was accepted is answered, and
// nobody else waits.
func TestFlood(t *testing.T) {
	t.Parallel()
	st := storetest.Redis(t)
	cfg, err := config.Load("", []string{
		"MIMIKIT_DATA_DIR=" + t.TempDir(), "MIMIKIT_TELLER_DEBOUNCE=20ms",
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Redis.Prefix = storetest.Prefix(t)
	b, g := newBoard(), &gate{shut: "flooded", open: make(chan struct{})}
	app, err := newApp(t.Context(), cfg, slog.New(slog.DiscardHandler), st,
		onlyModel(g, "gate"), false, map[string]adapters.Poster{"board": b})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- app.Run(ctx, "") }()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})

	submit := func(place string, n int) (string, error) {
		r, err := app.inbox.Submit(ctx, adapters.Message{
			Conversation: chat.Conversation{Platform: "board", Workspace: "w", Place: place}, Kind: chat.KindMessage,
			Message: fmt.Sprint(n), Author: chat.Author{ID: "ann", Role: chat.RoleUser}, Text: fmt.Sprintf("message %d", n),
			Addressed: true, At: time.Now(),
		})
		return r.InputID, err
	}
	accepted := map[string]bool{}
	first, err := submit("flooded", 0)
	if err != nil {
		t.Fatal(err)
	}
	accepted[first] = true
	storetest.Eventually(t, "a turn in flight", func() error {
		if g.calls.Load() == 0 {
			return errors.New("the model was not asked")
		}
		return nil
	})

	const messages, senders, others = 10_000, 50, 20
	var refused atomic.Int64
	var mu sync.Mutex
	var sending sync.WaitGroup
	begun := time.Now()
	for s := range senders {
		sending.Go(func() {
			for n := s + 1; n <= messages; n += senders {
				id, err := submit("flooded", n)
				switch {
				case err == nil:
					mu.Lock()
					accepted[id] = true
					mu.Unlock()
				case errors.Is(err, inbox.ErrRefused):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	for i := range others {
		id, err := submit(fmt.Sprintf("other-%d", i), 0)
		if err != nil {
			t.Fatal(err)
		}
		b.await(t, "an answer beside the flood", func() bool { return b.answered[id] == 1 })
	}
	t.Logf("%d others were answered beside the flood in %v", others, time.Since(begun))
	sending.Wait()
	minutes := int(time.Now().Unix()/60 - begun.Unix()/60 + 1)
	// One is in the turn, 500 wait.
	if n := len(accepted); n != 1+cfg.Channel.MaxWaiting || int64(n)+refused.Load() != messages+1 {
		t.Errorf("%d accepted, %d refused; want %d of %d accepted", n, refused.Load(), 1+cfg.Channel.MaxWaiting, messages+1)
	}
	b.await(t, "a notice", func() bool { return len(b.notices["flooded"]) > 0 })

	close(g.open)
	b.await(t, "all answers", func() bool {
		for id := range accepted {
			if b.answered[id] == 0 {
				return false
			}
		}
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.answered) != len(accepted)+others {
		t.Errorf("%d inputs were answered, want %d", len(b.answered), len(accepted)+others)
	}
	for id, n := range b.answered {
		if n != 1 {
			t.Errorf("input %s was answered %d times", id, n)
		}
	}
	if got := b.notices["flooded"]; len(got) > minutes || !strings.Contains(got[0], "Too many messages") {
		t.Errorf("notices %q in %d minutes", got, minutes)
	}
	// There is room again.
	if _, err := submit("flooded", messages+1); err != nil {
		t.Error(err)
	}
}
