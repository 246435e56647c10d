package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// Schema is the version of stored tasks that this build writes. Stored shapes are
// add-only.
const Schema = 1

// A row is what never changes of a task.
type row struct {
	Schema          int               `json:"v"`
	ID              string            `json:"id"`
	Type            string            `json:"type"`
	Profile         string            `json:"profile"`
	Title           string            `json:"title"`
	Prompt          string            `json:"prompt"`
	PromptSize      int               `json:"promptSize,omitempty"`
	Conversation    chat.Conversation `json:"conversation"`
	Requester       chat.Author       `json:"requester"`
	Priority        int               `json:"priority"`
	TimeoutMs       int64             `json:"timeout,omitempty"`
	Retries         int               `json:"maxAttempts"`
	BackoffMs       int64             `json:"backoff"`
	TraceID         string            `json:"traceId"`
	Traceparent     string            `json:"traceparent,omitempty"`
	ParentTaskID    string            `json:"parentTaskId,omitempty"`
	SourceTriggerID string            `json:"sourceTriggerId,omitempty"`
	TriggeredAt     time.Time         `json:"triggeredAt,omitzero"`
	Internal        bool              `json:"internal,omitempty"`
	Storage         string            `json:"storage,omitempty"`
}

// A state is what the scripts read and change of a task. This build only writes
// its beginning; the scripts keep what they do not know. All values are strings,
// see lua/rows.lua.
type state struct {
	Status Status `json:"status,omitempty"`

	// What the scripts need of the row.
	Conv      string  `json:"conv"`
	Class     string  `json:"class"`
	Priority  string  `json:"priority"`
	Requester string  `json:"requester"`
	Parent    string  `json:"parent,omitempty"`
	Audience  string  `json:"audience,omitempty"` // "supervisor": people are not told
	Dedupe    string  `json:"dedupe,omitempty"`
	Made      string  `json:"made"` // commit id of its creation
	Retries   string  `json:"retries"`
	Backoff   string  `json:"backoff"`
	Storage   *string `json:"storage,omitempty"` // in place of the row's

	Created      string            `json:"created,omitempty"`
	Due          string            `json:"due,omitempty"`
	Started      string            `json:"started,omitempty"`
	Completed    string            `json:"completed,omitempty"`
	Ran          string            `json:"ran,omitempty"`
	Node         string            `json:"node,omitempty"`
	Attempts     string            `json:"attempts,omitempty"`
	Retried      string            `json:"retried,omitempty"`
	Lapses       string            `json:"lapses,omitempty"`
	ResultType   string            `json:"resultType,omitempty"`
	Output       string            `json:"output,omitempty"`
	OutputSize   string            `json:"outputSize,omitempty"`
	Error        string            `json:"error,omitempty"`
	Reason       string            `json:"reason,omitempty"`
	Archive      string            `json:"archive,omitempty"`
	Usage        map[string]string `json:"usage,omitempty"`
	CancelAt     string            `json:"cancelAt,omitempty"`
	CancelBy     string            `json:"cancelBy,omitempty"`
	CancelReason string            `json:"cancelReason,omitempty"`
	Asked        string            `json:"asked,omitempty"`
	Question     string            `json:"question,omitempty"`
	Answered     string            `json:"answered,omitempty"`
	Answer       string            `json:"answer,omitempty"`
	AnsweredBy   string            `json:"answeredBy,omitempty"`
	Watched      string            `json:"watched,omitempty"`
	Away         string            `json:"away,omitempty"`
	Settled      string            `json:"settled,omitempty"` // the run that ended last
}

// head is the part of a chat.TaskResult that is known from the beginning.
type head struct {
	ID              string            `json:"id"`
	Conversation    chat.Conversation `json:"conversation"`
	Title           string            `json:"title,omitempty"`
	Profile         string            `json:"profile,omitempty"`
	TraceID         string            `json:"traceId,omitempty"`
	ParentTaskID    string            `json:"parentTaskId,omitempty"`
	SourceTriggerID string            `json:"sourceTriggerId,omitempty"`
	Requester       chat.Author       `json:"requester"`
}

// note is the part of a chat.Feedback that is known from the beginning.
type note struct {
	Conversation chat.Conversation `json:"conversation"`
	Category     string            `json:"category"`
	Severity     string            `json:"severity"`
	TaskID       string            `json:"taskId"`
	TraceID      string            `json:"traceId,omitempty"`
	Author       chat.Author       `json:"author"`
}

