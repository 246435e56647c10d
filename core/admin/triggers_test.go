package admin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// triggers gives a rig the commands on triggers.
func triggers(t *testing.T) (*rig, *trigger.Store) {
	t.Helper()
	r := newRig(t)
	st, err := trigger.New(trigger.Options{Issuer: trigger.Issuer{Tasks: r.q.Issuer(), Now: r.tick}, Client: r.redis.Client, CallTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.o.Triggers = st
	if r.set, err = admin.New(r.o); err != nil {
		t.Fatal(err)
	}
	return r, st
}

func (r *rig) trigger(st *trigger.Store, who chat.Author, where chat.Conversation, title string, change ...func(*trigger.Draft)) string {
	r.Helper()
	d := trigger.Draft{Type: trigger.Recurring, Title: title, Prompt: "do " + title, Conversation: where, Requester: who, Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"}
	for _, f := range change {
		f(&d)
	}
	t, err := st.Create(r.Context(), d)
	if err != nil {
		r.Fatal(err)
	}
	return t.ID
}

func TestTriggersAreShown(t *testing.T) {
	t.Parallel()
	r, st := triggers(t)
	has(t, r.ok(at(ann, thread), "triggers"), "You have no triggers.")
	has(t, r.ok(at(ola, thread), "triggers"), "`!triggers all` shows everybody's")
	id := r.trigger(st, ann, thread, "the *tickets*")
	once := r.trigger(st, ann, lobby, "once", func(d *trigger.Draft) {
		d.Type, d.Cron, d.Zone, d.RunAt = trigger.Scheduled, "", "", time.Now().Add(time.Hour)
	})
	text, a, _ := r.run(at(ann, thread), "triggers")
	has(t, text, id[:10], once[:10], `the \*tickets\*`, "every weekday at 09:00 Europe/Berlin", "09:00, ", "Europe/Berlin", "once, on ", "waits")
	hasNot(t, text, "| For |")
	views := a.Data.([]admin.TriggerView)
	if len(views) != 2 || views[1].ID != id || len(views[1].Next) != 3 || views[1].Zone != "Europe/Berlin" || len(views[0].Next) != 1 || views[0].Type != "scheduled" {
		t.Errorf("told programs %+v", views)
	}
	here := r.ok(at(ann, thread), "triggers here")
	has(t, here, id[:10], "you")
	hasNot(t, here, once[:10])
	one, a, _ := r.run(at(ann, thread), "trigger "+id[:12])
	has(t, one, id, "fires: every weekday at 09:00 Europe/Berlin", "next: ", "asked for by: you", "do the *tickets*", "trace: ")
	hasNot(t, one, "paused by", "fired:", "conversation:")
	var labels []string
	for _, b := range a.Buttons {
		words, _ := admin.ButtonWords(b.Value)
		labels = append(labels, b.Label+"="+strings.Join(words, " "))
	}
	if got := strings.Join(labels, ", "); got != "Pause=trigger pause "+id+", Run now=trigger run "+id+", Remove=trigger remove "+id {
		t.Errorf("buttons %s", got)
	}
	c := at(ann, thread)
	c.PageSize = 1
	has(t, r.ok(c, "triggers"), "Page 1.", "`!triggers mine 2` shows the next")
	has(t, r.ok(c, "triggers 2"), id[:10], "Page 2.")
	has(t, r.ok(c, "triggers 3"), "There is no page 3.")
	for words, want := range map[string]string{
		"trigger": "Which trigger?", "trigger pause": "Which trigger?", "trigger pauze " + id: "did you mean `pause`?", "triggers min": "did you mean `mine`?",
		"triggers 0": "allowed are 1 to 1000", "trigger g000": "There is no trigger `g000`", "trigger remove t123": "There is no trigger `t123`",
		"task " + id: "is the id of a trigger", "cancel " + id: "is the id of a trigger",
	} {
		has(t, r.no(at(ann, thread), words), want)
	}
}

func TestTriggersAreChanged(t *testing.T) {
	t.Parallel()
	r, st := triggers(t)
	id := r.trigger(st, ann, thread, "tickets")
	get := func() trigger.Trigger {
		t.Helper()
		got, err := st.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	has(t, r.ok(at(ann, thread), "trigger pause "+id), "Paused", "(tickets)", "`!trigger resume "+id+"`")
	if now := get(); !now.Paused() || now.PausedBy.ID != ann.ID {
		t.Errorf("%+v", now)
	}
	has(t, r.ok(at(ann, thread), "trigger pause "+id), "is paused already")
	has(t, r.ok(at(ola, lobby), "trigger "+id), "paused by: Ann", "asked for by: Ann")
	has(t, r.ok(at(ann, thread), "triggers"), "paused")
	text, a, _ := r.run(at(ann, thread), "trigger resume "+id)
	has(t, text, "Resumed", "It runs next on ", "09:00, ", "Europe/Berlin")
	if c := a.Data.(admin.TriggerChange); c.Did != "resumed" || len(c.Next) != 3 {
		t.Errorf("told programs %+v", c)
	}
	has(t, r.ok(at(ann, thread), "trigger resume "+id), "is not paused")
	text, a, _ = r.run(at(ola, lobby), "trigger run "+id)
	started := a.Data.(admin.TriggerChange).Task
	has(t, text, "Started `"+started+"`", "where the trigger was asked for")
	if made, err := r.q.Get(t.Context(), started); err != nil || made.Requester.ID != ann.ID || made.Conversation != thread || made.SourceTriggerID != id || made.Status != task.Pending {
		t.Errorf("started %+v, %v", made, err)
	}
	has(t, r.ok(at(ann, thread), "trigger "+id), "fired: 1 time", "last task: "+started)
	has(t, r.no(at(ann, thread), "trigger run "+id), "(tickets) is not started: its last task, `"+started[:10]+"`, is pending, waits for a worker. `!cancel "+started+"` ends it.")
	has(t, r.ok(at(ann, thread), "trigger remove "+id), "Removed", "`"+started[:10]+"`, goes on")
	has(t, r.no(at(ann, thread), "trigger remove "+id), "There is no trigger")
	if r.status(started) != task.Pending {
		t.Error("the task ended with its trigger")
	}
	want := []string{
		"U1: trigger pause " + id + " → " + id + ": paused", "U1: trigger pause " + id + " → " + id + ": unchanged",
		"U1: trigger resume " + id + " → " + id + ": resumed", "U1: trigger resume " + id + " → " + id + ": unchanged",
		"U3: trigger run " + id + " → " + id + ": started " + started, "U1: trigger run " + id + " → " + id + ": refused", "U1: trigger remove " + id + " → " + id + ": removed",
	}
	if got := r.audit.take(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Who may see and change a trigger is as with tasks.
func TestRightsOnTriggers(t *testing.T) {
	t.Parallel()
	r, st := triggers(t)
	anns := r.trigger(st, ann, thread, "anns")
	secret := r.trigger(st, bob, bobsDM, "secret", func(d *trigger.Draft) {
		d.Type, d.Cron, d.Zone, d.Storage = trigger.Conditional, "", "", "disk"
		d.Condition = &trigger.Condition{Type: trigger.FileExists, Params: &trigger.Params{Path: "letter.txt"}}
	})
	far := r.trigger(st, ann, foreign, "far")
	for _, what := range []string{"", "pause ", "resume ", "run ", "remove "} {
		has(t, r.no(at(bob, thread), "trigger "+what+anns), "was asked for by Ann")
		has(t, r.no(at(bob, lobby), "trigger "+what+anns), "There is no trigger")
		has(t, r.no(at(ola, thread), "trigger "+what+far), "There is no trigger")
	}
	if acts := r.audit.take(); len(acts) != 15 || !strings.HasSuffix(acts[0], anns+": refused") {
		t.Errorf("recorded %q", acts)
	}
	has(t, r.no(at(bob, thread), "triggers all"), "Only operators")
	all := r.ok(aloud(ola, thread), "triggers all")
	has(t, all, anns[:10], secret[:10], "when something comes true (said elsewhere)", "Bob")
	hasNot(t, all, far[:10], "letter.txt", "secret")
	one := r.ok(at(ola, thread), "trigger "+secret)
	has(t, one, "(said elsewhere)", "ask where it was said")
	hasNot(t, one, "letter.txt", "do secret")
	own := r.ok(owner(), "triggers all")
	has(t, own, anns[:10], far[:10], "letter.txt")
	// Who stands higher takes a pause over, and who stands lower does not undo it.
	has(t, r.ok(at(ann, thread), "trigger pause "+anns), "Paused")
	has(t, r.ok(at(ola, thread), "trigger pause "+anns), "was paused by Ann already; now it is by you, and who stands lower cannot resume it.", "`!trigger resume "+anns+"`")
	has(t, r.ok(at(ann, thread), "trigger pause "+anns), "is paused already by Ola, who is operator; nothing is changed.")
	has(t, r.ok(at(ola, thread), "trigger pause "+anns), "is paused already.")
	has(t, r.ok(at(ann, thread), "trigger "+anns), "paused by: Ola")
	has(t, r.no(at(ann, thread), "trigger resume "+anns), "was paused by Ola, who is operator")
	has(t, r.no(at(ann, thread), "trigger run "+anns), "was paused by Ola, who is operator")
	r.ok(at(ada, thread), "trigger run "+anns)
	r.ok(at(ada, thread), "trigger resume "+anns)
	// Also when that happens between a look and the deed.
	r.o.Triggers = &overtaken{st, func() {
		if _, err := st.Pause(t.Context(), anns, withRole(ola, chat.RoleOperator), ""); err != nil {
			t.Error(err)
		}
	}}
	var err error
	if r.set, err = admin.New(r.o); err != nil {
		t.Fatal(err)
	}
	has(t, r.no(at(ann, thread), "trigger resume "+anns), "was paused by Ola, who is operator")
}

func withRole(a chat.Author, r chat.Role) chat.Author {
	a.Role = r
	return a
}

// overtaken is a store on which somebody does something before it resumes.
type overtaken struct {
	*trigger.Store
	first func()
}

func (o *overtaken) Resume(ctx context.Context, id string, by chat.Author) (bool, error) {
	o.first()
	return o.Store.Resume(ctx, id, by)
}

// What was left out is told, and why.
func TestSkippedRunsAreShown(t *testing.T) {
	t.Parallel()
	r, st := triggers(t)
	id := r.trigger(st, ann, thread, "slow")
	r.ok(at(ann, thread), "trigger run "+id)
	for range 3 {
		now, err := st.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		v := now.Judge(now.NextRunAt, trigger.Sights{Busy: true}, time.Minute)
		if _, err := st.Settle(t.Context(), now, v, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	has(t, r.ok(at(ann, thread), "triggers"), "fired 1 time, skipped 3 times because its task was still running")
	text, a, _ := r.run(at(ann, thread), "trigger "+id)
	has(t, text, "skipped: 3 times because its task was still running, last ")
	if v := a.Data.(admin.TriggerView); v.Skipped != 3 || v.LastSkipped == "" {
		t.Errorf("told programs %+v", v)
	}
	when := r.trigger(st, ann, thread, "when", func(d *trigger.Draft) {
		d.Type, d.Cron, d.Zone, d.Storage = trigger.Conditional, "", "", "disk"
		d.Condition = &trigger.Condition{Type: trigger.FileChanged, Params: &trigger.Params{Path: "a", FireOnInit: true}}
	})
	r.ok(at(ann, thread), "trigger run "+when)
	now, err := st.Get(t.Context(), when)
	if err != nil {
		t.Fatal(err)
	}
	seen := trigger.Sights{Busy: true, Files: map[string]trigger.FileSight{"a": {Hash: "h", Exists: true}}}
	if _, err := st.Settle(t.Context(), now, now.Judge(time.Now(), seen, time.Minute), "", ""); err != nil {
		t.Fatal(err)
	}
	has(t, r.ok(at(ann, thread), "triggers"), "waits for its last task to end")
	text, a, _ = r.run(at(ann, thread), "trigger "+when)
	has(t, text, "waits: for its last task to end; then it fires")
	if v := a.Data.(admin.TriggerView); v.WaitsFor != r.lastTask(st, when) {
		t.Errorf("told programs %+v", v)
	}
}

func (r *rig) lastTask(st *trigger.Store, id string) string {
	r.Helper()
	t, err := st.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return t.LastTaskID
}

func TestTriggerCommandsInTalk(t *testing.T) {
	t.Parallel()
	r, _ := triggers(t)
	for text, want := range map[string]bool{
		"triggers": true, "triggers here 2": true, "trigger g1m7z06qfa": true, "trigger pause g1m7z06qfa": true,
		"trigger the build": false, "triggers are hard": false, "trigger": false, "trigger pause it": false,
	} {
		if _, ok := r.set.IsAddressed(text); ok != want {
			t.Errorf("%q is a command: %v", text, ok)
		}
	}
	has(t, r.ok(at(ann, thread), "help trigger"), "pause|resume|run|remove")
	// Without triggers there are no commands on them.
	bare := newRig(t)
	has(t, bare.no(at(ann, thread), "triggers"), "There is no command")
	hasNot(t, bare.ok(at(ann, thread), "help"), "trigger")
}
