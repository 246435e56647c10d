package admin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/pause"
	"mimikit/core/store/storetest"
)

// The trail is narrowed by who, what, where, when and how it ended, in any order, and
// says how to see more; of other workspaces nothing is told.
func TestAuditFilters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	add := func(who chat.Author, where chat.Conversation, door, what, result string, ago time.Duration) {
		r.audit.acts = append(r.audit.acts, admin.Act{Who: who, Where: where, Door: door, What: what, Target: "x", Result: result, At: now.Add(-ago)})
	}
	add(ann, thread, "slack", "cancel t1 first", "canceled", time.Minute)
	add(bob, lobby, "slack", "audit second", "refused", 2*time.Hour)
	add(chat.Author{ID: "U0LONGID", Name: "Long Name", Role: chat.RoleUser}, thread, "slack", "cancel t2 third", "refused", 3*time.Hour)
	add(ada, thread, "cli", "dead drop fourth", "drop done", 30*time.Hour)
	add(ada, foreign, "slack", "cancel t9 far", "canceled", time.Minute)
	for words, want := range map[string]string{
		"audit":                        "first second third fourth",
		"audit by U2":                  "second",
		"audit by bob":                 "second",
		"audit by me":                  "fourth",
		"audit <@U2>":                  "second",
		"audit by <@U2|bob>":           "second",
		"audit U0LONGID":               "third",
		"audit cancel":                 "first third",
		"audit refused":                "second third",
		"audit cancel refused":         "third",
		"audit cli":                    "fourth",
		"audit since 1h":               "first",
		"audit 1d":                     "first second third",
		"audit since 2d slack refused": "second third",
		"audit by nobody":              "",
		"audit retry":                  "",
	} {
		text := r.ok(at(ada, thread), words)
		var got []string
		for _, w := range []string{"first", "second", "third", "fourth", "far"} {
			if strings.Contains(text, w) {
				got = append(got, w)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s tells of %q, want %q:\n%s", words, got, want, text)
		}
		if want == "" {
			has(t, text, "Nothing like that is in the audit trail", "`!audit`")
		}
	}
	text, a, err := r.run(at(ada, thread), "audit slack 1")
	if err != nil {
		t.Fatal(err)
	}
	has(t, text, "More: `!audit slack 2`")
	if len(a.Buttons) != 1 {
		t.Errorf("buttons %+v", a.Buttons)
	}
	hasNot(t, r.ok(at(ada, thread), "audit slack 3"), "More")
	for words, want := range map[string]string{
		"audit by": "By whom?", "audit since soon": "is no time", "audit 201": "one number from 1 to 200", "audit 5 6": "one number", "audit refusd": "did you mean `refused`", "audit 0": "one number",
	} {
		has(t, r.no(at(ada, thread), words), want)
	}
	for text, want := range map[string]bool{
		"audit": true, "audit by U2": true, "audit refused since 2h": true, "audit cancel 5": true, "audit the books": false, "audit by": false, "pause": true, "resume": true, "pause the music": false,
	} {
		set := newRig(t, func(o *admin.Options) { o.Pauses = noPauses{} }).set
		if _, ok := set.IsAddressed(text); ok != want {
			t.Errorf("IsAddressed(%q) = %v", text, ok)
		}
	}
}

// Dead letters are listed of one channel, and so many that another call shows more.
func TestDeadFilters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 5 {
		from := channel.UserInput
		if i == 0 {
			from = channel.TellerReply
		}
		r.roads.dead = append(r.roads.dead, channel.DeadLetter{ID: channel.DeadID{Partition: i, ID: "1-1"}, From: from, Conversation: thread.Key(), Reason: fmt.Sprintf("reason-%d", i), Attempts: 1, At: time.Now()})
	}
	text := r.ok(at(ola, thread), "dead list teller-reply")
	has(t, text, "reason-0")
	hasNot(t, text, "reason-1", "more:")
	text, a, err := r.run(at(ola, thread), "dead list user-input 2")
	if err != nil {
		t.Fatal(err)
	}
	has(t, text, "reason-1", "reason-2", "newest 2 of 4", "more: `!dead list user-input 4`")
	hasNot(t, text, "reason-3")
	if len(a.Buttons) != 1 || a.Buttons[0].Label != "More" {
		t.Errorf("buttons %+v", a.Buttons)
	}
	has(t, r.ok(at(ola, thread), "dead list thinker-decision"), "There are no dead letters of `thinker-decision`.")
	has(t, r.no(at(ola, thread), "dead list nowhere"), "one number from 1 to 200", "A channel may stand before it", "worker-result")
}

// noPauses is a part that is there.
type noPauses struct{ admin.Pauses }

func (noPauses) List(context.Context) ([]pause.Pause, error) { return nil, nil }

