package trigger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

func TestCreateKeepsEveryField(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 4)
		parent := r.task("c", "parent")
		file := leaf(FileChanged, "a/*.md")
		file.Params.FireOnInit = true
		c := both(leaf(TaskDone, parent), either(file, leaf(LLMEval, "Is \"it\" so?\n你好")))
		d := Draft{
			ID: r.st.is.Derive(conv("c"), epoch, "p"), Type: Conditional, Title: " Ünïcode \"and\" <b>\n lines", Prompt: "do\n{\"a\":1}\x01 你好", Profile: task.Expert,
			Priority: new(9), Timeout: new(90 * time.Second), Retry: &task.Retry{MaxAttempts: 3, Backoff: time.Second}, Conversation: conv("c"),
			Requester: bob, Condition: &c, Cooldown: time.Hour, Storage: "disk 1", ParentTaskID: parent, TraceID: "trace", Traceparent: "00-a-b-01",
		}
		got := r.create(d)
		want := Trigger{
			ID: d.ID, Type: Conditional, Title: `Ünïcode "and" <b> lines`, Prompt: d.Prompt, Profile: task.Expert, Priority: 9, Timeout: d.Timeout, Retry: d.Retry,
			Conversation: d.Conversation, Requester: bob, Condition: &c, Cooldown: time.Hour, Storage: "disk 1", CreatedAt: got.CreatedAt,
			ParentTaskID: parent, TraceID: "trace", Traceparent: "00-a-b-01", SchemaVersion: Schema, rev: "1",
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(), cmp.AllowUnexported(Trigger{})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if since := time.Since(got.CreatedAt); since < 0 || since > time.Minute {
			t.Errorf("created %s ago", since)
		}
		// Again under the same id: it is the same.
		if again := r.create(d); again.CreatedAt != got.CreatedAt {
			t.Errorf("%+v", again)
		}
		if watched := r.taskOf(parent).WatchedBy; !cmp.Equal(watched, []string{d.ID}) {
			t.Errorf("the task is watched by %v", watched)
		}
		// Both of its files and of nobody else are looked at by who has them.
		if taken, err := r.st.Take(t.Context(), r.tasks.Keys.Partition(conv("c").Key()), nil); err != nil || len(taken.Triggers) != 0 || taken.Next >= 0 {
			t.Errorf("%+v, %v", taken, err)
		}
		if taken, err := r.st.Take(t.Context(), r.tasks.Keys.Partition(conv("c").Key()), []string{"disk 1"}); err != nil || len(taken.Triggers) != 1 || taken.Triggers[0].ID != d.ID {
			t.Errorf("%+v, %v", taken, err)
		}
		if _, err := r.st.Remove(t.Context(), d.ID); err != nil {
			t.Fatal(err)
		}
		if watched := r.taskOf(parent).WatchedBy; len(watched) > 0 {
			t.Errorf("the task is still watched by %v", watched)
		}
		if _, err := r.st.Get(t.Context(), d.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
		r.checkClean()
	})
}

