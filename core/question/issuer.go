package question

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

// An Issuer spells what commits of core/channel do to questions. It speaks to
// nobody, so a step can use it and be tested without a Redis.
type Issuer struct {
	Tasks *task.Issuer     // of the tasks that ask; its Keys are those of the questions
	Now   func() time.Time // nil means time.Now
	Rand  func() uint64    // nil means math/rand/v2
}

// A Draft is a question that is to be asked.
type Draft struct {
	ID           string // given by who must not ask twice, see [DeriveID]; "" makes one
	Conversation chat.Conversation
	Text         string // 1 to MaxText bytes
	Options      []string
	Default      string
	Timeout      time.Duration // up to MaxTimeout; 0 means DefaultTimeout, negative none
	AskedTo      chat.Author   // without an ID everybody may answer, or, with AskedRole, who has that
	AskedRole    chat.Role     // or a greater one, in the workspace of the conversation
	OnlyOptions  bool          // no other words are an answer
	TaskID       string        // of the task that waits; it has a deadline only with a Timeout, and then a Default
	TaskQuestion string        // what that task calls the question
	TraceID      string
	Traceparent  string
}

// Create spells that a question is asked, and the post that asks it, for the commit
// of a step of its conversation. Under an id that exists already it changes nothing.
// It fails on what cannot be asked; the error is for whoever asked.
func (is *Issuer) Create(d Draft) (Question, channel.Call, channel.Publish, error) {
	fail := func(err error) (Question, channel.Call, channel.Publish, error) {
		return Question{}, channel.Call{}, channel.Publish{}, fmt.Errorf("ask: %w", err)
	}
	now := is.now()
	p := is.Tasks.Keys.Partition(d.Conversation.Key())
	q := Question{
		ID: cmp.Or(d.ID, NewID(now, p, is.rand())), Conversation: d.Conversation, Text: strings.ToValidUTF8(strings.TrimSpace(d.Text), "�"), Options: d.Options,
		Default: d.Default, AskedTo: d.AskedTo, AskedRole: d.AskedRole, OnlyOptions: d.OnlyOptions, TaskID: d.TaskID, TaskQuestion: d.TaskQuestion, TraceID: d.TraceID, Traceparent: d.Traceparent, CreatedAt: now, Status: Open,
	}
	if q.AskedTo.Bot {
		q.AskedTo = chat.Author{} // a bot answers nothing
	}
	if d.Timeout > MaxTimeout {
		return fail(fmt.Errorf("timeout %s: at most %s are allowed", d.Timeout, MaxTimeout))
	}
	if d.Timeout > 0 || d.TaskID == "" && d.Timeout == 0 {
		q.Deadline = now.Add(cmp.Or(d.Timeout, DefaultTimeout)).Truncate(time.Millisecond)
	}
	if err := q.check(); err != nil {
		return fail(err)
	}
	if _, at, err := ParseID(q.ID); err != nil {
		return fail(err)
	} else if at != p {
		return fail(fmt.Errorf("question %s lives in partition %d, but its conversation %s in %d", q.ID, at, d.Conversation, p))
	}
	rowJSON, err := json.Marshal(row{
		Schema: Schema, ID: q.ID, Conversation: q.Conversation, Text: q.Text, Options: q.Options, Default: q.Default, AskedTo: q.AskedTo, AskedRole: q.AskedRole, OnlyOptions: q.OnlyOptions,
		TaskID: q.TaskID, TaskQuestion: q.TaskQuestion, TraceID: q.TraceID, Traceparent: q.Traceparent,
	})
	if err != nil {
		return fail(err)
	}
	st := state{Conv: q.Conversation.Key(), Made: strconv.FormatUint(is.rand(), 36), Task: q.TaskID, Asked: q.TaskQuestion, Fallback: q.Default}
	if !q.Deadline.IsZero() {
		if q.TaskID != "" {
			if st.LateBy, err = jsonText(deadlineAuthor); err != nil {
				return fail(err)
			}
		}
		if st.Late, err = late(q, d.Traceparent); err != nil {
			return fail(err)
		}
	}
	stateJSON, err := json.Marshal(st)
	if err != nil {
		return fail(err)
	}
	post := channel.Publish{To: channel.TellerReply, Stage: "ask", Value: &chat.Reply{
		ID: "r-" + q.ID, Conversation: q.Conversation, Kind: chat.ReplyQuestion, Text: q.Post(), Buttons: q.Buttons(), Question: q.ID, CreatedAt: now,
	}}
	return q, is.op(p, "create", q.ID, string(rowJSON), string(stateJSON), stamp(q.Deadline), strconv.Itoa(MaxOpen)), post, nil
}

// deadlineAuthor is who answers when nobody did.
var deadlineAuthor = chat.Author{ID: "deadline", Name: "deadline", Role: chat.RoleUser, Bot: true}

// late is the input of the deadline; where a task waits, which takes the default, it
// is the post that says so.
func late(q Question, traceparent string) ([]string, error) {
	in := chat.UserInput{
		ID: "late-" + q.ID, Conversation: q.Conversation, Kind: chat.KindAnswer, Author: deadlineAuthor,
		Text:      "Nobody answered in time, so this question is withdrawn: " + q.Text,
		Addressed: true, Question: q.ID, At: q.Deadline,
	}
	if q.Default != "" {
		in.Text = "Nobody answered in time, so the default is taken: " + q.Default
		for _, o := range q.Options {
			if o == q.Default {
				in.Option = o
			}
		}
	}
	var payload any = in
	if q.TaskID != "" {
		payload = chat.Reply{ID: "ra-" + q.ID, Conversation: q.Conversation, Kind: chat.ReplyNotice, Text: in.Text, InputIDs: []string{in.ID}, CreatedAt: in.At}
	}
	return fields(payload, channel.Entry{Kind: string(in.Kind), Conversation: in.Conversation.Key(), InputIDs: []string{in.ID}, TraceID: q.TraceID, Traceparent: traceparent})
}

// fields are those of an entry with a payload.
func fields(payload any, e channel.Entry) ([]string, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	f := channel.EntryFields(e)
	f[len(f)-1] = string(data)
	return f, nil
}

// Withdraw spells that nobody needs to know any more.
func (is *Issuer) Withdraw(c chat.Conversation, id, why string) (channel.Call, error) {
	_, p, err := ParseID(id)
	if err == nil && p != is.Tasks.Keys.Partition(c.Key()) {
		err = fmt.Errorf("question %s: %w in %s", id, ErrUnknown, c)
	}
	if err != nil {
		return channel.Call{}, fmt.Errorf("withdraw: %w", err)
	}
	return is.op(p, "withdraw", id, c.Key(), why), nil
}

// OfTask is the id of the question with which a task waits.
func (is *Issuer) OfTask(c chat.Conversation, taskID, question string) (string, error) {
	at, p, err := task.ParseID(taskID)
	if err == nil && p != is.Tasks.Keys.Partition(c.Key()) {
		err = errors.New("it lives elsewhere")
	}
	if err != nil {
		return "", fmt.Errorf("the question of task %s: %w", taskID, err)
	}
	return DeriveID(at, p, taskID, question), nil
}

// op spells one call of the extension.
func (is *Issuer) op(p int, op string, args ...string) channel.Call {
	k := is.Tasks.Keys
	return channel.Call{Extension: extensionName, Keys: fixed(k, p), Args: append([]string{op, signals(k), strconv.Itoa(p), task.Signals(k)}, args...)}
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
