package trigger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// ErrUnknown says that there is no such trigger, or no longer.
var ErrUnknown = errors.New("there is no such trigger")

// An Issuer spells what commits of core/channel do to triggers. It speaks to
// nobody, so a step can use it and be tested without a Redis.
type Issuer struct {
	Tasks *task.Issuer     // of the tasks that triggers start; its Keys are those of the triggers
	Now   func() time.Time // nil means time.Now
	Rand  func() uint64    // nil means math/rand/v2
}

// Create spells the creation of a trigger, for the commit of a step of its
// conversation. Under an id that exists already, or with a parent that was canceled,
// it changes nothing. The trigger is returned as it will be, except for what only
// the commit knows.
//
// It fails on what no trigger can be made of; the error is for whoever asked. Whether
// the tasks and triggers that the condition names are there, and of the conversation,
// it does not know: see [Store.Exists]. A trigger that names others is removed, and its
// conversation told, when it is looked at first.
func (is *Issuer) Create(d Draft) (Trigger, channel.Call, error) {
	t, p, err := is.check(d)
	if err != nil {
		return Trigger{}, channel.Call{}, fmt.Errorf("create a trigger: %w", err)
	}
	rowJSON, err := json.Marshal(rowOf(t))
	if err != nil {
		return Trigger{}, channel.Call{}, fmt.Errorf("create trigger %s: %w", t.ID, err)
	}
	due := stamp(t.NextRunAt)
	if t.Type == Conditional {
		due = stamp(t.CreatedAt) // what is there is looked at at once
	}
	stateJSON, err := json.Marshal(state{
		Conv: t.Conversation.Key(), Class: classOf(t), Parent: t.ParentTaskID, Watch: strings.Join(t.Condition.Tasks(), " "),
		Requester: task.Requester(t.Conversation.Platform, t.Conversation.Workspace, t.Requester.ID),
		Made:      is.commitID(), Next: stamp(t.NextRunAt),
	})
	if err != nil {
		return Trigger{}, channel.Call{}, fmt.Errorf("create trigger %s: %w", t.ID, err)
	}
	return t, is.op(p, "create", t.ID, string(rowJSON), string(stateJSON), due, strconv.Itoa(MaxPerConversation), ""), nil
}

// classOf says who can look at a trigger: anybody, or who has its files.
func classOf(t Trigger) string {
	if len(t.Condition.Paths()) == 0 {
		return class("")
	}
	return class(t.Storage)
}

// check fills a draft in and refuses a bad one.
func (is *Issuer) check(d Draft) (Trigger, int, error) {
	now := is.now()
	k := is.Tasks.Keys
	p := k.Partition(d.Conversation.Key())
	t := Trigger{
		Type: d.Type, Prompt: strings.ToValidUTF8(d.Prompt, "�"), Profile: cmp.Or(d.Profile, task.Standard), Priority: task.DefaultPriority,
		Timeout: d.Timeout, Retry: d.Retry, Conversation: d.Conversation, Requester: d.Requester, Interval: d.Interval.Truncate(time.Millisecond),
		Cron: oneLine(d.Cron), Zone: d.Zone, RunAt: d.RunAt.UTC(), Condition: d.Condition, Cooldown: d.Cooldown, Storage: d.Storage, Internal: d.Internal,
		CreatedAt: now, ParentTaskID: d.ParentTaskID, TraceID: cmp.Or(d.TraceID, fmt.Sprintf("%016x%016x", is.rand(), is.rand())),
		Traceparent: d.Traceparent, SchemaVersion: Schema,
	}
	if d.Priority != nil {
		t.Priority = *d.Priority
	}
	t.Title = cut(oneLine(d.Title), MaxTitle)
	if t.Title == "" {
		t.Title = cut(oneLine(t.Prompt), 80)
	}
	if d.RunAt.IsZero() {
		t.RunAt = time.Time{}
	}
	if len(t.Prompt) > MaxPrompt {
		return t, 0, fmt.Errorf("the prompt has %d bytes; at most %d are allowed", len(t.Prompt), MaxPrompt)
	}
	if t.Profile == task.Planner {
		// It would be over when its plan is made, and fire again while what that set up
		// still runs.
		return t, 0, fmt.Errorf("profile: a trigger starts no plans, whose tasks could pile up; allowed are %s and %s", task.Standard, task.Expert)
	}
	if d.Cooldown < 0 || d.Cooldown > MaxCooldown {
		return t, 0, fmt.Errorf("cooldown %s: allowed are 0 to %s", d.Cooldown, span(MaxCooldown))
	}
	for _, text := range []string{d.Requester.ID, d.Storage, d.TraceID} {
		if len(text) > 500 {
			return t, 0, fmt.Errorf("%q… is longer than any id", text[:50])
		}
	}
	if err := timing(&t, d, now); err != nil {
		return t, 0, err
	}
	t.ID = cmp.Or(d.ID, NewID(now, p, is.rand()))
	if _, at, err := ParseID(t.ID); err != nil {
		return t, 0, err
	} else if at != p {
		return t, 0, fmt.Errorf("trigger %s lives in partition %d, but its conversation %s in %d", t.ID, at, d.Conversation, p)
	}
	for _, id := range t.Condition.Tasks() {
		_, at, err := task.ParseID(id)
		if IsID(id) {
			_, at, err = ParseID(id)
		}
		if err != nil || at != p {
			return t, 0, fmt.Errorf("taskId %q: it is no task or trigger of this conversation", id)
		}
	}
	// What its task would be refused for is better said now.
	if _, _, err := is.Tasks.Create(is.draft(t, now, "", "", "")); err != nil {
		return t, 0, err
	}
	return t, p, nil
}