func (r *rig) taskOf(id string) task.Task {
	r.t.Helper()
	t, err := r.q.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	is := Issuer{Tasks: &task.Issuer{Keys: channel.Keys{Prefix: "x", Partitions: 4}}, Now: func() time.Time { return epoch }}
	elsewhere := NewID(epoch, (is.Tasks.Keys.Partition(conv("c").Key())+1)%4, 1)
	cond := func(c Condition) func(*Draft) { return func(d *Draft) { *d = when("c", c) } }
	for want, change := range map[string]func(*Draft){
		`type "often": allowed are`:             func(d *Draft) { d.Type = "often" },
		"runAt: a recurring trigger does not":   func(d *Draft) { d.RunAt = epoch },
		"one of them":                           func(d *Draft) { d.Cron = "0 9 * * *" },
		"interval 9s: allowed are 10 seconds":   func(d *Draft) { d.Interval = 9 * time.Second },
		"it goes with cron":                     func(d *Draft) { d.Zone = "Europe/Berlin" },
		"no such time zone":                     func(d *Draft) { d.Interval, d.Cron, d.Zone = 0, "0 9 * * *", "Berlin" },
		"it goes with interval":                 func(d *Draft) { d.Interval, d.Cron, d.NextRunAt = 0, "0 9 * * *", epoch },
		"more than 10 years":                    func(d *Draft) { d.NextRunAt = epoch.AddDate(11, 0, 0) },
		"runAt: it is missing":                  func(d *Draft) { d.Type, d.Interval = Scheduled, 0 },
		"that is over; now is 2026-11-21T12:00": func(d *Draft) { d.Type, d.Interval, d.RunAt = Scheduled, 0, epoch.Add(-time.Hour) },
		"the prompt is empty":                   func(d *Draft) { d.Prompt = " \n" },
		"65537 bytes; at most 65536":            func(d *Draft) { d.Prompt = strings.Repeat("x", MaxPrompt+1) },
		`profile "wizard": allowed are`:         func(d *Draft) { d.Profile = "wizard" },
		"profile: a trigger starts no plans":    func(d *Draft) { d.Profile = task.Planner },
		"priority 11":                           func(d *Draft) { d.Priority = new(11) },
		"cooldown -1s":                          func(d *Draft) { d.Cooldown = -time.Second },
		"it has no conversation":                func(d *Draft) { d.Conversation = chat.Conversation{} },
		`trigger id "7"`:                        func(d *Draft) { d.ID = "7" },
		"lives in partition":                    func(d *Draft) { d.ID = elsewhere },
		"condition: it is missing":              func(d *Draft) { d.Type, d.Interval = Conditional, 0 },
		`condition.type: "noon"`:                cond(Condition{Type: "noon"}),
		"condition.params.path: it is missing":  cond(leaf(FileExists, " ")),
		"takes only path":                       cond(Condition{Type: FileExists, Params: &Params{Path: "a", FireOnInit: true}}),
		"condition: and takes 2 to 10":          cond(both(leaf(FileExists, "a"))),
		"nest more than 4":                      cond(both(leaf(LLMEval, "a"), both(leaf(LLMEval, "a"), both(leaf(LLMEval, "a"), both(leaf(LLMEval, "a"), leaf(LLMEval, "a")))))),
		`taskId "7": it is no task or trigger`:  cond(leaf(TaskDone, "7")),
		fmt.Sprintf("taskId %q", elsewhere):     cond(leaf(TaskDone, elsewhere)),
		"no files in this conversation":         func(d *Draft) { *d = when("c", leaf(FileExists, "a")); d.Storage = "" },
	} {
		d := every("c", time.Minute)
		change(&d)
		if _, _, err := is.Create(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

// An interval fires when it is due, once however late, and then counts from then.
func TestRecurring(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		tr := r.create(every("c", time.Hour))
		if got := tr.NextRunAt.Sub(tr.CreatedAt).Round(time.Second); got != time.Hour {
			t.Fatalf("it runs first after %s", got)
		}
		first := tr.NextRunAt
		if v, id := r.look(tr.ID, first.Add(-time.Millisecond), nil); v.Fire != nil || id != "" {
			t.Errorf("it fires early: %+v", v)
		}
		// Three runs are missed; one is had.
		late := first.Add(3*time.Hour + time.Minute)
		v, id := r.look(tr.ID, late, nil)
		got := r.get(tr.ID)
		if v.Fire.Slot != slotOf(first) || !got.LastRunAt.Equal(late) || !got.NextRunAt.Equal(late.Add(time.Hour)) || !got.LastTriggeredAt.Equal(late) ||
			got.Fired != 1 || got.LastTaskID != id || got.LastSlot != slotOf(first) {
			t.Errorf("%+v", got)
		}
		made := r.taskOf(id)
		if at, _, _ := task.ParseID(id); !at.Equal(first) || made.SourceTriggerID != tr.ID || !made.TriggeredAt.Equal(late) || made.TraceID != tr.TraceID ||
			made.Prompt != "do it" || made.Title != tr.Title || made.Requester != ann || made.ID != r.tasks.Derive(conv("c"), first, tr.ID, slotOf(first)) {
			t.Errorf("made %+v", made)
		}
		if v, _ := r.look(tr.ID, late.Add(time.Hour-time.Millisecond), nil); v.Fire != nil {
			t.Error("it fires again too early")
		}
		r.over(tr.ID)
		if v, id := r.look(tr.ID, late.Add(time.Hour), nil); v.Fire == nil || id == made.ID {
			t.Error("it does not fire again")
		}
		// The same verdict a second time comes too late.
		old := got
		v = old.Judge(late.Add(time.Hour), Sights{}, time.Second)
		if _, err := r.st.Settle(t.Context(), old, v, "", ""); !errors.Is(err, ErrLate) {
			t.Errorf("a verdict on what has changed: %v", err)
		}
		if n := len(r.started()); n != 2 {
			t.Errorf("%d tasks were started", n)
		}
	})
}

// Without nextRunAt it is reckoned from lastRunAt, or from createdAt.
func TestDueIsReckoned(t *testing.T) {
	t.Parallel()
	tr := Trigger{Type: Recurring, Interval: time.Hour, CreatedAt: epoch}
	if got := tr.due(); !got.Equal(epoch.Add(time.Hour)) {
		t.Errorf("from createdAt: %s", got)
	}
	tr.LastRunAt = epoch.Add(5 * time.Hour)
	if got := tr.due(); !got.Equal(epoch.Add(6 * time.Hour)) {
		t.Errorf("from lastRunAt: %s", got)
	}
	tr.NextRunAt = epoch.Add(9 * time.Hour)
	if got := tr.due(); !got.Equal(epoch.Add(9 * time.Hour)) {
		t.Errorf("nextRunAt: %s", got)
	}
	if got := (Trigger{Type: Scheduled, RunAt: epoch}).due(); !got.Equal(epoch) {
		t.Errorf("runAt: %s", got)
	}
}

func TestScheduledFiresOnceAndIsRemoved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
		d := Draft{Type: Scheduled, Prompt: "remind me", Conversation: conv("c"), Requester: ann, RunAt: at}
		tr := r.create(d)
		if runs := tr.NextRuns(3); len(runs) != 1 || !runs[0].Equal(at) || tr.Title != "remind me" {
			t.Errorf("%+v, next %v", tr, runs)
		}
		if _, id := r.look(tr.ID, at, nil); r.taskOf(id).Title != "remind me" {
			t.Error("another task was started")
		}
		if _, err := r.st.Get(t.Context(), tr.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("it is still there: %v", err)
		}
		if told := r.told(channel.WorkerResult); len(told) > 0 {
			t.Errorf("people were told %+v", told)
		}
		r.checkClean()
	})
}

