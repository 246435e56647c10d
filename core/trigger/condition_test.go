package trigger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

func TestFileChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaf(FileChanged, "a"))
	w.file("a", "h1").fires("") // the baseline
	w.fires("")
	w.file("a", "h2").fires("h2")
	w.fires("")
	w.file("a", "").fires("none") // removed
	w.fires("")
	w.file("a", "h2").fires("h2")
	w.s.Files["a"] = FileSight{Err: errors.New("the disk is gone")}
	w.fires("")
	if !strings.Contains(w.tr.LastError, `look at "a": the disk is gone`) {
		t.Errorf("%q", w.tr.LastError)
	}
	delete(w.s.Files, "a")
	w.fires("")
	w.file("a", "h2").fires("")
	if w.tr.LastError != "" {
		t.Errorf("%q", w.tr.LastError)
	}
	w.lives()

	c := leaf(FileChanged, "a")
	c.Params.FireOnInit = true
	w = newWorld(t, c)
	w.file("a", "h1").fires("h1")
	w.fires("")
	w = newWorld(t, c)
	w.file("a", "").fires("") // nothing is there
	w.file("a", "h1").fires("h1")
}

func TestTaskDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaf(TaskDone, "t1"))
	w.fires("") // not seen
	w.lives()
	w.task("t1", task.Running).fires("")
	w.lives()
	w.task("t1", task.Succeeded)
	ended := w.now
	w.now = w.now.Add(time.Hour)
	if v := w.tr.Judge(w.now, w.s, time.Second); v.Fire == nil || !v.Fire.At.Equal(ended) || v.Fire.Causes[0] != (Cause{Path: "c", Type: TaskDone, TaskID: "t1"}) {
		t.Errorf("%+v", v.Fire)
	}
	w.fires("t1")
	w.dies("has happened")

	for status, why := range map[task.Status]string{task.Failed: "ended as failed", task.Canceled: "ended as canceled"} {
		w = newWorld(t, leaf(TaskDone, "t1"))
		w.task("t1", status).fires("")
		w.dies(why)
	}
	w = newWorld(t, leaf(TaskDone, "t1"))
	w.s.Tasks["t1"] = TaskSight{}
	w.fires("")
	w.dies("no task t1")
	w = newWorld(t, leaf(TaskFailed, "t1"))
	w.task("t1", task.Failed).fires("t1")
	w = newWorld(t, leaf(TaskFailed, "t1"))
	w.task("t1", task.Succeeded).fires("")
	w.dies("ended as succeeded")
}

// What 003 says of leaves, taken literally, never fires here.
func TestBothTasksDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, both(leaf(TaskDone, "t1"), leaf(TaskDone, "t2")))
	w.task("t1", task.Running).task("t2", task.Running).fires("")
	w.task("t1", task.Succeeded).fires("")
	w.fires("")
	w.lives()
	w.task("t2", task.Succeeded).fires("c.0=t1 c.1=t2")
	w.dies("has happened")

	w = newWorld(t, both(leaf(TaskDone, "t1"), leaf(TaskDone, "t2")))
	w.task("t1", task.Succeeded).task("t2", task.Failed).fires("")
	w.dies("t2, which it waited for, has ended as failed")
}

func TestEitherTaskDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, either(leaf(TaskDone, "t1"), leaf(TaskFailed, "t2")))
	w.task("t1", task.Running).task("t2", task.Succeeded).fires("")
	w.lives()
	w.task("t1", task.Succeeded).fires("c.0=t1")
	w.dies("") // and t2 has not failed
	w = newWorld(t, either(leaf(TaskDone, "t1"), leaf(TaskDone, "t2")))
	w.task("t1", task.Succeeded).task("t2", task.Running).fires("c.0=t1")
	w.lives()
	w.task("t2", task.Succeeded).fires("c.1=t2")
	w.dies("has happened")
}

