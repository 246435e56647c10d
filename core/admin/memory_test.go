package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/memory"
)

// notes is a set over a real memory, and what puts notes into it.
func notes(t *testing.T) (*rig, func(scope, content string, who chat.Author, in chat.Conversation) string) {
	t.Helper()
	held := &holder{}
	r := newRig(t, func(o *admin.Options) { o.Memory = held })
	held.Store = memory.New(memory.Options{Client: r.redis.Client, Keys: channel.Keys{Prefix: "notes", Partitions: 4}})
	at := time.Now().Add(-time.Hour)
	return r, func(scope, content string, who chat.Author, in chat.Conversation) string {
		t.Helper()
		at = at.Add(time.Second)
		n, call, err := held.Remember(t.Context(), memory.Note{Scope: scope, Content: content, Author: who, Origin: in, At: at})
		if err != nil {
			t.Fatal(err)
		}
		script := "local e = (function()\n" + memory.Extensions()[0].Source + "\nend)()\ne.check(KEYS, ARGV) e.apply(KEYS, ARGV, '1') return 1"
		args := make([]any, len(call.Args))
		for i, a := range call.Args {
			args[i] = a
		}
		if err := r.redis.Client.Eval(t.Context(), script, call.Keys, args...).Err(); err != nil {
			t.Fatal(err)
		}
		return n.ID
	}
}

// A holder is a memory that can fail.
type holder struct {
	*memory.Store
	err error
}

func (h *holder) Of(ctx context.Context, c chat.Conversation, who chat.Author) ([]memory.Note, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.Store.Of(ctx, c, who)
}

// The walls: what each sees, where, and who else reads it.
func TestMemoryIsSeenByWhoMay(t *testing.T) {
	t.Parallel()
	r, add := notes(t)
	add(memory.Conversation, "thread fact", bob, thread)
	add(memory.Conversation, "lobby fact", bob, lobby)
	add(memory.User, "ann likes tea", ann, lobby)
	add(memory.User, "ann is ill", ann, annsDM)
	add(memory.User, "bob likes rum", bob, thread)
	add(memory.Workspace, "vpn is odd", bob, lobby)
	add(memory.Workspace, "abroad", bob, foreign)
	for _, c := range []struct {
		name        string
		c           admin.Caller
		has, hasNot []string
	}{
		{"Ann alone in the thread", at(ann, thread), []string{"thread fact", "ann likes tea", "vpn is odd", "memory forget"}, []string{"lobby fact", "ill", "rum", "abroad"}},
		{"Ann aloud in the thread", aloud(ann, thread), []string{"thread fact", "vpn is odd", "(said elsewhere)"}, []string{"tea", "ill", "rum"}},
		{"Ann aloud where it was said", aloud(ann, lobby), []string{"lobby fact", "ann likes tea"}, []string{"thread fact", "ill"}},
		{"Ann in her direct messages", at(ann, annsDM), []string{"ann is ill", "ann likes tea", "you, in direct messages"}, []string{"thread fact", "rum"}},
		{"an operator sees no more of others", at(ola, thread), []string{"thread fact", "vpn is odd"}, []string{"tea", "rum", "ill"}},
		{"nothing", at(ann, guild), []string{"Nothing is remembered"}, nil},
		{"who holds the machine, as Ann", owner(), nil, nil},
	} {
		words := "memory"
		if c.c.Owner {
			words = "memory in " + annsDM.Key() + " of U1"
			c.has = []string{"ann is ill", "ann likes tea"}
		}
		text := r.ok(c.c, words)
		has(t, text, c.has...)
		hasNot(t, text, c.hasNot...)
		if t.Failed() {
			t.Fatal(c.name)
		}
	}
	if text := r.no(at(ann, thread), "memory of U2"); !strings.Contains(text, "list, forget") {
		t.Errorf("Ann looked at Bob's: %s", text)
	}
}

func TestMemoryIsForgottenByWhoMay(t *testing.T) {
	t.Parallel()
	r, add := notes(t)
	tea, rum := add(memory.User, "ann likes tea", ann, thread), add(memory.User, "bob likes rum", bob, thread)
	vpn, fact := add(memory.Workspace, "vpn is odd", bob, lobby), add(memory.Conversation, "thread fact", bob, thread)

	has(t, r.no(at(ann, thread), "memory forget"), "Which note?")
	has(t, r.no(at(ann, thread), "memory forget n"), "Write more of the id")
	has(t, r.no(at(ann, thread), "memory forget "+rum), "There is no note")
	has(t, r.no(at(ann, thread), "memory forget "+vpn), "asked for by Bob")
	has(t, r.no(at(ola, foreign), "memory forget "+vpn), "There is no note")
	r.audit.take()
	has(t, r.ok(aloud(ann, lobby), "memory forget "+tea[:8]), "Forgot", tea)
	hasNot(t, r.ok(at(ann, thread), "memory"), "tea")
	has(t, r.ok(at(ola, thread), "memory forget "+vpn+" "+fact), vpn, "thread fact")
	has(t, r.ok(at(bob, thread), "memory forget "+rum), rum)
	has(t, r.ok(at(bob, thread), "memory"), "Nothing is remembered")
	want := fmt.Sprint([]string{
		"U1: memory forget " + tea[:8] + " → " + tea + ": forgotten",
		"U3: memory forget " + vpn + " " + fact + " → " + vpn + ": forgotten", "U3: memory forget " + vpn + " " + fact + " → " + fact + ": forgotten",
		"U2: memory forget " + rum + " → " + rum + ": forgotten",
	})
	if got := fmt.Sprint(r.audit.take()); got != want {
		t.Errorf("audited %s\nwant %s", got, want)
	}
}

func TestMemoryHasPages(t *testing.T) {
	t.Parallel()
	r, add := notes(t)
	for i := range 12 {
		add(memory.Conversation, fmt.Sprintf("fact %02d", i), ann, thread)
	}
	text, a, _ := r.run(at(ann, thread), "memory")
	has(t, text, "fact 11", "fact 02", "Page 1 of 2.")
	hasNot(t, text, "fact 01")
	if words, ok := admin.ButtonWords(a.Buttons[0].Value); !ok || strings.Join(words, " ") != "memory list 2" {
		t.Errorf("the button says %q", words)
	}
	has(t, r.ok(at(ann, thread), "memory list 2"), "fact 01", "fact 00")
	has(t, r.ok(at(ann, thread), "memory 3"), "There is no page 3")
	has(t, r.no(at(ann, thread), "memory 0"), "the number of a page")
	list := a.Data.([]admin.NoteView)
	if len(list) != 10 || list[0].Content != "fact 11" || list[0].Conversation != thread.Key() || list[0].Author != "U1" {
		t.Errorf("data %+v", list)
	}
}

func TestMemoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *admin.Options) { o.Memory = &holder{err: errors.New("away")} })
	for _, words := range []string{"memory", "memory forget nabcdef"} {
		if _, _, err := r.run(at(ann, thread), words); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// What talk about memory is, and what a command.
func TestMemoryAmongTalk(t *testing.T) {
	t.Parallel()
	r, _ := notes(t)
	for text, want := range map[string]bool{
		"memory": true, "memory list": true, "memory list 2": true, "memory forget nabc23": true,
		"memory is cheap": false, "memory forget it": false, "memory forget nabc1": false, "memory list of parts": false,
	} {
		if _, got := r.set.IsAddressed(text); got != want {
			t.Errorf("%q is a command: %v, want %v", text, got, want)
		}
	}
}