func TestCooldownLeavesRunsOut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		d := every("c", time.Minute)
		d.Cooldown = 150 * time.Second
		tr := r.create(d)
		at := tr.NextRunAt
		var fired []int
		for i := range 8 {
			if v, _ := r.look(tr.ID, at, nil); v.Fire != nil {
				fired = append(fired, i)
				r.over(tr.ID)
			}
			at = at.Add(time.Minute)
		}
		if !cmp.Equal(fired, []int{0, 3, 6}) {
			t.Errorf("it fired in the runs %v", fired)
		}
	})
}

// What cannot be done is said, once, and the trigger waits for a person.
func TestFault(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		tr := r.create(every("c", time.Hour))
		now := time.Now()
		if err := r.st.Fault(t.Context(), tr, now, "the profile is gone"); err != nil {
			t.Fatal(err)
		}
		if err := r.st.Fault(t.Context(), tr, now, "the profile is gone"); !errors.Is(err, ErrLate) {
			t.Errorf("%v", err)
		}
		got := r.get(tr.ID)
		told := r.told(channel.WorkerResult)
		if !got.Paused() || got.LastError != "the profile is gone" || len(told) != 1 || told[0].SourceTriggerID != tr.ID || told[0].Status != chat.TaskCanceled ||
			!strings.Contains(told[0].Output, "the profile is gone") || told[0].Requester != ann || told[0].Conversation != conv("c") {
			t.Errorf("%+v; told %+v", got, told)
		}
	})
}

