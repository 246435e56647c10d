package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"mimikit/core/admin"
	"mimikit/core/task"
)

// Who may do what with whose task. A task that does not exist for somebody is
// answered for as one that never was.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := map[string]string{
		"ann's":       r.task(ann, thread, "alpha"),
		"bob's":       r.task(bob, thread, "beta"),
		"bob's lobby": r.task(bob, lobby, "gamma"),
		"bob's DM":    r.task(bob, bobsDM, "delta"),
		"foreign":     r.task(bob, foreign, "epsilon"),
		"guild":       r.task(ann, guild, "zeta"),
		"guild DM":    r.task(bob, guildDM, "eta"),
	}
	const nothing, refused, blind, whole = "does not exist", "is refused", "sees it without its words", "sees it"
	for _, c := range []struct {
		who  string
		c    admin.Caller
		sees map[string]string // nothing unless it stands here
	}{
		{"user", at(ann, thread), map[string]string{"ann's": whole, "bob's": refused}},
		{"user elsewhere", at(ann, lobby), map[string]string{"ann's": whole, "bob's lobby": refused}},
		{"user in their DM", at(ann, annsDM), map[string]string{"ann's": whole}},
		{"user aloud", aloud(ann, thread), map[string]string{"ann's": whole, "bob's": refused}},
		{"user aloud elsewhere", aloud(ann, lobby), map[string]string{"ann's": blind, "bob's lobby": refused}},
		{"the other user", at(bob, lobby), map[string]string{"bob's": whole, "bob's lobby": whole, "bob's DM": whole}},
		{"the other user aloud", aloud(bob, lobby), map[string]string{"bob's": blind, "bob's lobby": whole, "bob's DM": blind}},
		{"operator", at(ola, lobby), map[string]string{"ann's": whole, "bob's": whole, "bob's lobby": whole, "bob's DM": blind}},
		{"operator aloud", aloud(ola, thread), map[string]string{"ann's": whole, "bob's": whole, "bob's lobby": blind, "bob's DM": blind}},
		{"admin", at(ada, thread), map[string]string{"ann's": whole, "bob's": whole, "bob's lobby": whole, "bob's DM": blind}},
		{"admin of another workspace", at(ada, foreign), map[string]string{"foreign": whole}},
		{"operator of a guild", at(ola, guild), map[string]string{"guild": whole}},
		{"operator in a DM outside of guilds", at(ola, guildDM), map[string]string{"guild DM": refused}},
		{"the same id on another platform", at(ann, guild), map[string]string{"guild": whole}},
		{"a role that was forgotten", admin.Caller{Author: admin.Caller{}.Author, Conversation: lobby}, map[string]string{"bob's lobby": refused}},
		{"who holds the machine", owner(), map[string]string{
			"ann's": whole, "bob's": whole, "bob's lobby": whole, "bob's DM": whole, "foreign": whole, "guild": whole, "guild DM": whole,
		}},
	} {
		t.Run(c.who, func(t *testing.T) {
			r := &rig{T: t, set: r.set, q: r.q, audit: r.audit}
			never := r.no(c.c, "task "+task.NewID(r.tick(), 1, 7))
			for name, id := range ids {
				want := c.sees[name]
				title := map[string]string{"ann's": "alpha", "bob's": "beta", "bob's lobby": "gamma", "bob's DM": "delta", "foreign": "epsilon", "guild": "zeta", "guild DM": "eta"}[name]
				r.audit.take()
				text, a, err := r.run(c.c, "task "+id)
				if acts := r.audit.take(); (len(acts) > 0) != (err != nil) {
					t.Errorf("%s: recorded %q", name, acts)
				}
				switch want {
				case whole:
					has(t, text, title)
				case blind:
					has(t, text, id, "said elsewhere")
					if data := fmt.Sprintf("%+v", a.Data); strings.Contains(text+data, title) {
						t.Errorf("%s: %q stands in the answer:\n%s\n%s", name, title, text, data)
					}
					for _, part := range []string{"prompt", "output", "progress"} {
						hasNot(t, r.no(c.c, "task "+id+" "+part), title)
					}
				case refused:
					has(t, text, "was asked for by", "only they, operators and admins")
				default:
					if unlike := strings.ReplaceAll(text, id, "ID"); err == nil || unlike != strings.ReplaceAll(never, never[strings.Index(never, "`")+1:strings.Index(never, "` that")], "ID") {
						t.Errorf("%s: the answer is %q (%v), for a task that never was %q", name, text, err, never)
					}
				}
				if may := want == whole || want == blind; may != (err == nil) {
					t.Errorf("%s: %v, want that %s %s", name, err, c.who, want)
				}
				r.audit.take()
				// Who may not see it may do nothing with it either.
				if want != whole && want != blind {
					r.no(c.c, "cancel "+id)
					r.no(c.c, "retry "+id)
					if acts := strings.Join(r.audit.take(), "; "); strings.Count(acts, "refused") != 2 {
						t.Errorf("%s: recorded %q", name, acts)
					}
				}
				if s := r.status(id); s != task.Pending {
					t.Fatalf("%s is %s", name, s)
				}
			}
			// What a list shows is what can be seen.
			lists := r.ok(c.c, "tasks mine") + r.ok(c.c, "tasks here")
			if text, _, err := r.run(c.c, "tasks all"); err == nil {
				lists += text
			}
			for name, id := range ids {
				may, listed := c.sees[name] == whole || c.sees[name] == blind, strings.Contains(lists, id[:10])
				if may != listed {
					t.Errorf("%s is listed: %v, and may be seen: %v\n%s", name, listed, may, lists)
				}
			}
		})
	}
}

