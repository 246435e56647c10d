package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/config"
	"mimikit/core/admin"
	"mimikit/core/attachment"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/cluster"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// takesAll is an inbox that takes all.
type takesAll struct{ took []string }

func (i *takesAll) Submit(_ context.Context, m adapters.Message) (adapters.Receipt, error) {
	i.took = append(i.took, m.Message+m.Edit)
	return adapters.Receipt{InputID: m.Message}, nil
}

func (i *takesAll) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return i.Submit(ctx, m)
}

// Of one person so many messages are taken in a minute, on all nodes together; those
// refused are told of once, those taken stay taken however often they are offered, and
// others, later minutes, talk among people and the wish to stop are not touched.
func TestRate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		prefix := storetest.Prefix(t)
		inboxes := &takesAll{}
		refused := 0
		var nodes []*guardedInbox
		for range 2 {
			nodes = append(nodes, &guardedInbox{
				Inbox: inboxes, access: access{}, files: attachment.New(s.Client, channel.Keys{Prefix: prefix, Partitions: 4}, slog.New(slog.DiscardHandler)),
				rate: &rate{
					cluster: cluster.New(cluster.Options{Client: s.Client, Prefix: prefix}), most: 3,
					log: slog.New(slog.DiscardHandler), refused: func(string) { refused++ },
				},
			})
		}
		at := time.Date(2026, 11, 21, 10, 0, 30, 0, time.UTC)
		say := func(node int, m adapters.Message) string {
			t.Helper()
			m.Conversation = chat.Conversation{Platform: "discord", Workspace: "1", Place: "7"}
			if m.Author.ID == "" {
				m.Author.ID = "ann"
			}
			if m.At.IsZero() {
				m.At = at
			}
			_, err := nodes[node].Submit(t.Context(), m)
			var r interface{ Refused() string }
			switch {
			case err == nil:
				return "taken"
			case errors.As(err, &r) && r.Refused() == "":
				return "refused again"
			case errors.As(err, &r):
				has(t, r.Refused(), "3 messages and commands a minute", "send it again")
				return "refused"
			}
			t.Fatal(err)
			return ""
		}
		var got []string
		for i := range 6 {
			got = append(got, say(i%2, adapters.Message{Message: fmt.Sprint(i), Addressed: true}))
		}
		if fmt.Sprint(got) != "[taken taken taken refused refused again refused again]" {
			t.Errorf("got %v", got)
		}
		for i, want := range []string{"taken", "taken", "taken", "refused again"} {
			if got := say(1, adapters.Message{Message: fmt.Sprint(i), Addressed: true}); got != want {
				t.Errorf("offered again, %d is %s", i, got)
			}
		}
		for what, m := range map[string]adapters.Message{
			"talk among people":    {Message: "a"},
			"a removal":            {Message: "0", Kind: chat.KindDelete, Edit: "deleted", Addressed: true},
			"the wish to stop":     {Message: "b", Kind: chat.KindStop, Addressed: true},
			"somebody else":        {Message: "c", Addressed: true, Author: chat.Author{ID: "bob"}},
			"the minute after":     {Message: "d", Addressed: true, At: at.Add(time.Minute)},
			"what was said before": {Message: "e", Addressed: true, At: at.Add(-time.Hour)},
		} {
			if got := say(0, m); got != "taken" {
				t.Errorf("%s is %s", what, got)
			}
		}
		if got := say(0, adapters.Message{Message: "0", Kind: chat.KindEdit, Edit: "1", Addressed: true}); got != "refused again" {
			t.Errorf("a fourth thing, an edit, is %s", got)
		}
		if refused != 5 {
			t.Errorf("%d refusals were counted, want 5", refused)
		}
		nodes[0].rate.most = 0
		if got := say(0, adapters.Message{Message: "f", Addressed: true}); got != "taken" {
			t.Errorf("without a bound it is %s", got)
		}
	})
}

// Commands count like messages, each for itself; the terminal's count for nothing.
func TestRateOfCommands(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	r := &rate{cluster: cluster.New(cluster.Options{Client: s.Client}), most: 5, log: slog.New(slog.DiscardHandler), refused: func(string) {}}
	over := 0
	for range 12 { // of which at most ten fall into two minutes
		if r.command(t.Context(), "slack", "U1", []string{"tasks"}) != "" {
			over++
		}
		if r.command(t.Context(), "console", "U1", []string{"tasks"}) != "" {
			t.Error("a command of the terminal was refused")
		}
	}
	if over < 2 {
		t.Errorf("%d of 12 commands were refused, want at least 2", over)
	}
}

// Who has said too much can still stop what they began: by a command, as /mimikit stop
// and @bot stop are, and by a button, as that of a task is.
func TestRateRefusesNoBrake(t *testing.T) {
	t.Parallel()
	st := storetest.Redis(t)
	cfg, err := config.Load("", []string{"MIMIKIT_DATA_DIR=" + t.TempDir(), "MIMIKIT_ACCESS_MAX_PER_MINUTE=1"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Redis.Prefix = storetest.Prefix(t)
	app, err := newApp(t.Context(), cfg, slog.New(slog.DiscardHandler), st, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := door{app: app, name: "slack", prefix: "/mimikit "}
	who, in := chat.Author{ID: "U1", Role: chat.RoleAdmin}, chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1"}
	const refusal = "more than I take from one person"
	run := func(words ...string) string {
		t.Helper()
		a, err := d.run(t.Context(), who, in, true, d.prefix, words)
		if err != nil {
			t.Fatal(err)
		}
		return a.text
	}
	refused := 0
	for range 5 { // which may fall into two minutes
		if strings.Contains(run("status"), refusal) {
			refused++
		}
	}
	if refused < 3 {
		t.Fatalf("%d of 5 were refused, want 3 or more", refused)
	}
	for _, words := range [][]string{{"stop"}, {"Stop"}, {"cancel", "mine"}, {"pause"}} {
		if said := run(words...); strings.Contains(said, refusal) {
			t.Errorf("%q is refused: %s", words, said)
		}
	}
	a, err := d.press(t.Context(), who, in, admin.Press("Cancel", "danger", "cancel", "mine").Value)
	if err != nil || strings.Contains(a.text, refusal) {
		t.Errorf("the Cancel button says %q, %v", a.text, err)
	}
}
