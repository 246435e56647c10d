package trigger

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"mimikit/core/task"
)

// Sights are what was seen of the world that a trigger waits for. What is not among
// them is not known, and decides nothing.
type Sights struct {
	Busy     bool                 // the task that it started last is not over
	Tasks    map[string]TaskSight // by id, of all that [Trigger.WatchedTasks] lists
	Triggers map[string]bool      // of the triggers that the condition names: those there are
	Files    map[string]FileSight // by pattern, of all that the condition names
}

// A TaskSight is how a task stands.
type TaskSight struct {
	Found       bool // there is such a task in the trigger's conversation
	Status      task.Status
	ResultID    string // once it is over
	CompletedAt time.Time
	Title       string // for people
}

// A FileSight is what files fit a pattern.
type FileSight struct {
	Hash   string // of the contents; "" when there are none
	Exists bool
	Err    error // why nobody knows
}

// A Verdict is what a trigger does next.
type Verdict struct {
	Fire   *Firing           // nil: it does not
	Skip   bool              // a run is left out, because the task that it started last is not over
	Behind string            // that task, when a condition came true and waits for its end; "" for none
	Leaves map[string]Leaf   // what is to be kept of the condition; nil: as it is
	Due    time.Time         // when to look again; zero: when something is heard
	Next   time.Time         // of a recurring one that was due: its next run
	Remove string            // why it can never fire again; "" when it may
	Ask    map[string]string // :: path of an llm_eval -> its question, to be put to a model now
	Slot   time.Time         // of Ask
	Error  string            // why something could not be seen; "" for nothing

	now time.Time
	ran bool // it was due, whether it fired or not
}

// A Firing is one firing of a trigger.
type Firing struct {
	Slot   string    // what it fires for, once
	At     time.Time // when that came to be, as well as it is known
	Causes []Cause
}

// A Cause is a part of a condition that made it fire.
type Cause struct {
	Path, Type string
	TaskID     string // of task_done and task_failed: the very task
	Pattern    string // of file_changed and file_exists
	Question   string // of llm_eval
}

// Writes reports whether the verdict changes the trigger.
func (v Verdict) Writes(t Trigger) bool {
	return v.Fire != nil || v.ran || v.Leaves != nil || v.Remove != "" || v.Error != t.LastError || v.Behind != t.Behind
}

// Named gives the very task that an id in the condition means: itself, or of a
// trigger the task that it started last, "" when it has not started one.
func (t Trigger) Named(id string) string {
	if IsID(id) {
		return t.Started[id]
	}
	return id
}

