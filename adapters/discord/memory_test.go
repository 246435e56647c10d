package discord

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"mimikit/adapters/discord/gateway"
	"mimikit/core/chat"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	m := NewMemory(func() time.Time { return now })
	ctx := t.Context()
	s := gateway.Shard{ID: 0, Of: 1}
	first, err := m.Acquire(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancelCause(ctx)
	cancel(errStop)
	if _, err := m.Acquire(short, s); !errors.Is(err, errStop) {
		t.Errorf("a held shard was leased: %v", err)
	}
	m.Revoke(s)
	<-first.Lost()
	second, err := m.Acquire(ctx, s)
	if err != nil || second.Fence() == first.Fence() {
		t.Fatalf("fences %q and %q, %v", first.Fence(), second.Fence(), err)
	}
	first.Release() // which is not its to give back any more
	if _, err := m.Acquire(short, s); !errors.Is(err, errStop) {
		t.Errorf("a held shard was leased: %v", err)
	}
	if err := m.Save(ctx, s, first.Fence(), gateway.State{}); !errors.Is(err, gateway.ErrFenced) {
		t.Errorf("the first holder could still write: %v", err)
	}
	second.Release()
	second.Release()
	if _, err := m.Acquire(ctx, s); err != nil {
		t.Error(err)
	}

	place := func(i int) chat.Conversation {
		return chat.Conversation{Platform: Platform, Place: strconv.Itoa(i)}
	}
	for i := range 5 {
		_ = m.Heard(ctx, place(i), idAt(now.Add(time.Duration(i)*time.Second)))
	}
	if got, _ := m.Live(ctx, now, 2); len(got) != 2 || got[0].Conversation != place(4) || got[0].Heard != idAt(now.Add(4*time.Second)) {
		t.Errorf("live %v", got)
	}
	if got, _ := m.Live(ctx, now.Add(time.Hour*24), 5); len(got) != 0 {
		t.Errorf("live %v", got)
	}
}

// One budget for all: five posts at once, one in a second then; less is left for
// what matters less; a refusal shuts it.
func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	m := NewMemory(func() time.Time { return now })
	draw := func(p Priority, patience time.Duration) time.Duration {
		w, err := m.Draw(t.Context(), Draw{Method: DrawPost, Place: "1", Priority: p}, patience)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for i, c := range []struct {
		p    Priority
		want time.Duration
	}{
		{Edit, 0}, {Edit, Never}, {Status, 0}, {Status, Never}, {Question, 0}, {Question, 0}, {Question, time.Second}, {Final, 0}, {Final, time.Second},
	} {
		if got := draw(c.p, 0); got != c.want {
			t.Errorf("draw %d of priority %d waits %v, want %v", i, c.p, got, c.want)
		}
	}
	if got := draw(Final, time.Second); got != time.Second {
		t.Errorf("waits %v", got)
	}
	if got := draw(Final, time.Hour); got != 2*time.Second {
		t.Errorf("waits %v, want its turn", got)
	}
	now = now.Add(10 * time.Second)
	_ = m.Limited(t.Context(), Draw{Method: DrawPost, Place: "1", Priority: Edit}, time.Minute)
	if got := draw(Final, 0); got != time.Minute {
		t.Errorf("waits %v after a refusal", got)
	}
	if got, _ := m.Draw(t.Context(), Draw{Method: DrawPost, Place: "2", Priority: Final}, 0); got != 0 {
		t.Errorf("another place waits %v", got)
	}
}

// Where people speak now and then the bot goes on taking part, on any node.
func TestTalksAreKept(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	m := NewMemory(clock)
	c := chat.Conversation{Platform: Platform, Workspace: "1", Place: "2", Thread: "3"}
	one := newTalks(m, clock)
	if err := one.keep(t.Context(), "3", c, true); err != nil {
		t.Fatal(err)
	}
	for day := range 10 {
		now = now.Add(40 * 24 * time.Hour)
		on := one
		if day%3 == 0 {
			on = newTalks(m, clock)
		}
		if got, read, ok, err := on.find(t.Context(), "3"); got != c || !read || !ok || err != nil {
			t.Fatalf("after %d days: %v, %v, %v, %v", 40*(day+1), got, read, ok, err)
		}
	}
	now = now.Add(talkKept)
	if _, _, ok, _ := newTalks(m, clock).find(t.Context(), "3"); ok {
		t.Error("what nobody speaks in is kept for ever")
	}
	_ = m.SetNote(t.Context(), "discord/talk/4", "nonsense", time.Hour)
	_ = m.SetNote(t.Context(), "discord/talk/5", `{"conversation":"a/b"}`, time.Hour)
	for _, id := range []string{"4", "5", "6"} {
		if _, _, ok, err := one.find(t.Context(), id); ok || err != nil {
			t.Errorf("%s: %v, %v", id, ok, err)
		}
	}
	one.young = map[string]talk{}
	for i := range 3 * talksKnown {
		_ = one.keep(t.Context(), strconv.Itoa(i), c, true)
	}
	if n := len(one.young) + len(one.older); n > 2*talksKnown {
		t.Errorf("%d are remembered", n)
	}
}