func TestListAndFind(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 4)
		ctx := t.Context()
		parent := r.task("c0", "parent")
		var all []string
		for i := range 12 {
			d := every(fmt.Sprintf("c%d", i%3), time.Hour)
			d.ID = NewID(epoch.Add(time.Duration(i)*time.Second), r.tasks.Keys.Partition(d.Conversation.Key()), uint64(i)<<20)
			if i%2 == 1 {
				d.Requester = bob
			}
			if i == 3 {
				d.ParentTaskID = parent
			}
			all = append([]string{r.create(d).ID}, all...)
		}
		ids := func(f Filter, limit int) (out []string) {
			from := ""
			for {
				page, err := r.st.List(ctx, f, from, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, tr := range page.Triggers {
					out = append(out, tr.ID)
				}
				if from = page.Next; from == "" {
					return out
				}
			}
		}
		if got := ids(Filter{}, 5); !cmp.Equal(got, all) {
			t.Errorf("all: %v, want %v", got, all)
		}
		c1 := conv("c1")
		if got := ids(Filter{Conversation: &c1}, 2); len(got) != 4 || got[0] != all[1] {
			t.Errorf("of c1: %v", got)
		}
		if got := ids(Filter{Platform: "slack", Workspace: "T1", Requester: bob.ID}, 100); len(got) != 6 {
			t.Errorf("of Bob: %v", got)
		}
		if got := ids(Filter{Platform: "discord"}, 3); len(got) != 0 {
			t.Errorf("of Discord: %v", got)
		}
		if got := ids(Filter{Parent: parent}, 100); !cmp.Equal(got, []string{all[8]}) {
			t.Errorf("of the parent: %v", got)
		}
		if n, err := r.st.Count(ctx, c1); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if lines, err := r.st.Summary(ctx, c1, 3); err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], all[1]+" trigger recurring") || !strings.Contains(lines[0], "every hour") {
			t.Errorf("%q, %v", lines, err)
		}
		if got, err := r.st.Find(ctx, " "+strings.ToUpper(all[4])+" ", nil); err != nil || got.ID != all[4] {
			t.Errorf("%s, %v", got.ID, err)
		}
		var several *AmbiguousError
		if _, err := r.st.Find(ctx, all[0][:6], nil); !errors.As(err, &several) {
			t.Errorf("%v", err)
		}
		for _, prefix := range []string{"", "t1", "gzzzz", "g[", all[0]} {
			if got, err := r.st.Find(ctx, prefix, &c1); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %s, %v", prefix, got.ID, err)
			}
		}
		if _, err := r.st.List(ctx, Filter{}, "nonsense", 3); err == nil {
			t.Error("a list from nonsense")
		}
	})
}

// The cancel of a plan removes its triggers, also those that come after it.
func TestCanceledParents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		parent := r.task("c", "parent")
		for range 3 {
			d := every("c", time.Hour)
			d.ParentTaskID = parent
			r.create(d)
		}
		if _, err := r.q.Cancel(t.Context(), parent, ann, "enough"); err != nil {
			t.Fatal(err)
		}
		r.checkClean()
		d := every("c", time.Hour)
		d.ParentTaskID = parent
		if _, err := r.st.Create(t.Context(), d); !errors.Is(err, ErrCanceled) {
			t.Errorf("%v", err)
		}
		r.checkClean()
	})
}

func TestAConversationIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Redis(t), 1)
	for range MaxPerConversation {
		r.create(every("c", time.Hour))
	}
	if _, err := r.st.Create(t.Context(), every("c", time.Hour)); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	r.create(every("d", time.Hour))
}

// What is stored today is read by later builds, and what they add comes through our
// scripts.
func TestStoredShape(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		tr := r.create(every("c", time.Hour))
		read := func() map[string]any {
			var st map[string]any
			if err := json.Unmarshal([]byte(s.Client.HGet(t.Context(), stateKey(r.tasks.Keys, 0), tr.ID).Val()), &st); err != nil {
				t.Fatal(err)
			}
			return st
		}
		st := read()
		st["later"] = map[string]any{"deep": []any{"a", "b"}, "n": "17"}
		data, _ := json.Marshal(st)
		s.Client.HSet(t.Context(), stateKey(r.tasks.Keys, 0), tr.ID, data)
		r.look(tr.ID, tr.NextRunAt, nil)
		if diff := cmp.Diff(st["later"], read()["later"]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		s.Client.HSet(t.Context(), rowsKey(r.tasks.Keys, 0), tr.ID, "{")
		if _, err := r.st.Get(t.Context(), tr.ID); err == nil || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), tr.ID) {
			t.Errorf("a damaged row: %v", err)
		}
	})
}
