package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/memory"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	at     = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	thread = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "9"}
	other  = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C2", Thread: "5"}
	dm     = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "D1"}
	abroad = chat.Conversation{Platform: "slack", Workspace: "T2", Place: "C1", Thread: "9"}
	ann    = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	bo     = chat.Author{ID: "U2", Name: "Bo", Role: chat.RoleUser}
	boss   = chat.Author{ID: "U9", Name: "Boss", Role: chat.RoleOperator}
)

type bench struct {
	*memory.Store
	t      *testing.T
	client redis.UniversalClient
}

func each(t *testing.T, f func(b *bench)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		keys := channel.Keys{Prefix: storetest.Prefix(t), Partitions: 4}
		f(&bench{memory.New(memory.Options{Client: s.Client, Keys: keys}), t, s.Client})
	})
}

// keep does what the commit of a turn does with the call.
func (b *bench) keep(n memory.Note) memory.Note {
	b.t.Helper()
	n, call, err := b.Remember(b.t.Context(), n)
	if err != nil {
		b.t.Fatal(err)
	}
	source := "local e = (function()\n" + memory.Extensions()[0].Source + "\nend)()\ne.check(KEYS, ARGV) e.apply(KEYS, ARGV, '1')"
	args := make([]any, len(call.Args))
	for i, a := range call.Args {
		args[i] = a
	}
	if err := b.client.Eval(b.t.Context(), source, call.Keys, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		b.t.Fatal(err)
	}
	return n
}

func (b *bench) usable(c chat.Conversation, who ...chat.Author) string {
	b.t.Helper()
	all, err := b.Usable(b.t.Context(), c, who)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, n := range all {
		out = append(out, n.Content)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// The walls: every scope, made in every kind of place, asked for in every other.
func TestWalls(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		add := func(scope, content string, c chat.Conversation, who chat.Author) {
			b.keep(memory.Note{Scope: scope, Content: content, Author: who, Origin: c, At: at})
		}
		add(memory.Conversation, "conv-thread", thread, ann)
		add(memory.Conversation, "conv-dm", dm, ann)
		add(memory.User, "ann-place", thread, ann)
		add(memory.User, "ann-dm", dm, ann)
		add(memory.User, "bo-place", thread, bo)
		add(memory.Workspace, "all-T1", thread, ann)
		add(memory.Workspace, "all-T2", abroad, ann)
		for _, c := range []struct {
			name string
			in   chat.Conversation
			who  []chat.Author
			want string
		}{
			{"Ann where it was said", thread, []chat.Author{ann}, "all-T1 ann-place conv-thread"},
			{"Ann elsewhere in the workspace", other, []chat.Author{ann}, "all-T1 ann-place"},
			{"Ann in her direct messages", dm, []chat.Author{ann}, "all-T1 ann-dm ann-place conv-dm"},
			{"Bo in the thread", thread, []chat.Author{bo}, "all-T1 bo-place conv-thread"},
			{"both", thread, []chat.Author{ann, bo}, "all-T1 ann-place bo-place conv-thread"},
			{"a task's result, nobody speaks", thread, nil, "all-T1 conv-thread"},
			{"the same ids in another workspace", abroad, []chat.Author{ann}, "all-T2"},
			{"a bot with Ann's id", other, []chat.Author{{ID: "U1", Bot: true}}, "all-T1"},
		} {
			if got := b.usable(c.in, c.who...); got != c.want {
				b.t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
	})
}

func TestWhatCannotBeRemembered(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for _, c := range []struct {
			note memory.Note
			want string
		}{
			{memory.Note{Scope: memory.Workspace, Content: "x", Author: ann, Origin: dm}, "direct message"},
			{memory.Note{Scope: "world", Content: "x", Author: ann, Origin: thread}, "allowed are"},
			{memory.Note{Scope: memory.User, Content: "x", Origin: thread}, "needs a person"},
			{memory.Note{Scope: memory.User, Content: " \n ", Author: ann, Origin: thread}, "nothing to remember"},
			{memory.Note{Scope: memory.User, Content: strings.Repeat("ä", 2001), Author: ann, Origin: thread}, "2001 characters"},
		} {
			if _, _, err := b.Remember(b.t.Context(), c.note); err == nil || !strings.Contains(err.Error(), c.want) {
				b.t.Errorf("%+v: %v, want %q", c.note, err, c.want)
			}
		}
	})
}

