package question

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// The bounds of a question. Bytes, unless said otherwise.
const (
	MaxText    = 4000
	MaxOptions = 25
	MaxOption  = 200
	// MaxOpen is how many questions of a conversation may be open at once.
	MaxOpen = 20

	DefaultTimeout = time.Hour
	MaxTimeout     = 30 * 24 * time.Hour
)

// A Status says whether a question waits.
type Status string

// The statuses.
const (
	Open      Status = "open"
	Answered  Status = "answered"  // by a person, or with the default at the deadline
	Withdrawn Status = "withdrawn" // nobody answered in time, or nobody needs to know any more
)

// How an answer came.
const (
	ByButton   = "button"
	ByText     = "text"
	ByDeadline = "deadline"
)

// A Question is a question as it stands in Redis, read at one moment.
type Question struct {
	ID           string
	Conversation chat.Conversation
	Text         string
	Options      []string
	Default      string
	AskedTo      chat.Author // who alone may answer; without an ID everybody
	AskedRole    chat.Role   // the least role of who may answer, in the workspace of the conversation; AskedTo is then nobody. 0: none
	OnlyOptions  bool        // no other words are an answer
	TaskID       string      // of the task that waits for the answer; "": the conversation does
	TaskQuestion string      // what that task calls the question
	TraceID      string
	Traceparent  string // of the step that asked
	CreatedAt    time.Time
	Deadline     time.Time // zero: none

	Status     Status
	Answer     string
	Option     string // that was chosen, if it was one
	AnsweredBy chat.Author
	AnsweredAt time.Time
	How        string // it was answered: button, text or deadline
	Reason     string // why it was withdrawn
}

// first begins ids: they are those of tasks with another first letter.
const first = "q"

// NewID makes an id of a question in a partition. Of random 45 bits are used.
func NewID(at time.Time, partition int, random uint64) string {
	return first + task.NewID(at, partition, random)[1:]
}

// DeriveID makes the id that the same time, partition and parts always give.
func DeriveID(at time.Time, partition int, parts ...string) string {
	return first + task.DeriveID(at, partition, parts...)[1:]
}

// ParseID reads what NewID wrote: when the question was asked, and where it lives.
func ParseID(id string) (at time.Time, partition int, err error) {
	if !strings.HasPrefix(id, first) {
		return time.Time{}, 0, fmt.Errorf("question id %q: want q and 20 more characters", id)
	}
	if at, partition, err = task.ParseID("t" + id[1:]); err != nil {
		return time.Time{}, 0, fmt.Errorf("question id %q: it is none", id)
	}
	return at, partition, nil
}

// ErrUnknown says that there is no such question, or no longer.
var ErrUnknown = errors.New("there is no such question")

// A ClosedError says that a question was answered or withdrawn before.
type ClosedError struct{ Question Question }

// Error says who was first, in words for the one who came late.
func (e *ClosedError) Error() string {
	q := e.Question
	if q.Status == Withdrawn {
		return "this question was withdrawn: " + q.Reason
	}
	who := q.AnsweredBy.Name
	switch {
	case q.How == ByDeadline:
		return fmt.Sprintf("nobody answered in time, so the default was taken: %s", q.Answer)
	case who == "":
		who = q.AnsweredBy.ID
	}
	return fmt.Sprintf("%s answered already: %s", who, q.Answer)
}

// Outcome says in words how the question was closed; "" while it is open.
func (q Question) Outcome() string {
	switch {
	case q.Status == Open:
		return ""
	case q.Status == Withdrawn:
		return "withdrawn: " + q.Reason
	case q.How == ByDeadline:
		return "nobody answered in time, so the default was taken: " + q.Answer
	}
	return cmp.Or(q.AnsweredBy.Name, q.AnsweredBy.ID) + " answered: " + q.Answer
}

// ErrNotAsked says that somebody answered who was not asked.
var ErrNotAsked = errors.New("somebody else was asked")

// ErrNoOption says that only the options of a question are an answer to it.
var ErrNoOption = errors.New("only one of its options is an answer")

// MayAnswer reports whether a person was asked. The role of who must be the one that
// they have in the workspace of the question's conversation.
func (q Question) MayAnswer(who chat.Author) bool {
	switch {
	case who.Bot || who.ID == "":
		return false
	case q.AskedRole > 0:
		return who.Role >= q.AskedRole && who.Role <= chat.RoleAdmin
	}
	return q.AskedTo.ID == "" || q.AskedTo.ID == who.ID
}