// What holds for a while fires when it begins to hold, and again when it begins anew.
func TestLevels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaf(FileExists, "a"))
	w.file("a", "").fires("")
	w.file("a", "x").fires("edge 1")
	w.file("a", "y").fires("")
	w.file("a", "").fires("")
	w.file("a", "x").fires("edge 2")
	w.s.Files["a"] = FileSight{Err: errors.New("away")}
	w.fires("") // nobody knows: no end of holding
	w.file("a", "x").fires("")
	w.lives()

	// One condition of several levels has one edge.
	w = newWorld(t, either(leaf(FileExists, "a"), leaf(FileExists, "b")))
	w.file("a", "").file("b", "x").fires("c=edge 1")
	w.file("a", "x").fires("")
	w.file("b", "").fires("")
	w.file("a", "").fires("")
	w.file("b", "x").fires("c=edge 2")
	w = newWorld(t, both(leaf(FileExists, "a"), leaf(FileExists, "b")))
	w.file("a", "x").file("b", "").fires("")
	w.file("b", "x").fires("c=edge 1")
	w.file("b", "").fires("")
	w.file("b", "x").fires("c=edge 2")

	w = newWorld(t, leaf(LLMEval, "so?"))
	w.fires("")
	w.tr.Answers["c"] = false
	w.fires("")
	w.tr.Answers["c"] = true
	w.fires("edge 1")
	w.fires("")
}

// A level beside what happens neither hides it nor fires for it twice.
func TestMixed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, either(leaf(FileExists, "a"), leaf(TaskDone, "t1")))
	w.file("a", "x").task("t1", task.Running).fires("c.0=edge 1")
	w.fires("")
	w.task("t1", task.Succeeded).fires("c.1=t1")
	w.fires("")
	w.lives() // the file may go and come

	w = newWorld(t, both(leaf(FileChanged, "a"), leaf(FileExists, "b")))
	w.file("a", "h1").file("b", "").fires("") // the baseline, though b is not there
	w.file("a", "h2").fires("")
	w.file("b", "x").fires("c.0=h2 c.1=edge 1")
	w.fires("")
	w.file("a", "h3").fires("c.0=h3")
	w.file("b", "").fires("")
	w.file("a", "h4").fires("")
	w.file("a", "h3").fires("") // as it was
	w.file("b", "x").fires("")

	// Baselines are taken behind a short circuit, too.
	w = newWorld(t, both(leaf(TaskDone, "t1"), leaf(FileChanged, "a")))
	w.task("t1", task.Running).file("a", "h1").fires("")
	w.file("a", "h2").task("t1", task.Succeeded).fires("c.0=t1 c.1=h2")
	w = newWorld(t, either(leaf(TaskDone, "t1"), leaf(FileChanged, "a")))
	w.task("t1", task.Succeeded).file("a", "h1").fires("c.0=t1")
	w.file("a", "h2").fires("c.1=h2")

	// Nested.
	w = newWorld(t, both(either(leaf(TaskDone, "t1"), leaf(TaskFailed, "t1")), either(leaf(FileExists, "a"), leaf(TaskDone, "t2"))))
	w.task("t1", task.Failed).task("t2", task.Failed).file("a", "").fires("")
	w.lives()
	w.file("a", "x").fires("c.0.1=t1 c.1.0=edge 1")
	w.dies("")
}

func TestCooldownOfConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaf(FileChanged, "a"))
	w.tr.Cooldown = time.Minute
	w.file("a", "h1").fires("")
	w.file("a", "h2").fires("h2")
	w.file("a", "h3").fires("")
	v := w.tr.Judge(w.now, w.s, time.Hour)
	if want := w.tr.LastTriggeredAt.Add(time.Minute); !v.Due.Equal(want) {
		t.Errorf("it is looked at again at %s, want %s", v.Due, want)
	}
	w.now = w.now.Add(time.Minute)
	w.fires("h3") // what happened meanwhile is not lost
	w = newWorld(t, leaf(FileExists, "a"))
	w.tr.Cooldown = time.Minute
	w.file("a", "x").fires("edge 1")
	w.file("a", "").fires("")
	w.file("a", "x").fires("")
	w.now = w.now.Add(time.Minute)
	w.fires("edge 2")
}

