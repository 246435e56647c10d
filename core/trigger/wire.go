package trigger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// Schema is the version of stored triggers that this build writes. Stored shapes
// are add-only.
const Schema = 1

// A row is what never changes of a trigger.
type row struct {
	Schema       int               `json:"v"`
	ID           string            `json:"id"`
	Type         Type              `json:"type"`
	Title        string            `json:"title"`
	Prompt       string            `json:"prompt"`
	Profile      string            `json:"profile"`
	Priority     int               `json:"priority"`
	TimeoutMs    *int64            `json:"timeout,omitempty"`
	Retry        *retry            `json:"retry,omitempty"`
	Conversation chat.Conversation `json:"conversation"`
	Requester    chat.Author       `json:"requester"`
	IntervalMs   int64             `json:"interval,omitempty"`
	Cron         string            `json:"cron,omitempty"`
	Zone         string            `json:"zone,omitempty"`
	RunAt        time.Time         `json:"runAt,omitzero"`
	Condition    *Condition        `json:"condition,omitempty"`
	CooldownMs   int64             `json:"cooldown,omitempty"`
	Storage      string            `json:"storage,omitempty"`
	Internal     bool              `json:"internal,omitempty"`
	ParentTaskID string            `json:"parentTaskId,omitempty"`
	TraceID      string            `json:"traceId"`
	Traceparent  string            `json:"traceparent,omitempty"`
}

type retry struct {
	MaxAttempts int   `json:"maxAttempts"`
	BackoffMs   int64 `json:"backoff"`
}

// A state is what the scripts read and change of a trigger. This build writes its
// beginning; the scripts keep what they do not know. All values are strings, or
// objects of strings, see lua/extension.lua.
type state struct {
	Conv      string `json:"conv"`
	Class     string `json:"class"`
	Requester string `json:"requester"`
	Parent    string `json:"parent,omitempty"`
	Watch     string `json:"watch,omitempty"` // ids of tasks and triggers that the condition names, with spaces between
	Made      string `json:"made"`            // commit id of its creation

	Rev           string            `json:"rev,omitempty"`
	Created       string            `json:"created,omitempty"`
	Next          string            `json:"next,omitempty"`
	LastRun       string            `json:"lastRun,omitempty"`
	LastTriggered string            `json:"lastTriggered,omitempty"`
	LastEval      string            `json:"lastEval,omitempty"`
	Fired         string            `json:"fired,omitempty"`
	Skipped       string            `json:"skipped,omitempty"`
	LastSkipped   string            `json:"lastSkipped,omitempty"`
	Behind        string            `json:"behind,omitempty"`
	Slot          string            `json:"slot,omitempty"`
	Task          string            `json:"task,omitempty"`
	Error         string            `json:"error,omitempty"`
	Paused        string            `json:"paused,omitempty"`
	PausedBy      string            `json:"pausedBy,omitempty"`
	PauseReason   string            `json:"pauseReason,omitempty"`
	Leaves        string            `json:"leaves,omitempty"`  // JSON: path → Leaf
	Answers       string            `json:"answers,omitempty"` // JSON: path → whether it is so
	EvalTask      string            `json:"evalTask,omitempty"`
	Started       map[string]string `json:"started,omitempty"`
}

func rowOf(t Trigger) row {
	r := row{
		Schema: Schema, ID: t.ID, Type: t.Type, Title: t.Title, Prompt: t.Prompt, Profile: t.Profile, Priority: t.Priority,
		Conversation: t.Conversation, Requester: t.Requester, IntervalMs: t.Interval.Milliseconds(), Cron: t.Cron, Zone: t.Zone,
		RunAt: t.RunAt, Condition: t.Condition, CooldownMs: t.Cooldown.Milliseconds(), Storage: t.Storage,
		Internal: t.Internal, ParentTaskID: t.ParentTaskID, TraceID: t.TraceID, Traceparent: t.Traceparent,
	}
	if t.Timeout != nil {
		r.TimeoutMs = new(t.Timeout.Milliseconds())
	}
	if t.Retry != nil {
		r.Retry = &retry{t.Retry.MaxAttempts, t.Retry.Backoff.Milliseconds()}
	}
	return r
}

// readTrigger joins a row and a state.
func readTrigger(id, rowJSON, stateJSON string) (Trigger, error) {
	var r row
	var s state
	if err := errors.Join(json.Unmarshal([]byte(rowJSON), &r), json.Unmarshal([]byte(stateJSON), &s)); err != nil {
		return Trigger{ID: id}, fmt.Errorf("read trigger %s: %w", id, err)
	}
	t := Trigger{
		ID: id, Type: r.Type, Title: r.Title, Prompt: r.Prompt, Profile: r.Profile, Priority: r.Priority,
		Conversation: r.Conversation, Requester: r.Requester, Interval: ms(r.IntervalMs), Cron: r.Cron, Zone: r.Zone,
		RunAt: r.RunAt, Condition: r.Condition, Cooldown: ms(r.CooldownMs), Storage: r.Storage,
		Internal: r.Internal, ParentTaskID: r.ParentTaskID, TraceID: r.TraceID, Traceparent: r.Traceparent, SchemaVersion: r.Schema,

		CreatedAt: moment(s.Created), NextRunAt: moment(s.Next), LastRunAt: moment(s.LastRun),
		LastTriggeredAt: moment(s.LastTriggered), LastEvalAt: moment(s.LastEval), Fired: number(s.Fired),
		Skipped: number(s.Skipped), LastSkippedAt: moment(s.LastSkipped), Behind: s.Behind,
		LastSlot: s.Slot, LastTaskID: s.Task, LastError: s.Error, PausedAt: moment(s.Paused), PauseReason: s.PauseReason,
		EvalTaskID: s.EvalTask, Started: s.Started, rev: s.Rev,
	}
	if r.TimeoutMs != nil {
		t.Timeout = new(ms(*r.TimeoutMs))
	}
	if r.Retry != nil {
		t.Retry = &task.Retry{MaxAttempts: r.Retry.MaxAttempts, Backoff: ms(r.Retry.BackoffMs)}
	}
	for _, part := range []struct {
		from string
		to   any
	}{{s.Leaves, &t.State}, {s.Answers, &t.Answers}, {s.PausedBy, &t.PausedBy}} {
		if part.from == "" {
			continue
		}
		if err := json.Unmarshal([]byte(part.from), part.to); err != nil {
			return t, fmt.Errorf("read trigger %s: %w", id, err)
		}
	}
	if t.Condition != nil {
		// What is judged must be whole, whoever wrote it.
		if err := t.Condition.Check(); err != nil {
			return t, fmt.Errorf("read trigger %s: %w", id, err)
		}
	}
	return t, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// number reads a number of the scripts, 0 for none.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // what is no number was written by nobody
	return n
}

// moment reads a time of the scripts, zero for none.
func moment(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	return time.UnixMilli(number(s)).UTC()
}

// stamp spells a time for the scripts, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
