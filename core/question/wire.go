package question

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// A row is what never changes of a question. Stored shapes are add-only.
type row struct {
	Schema       int               `json:"v"`
	ID           string            `json:"id"`
	Conversation chat.Conversation `json:"conversation"`
	Text         string            `json:"question"`
	Options      []string          `json:"options,omitempty"`
	Default      string            `json:"default,omitempty"`
	AskedTo      chat.Author       `json:"askedTo,omitzero"`
	AskedRole    chat.Role         `json:"askedRole,omitempty"`
	OnlyOptions  bool              `json:"onlyOptions,omitempty"`
	TaskID       string            `json:"taskId,omitempty"`
	TaskQuestion string            `json:"taskQuestion,omitempty"`
	TraceID      string            `json:"traceId,omitempty"`
	Traceparent  string            `json:"traceparent,omitempty"`
}

// Schema is the version of stored questions that this build writes.
const Schema = 1

// A state is what the scripts read and change. All values are strings, or lists of
// strings that are never empty; what a later build adds comes through unharmed.
type state struct {
	Conv     string   `json:"conv"`
	Made     string   `json:"made"` // commit id of its creation
	Task     string   `json:"task,omitempty"`
	Asked    string   `json:"asked,omitempty"`    // the task's own id of the question
	Fallback string   `json:"fallback,omitempty"` // the default
	Late     []string `json:"late,omitempty"`     // fields of the input at the deadline, or of the reply where a task waits
	LateBy   string   `json:"lateBy,omitempty"`   // JSON of who answers a task then

	Status   string `json:"status,omitempty"`
	Created  string `json:"created,omitempty"`
	Deadline string `json:"deadline,omitempty"`
	Answer   string `json:"answer,omitempty"`
	Option   string `json:"option,omitempty"`
	By       string `json:"by,omitempty"` // JSON
	At       string `json:"at,omitempty"`
	How      string `json:"how,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

func read(id, rowJSON, stateJSON string) (Question, error) {
	var r row
	var s state
	if err := errors.Join(json.Unmarshal([]byte(rowJSON), &r), json.Unmarshal([]byte(stateJSON), &s)); err != nil {
		return Question{ID: id}, fmt.Errorf("read question %s: %w", id, err)
	}
	q := Question{
		ID: id, Conversation: r.Conversation, Text: r.Text, Options: r.Options, Default: r.Default, AskedTo: r.AskedTo, AskedRole: r.AskedRole, OnlyOptions: r.OnlyOptions, TaskID: r.TaskID,
		TaskQuestion: r.TaskQuestion, TraceID: r.TraceID, Traceparent: r.Traceparent, CreatedAt: moment(s.Created), Deadline: moment(s.Deadline), Status: Status(s.Status),
		Answer: s.Answer, Option: s.Option, AnsweredAt: moment(s.At), How: s.How, Reason: s.Reason,
	}
	if s.By != "" {
		if err := json.Unmarshal([]byte(s.By), &q.AnsweredBy); err != nil {
			return q, fmt.Errorf("read question %s: %w", id, err)
		}
	}
	return q, nil
}

// moment reads a time of the scripts, zero for none.
func moment(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{} // what is no number was written by nobody
	}
	return time.UnixMilli(n).UTC()
}

// stamp spells a time for the scripts, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

func rowsKey(k channel.Keys, p int) string  { return k.In(p, "q:rows") }
func stateKey(k channel.Keys, p int) string { return k.In(p, "q:state") }
func indexKey(k channel.Keys, p int) string { return k.In(p, "q:index") }
func dueKey(k channel.Keys, p int) string   { return k.In(p, "q:due") }
func overKey(k channel.Keys, p int) string  { return k.In(p, "q:over") }

// fixed are the keys that every script is given, in the order of bind in
// lua/extension.lua, and those of the tasks of the partition.
func fixed(k channel.Keys, p int) []string {
	return append([]string{
		rowsKey(k, p), stateKey(k, p), indexKey(k, p), dueKey(k, p), overKey(k, p),
		k.Stream(p, channel.UserInput), k.Stream(p, channel.TellerReply), k.Waiting(p), k.Stops(p),
	}, task.Keys(k, p)...)
}

func jsonText(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode who answers: %w", err)
	}
	return string(data), nil
}

// cutText cuts a text to at most so many bytes, at a whole character.
func cutText(s string, most int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most]
}