// A model is asked at most every 900 s, of what is needed, at moments that all
// conditions of a conversation share.
func TestWhenAModelIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, both(leaf(FileExists, "a"), leaf(LLMEval, "so?")))
	w.file("a", "")
	asked := func(for_ time.Duration) (times []time.Time) {
		for end := w.now.Add(for_); w.now.Before(end); w.now = w.now.Add(15 * time.Second) {
			v := w.tr.Judge(w.now, w.s, 15*time.Second)
			if len(v.Ask) == 0 {
				continue
			}
			if v.Ask["c.1"] != "so?" || !v.Slot.Equal(w.tr.evalSlot(w.now)) {
				t.Errorf("%+v", v)
			}
			times = append(times, w.now)
			w.tr.LastEvalAt = w.now
		}
		return times
	}
	if got := asked(2 * time.Hour); len(got) != 0 {
		t.Errorf("it was asked %d times though there is no file", len(got))
	}
	w.file("a", "x")
	got := asked(2 * time.Hour)
	if len(got) < 7 || len(got) > 9 {
		t.Errorf("in two hours it was asked %d times", len(got))
	}
	for i := 1; i < len(got); i++ {
		if d := got[i].Sub(got[i-1]); d < EvalEvery {
			t.Errorf("asked again after %s", d)
		}
	}
	// Another trigger of the conversation, made at another time, is asked with it.
	other := Trigger{Conversation: conv("c")}
	if !other.evalSlot(w.now.Add(time.Second)).Equal(w.tr.evalSlot(w.now.Add(time.Second))) {
		t.Error("they are asked at different moments")
	}
	// While the task that asks is not over, no second one is.
	w.now = w.now.Add(time.Hour)
	w.tr.EvalTaskID = "t9"
	w.task("t9", task.Running)
	if v := w.tr.Judge(w.now, w.s, time.Second); len(v.Ask) > 0 {
		t.Error("it is asked twice at once")
	}
	w.task("t9", task.Failed)
	if v := w.tr.Judge(w.now, w.s, time.Second); len(v.Ask) == 0 {
		t.Error("after a failure it is never asked again")
	}
	w.tr.Cooldown, w.tr.LastTriggeredAt = time.Hour, w.now
	if v := w.tr.Judge(w.now, w.s, time.Second); len(v.Ask) > 0 || v.Due.IsZero() {
		t.Errorf("in the cooldown: %+v", v)
	}
}

// Whatever happens in whatever order: an event fires at most once, nothing that was
// waited for is missed, and judging is a function of what is seen.
func TestConditionsProperty(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		c := randomCondition(rnd, 1)
		if c.Type != And && c.Type != Or {
			c = either(c, leaf(TaskDone, "t1"))
		}
		if c.Check() != nil {
			continue
		}
		w := newWorld(t, c)
		for i := range 3 {
			w.task(fmt.Sprintf("t%d", i), task.Running)
			w.file(fmt.Sprintf("f%d", i), "")
		}
		seen := map[string]bool{}
		for range 60 {
			switch n := rnd.IntN(3); rnd.IntN(4) {
			case 0:
				id := fmt.Sprintf("t%d", n)
				if !task.Over(w.s.Tasks[id].Status) {
					w.task(id, []task.Status{task.Succeeded, task.Failed, task.Canceled}[rnd.IntN(3)])
				}
			case 1:
				w.file(fmt.Sprintf("f%d", n), []string{"", "h1", "h2"}[rnd.IntN(3)])
			case 2:
				c.each(root, func(path string, l *Condition) {
					if l.Type == LLMEval && rnd.IntN(2) == 0 {
						w.tr.Answers[path] = rnd.IntN(2) == 0
					}
				})
			}
			one, two := w.tr.Judge(w.now, w.s, time.Second), w.tr.Judge(w.now, w.s, time.Second)
			if (one.Fire == nil) != (two.Fire == nil) || one.Fire != nil && one.Fire.Slot != two.Fire.Slot {
				t.Fatalf("seed %d: judged twice, %+v and %+v", seed, one.Fire, two.Fire)
			}
			slot := w.look()
			if slot == "" {
				continue
			}
			for _, part := range strings.Split(strings.ReplaceAll(slot, "=edge ", "=edge_"), " ") {
				// A file may be again what it was; a result and an edge come once.
				if (strings.Contains(part, "=t") || strings.Contains(part, "=edge_")) && seen[part] {
					t.Fatalf("seed %d: %s fires twice in %v", seed, part, w.slots)
				}
				seen[part] = true
			}
			if again := w.look(); again != "" && again == slot {
				t.Fatalf("seed %d: it fires for %s at once again", seed, slot)
			}
		}
	}
}