// Admins pause their own workspace and no other, who holds the machine all; everybody
// sees in the status what concerns them, and all is recorded, refusals too.
func TestPauses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, err := pause.New(pause.Options{Client: r.redis.Client, Key: storetest.Prefix(t) + ":pause", Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.o.Pauses = p
	if r.set, err = admin.New(r.o); err != nil {
		t.Fatal(err)
	}
	for _, c := range []admin.Caller{at(ann, thread), at(ola, thread)} {
		has(t, r.no(c, "pause"), "Only admins may use `!pause`")
		has(t, r.no(c, "resume"), "Only admins")
	}
	has(t, r.no(at(ada, guildDM), "pause"), "There is no workspace here")
	r.audit.take()
	text, a, err := r.run(at(ada, thread), "pause we move house!")
	if err != nil {
		t.Fatal(err)
	}
	has(t, text, "Paused in this workspace.", "`!resume`")
	if len(a.Buttons) != 1 || a.Buttons[0].Label != "Resume" {
		t.Errorf("buttons %+v", a.Buttons)
	}
	has(t, r.ok(at(ada, lobby), "pause again"), `Paused in this workspace, `, "by Ada: we move house", "has it go on")
	has(t, admin.Unmark(r.ok(at(ann, annsDM), "status")), "Paused in this workspace", "we move house!")
	hasNot(t, r.ok(at(ann, annsDM), "status"), "resume")
	has(t, r.ok(at(ada, annsDM), "status"), "`!resume` has it go on")
	hasNot(t, r.ok(at(ada, foreign), "status"), "Paused")
	has(t, r.ok(owner(), "status"), "Paused in slack/T1", "`mimikit resume in slack/T1`")
	has(t, r.ok(owner(), "pause"), "Paused everywhere.")
	has(t, r.ok(at(ann, foreign), "status"), "Paused everywhere")
	hasNot(t, r.ok(at(ann, foreign), "status"), "root")
	has(t, r.ok(at(ada, thread), "resume"), "Resumed in this workspace", "paused everywhere, though, by whoever runs it")
	has(t, r.ok(at(ada, thread), "resume"), "Nothing is paused in this workspace.")
	has(t, r.no(at(ada, thread), "resume now"), "nothing may follow")
	has(t, r.ok(owner(), "pause in slack/T2 because"), "Paused in slack/T2.")
	has(t, r.ok(owner(), "resume"), "Resumed everywhere", "Paused in slack/T2", "`mimikit resume in slack/T2`")
	has(t, r.ok(owner(), "resume in slack/T2"), "Resumed in slack/T2")
	for _, odd := range []string{"pause in", "pause in slack", "pause in a/b/c", "pause in /b"} {
		has(t, r.no(owner(), odd), "the key of a workspace is wanted")
	}
	has(t, r.no(at(ada, thread), "pause "+strings.Repeat("x", 501)), "At most 500")
	acts := strings.Join(r.audit.take(), "\n")
	has(t, acts, "U4: pause we move house! → slack/T1: paused", "U4: pause again → slack/T1: was paused already", "root: pause → *: paused", "U4: resume → slack/T1: resumed", "root: resume in slack/T2 → slack/T2: resumed")
}

// What another workspace has is told neither by a refusal nor by the trail that the
// caller's own admins read; who holds the machine sees that it was tried.
func TestTrailHidesOtherWorkspaces(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *admin.Options) {
		o.Where = many(map[string]admin.Journey{"aaaaaaaaaaaaaaaaaaaa": {Conversation: foreign, Author: bob, Stage: "user-input"}})
	})
	far := r.task(bob, foreign, "far")
	never := far[:6] + map[bool]string{true: "1", false: "0"}[far[6] == '0'] + far[7:]
	r.roads.dead = []channel.DeadLetter{{ID: channel.DeadID{Partition: 0, ID: "3-0"}, From: channel.UserInput, Conversation: foreign.Key()}}
	for there, gone := range map[string]string{
		"dead replay 0/3-0": "dead replay 0/3-1", "dead drop 0/3-0": "dead drop 0/3-1", "task " + far: "task " + never,
		"why aaaaaaaaaaaaaaaaaaaa": "why bbbbbbbbbbbbbbbbbbbb",
	} {
		id := func(words string) string { return words[strings.LastIndex(words, " ")+1:] }
		one, other := r.no(at(ada, thread), there), r.no(at(ada, thread), gone)
		if strings.ReplaceAll(one, id(there), "x") != strings.ReplaceAll(other, id(gone), "x") {
			t.Errorf("%s is refused with %q, what is nowhere with %q", there, one, other)
		}
	}
	r.no(at(ada, thread), "task "+far[:10]) // the trail has all of its id
	for _, words := range []string{"audit", "audit refused", "audit by me", "audit dead refused"} {
		hasNot(t, r.ok(at(ada, thread), words), "0/3-0", far, "aaaaaaaaaaaaaaaaaaaa", "another")
	}
	has(t, r.ok(owner(), "audit refused"), "0/3-0", far, "aaaaaaaaaaaaaaaaaaaa", "another workspace's")
	if n := strings.Count(r.ok(owner(), "audit refused"), "another workspace's"); n != 5 {
		t.Errorf("the trail has %d refusals, want 5", n)
	}
}
