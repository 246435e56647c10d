package trigger

import (
	"encoding/json"
	"fmt"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// A wish is what a turn script is told, see lua/extension.lua.
type wish struct {
	Commit string            `json:"commit"`
	Rev    string            `json:"rev,omitempty"`
	Conv   string            `json:"conv,omitempty"`
	Set    map[string]string `json:"set,omitempty"`
	Unset  []string          `json:"unset,omitempty"`
	Due    string            `json:"due,omitempty"`
	Keep   bool              `json:"keep,omitempty"`
	Slot   string            `json:"slot,omitempty"`
	Task   string            `json:"task,omitempty"`
	Skip   bool              `json:"skip,omitempty"`
	Behind string            `json:"behind,omitempty"`
	Remove bool              `json:"remove,omitempty"`
	Tell   []string          `json:"tell,omitempty"`
}

// Settle spells what a verdict on a trigger, as it was read, comes to: the task of a
// firing, what is kept, when to look again, or the end of the trigger. If the
// trigger has changed since it was read, nothing happens; nor if it fires while the
// task that it started last is not over ([Sights].Busy). prompt is that of the task
// ("" is the trigger's own), storage where its files are if the trigger does not
// say. It gives the id of the task, "" when none is started. It fails when the task
// cannot be made, see [Issuer.Fault].
func (is *Issuer) Settle(t Trigger, v Verdict, prompt, storage string) (channel.Call, string, error) {
	_, p, err := ParseID(t.ID)
	if err != nil {
		return channel.Call{}, "", err
	}
	w := wish{Commit: is.commitID(), Rev: t.rev, Set: map[string]string{}, Due: stamp(v.Due), Skip: v.Skip, Behind: v.Behind}
	w.put("error", v.Error)
	if v.Skip {
		w.Set["lastSkipped"] = stamp(v.now)
	}
	if v.Leaves != nil {
		leaves, err := json.Marshal(v.Leaves)
		if err != nil {
			return channel.Call{}, "", fmt.Errorf("settle trigger %s: %w", t.ID, err)
		}
		w.Set["leaves"] = string(leaves)
	}
	if v.ran && t.Type == Recurring {
		w.put("next", stamp(v.Next))
	}
	var create channel.Call
	if v.Fire != nil {
		w.Slot = cut(v.Fire.Slot, 1000)
		w.Task = is.Tasks.Derive(t.Conversation, v.Fire.At, t.ID, v.Fire.Slot)
		if _, create, err = is.Tasks.Create(is.draft(t, v.now, w.Task, prompt, storage)); err != nil {
			return channel.Call{}, "", fmt.Errorf("settle trigger %s: %w", t.ID, err)
		}
		w.Set["lastTriggered"] = stamp(v.now)
		if t.Type == Recurring {
			w.Set["lastRun"] = stamp(v.now)
		}
	}
	if v.Remove != "" {
		w.Remove = true
		if v.Fire == nil {
			if w.Tell, err = told(t, v.Remove); err != nil {
				return channel.Call{}, "", err
			}
		}
	}
	call, err := is.turn(p, t.ID, w, create)
	return call, w.Task, err
}

// Fault spells that a trigger cannot do what it should: it is paused and its
// conversation told. Like Settle it changes only what was read.
func (is *Issuer) Fault(t Trigger, now time.Time, why string) (channel.Call, error) {
	_, p, err := ParseID(t.ID)
	if err != nil {
		return channel.Call{}, err
	}
	why = cut(why, MaxError)
	w := wish{Commit: is.commitID(), Rev: t.rev, Set: map[string]string{"error": why, "paused": stamp(now), "pauseReason": why}}
	if w.Tell, err = told(t, "it is paused, because "+why); err != nil {
		return channel.Call{}, err
	}
	return is.turn(p, t.ID, w, channel.Call{})
}

// RunNow spells that a trigger of the conversation starts its task now, paused or
// not, whatever its condition says and without using anything of that up. A
// scheduled one runs now in place of later. A cooldown begins, as with any run.
// While the task that it started last is not over, nothing happens.
func (is *Issuer) RunNow(t Trigger, prompt, storage string) (channel.Call, string, error) {
	_, p, err := ParseID(t.ID)
	if err != nil {
		return channel.Call{}, "", fmt.Errorf("run: %w", err)
	}
	now := is.now()
	w := wish{Commit: is.commitID(), Conv: t.Conversation.Key(), Keep: true, Remove: t.Type == Scheduled}
	w.Slot = "now " + w.Commit
	w.Task = is.Tasks.Derive(t.Conversation, now, t.ID, w.Slot)
	w.Set = map[string]string{"lastTriggered": stamp(now)}
	_, create, err := is.Tasks.Create(is.draft(t, now, w.Task, prompt, storage))
	if err != nil {
		return channel.Call{}, "", fmt.Errorf("run trigger %s: %w", t.ID, err)
	}
	call, err := is.turn(p, t.ID, w, create)
	return call, w.Task, err
}

func (is *Issuer) turn(p int, id string, w wish, create channel.Call) (channel.Call, error) {
	data, err := json.Marshal(w)
	if err != nil {
		return channel.Call{}, fmt.Errorf("settle trigger %s: %w", id, err)
	}
	return is.making(is.op(p, "turn", id, string(data)), p, create), nil
}

// making adds what makes a task to a call.
func (is *Issuer) making(call channel.Call, p int, create channel.Call) channel.Call {
	if create.Extension != "" {
		call.Args = append(call.Args, create.Args...)
		call.Keys = append(call.Keys, create.Keys[len(task.Keys(is.Tasks.Keys, p)):]...)
	}
	return call
}

// put sets a field, or removes it.
func (w *wish) put(field, value string) {
	if value == "" {
		w.Unset = append(w.Unset, field)
		return
	}
	w.Set[field] = value
}

// told is the entry that tells a conversation of the end of a trigger, or of what is
// wrong with it, as if it were a task that was canceled. Its id is one of its own:
// of results with the same id a history keeps one.
func told(t Trigger, why string) ([]string, error) {
	data, err := json.Marshal(chat.TaskResult{
		ID: t.ID + "." + t.rev, Conversation: t.Conversation, Title: t.Title, Profile: "trigger", Status: chat.TaskCanceled, TraceID: t.TraceID,
		ParentTaskID: t.ParentTaskID, SourceTriggerID: t.ID, Requester: t.Requester, ResultType: "text", Output: "The trigger " + t.ID + " (" + t.When() + ") does not start its task: " + why,
	})
	if err != nil {
		return nil, fmt.Errorf("tell of trigger %s: %w", t.ID, err)
	}
	f := channel.EntryFields(channel.Entry{Conversation: t.Conversation.Key(), TraceID: t.TraceID, Traceparent: t.Traceparent})
	f[len(f)-1] = string(data)
	return f, nil
}

// Heard spells that something became of a task, or of a trigger: whoever waits for
// it looks again.
func (is *Issuer) Heard(c chat.Conversation, id string) channel.Call {
	return is.op(is.Tasks.Keys.Partition(c.Key()), "heard", id)
}

// Answers spells what a model said of a trigger's condition, when the task that
// asked is still the one that the trigger waits for.
func (is *Issuer) Answers(t Trigger, asked string, answers map[string]bool) (channel.Call, error) {
	data, err := json.Marshal(answers)
	if err != nil {
		return channel.Call{}, fmt.Errorf("answer trigger %s: %w", t.ID, err)
	}
	return is.op(is.Tasks.Keys.Partition(t.Conversation.Key()), "answers", t.ID, asked, string(data)), nil
}

// Pause spells that a trigger of the conversation does not fire until it is resumed.
// Of one that is paused already it changes who has paused it, if the role of who asks
// is greater than theirs.
func (is *Issuer) Pause(c chat.Conversation, id string, by chat.Author, reason string) (channel.Call, error) {
	p, err := is.at(c, id)
	if err != nil {
		return channel.Call{}, fmt.Errorf("pause: %w", err)
	}
	return is.pause(p, id, c.Key(), by, reason)
}

func (is *Issuer) pause(p int, id, conv string, by chat.Author, reason string) (channel.Call, error) {
	who, err := json.Marshal(by)
	if err != nil {
		return channel.Call{}, fmt.Errorf("pause trigger %s: encode who wants it: %w", id, err)
	}
	return is.op(p, "pause", id, conv, string(who), cut(reason, MaxError), is.commitID()), nil
}

// Resume spells that a paused trigger, as it was read, fires again. Runs that fell
// into the pause are not made up for: a recurring one goes on with its next regular
// time. A scheduled one whose time is over runs at once. Nothing happens when somebody
// else with a greater role than who asks has paused it.
func (is *Issuer) Resume(t Trigger, by chat.Author) (channel.Call, error) {
	_, p, err := ParseID(t.ID)
	if err != nil {
		return channel.Call{}, fmt.Errorf("resume: %w", err)
	}
	who, err := json.Marshal(by)
	if err != nil {
		return channel.Call{}, fmt.Errorf("resume trigger %s: encode who wants it: %w", t.ID, err)
	}
	now := is.now()
	next, due := time.Time{}, now
	switch t.Type {
	case Recurring:
		next = t.due()
		if t.LastRunAt.After(now) && t.Cron == "" { // the clock was put back
			next = now.Add(t.Interval)
		} else if t.Cron == "" && next.Before(now) && t.Interval > 0 {
			next = next.Add((now.Sub(next)/t.Interval + 1) * t.Interval)
		} else if t.Cron != "" {
			next = t.after(now)
		}
		due = next
	case Scheduled:
		due = t.due()
	}
	return is.op(p, "resume", t.ID, t.Conversation.Key(), stamp(next), stamp(due), is.commitID(), string(who)), nil
}

// Remove spells the end of a trigger of the conversation. What it has started goes
// on; see [Trigger.LastTaskID].
func (is *Issuer) Remove(c chat.Conversation, id string) (channel.Call, error) {
	p, err := is.at(c, id)
	if err != nil {
		return channel.Call{}, fmt.Errorf("remove: %w", err)
	}
	return is.op(p, "remove", id, c.Key()), nil
}

// Derive is DeriveID in the partition of a conversation.
func (is *Issuer) Derive(c chat.Conversation, at time.Time, parts ...string) string {
	return DeriveID(at, is.Tasks.Keys.Partition(c.Key()), parts...)
}

// An Asking is a trigger whose condition is put to a model, and when it is looked at
// next in any case.
type Asking struct {
	Trigger Trigger
	Due     time.Time
}

// Ask spells the internal task that puts the questions of some triggers of one
// conversation to a model. Those that have changed since they were read are left
// out; when all have, there is no task.
func (is *Issuer) Ask(list []Asking, now time.Time, d task.Draft) (channel.Call, error) {
	made, create, err := is.Tasks.Create(d)
	if err != nil {
		return channel.Call{}, fmt.Errorf("ask for %d triggers: %w", len(list), err)
	}
	type asked struct {
		ID  string `json:"id"`
		Rev string `json:"rev"`
		Due string `json:"due"`
	}
	w := struct {
		Commit string  `json:"commit"`
		Task   string  `json:"task"`
		Now    string  `json:"now"`
		List   []asked `json:"list"`
	}{is.commitID(), made.ID, stamp(now), nil}
	for _, a := range list {
		w.List = append(w.List, asked{a.Trigger.ID, a.Trigger.rev, stamp(a.Due)})
	}
	data, err := json.Marshal(w)
	if err != nil {
		return channel.Call{}, fmt.Errorf("ask for %d triggers: %w", len(list), err)
	}
	p := is.Tasks.Keys.Partition(d.Conversation.Key())
	return is.making(is.op(p, "ask", string(data)), p, create), nil
}
