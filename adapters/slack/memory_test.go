package slack

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"mimikit/core/chat"
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestTheBudget(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	m := NewMemory(c.now)
	draw := func(p Priority, patience time.Duration) time.Duration {
		t.Helper()
		w, err := m.Draw(t.Context(), Draw{Method: "chat.postMessage", Place: "C1", Priority: p}, patience)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := draw(Status, 0); w != 0 {
		t.Errorf("a status with a full budget waits %v", w)
	}
	for range 2 {
		draw(Final, 0)
	}
	// Two of five are left.
	if w := draw(Edit, time.Hour); w != Never {
		t.Errorf("an edit waits %v", w)
	}
	if w := draw(Status, time.Hour); w != Never {
		t.Errorf("a status waits %v", w)
	}
	if w := draw(Question, 0); w != 0 {
		t.Errorf("a question waits %v", w)
	}
	if w := draw(Question, 0); w != time.Second {
		t.Errorf("a second question waits %v", w)
	}
	if w := draw(Final, 0); w != 0 {
		t.Errorf("a reply waits %v", w)
	}
	if w := draw(Final, 0); w != time.Second {
		t.Errorf("another reply waits %v and does not draw", w)
	}
	if w := draw(Final, 10*time.Second); w != time.Second {
		t.Errorf("a patient reply waits %v", w)
	}
	if w := draw(Final, 10*time.Second); w != 2*time.Second {
		t.Errorf("the next patient reply waits %v", w)
	}
	c.at = c.at.Add(time.Minute)
	if w := draw(Edit, 0); w != 0 {
		t.Errorf("after a minute an edit waits %v", w)
	}
	d := Draw{Method: "chat.postMessage", Place: "C1", Priority: Final}
	if err := m.Limited(t.Context(), d, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if w := draw(Final, 0); w != 30*time.Second {
		t.Errorf("while Slack refuses, a reply waits %v", w)
	}
	d.Place = "C2"
	if w, _ := m.Draw(t.Context(), d, 0); w != 0 {
		t.Errorf("another place waits %v", w)
	}
}

func TestLiveConversations(t *testing.T) {
	t.Parallel()
	m := NewMemory(nil)
	hear := func(id, ts string) { _ = m.Heard(t.Context(), chat.Conversation{Place: id}, ts) }
	hear("a", "1763692800.000100")
	hear("b", "1763692900.000100")
	hear("a", "1763692700.000100") // never back
	hear("c", "1763600000.000100")
	since, _ := stampTime("1763690000.000000")
	live, err := m.Live(t.Context(), since, 10)
	if err != nil || len(live) != 2 || live[0].Conversation.Place != "b" || live[1].Heard != "1763692800.000100" {
		t.Errorf("live are %+v, %v", live, err)
	}
	if live, _ = m.Live(t.Context(), since, 1); len(live) != 1 || live[0].Conversation.Place != "b" {
		t.Errorf("the newest is %+v", live)
	}
}

func TestLanes(t *testing.T) {
	t.Parallel()
	var c crew
	l := newLanes(&c, 1000)
	var mu sync.Mutex
	got := map[string][]int{}
	for i := range 300 {
		key := []string{"a", "b", "c"}[i%3]
		if !l.do(t.Context(), key, func() {
			mu.Lock()
			defer mu.Unlock()
			got[key] = append(got[key], i)
		}) {
			t.Fatal("there was no room")
		}
	}
	c.close()
	for key, list := range got {
		if len(list) != 100 || !slices.IsSorted(list) {
			t.Errorf("lane %s ran %v", key, list)
		}
	}
	if l.do(t.Context(), "a", func() {}) {
		t.Error("a closed crew took work")
	}
}

func TestLanesHaveBounds(t *testing.T) {
	t.Parallel()
	var c crew
	l := newLanes(&c, 1)
	hold := make(chan struct{})
	l.do(t.Context(), "a", func() { <-hold })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l.do(ctx, "b", func() {}) {
		t.Error("there was room beyond the bound")
	}
	close(hold)
	c.close()
}

func TestMementoForgets(t *testing.T) {
	t.Parallel()
	m := newMemento(100)
	for i := range 1000 {
		m.add(numbered(i))
		if !m.has(numbered(i)) || len(m.now)+len(m.old) > 101 {
			t.Fatalf("after %d it has %d", i, len(m.now)+len(m.old))
		}
	}
	if m.has(numbered(0)) {
		t.Error("it forgets nothing")
	}
}