// timing checks what makes the trigger fire, and says when it runs first.
func timing(t *Trigger, d Draft, now time.Time) error {
	given := map[string]bool{
		"interval": d.Interval != 0, "cron": d.Cron != "", "zone": d.Zone != "" && d.Zone != "UTC", "runAt": !d.RunAt.IsZero(),
		"nextRunAt": !d.NextRunAt.IsZero(), "condition": d.Condition != nil,
	}
	takes, known := map[Type]string{Recurring: "interval cron zone nextRunAt", Scheduled: "runAt", Conditional: "condition"}[d.Type]
	if !known {
		return fmt.Errorf("type %q: allowed are %s, %s, %s", d.Type, Recurring, Scheduled, Conditional)
	}
	for _, name := range []string{"interval", "cron", "zone", "runAt", "nextRunAt", "condition"} {
		if given[name] && !strings.Contains(" "+takes+" ", " "+name+" ") {
			return fmt.Errorf("%s: a %s trigger does not take it; it takes %s", name, d.Type, takes)
		}
	}
	const century = 10 // years that are enough
	switch {
	case d.Type == Conditional && d.Condition == nil:
		return errors.New("condition: it is missing")
	case d.Type == Conditional:
		if err := d.Condition.Check(); err != nil {
			return err
		}
		if len(d.Condition.Paths()) > 0 && d.Storage == "" {
			return errors.New("condition: there are no files in this conversation that it could look at")
		}
		return nil
	case d.Type == Scheduled && d.RunAt.IsZero():
		return errors.New("runAt: it is missing")
	case d.Type == Scheduled && now.Sub(d.RunAt) > 5*time.Minute:
		return fmt.Errorf("runAt %s: that is over; now is %s", d.RunAt.UTC().Format(time.RFC3339), now.Format(time.RFC3339))
	case d.RunAt.After(now.AddDate(century, 0, 0)), d.NextRunAt.After(now.AddDate(century, 0, 0)):
		return fmt.Errorf("runAt, nextRunAt: that is more than %d years ahead", century)
	case d.Type == Scheduled:
		t.NextRunAt = t.RunAt
		return nil
	case given["interval"] == given["cron"]:
		return errors.New("interval, cron: a recurring trigger takes one of them")
	case given["cron"]:
		c, err := ParseCron(d.Cron, d.Zone)
		if err != nil {
			return err
		}
		if given["nextRunAt"] {
			return errors.New("nextRunAt: it goes with interval; cron says itself when it is next")
		}
		t.Cron, t.Zone, t.NextRunAt = c.Text, c.Zone, c.Next(now)
		return nil
	case d.Interval < MinInterval || d.Interval > MaxInterval:
		return fmt.Errorf("interval %s: allowed are %s to %s", d.Interval, span(MinInterval), span(MaxInterval))
	case given["zone"]:
		return errors.New("zone: it goes with cron")
	}
	t.Zone = ""
	t.NextRunAt = now.Add(t.Interval)
	if given["nextRunAt"] {
		t.NextRunAt = d.NextRunAt.UTC()
	}
	return nil
}

// draft is the task that a firing makes.
func (is *Issuer) draft(t Trigger, now time.Time, id, prompt, storage string) task.Draft {
	return task.Draft{
		ID: id, Profile: t.Profile, Title: t.Title, Prompt: cmp.Or(prompt, t.Prompt), Conversation: t.Conversation, Requester: t.Requester,
		Priority: &t.Priority, Timeout: t.Timeout, Retry: t.Retry, TraceID: t.TraceID, Traceparent: t.Traceparent,
		ParentTaskID: t.ParentTaskID, SourceTriggerID: t.ID, TriggeredAt: now, Storage: cmp.Or(t.Storage, storage), Internal: t.Internal,
	}
}

// op spells one call of the extension.
func (is *Issuer) op(p int, op string, args ...string) channel.Call {
	k := is.Tasks.Keys
	return channel.Call{Extension: extensionName, Keys: fixed(k, p), Args: append(opening(k, p, op), args...)}
}

// at says where a trigger lives, which must be where the conversation does.
func (is *Issuer) at(c chat.Conversation, id string) (int, error) {
	_, p, err := ParseID(id)
	if err == nil && p != is.Tasks.Keys.Partition(c.Key()) {
		err = fmt.Errorf("trigger %s: %w in %s", id, ErrUnknown, c)
	}
	return p, err
}

func (is *Issuer) now() time.Time {
	if is.Now != nil {
		return is.Now().UTC()
	}
	return time.Now().UTC()
}

func (is *Issuer) rand() uint64 {
	if is.Rand != nil {
		return is.Rand()
	}
	return rand.Uint64()
}

// commitID names one wish, so that a repeat of it is known.
func (is *Issuer) commitID() string { return strconv.FormatUint(is.rand(), 36) }