// WatchedTasks lists the tasks that the trigger must see to judge.
func (t Trigger) WatchedTasks() []string {
	var out []string
	for _, id := range append(t.Condition.Tasks(), t.EvalTaskID, t.Behind) {
		if id = t.Named(id); id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// after is the next run of a recurring trigger after one that was at a moment.
func (t Trigger) after(at time.Time) time.Time {
	if t.Cron == "" {
		return at.Add(t.Interval)
	}
	c, err := ParseCron(t.Cron, t.Zone)
	if err != nil {
		return time.Time{}
	}
	return c.Next(at)
}

// due is when a recurring or scheduled trigger runs next: nextRunAt, else an
// interval after lastRunAt, else after createdAt.
func (t Trigger) due() time.Time {
	switch {
	case !t.NextRunAt.IsZero():
		return t.NextRunAt
	case t.Type == Scheduled:
		return t.RunAt
	case !t.LastRunAt.IsZero():
		return t.after(t.LastRunAt)
	}
	return t.after(t.CreatedAt)
}

// Judge says what the trigger does at a moment, given what was seen. It is a
// function of its arguments. look is how often files are looked at. Who has not seen
// that the trigger is busy is told so when the verdict is settled, see [BusyError],
// and judges again.
func (t Trigger) Judge(now time.Time, s Sights, look time.Duration) Verdict {
	if behind := s.Tasks[t.Behind]; behind.Found && !task.Over(behind.Status) {
		s.Busy = true
	}
	v := t.judge(now, s, look)
	v.now = now
	return v
}

func (t Trigger) judge(now time.Time, s Sights, look time.Duration) Verdict {
	switch {
	case t.Paused():
		return Verdict{Error: t.LastError, Behind: t.Behind}
	case t.Type == Conditional && t.Condition != nil:
		return t.judgeCondition(now, s, look)
	case t.Type != Recurring && t.Type != Scheduled:
		return Verdict{Remove: fmt.Sprintf("its type is %q, which says nothing of when it fires", t.Type)}
	}
	at := t.due()
	if at.IsZero() {
		return Verdict{Remove: "there is no further time at which it would run"}
	}
	if now.Before(at) {
		return Verdict{Due: at, Error: t.LastError}
	}
	v := Verdict{ran: true}
	if t.Type == Scheduled {
		v.Fire = &Firing{Slot: slotOf(at), At: at}
		v.Remove = "it has fired"
		return v
	}
	v.Next = t.after(now)
	v.Due = v.Next
	if v.Next.IsZero() {
		v.Remove = "there is no further time at which it would run"
	}
	// A run that falls into the cooldown is left out, and one that would join its task
	// before the last is over.
	switch {
	case t.hot(now):
	case s.Busy:
		v.Skip = true
	default:
		v.Fire = &Firing{Slot: slotOf(at), At: at}
	}
	return v
}

func slotOf(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// cooled is when the cooldown ends.
func (t Trigger) cooled() time.Time { return t.LastTriggeredAt.Add(t.Cooldown) }

// hot reports whether the cooldown lasts. Where the clock was put back by more than
// that, it does not.
func (t Trigger) hot(now time.Time) bool {
	return !t.LastTriggeredAt.IsZero() && now.Sub(t.LastTriggeredAt).Abs() < t.Cooldown
}

// evalSlot is the last moment at or before at when the conversation's conditions
// are put to a model. All of a conversation share the moments, so that they share
// the task that asks; conversations are spread over the time.
func (t Trigger) evalSlot(at time.Time) time.Time {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Conversation.Key())) // never fails
	offset := time.Duration(h.Sum32()%uint32(EvalEvery/time.Second)) * time.Second
	return at.Add(-offset).Truncate(EvalEvery).Add(offset)
}

func (t Trigger) judgeCondition(now time.Time, s Sights, look time.Duration) Verdict {
	j := judgment{t: t, s: s, next: maps.Clone(t.State), ask: map[string]string{}}
	if j.next == nil {
		j.next = map[string]Leaf{}
	}
	j.settle(t.Condition, root)
	base := maps.Clone(j.next)
	v := Verdict{}
	held := j.node(t.Condition, root)
	hot := t.hot(now)
	ready := held.is == yes && held.fresh
	fires := ready && !hot && !s.Busy
	if fires {
		v.Fire = j.fire(now, held)
	} else {
		j.next = base
	}
	if !maps.Equal(j.next, t.State) {
		v.Leaves = j.next
	}
	v.Error = cut(strings.Join(j.errors, "; "), MaxError)
	if why := j.dead(t.Condition, root); why != "" {
		v.Remove = why
		return v
	}
	if ready && hot {
		v.Due = sooner(v.Due, t.cooled())
	} else if ready && s.Busy {
		// Its end is heard of, unless the task is lost.
		v.Behind, v.Due = t.LastTaskID, sooner(v.Due, now.Add(lostAfter))
	}
	if len(t.Condition.Paths()) > 0 {
		v.Due = sooner(v.Due, now.Add(look))
	}
	if t.Condition.asks() {
		last, free := t.LastEvalAt, t.LastEvalAt.Add(EvalEvery)
		if last.IsZero() || last.Sub(now) > EvalEvery { // never, or the clock was put back
			last, free = t.CreatedAt, now
		}
		slot := t.evalSlot(now)
		asking := t.EvalTaskID != "" && s.Tasks[t.EvalTaskID].Found && !task.Over(s.Tasks[t.EvalTaskID].Status)
		next := slot.Add(EvalEvery)
		switch {
		case len(j.ask) == 0 || hot || fires || asking || !slot.After(t.evalSlot(last)):
		case now.Before(free): // the last look came late
			next = free
		default:
			v.Ask, v.Slot = j.ask, slot
		}
		v.Due = sooner(v.Due, next)
	}
	return v
}

// sooner is the earlier of two times, of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