func TestSameContentIsOneNote(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		one := b.keep(memory.Note{Scope: memory.User, Content: "Releases are on Tuesdays.", Author: ann, Origin: thread, At: at})
		two := b.keep(memory.Note{Scope: memory.User, Content: " releases are on tuesdays", Author: ann, Origin: other, At: at.Add(time.Hour)})
		all, err := b.Of(b.t.Context(), thread, ann)
		if err != nil || one.ID != two.ID || len(all) != 1 || !all[0].At.Equal(at.Add(time.Hour)) {
			b.t.Errorf("%s and %s: %+v, %v", one.ID, two.ID, all, err)
		}
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		n := b.keep(memory.Note{Scope: memory.Workspace, Content: "the vpn is odd", Author: ann, Origin: thread, At: at})
		if _, err := b.Forget(b.t.Context(), other, bo, n.ID); err == nil || !strings.Contains(err.Error(), "Ann") {
			b.t.Errorf("Bo had Ann's note forgotten: %v", err)
		}
		for _, id := range []string{"", "nope"} {
			if _, err := b.Forget(b.t.Context(), other, ann, id); !errors.Is(err, memory.ErrUnknown) {
				b.t.Errorf("forget %q: %v", id, err)
			}
		}
		if _, err := b.Forget(b.t.Context(), abroad, boss, n.ID); !errors.Is(err, memory.ErrUnknown) {
			b.t.Errorf("an operator of another workspace: %v", err)
		}
		if got, err := b.Forget(b.t.Context(), other, boss, n.ID[:4]); err != nil || got.Content != n.Content {
			b.t.Errorf("an operator: %+v, %v", got, err)
		}
		if got := b.usable(thread, ann); got != "" {
			b.t.Errorf("still there: %q", got)
		}
	})
}

func TestOldestIsForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for i := range 510 {
			b.keep(memory.Note{Scope: memory.Conversation, Content: fmt.Sprintf("note %03d", i), Author: ann, Origin: thread, At: at.Add(time.Duration(i) * time.Second)})
		}
		all, err := b.Usable(context.Background(), thread, nil)
		if err != nil || len(all) != 500 || all[0].Content != "note 509" || all[499].Content != "note 010" {
			b.t.Errorf("%d notes, %v", len(all), err)
		}
	})
}

func TestSearch(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for _, text := range []string{
			"Our releases are on Tuesdays at ten.", "The nightly build runs on the host kiwi.", "Ann prefers short answers.",
			"Die Rechnung geht an die Buchhaltung.", "服务器的密码在保险箱里", strings.Repeat("release ", 240),
		} {
			b.keep(memory.Note{Scope: memory.Workspace, Content: text, Author: ann, Origin: thread, At: at})
		}
		for query, want := range map[string]string{
			"where does the nightly build run?": "kiwi", "an wen geht die rechnung": "Buchhaltung",
			"密码在哪里": "保险箱", "when is the next release on tuesday": "Tuesdays",
		} {
			got, err := b.Search(b.t.Context(), other, []chat.Author{bo}, query, 1)
			if err != nil || len(got) != 1 || !strings.Contains(got[0].Content, want) {
				b.t.Errorf("%q found %+v, %v; want %q", query, got, err, want)
			}
		}
		for _, query := range []string{"", "the of and", "zebra"} {
			if got, err := b.Search(b.t.Context(), other, []chat.Author{bo}, query, 0); err != nil || len(got) != 0 {
				b.t.Errorf("%q found %+v, %v", query, got, err)
			}
		}
	})
}

// The same note, made in several conversations, lies in several partitions; to
// forget it is to forget all of it.
func TestForgetsEveryCopy(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		var id string
		for i := range 12 {
			in := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: fmt.Sprint(i)}
			id = b.keep(memory.Note{Scope: memory.User, Content: "short answers", Author: ann, Origin: in, At: at.Add(time.Duration(i) * time.Second)}).ID
		}
		if _, err := b.Forget(b.t.Context(), thread, ann, id); err != nil {
			b.t.Fatal(err)
		}
		if got := b.usable(thread, ann); got != "" {
			b.t.Errorf("an older copy is back: %q", got)
		}
	})
}
