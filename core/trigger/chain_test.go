package trigger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// A, then B, then C, where B and C are triggers of one plan: C waits for the task
// that B starts, whenever that is.
func TestChains(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		now := func() time.Time { return time.Now().Add(time.Second) }
		a := r.task("c", "a")
		b := r.create(when("c", leaf(TaskDone, a)))
		c := r.create(when("c", leaf(TaskDone, b.ID)))
		if v, _ := r.look(b.ID, now(), nil); v.Fire != nil || v.Remove != "" {
			t.Errorf("%+v", v)
		}
		if v, _ := r.look(c.ID, now(), nil); v.Fire != nil || v.Remove != "" {
			t.Errorf("%+v", v)
		}
		r.end(1)
		if told := r.told(channel.SupervisorEvent); len(told) != 1 || told[0].ID != a {
			t.Errorf("the supervisor was told %+v", told)
		}
		_, taskB := r.look(b.ID, now(), nil)
		if _, err := r.st.Get(t.Context(), b.ID); taskB == "" || !errors.Is(err, ErrUnknown) {
			t.Fatalf("B started %q and is still there: %v", taskB, err)
		}
		if got := r.get(c.ID); got.Started[b.ID] != taskB || !strings.Contains(fmt.Sprint(r.taskOf(taskB).WatchedBy), c.ID) {
			t.Errorf("C waits for %v", got.Started)
		}
		if v, _ := r.look(c.ID, now(), nil); v.Fire != nil || v.Remove != "" {
			t.Errorf("%+v", v)
		}
		r.end(1)
		if _, taskC := r.look(c.ID, now(), nil); taskC == "" {
			t.Error("C did not start")
		}
		if len(r.taskOf(taskB).WatchedBy) > 0 {
			t.Errorf("B's task is still watched by %v", r.taskOf(taskB).WatchedBy)
		}
		r.checkClean()
		if told := r.told(channel.WorkerResult); len(told) != 2 { // of A and of B's task
			t.Errorf("people were told %+v", told)
		}
	})
}

// When A fails, B can never start, nor C that waits for it, and people are told.
func TestABrokenChainIsTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		a := r.task("c", "fail at once")
		b := r.create(when("c", leaf(TaskDone, a)))
		c := r.create(when("c", both(leaf(TaskDone, b.ID), leaf(FileExists, "x"))))
		r.end(1)
		now := time.Now().Add(time.Second)
		r.look(b.ID, now, nil)
		if taken, err := r.st.Take(t.Context(), 0, []string{"disk"}); err != nil || len(taken.Triggers) != 1 || taken.Triggers[0].ID != c.ID {
			t.Errorf("after B went, %+v is to be looked at, %v", taken, err)
		}
		r.look(c.ID, now, nil)
		r.checkClean()
		var about []string
		for _, res := range r.told(channel.WorkerResult) {
			if res.ID != a {
				about = append(about, res.SourceTriggerID)
				if res.Status != chat.TaskCanceled || !strings.Contains(res.Output, "does not start its task") {
					t.Errorf("told %+v", res)
				}
			}
		}
		if fmt.Sprint(about) != fmt.Sprint([]string{b.ID, c.ID}) {
			t.Errorf("told of %v", about)
		}
		if len(r.started()) > 0 {
			t.Error("a task was started all the same")
		}
	})
}