// For names who was asked.
func (q Question) For() string {
	switch {
	case q.AskedRole > chat.RoleUser && q.AskedRole < chat.RoleAdmin:
		return q.AskedRole.String() + "s and admins"
	case q.AskedRole > 0:
		return q.AskedRole.String() + "s"
	case q.AskedTo.ID == "":
		return "everybody"
	case q.AskedTo.Name == "":
		return q.AskedTo.ID
	}
	return q.AskedTo.Name
}

// Read tells what a text says as an answer: one of the options by its number or its
// words; or, where direct, in talk between that person and the bot, anything, unless
// only the options are an answer. Other texts are talk.
func (q Question) Read(text string, direct bool) (answer, option string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", "", false
	}
	bare := strings.TrimRight(text, ".)!")
	if n, err := strconv.Atoi(strings.TrimLeft(bare, "#(")); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1], q.Options[n-1], true
	}
	for _, o := range q.Options {
		if strings.EqualFold(o, text) || strings.EqualFold(o, bare) {
			return o, o, true
		}
	}
	return text, "", direct && !q.OnlyOptions
}

// Words are the question with its options as a numbered list, as a history keeps it.
func (q Question) Words() string {
	var b strings.Builder
	b.WriteString(q.Text)
	if len(q.Options) > 0 {
		b.WriteString("\n")
	}
	for i, o := range q.Options {
		fmt.Fprintf(&b, "\n%d. %s", i+1, o)
	}
	return b.String() + q.until()
}

// Post are the words of the post that asks, below which the platform shows the
// options as it can.
func (q Question) Post() string { return q.Text + q.until() }

// until says what happens without an answer.
func (q Question) until() string {
	at := q.Deadline.UTC().Format("2006-01-02 15:04 UTC")
	switch {
	case q.Deadline.IsZero():
		return ""
	case q.Default != "":
		return "\n\nWithout an answer until " + at + " I take: " + q.Default
	}
	return "\n\nI wait for an answer until " + at + "."
}

const buttonMark = "question:"

// Buttons are one for each option.
func (q Question) Buttons() []chat.Button {
	var out []chat.Button
	for i, o := range q.Options {
		b := chat.Button{Label: o, Value: buttonMark + q.ID + ":" + strconv.Itoa(i)}
		if o == q.Default {
			b.Style = "primary"
		}
		out = append(out, b)
	}
	return out
}

// Pressed tells which option of which question a button stands for, and whether it is
// one of ours.
func Pressed(value string) (id string, option int, ok bool) {
	rest, ok := strings.CutPrefix(value, buttonMark)
	id, n, found := strings.Cut(rest, ":")
	option, err := strconv.Atoi(n)
	return id, option, ok && found && err == nil
}

// check refuses what cannot be asked; the error is for whoever asked.
func (q Question) check() error {
	switch {
	case strings.TrimSpace(q.Text) == "" || len(q.Text) > MaxText:
		return fmt.Errorf("question: it has %d bytes; 1 to %d are allowed", len(q.Text), MaxText)
	case len(q.Options) > MaxOptions:
		return fmt.Errorf("options: there are %d; at most %d are allowed", len(q.Options), MaxOptions)
	case len(q.Default) > MaxText:
		return fmt.Errorf("default: it has %d bytes; at most %d are allowed", len(q.Default), MaxText)
	case q.Default != "" && len(q.Options) > 0 && !slices.Contains(q.Options, q.Default):
		return fmt.Errorf("default: %q is none of the options", q.Default)
	case q.OnlyOptions && len(q.Options) == 0:
		return errors.New("options: there are none, and nothing else would be an answer")
	case q.AskedRole < 0 || q.AskedRole > chat.RoleAdmin || q.AskedRole > 0 && q.AskedTo.ID != "":
		return errors.New("it is put to a person or to a role, which is one of user, operator and admin")
	case !q.Deadline.IsZero() && q.TaskID != "" && q.Default == "":
		return errors.New("default: a task that waits until a deadline needs one")
	case q.Conversation.Platform == "" || q.Conversation.Place == "":
		return errors.New("it has no conversation")
	}
	for i, o := range q.Options {
		if strings.TrimSpace(o) == "" || len(o) > MaxOption || slices.Contains(q.Options[:i], o) {
			return fmt.Errorf("options[%d]: %q: want 1 to %d bytes, and no two alike", i, o, MaxOption)
		}
	}
	return nil
}
