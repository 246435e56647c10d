package channel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// What Redis refuses must be offered again, and is then not taken for known.
func TestRefusedInputIsNotRemembered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		n, err := New(r.options(s, "a"))
		if err != nil {
			t.Fatal(err)
		}
		p := r.keys.Partition(key("c"))
		for _, foreign := range []string{r.keys.Stream(p, UserInput), r.keys.Waiting(p), r.keys.Stops(p)} {
			in := r.input("c", foreign, "hello")
			in.Stop = true
			s.Client.Set(t.Context(), foreign, "not ours", 0)
			if _, err := n.Ingest(t.Context(), in); err == nil {
				t.Errorf("accepted although %s is not ours", foreign)
			}
			s.Client.Del(t.Context(), foreign)
			before := s.Client.XLen(t.Context(), r.keys.Stream(p, UserInput)).Val()
			if a := r.ingest(n, in); a.Known {
				t.Errorf("refused because of %s, and then said to be known: the message is lost", foreign)
			}
			if got := s.Client.XLen(t.Context(), r.keys.Stream(p, UserInput)).Val(); got != before+1 {
				t.Errorf("%d entries in the stream, want %d", got, before+1)
			}
		}
	})
}

// An input that Redis refuses must not take those with it that are offered at
// the same moment.
func TestRefusedInputHarmsNoOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		n, err := New(r.options(s, "a"))
		if err != nil {
			t.Fatal(err)
		}
		good, bad := r.input("c", "good", "hello"), r.input("c", "bad", "hello")
		bad.At = good.At.Add(-24 * time.Hour)
		s.Client.Set(t.Context(), r.keys.Seen(r.keys.Partition(key("c")), bad.At.Unix()/3600), "not ours", 0)
		g := n.ingests[r.keys.Partition(key("c"))]
		g.busy = true // what is offered now gathers
		errs := map[string]chan error{"good": make(chan error, 1), "bad": make(chan error, 1)}
		for name, in := range map[string]Input{"good": good, "bad": bad} {
			go func() {
				_, err := n.Ingest(t.Context(), in)
				errs[name] <- err
			}()
		}
		eventually(t, "both to be offered", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return len(g.list) == 2
		})
		for g.sendNext() {
		}
		if err := <-errs["bad"]; err == nil {
			t.Error("accepted although the hour is not ours")
		}
		if err := <-errs["good"]; err != nil {
			t.Errorf("its neighbour: %v", err)
		}
	})
}

// A caller waits no longer than its context, whoever else is being served.
func TestIngestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	s := storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{server.Addr()}})
	r := newRig(t, s)
	n, err := New(r.options(s, "a"))
	if err != nil {
		t.Fatal(err)
	}
	r.ingest(n, r.input("c", "0", "0"))
	server.Pause()
	defer server.Cont()
	patient, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	defer func() { cancel(); <-over }()
	for i := range 3 {
		ctx, enough := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := n.Ingest(ctx, r.input("c", fmt.Sprint("hasty", i), "x"))
		enough()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caller %d with 100 ms: %v", i, err)
		}
		if i == 0 {
			go func() {
				defer close(over)
				_, _ = n.Ingest(patient, r.input("c", "patient", "x"))
			}()
		}
	}
}

// A message that was answered in place of the loops was heard: it is answered once, and
// is no input later, nor is one answered so that was an input before.
func TestPublishedAnswerHearsItsMessage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		n, err := New(r.options(s, "a"))
		if err != nil {
			t.Fatal(err)
		}
		p := r.keys.Partition(key("c"))
		told := func(in Input) error {
			return n.Publish(t.Context(), "which/"+in.Dedupe, in.At, key("c"), Publish{To: TellerReply, Value: "which?", Heard: in.Dedupe})
		}
		counts := func(replies, inputs int64) {
			t.Helper()
			if a, b := s.Client.XLen(t.Context(), r.keys.Stream(p, TellerReply)).Val(), s.Client.XLen(t.Context(), r.keys.Stream(p, UserInput)).Val(); a != replies || b != inputs {
				t.Errorf("%d replies and %d inputs, want %d and %d", a, b, replies, inputs)
			}
		}
		first, second := r.input("c", "1", "x"), r.input("c", "2", "x")
		if err := told(first); err != nil {
			t.Fatal(err)
		}
		if err := told(first); !errors.Is(err, ErrHeard) {
			t.Errorf("answered again: %v", err)
		}
		if a := r.ingest(n, first); !a.Known {
			t.Error("what was answered is an input, too")
		}
		counts(1, 0)
		if a := r.ingest(n, second); a.Known {
			t.Error("another message is known")
		}
		if err := told(second); !errors.Is(err, ErrHeard) {
			t.Errorf("an input is answered: %v", err)
		}
		counts(1, 1)
	})
}