// A task of another conversation is no task of this one, in the same partition too.
func TestOtherConversations(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		ctx := t.Context()
		secret, its := r.task("other", "secret"), r.create(every("other", time.Hour))
		for _, named := range []string{secret, its.ID, NewID(epoch, 0, 9), task.NewID(epoch, 0, 9)} {
			c := both(leaf(TaskDone, r.task("c", "own")), leaf(TaskFailed, named))
			if _, err := r.st.Create(ctx, when("c", c)); !errors.Is(err, ErrStrange) || !strings.Contains(err.Error(), named) {
				t.Errorf("%s: %v", named, err)
			}
			// A commit cannot ask; there it is told when it is looked at first, and goes.
			tr, call, err := r.st.is.Create(when("c", c))
			if err != nil {
				t.Fatal(err)
			}
			if did, err := r.st.Perform(ctx, conv("c"), call); did != "created" || err != nil {
				t.Fatalf("%s, %v", did, err)
			}
			if watchers, err := r.st.Watchers(ctx, conv("other"), named); err != nil || len(watchers) > 0 && (named == secret || named == its.ID) {
				t.Errorf("%s is waited for by %v, %v", named, watchers, err)
			}
			if v, _ := r.look(tr.ID, time.Now(), nil); v.Fire != nil || !strings.Contains(v.Remove, named) {
				t.Errorf("%s: %+v", named, v)
			}
		}
		if len(r.taskOf(secret).WatchedBy) > 0 {
			t.Error("it watches a task of another conversation")
		}
		if there, err := r.st.Exists(ctx, conv("c"), []string{its.ID}); err != nil || there[its.ID] {
			t.Errorf("%v, %v", there, err)
		}
		if there, err := r.st.Exists(ctx, conv("other"), []string{its.ID}); err != nil || !there[its.ID] {
			t.Errorf("%v, %v", there, err)
		}
		if told := r.told(channel.WorkerResult); len(told) != 4 {
			t.Errorf("people were told %+v", told)
		}
		if _, err := r.st.Remove(ctx, its.ID); err != nil {
			t.Fatal(err)
		}
		r.checkClean()
	})
}

func TestAskingAModel(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		ctx := t.Context()
		one, two := r.create(when("c", leaf(LLMEval, "so?"))), r.create(when("c", leaf(LLMEval, "or so?")))
		late := r.create(when("c", leaf(LLMEval, "late?")))
		now := time.Now()
		if err := r.st.Fault(ctx, late, now, "it changes"); err != nil {
			t.Fatal(err)
		}
		d := task.Draft{ID: r.tasks.Derive(conv("c"), now, "ask"), Profile: task.Standard, Prompt: "?", Conversation: conv("c"), Requester: ann, Internal: true, SourceTriggerID: one.ID}
		list := []Asking{{one, now.Add(time.Hour)}, {late, now.Add(time.Hour)}, {two, now.Add(time.Hour)}}
		for range 2 { // the second is a repeat
			call, err := r.st.is.Ask(list, now, d)
			if err != nil {
				t.Fatal(err)
			}
			if did, err := r.st.Perform(ctx, conv("c"), call); did != "done" || err != nil {
				t.Errorf("%s, %v", did, err)
			}
		}
		if got := r.get(two.ID); got.EvalTaskID != d.ID || got.LastEvalAt.UnixMilli() != now.UnixMilli() {
			t.Errorf("%+v", got)
		}
		if got := r.get(late.ID); got.EvalTaskID != "" {
			t.Errorf("%+v", got)
		}
		watchers, err := r.st.Watchers(ctx, conv("c"), d.ID)
		if err != nil || len(watchers) != 2 {
			t.Errorf("%v, %v", watchers, err)
		}
		r.end(1)
		if told := r.told(channel.WorkerResult); len(told) != 1 || told[0].SourceTriggerID != late.ID {
			t.Errorf("people were told %+v", told)
		}
		for asked, want := range map[string]string{"t000": "late", d.ID: "done"} {
			if asked == d.ID {
				continue
			}
			call, _ := r.st.is.Answers(one, asked, map[string]bool{"c": true})
			if did, err := r.st.Perform(ctx, conv("c"), call); did != want || err != nil {
				t.Errorf("%s: %s, %v", asked, did, err)
			}
		}
		call, _ := r.st.is.Answers(one, d.ID, map[string]bool{"c": true})
		if did, err := r.st.Perform(ctx, conv("c"), call); did != "done" || err != nil {
			t.Errorf("%s, %v", did, err)
		}
		if got := r.get(one.ID); got.EvalTaskID != "" || !got.Answers["c"] {
			t.Errorf("%+v", got)
		}
		v, id := r.look(one.ID, now, nil)
		if v.Fire == nil || v.Fire.Slot != "edge 1" || id == "" {
			t.Errorf("%+v", v)
		}
		if v, _ := r.look(two.ID, now, nil); v.Fire != nil {
			t.Errorf("%+v", v)
		}
	})
}
