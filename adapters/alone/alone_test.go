package alone

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mimikit/core/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// An id is the seconds since the beginning.
func timeOf(id string) time.Time {
	n, _ := strconv.Atoi(id)
	return begin.Add(time.Duration(n) * time.Second)
}

func place(i int) chat.Conversation { return chat.Conversation{Platform: "x", Place: strconv.Itoa(i)} }

func TestMarks(t *testing.T) {
	t.Parallel()
	m, ctx, c := New(nil, timeOf), t.Context(), place(5)
	for i := range MostMarks + 10 {
		_ = m.Mark(ctx, c, strconv.Itoa(100+i))
		_ = m.Mark(ctx, c, strconv.Itoa(100+i))
	}
	if got, _ := m.Unmark(ctx, c, "99"); len(got) != 0 {
		t.Errorf("took %v", got)
	}
	if got, _ := m.Unmark(ctx, c, "119"); len(got) != 10 || got[0] != "110" {
		t.Errorf("took %v", got)
	}
	if got, _ := m.Unmark(ctx, c, ""); len(got) != MostMarks-10 || len(m.marks) != 0 {
		t.Errorf("took %d, %d left", len(got), len(m.marks))
	}
}

func TestHeard(t *testing.T) {
	t.Parallel()
	m, ctx := New(nil, timeOf), t.Context()
	for i := range MostHeard + 5 {
		_ = m.Heard(ctx, place(i), strconv.Itoa(1+i))
	}
	_ = m.Heard(ctx, place(MostHeard), "1") // moves nothing back
	if got := m.Since(begin, 2); len(got) != 2 || got[0] != (Mark{place(MostHeard + 4), strconv.Itoa(MostHeard + 5)}) || len(m.heard) > MostHeard {
		t.Errorf("live %v of %d", got, len(m.heard))
	}
	if got := m.Since(begin.Add(24*time.Hour), 5); len(got) != 0 {
		t.Errorf("live %v", got)
	}
}

func TestClaimsAndNotesEnd(t *testing.T) {
	t.Parallel()
	now := begin
	m, ctx := New(func() time.Time { return now }, timeOf), t.Context()
	first := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if was, _ := m.Claim(context.Background(), "k", time.Hour); was {
				mu.Lock()
				defer mu.Unlock()
				first++
			}
		})
	}
	all.Wait()
	if first != 1 {
		t.Errorf("%d were first", first)
	}
	_ = m.SetNote(ctx, "k", "text", time.Hour)
	if text, _ := m.Note(ctx, "k"); text != "text" {
		t.Errorf("note %q", text)
	}
	now = now.Add(time.Hour)
	if text, _ := m.Note(ctx, "k"); text != "" {
		t.Errorf("note %q after its time", text)
	}
	if was, _ := m.Claim(ctx, "k", time.Hour); !was {
		t.Error("a claim that has lapsed counts")
	}
	if len(m.notes) != 0 || len(m.claims) != 1 {
		t.Errorf("%d notes and %d claims are kept", len(m.notes), len(m.claims))
	}
}