func randomCondition(rnd *rand.Rand, depth int) Condition {
	n := rnd.IntN(3)
	if kind := rnd.IntN(8); depth < 4 && kind < 4 {
		c := Condition{Type: []string{And, Or}[kind%2]}
		for range 2 + rnd.IntN(2) {
			c.Conditions = append(c.Conditions, randomCondition(rnd, depth+1))
		}
		return c
	}
	switch rnd.IntN(5) {
	case 0:
		return leaf(TaskDone, fmt.Sprintf("t%d", n))
	case 1:
		return leaf(TaskFailed, fmt.Sprintf("t%d", n))
	case 2:
		return leaf(FileChanged, fmt.Sprintf("f%d", n))
	case 3:
		return leaf(FileExists, fmt.Sprintf("f%d", n))
	}
	return leaf(LLMEval, "so?")
}

// A condition as deep, as wide and as long as any may be is kept, judged, and fires.
func TestTheLargestCondition(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		deep := both(leaf(FileExists, strings.Repeat("f", maxParam)), both(leaf(FileExists, "g"), both(leaf(FileExists, "h"), leaf(LLMEval, strings.Repeat("?", maxParam)))))
		wide := both()
		var tasks []string
		for i := range 8 {
			tasks = append(tasks, r.task("c", fmt.Sprint(i)), r.task("c", fmt.Sprint("and ", i)))
			wide.Conditions = append(wide.Conditions, both(leaf(TaskDone, tasks[2*i]), leaf(TaskDone, tasks[2*i+1])))
		}
		wide.Conditions = append(wide.Conditions, deep.Conditions...)
		if err := wide.Check(); err != nil {
			t.Fatal(err)
		}
		over := wide
		over.Conditions = append(slices.Clone(wide.Conditions[:9]), both(deep.Conditions[1].Conditions[0], deep, leaf(FileExists, "more")))
		for _, bad := range []Condition{over, both(deep, deep, deep, deep, deep, leaf(FileExists, "a"))} {
			if err := bad.Check(); err == nil {
				t.Error("a condition beyond the bounds is taken")
			}
		}
		tr := r.create(when("c", wide))
		r.end(len(tasks))
		files := map[string]FileSight{"g": {Exists: true}, "h": {Exists: true}, strings.Repeat("f", maxParam): {Exists: true}}
		if v, _ := r.look(tr.ID, time.Now(), files); v.Fire != nil {
			t.Errorf("%+v", v)
		}
		id := r.task("c", "asks")
		call, err := r.st.is.Ask([]Asking{{r.get(tr.ID), time.Now()}}, time.Now(), task.Draft{ID: id, Profile: task.Standard, Prompt: "?", Conversation: conv("c"), Requester: ann, Internal: true})
		if err != nil {
			t.Fatal(err)
		}
		if did, err := r.st.Perform(t.Context(), conv("c"), call); did != "done" || err != nil {
			t.Fatalf("%s, %v", did, err)
		}
		if call, err = r.st.is.Answers(tr, id, map[string]bool{"c.9.1.1": true}); err != nil {
			t.Fatal(err)
		}
		if did, err := r.st.Perform(t.Context(), conv("c"), call); did != "done" || err != nil {
			t.Fatalf("%s, %v", did, err)
		}
		v, made := r.look(tr.ID, time.Now(), files)
		if v.Fire == nil || made == "" || len(v.Fire.Causes) < len(tasks) {
			t.Errorf("%+v", v)
		}
		for _, id := range tasks {
			if by := r.taskOf(id).WatchedBy; len(by) > 0 {
				t.Errorf("task %s is watched by %v", id, by)
			}
		}
	})
}
