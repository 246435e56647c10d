package pause_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
	"mimikit/core/pause"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	ada    = chat.Author{ID: "U4", Name: "Ada", Role: chat.RoleAdmin}
	ours   = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.1"}
	theirs = chat.Conversation{Platform: "slack", Workspace: "T2", Place: "C1"}
	guild  = chat.Conversation{Platform: "discord", Workspace: "T1", Place: "7"}
	outer  = chat.Conversation{Platform: "discord", Place: "8"} // a direct message of Discord
)

func node(t *testing.T, s *store.Store, key string) *pause.Store {
	t.Helper()
	p, err := pause.New(pause.Options{Client: s.Client, Key: key, Every: 10 * time.Millisecond, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// held tells of which conversations a store says that they are paused.
func held(p *pause.Store) string {
	var out []string
	for _, c := range []chat.Conversation{ours, theirs, guild, outer} {
		if _, is := p.Of(c); is {
			out = append(out, c.Key())
		}
	}
	return strings.Join(out, " ")
}

// A pause holds in its workspace and nowhere else, on every node and after a restart,
// until it is lifted; that of everywhere holds wherever there is anybody.
func TestScopes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		key := storetest.Prefix(t) + ":pause"
		here, there := node(t, s, key), node(t, s, key)
		set := func(scope, reason string) pause.Pause {
			t.Helper()
			p, created, err := here.Set(t.Context(), scope, ada, reason)
			if err != nil || !created {
				t.Fatalf("pause %s: %v, %v", scope, created, err)
			}
			return p
		}
		refresh := func() {
			t.Helper()
			if err := there.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		first := set(ours.WorkspaceKey(), "we move")
		if got, want := held(here), ours.Key(); got != want {
			t.Errorf("who paused holds %q, want %q", got, want)
		}
		if got := held(there); got != "" {
			t.Errorf("before it has read, another holds %q", got)
		}
		refresh()
		if got, want := held(there), ours.Key(); got != want {
			t.Errorf("another node holds %q, want %q", got, want)
		}
		again, created, err := there.Set(t.Context(), ours.WorkspaceKey(), chat.Author{ID: "U9"}, "me too")
		if err != nil || created {
			t.Errorf("paused a second time: %v, %v", created, err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("the first pause does not stand: %s", diff)
		}
		all := set(pause.Everywhere, "")
		refresh()
		if n := len(strings.Fields(held(there))); n != 4 || !there.All() {
			t.Errorf("everywhere holds %q", held(there))
		}
		if p, _ := there.Of(ours); p.ID != all.ID {
			t.Errorf("of both the one of the workspace is told: %+v", p)
		}
		list, err := node(t, s, key).List(t.Context()) // a node that was started anew
		if err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		p, was, err := there.Lift(t.Context(), pause.Everywhere)
		if err != nil || !was || p.ID != all.ID {
			t.Errorf("lifted %+v, %v, %v", p, was, err)
		}
		if got, want := held(there), ours.Key(); got != want || there.All() {
			t.Errorf("after the end of one pause %q is held, want %q", got, want)
		}
		if _, was, err := there.Lift(t.Context(), pause.Everywhere); was || err != nil {
			t.Errorf("lifted twice: %v, %v", was, err)
		}
		if _, was, err := here.Lift(t.Context(), ours.WorkspaceKey()); !was || err != nil {
			t.Errorf("lifted: %v, %v", was, err)
		}
		refresh()
		if err := here.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := held(there) + held(here); got != "" || !here.None() || !there.None() {
			t.Errorf("%q is held in the end", got)
		}
		if n, err := s.Client.Exists(t.Context(), key).Result(); n != 0 || err != nil {
			t.Errorf("%d keys are left, %v", n, err)
		}
	})
}

// A node goes by a change without being told, and by what it knew while it cannot read.
func TestRun(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	key := storetest.Prefix(t) + ":pause"
	here, there := node(t, s, key), node(t, s, key)
	var loop sync.WaitGroup
	t.Cleanup(loop.Wait)
	loop.Go(func() {
		if err := there.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := here.Set(t.Context(), pause.Everywhere, ada, ""); err != nil {
		t.Fatal(err)
	}
	storetest.Eventually(t, "the pause on another node", func() error {
		if !there.All() {
			return fmt.Errorf("nothing is held")
		}
		return nil
	})
	if err := s.Client.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Set(t.Context(), key, "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := there.Refresh(t.Context()); err == nil {
		t.Error("what cannot be read was read")
	}
}

// What cannot be read holds all the same: nobody is surprised by a bot that goes on.
// It can be lifted.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	key := storetest.Prefix(t) + ":pause"
	later, _ := json.Marshal(map[string]any{"id": "x", "scope": "slack/T2", "at": "2026-11-21T10:00:00Z", "until": "2027-01-01T00:00:00Z"})
	if err := s.Client.HSet(t.Context(), key, "slack/T1", "{", "slack/T2", later).Err(); err != nil {
		t.Fatal(err)
	}
	p := node(t, s, key)
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(strings.Fields(held(p))); got != 2 {
		t.Errorf("%q is held", held(p))
	}
	if _, was, err := p.Lift(t.Context(), "slack/T1"); !was || err != nil {
		t.Errorf("lifted: %v, %v", was, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	for _, o := range []pause.Options{{Client: s.Client}, {Key: "k"}} {
		if _, err := pause.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	p := node(t, s, storetest.Prefix(t))
	if _, _, err := p.Set(t.Context(), "", ada, ""); err == nil {
		t.Error("a pause of nothing was set")
	}
	if _, _, err := p.Set(t.Context(), "slack/T1", ada, strings.Repeat("x", pause.MaxReason+1)); err == nil || !strings.Contains(err.Error(), "501") {
		t.Errorf("a reason that is too long: %v", err)
	}
}

// BenchmarkOf is what every look at a conversation costs.
func BenchmarkOf(b *testing.B) {
	s := storetest.Mini(b)
	p, err := pause.New(pause.Options{Client: s.Client, Key: "k"})
	if err != nil {
		b.Fatal(err)
	}
	if _, _, err := p.Set(b.Context(), "slack/T1", ada, ""); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.Of(theirs)
	}
}