// Which commands there are for whom, and that no other runs.
func TestCommandsByRole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		c        admin.Caller
		may, not string
	}{
		{at(ann, thread), "tasks task cancel retry status help", "feedback streams dead audit"},
		{at(ola, thread), "tasks task cancel retry status help feedback streams dead", "audit"},
		{at(ada, thread), "tasks task cancel retry status help feedback streams dead audit", ""},
		{owner(), "tasks task cancel retry status help feedback streams dead audit", ""},
	} {
		help := r.ok(c.c, "help")
		for _, name := range strings.Fields(c.may) {
			has(t, help, "`"+c.c.Prefix+name)
			has(t, r.ok(c.c, "help "+name), "`"+c.c.Prefix+name)
		}
		for _, name := range strings.Fields(c.not) {
			hasNot(t, help, "`"+c.c.Prefix+name)
			r.audit.take()
			has(t, r.no(c.c, name), "may use", "your role is "+c.c.Author.Role.String())
			if acts := r.audit.take(); len(acts) != 1 || !strings.Contains(acts[0], "refused") {
				t.Errorf("%s: recorded %q", name, acts)
			}
		}
		for _, gone := range []string{"usage", "why", "stop"} { // their parts are not there
			hasNot(t, help, "`"+c.c.Prefix+gone)
			has(t, r.no(c.c, gone), "There is no command")
		}
	}
	// The zero caller is nobody, and sees nothing.
	r.task(ann, thread, "alpha")
	has(t, r.no(admin.Caller{}, "tasks all"), "Only operators")
	has(t, r.ok(admin.Caller{}, "tasks"), "no tasks")
}

// Lists of all and acts on all are the overseers'.
func TestAllIsForOverseers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine, bobs, far := r.task(ann, thread, "alpha"), r.task(bob, thread, "beta"), r.task(bob, foreign, "far")
	has(t, r.no(at(ann, thread), "tasks all"), "Only operators and admins")
	has(t, r.no(at(ola, guildDM), "tasks all"), "no workspace")
	r.no(at(ola, guildDM), "cancel all yes")
	// All of a user are their own.
	has(t, r.ok(at(ann, lobby), "cancel all"), "This cancels 1 task.")
	r.ok(at(ann, lobby), "cancel all yes")
	if r.status(mine) != task.Canceled || r.status(bobs) != task.Pending {
		t.Fatalf("after a user's cancel all: %s, %s", r.status(mine), r.status(bobs))
	}
	has(t, r.ok(at(ola, lobby), "cancel all"), "1 task of 1 person in 1 conversation")
	r.ok(at(ola, lobby), "cancel all yes")
	if r.status(bobs) != task.Canceled || r.status(far) != task.Pending {
		t.Fatalf("after an operator's: %s, and of another workspace %s", r.status(bobs), r.status(far))
	}
	has(t, r.ok(owner(), "cancel all yes"), "Canceled 1 task")
	if r.status(far) != task.Canceled {
		t.Fatalf("after the owner's: %s", r.status(far))
	}
}
