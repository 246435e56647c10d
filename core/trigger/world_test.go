package trigger

import (
	"strings"
	"testing"
	"time"

	"mimikit/core/task"
)

// A world is what a trigger's condition looks at, and a trigger that keeps what it
// is told to without a Redis.
type world struct {
	t     testing.TB
	tr    Trigger
	now   time.Time
	s     Sights
	slots []string
	gone  string
}

func newWorld(t testing.TB, c Condition) *world {
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, now: epoch, s: Sights{Tasks: map[string]TaskSight{}, Files: map[string]FileSight{}, Triggers: map[string]bool{}},
		tr: Trigger{ID: "g1", Type: Conditional, Condition: &c, Conversation: conv("c"), CreatedAt: epoch, Answers: map[string]bool{}},
	}
}

func (w *world) file(path, hash string) *world {
	w.s.Files[path] = FileSight{Hash: hash, Exists: hash != ""}
	return w
}

func (w *world) task(id string, s task.Status) *world {
	w.s.Tasks[id] = TaskSight{Found: true, Status: s}
	if task.Over(s) {
		w.s.Tasks[id] = TaskSight{Found: true, Status: s, ResultID: id, CompletedAt: w.now}
	}
	return w
}

// look judges, keeps, and gives the slot; "" for no firing.
func (w *world) look() string {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	v := w.tr.Judge(w.now, w.s, 15*time.Second)
	if v.Leaves != nil {
		w.tr.State = v.Leaves
	}
	w.tr.LastError, w.tr.Behind = v.Error, v.Behind
	w.gone = v.Remove
	if v.Fire == nil {
		return ""
	}
	w.tr.LastTriggeredAt = w.now
	w.slots = append(w.slots, v.Fire.Slot)
	return v.Fire.Slot
}

func (w *world) fires(want string) {
	w.t.Helper()
	if got := w.look(); got != want {
		w.t.Errorf("it fired for %q, want %q; state %+v", got, want, w.tr.State)
	}
}

func (w *world) dies(want string) {
	w.t.Helper()
	if !strings.Contains(w.gone, want) || w.gone == "" {
		w.t.Errorf("it is removed for %q, want %q", w.gone, want)
	}
}

func (w *world) lives() {
	w.t.Helper()
	if w.gone != "" {
		w.t.Errorf("it is removed: %s", w.gone)
	}
}