// lines are what entries about a task are made of, which never changes and which
// only the script that makes one reads: the beginnings of a chat.TaskResult and a
// chat.Feedback, and the fields of an entry, each on a line.
func lines(t Task) (string, error) {
	result, err := open(head{t.ID, t.Conversation, t.Title, t.Profile, t.TraceID, t.ParentTaskID, t.SourceTriggerID, t.Requester})
	if err != nil {
		return "", err
	}
	feedback, err := open(note{t.Conversation, "bug", "medium", t.ID, t.TraceID, t.Requester})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fields := channel.EntryFields(channel.Entry{Conversation: t.Conversation.Key(), TraceID: t.TraceID, Traceparent: t.Traceparent})
	for _, s := range append([]string{result, feedback}, fields...) {
		b.WriteString(strings.ReplaceAll(s, "\n", " "))
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// open encodes a value as a JSON object without its last brace.
func open(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(data), "}"), nil
}

// readTask joins a row, a state, and the run that is under way, "" for none.
func readTask(id, rowJSON, stateJSON, run string) (Task, error) {
	var r row
	var s state
	rowJSON, _, _ = strings.Cut(rowJSON, "\n")
	if err := errors.Join(json.Unmarshal([]byte(rowJSON), &r), json.Unmarshal([]byte(stateJSON), &s)); err != nil {
		return Task{ID: id}, fmt.Errorf("read task %s: %w", id, err)
	}
	s.join(run)
	t := Task{
		ID: id, Type: r.Type, Profile: r.Profile, Title: r.Title, Prompt: r.Prompt, PromptSize: r.PromptSize,
		Conversation: r.Conversation, Requester: r.Requester, Priority: r.Priority,
		Timeout: time.Duration(r.TimeoutMs) * time.Millisecond, Retry: Retry{r.Retries, time.Duration(r.BackoffMs) * time.Millisecond},
		TraceID: r.TraceID, Traceparent: r.Traceparent, ParentTaskID: r.ParentTaskID,
		SourceTriggerID: r.SourceTriggerID, TriggeredAt: r.TriggeredAt, Internal: r.Internal, Storage: r.Storage,
		SchemaVersion: r.Schema,

		Status: s.Status, Node: s.Node, DeferUntil: moment(s.Due), CreatedAt: moment(s.Created),
		Attempts: int(number(s.Attempts)), Retries: int(number(s.Retried)), Lapses: int(number(s.Lapses)),
		StartedAt: moment(s.Started), CompletedAt: moment(s.Completed), DurationMs: number(s.Ran),
		ResultType: s.ResultType, Output: s.Output, OutputSize: int(number(s.OutputSize)),
		Error: s.Error, FailureReason: s.Reason, ArchivePath: s.Archive,
		CancelRequestedAt: moment(s.CancelAt), CancelReason: s.CancelReason,
		WatchedBy: strings.Fields(s.Watched), StorageAwaySince: moment(s.Away),
		Usage: chat.TaskUsage{
			Calls: number(s.Usage["calls"]), Prompt: number(s.Usage["promptTokens"]), Cached: number(s.Usage["cachedTokens"]),
			Completion: number(s.Usage["completionTokens"]), Cost: number(s.Usage["cost"]),
		},
	}
	if Over(t.Status) {
		t.ResultID = id
	}
	if s.Storage != nil {
		t.Storage = *s.Storage
	}
	if s.Asked == s.Answered {
		t.Answer = s.Answer
	}
	for _, part := range []struct {
		from string
		to   any
	}{{s.CancelBy, &t.CanceledBy}, {s.Question, &t.Question}, {s.AnsweredBy, &t.AnsweredBy}} {
		if part.from == "" {
			continue
		}
		if err := json.Unmarshal([]byte(part.from), part.to); err != nil {
			return t, fmt.Errorf("read task %s: %w", id, err)
		}
	}
	return t, nil
}

// join puts a run over the state, as the scripts do: "token seq beats ms capped node".
// The two were read one after the other: a run that the state tells to be over is.
func (s *state) join(run string) {
	f := strings.SplitN(run, " ", 6)
	if len(f) < 6 || f[0] == s.Settled {
		return
	}
	s.Status, s.Node, s.Away = Running, f[5], ""
	s.Started = cmp.Or(s.Started, f[3])
	if number(s.Attempts) == 0 {
		s.Attempts = "1"
	}
}

// number reads a number of the scripts, 0 for none.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // what is no number was written by nobody
	return n
}

// moment reads a time of the scripts, zero for none.
func moment(ms string) time.Time {
	if ms == "" {
		return time.Time{}
	}
	return time.UnixMilli(number(ms)).UTC()
}
