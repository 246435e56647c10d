// Package teller hears what people say and what tasks bring back, and words
// every reply.
//
// It is three loops over one conversation's turn. Digest gathers inputs and
// results until people pause, and hands them to the thinker with a summary.
// Format puts the thinker's decision into words and posts it. Stop drops what
// the turn has when a person says so. Each is a function from entries to
// effects: the teller knows no Redis and keeps no state, so a step that is
// repeated after a crash on any node gives the same effects under the same ids.
//
// It is promised that a model that fails, refuses or answers nothing never
// fails a step: there is always a next best text, down to a fixed one. Only the
// end of the step's context is passed on, as its cause.
package teller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/prompts"
)

// A When says for which turns the model is asked.
type When string

// The values of a When; the empty one is Auto.
const (
	Auto   When = "auto"   // only where there is something to word or to sum up
	Always When = "always" // every turn
)

// History reads what was said before; a *history.Store is one.
type History interface {
	Read(ctx context.Context, conversation string, l history.Limits) (history.Past, error)
}

// Options are the parts and the pace of a teller. Model, Prompts and History are
// needed; every other zero value works and means the pace "chat".
type Options struct {
	Model     llm.Model
	ModelName string // name asked for; empty means the endpoint's default
	Prompts   *prompts.Set
	History   History
	// Tasks describes the conversation's tasks, one a line. Nil means there are
	// none; an error is logged and read as none.
	Tasks  func(ctx context.Context, conversation string) (string, error)
	Logger *slog.Logger     // nil means slog's default
	Now    func() time.Time // used where the work does not bring its time; nil means time.Now
	Bot    string           // the name people know; empty means Mimikit
	Mode   prompts.Mode     // empty means full when there is history, else minimal

	// Show lets people see a reply while it is worded, as the reply of this id and to
	// this person; nil, or its nil, shows nothing.
	Show func(ctx context.Context, c chat.Conversation, replyID string, to chat.Author) *llm.Show

	Digest When // auto: one short input without results is its own summary
	Format When // auto: a decision that is final is posted as worded

	Debounce      time.Duration  // pause after which inputs are digested; 0 means 1.2 s, negative none
	MaxInputWait  time.Duration  // longest wait of an input for that pause; 0 means 5 s
	MaxResultWait time.Duration  // wait of results that no input comes with; 0 means 0.5 s, negative none
	Timeout       time.Duration  // of one answer of the model, retries included; 0 means 1 min
	Window        history.Limits // history in a prompt; zero means 5 to 20 lines within 4096 tokens
}

// A Teller gives the loops. It is safe for concurrent use.
type Teller struct {
	o Options
}

// New returns a Teller. It panics when a needed part is missing or a When is
// unknown, since only the wiring can be wrong then.
func New(o Options) *Teller {
	if o.Model == nil || o.Prompts == nil || o.History == nil {
		panic("teller.New: Model, Prompts and History are needed")
	}
	o.Digest, o.Format = cmp.Or(o.Digest, Auto), cmp.Or(o.Format, Auto)
	for name, w := range map[string]When{"Digest": o.Digest, "Format": o.Format} {
		if w != Auto && w != Always {
			panic(fmt.Sprintf("teller.New: %s is %q; allowed are auto and always", name, w))
		}
	}
	o.Bot = cmp.Or(o.Bot, "Mimikit")
	o.Debounce = cmp.Or(o.Debounce, 1200*time.Millisecond)
	o.MaxInputWait = cmp.Or(o.MaxInputWait, 5*time.Second)
	o.MaxResultWait = cmp.Or(o.MaxResultWait, 500*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Window = cmp.Or(o.Window, history.TellerWindow)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Teller{o}
}

// Loops gives the teller's loops in the order in which a lane must ask them.
// The thinker's loop stands between format and digest.
func (t *Teller) Loops() []channel.Loop {
	return []channel.Loop{t.StopLoop(), t.FormatLoop(), t.DigestLoop()}
}

// ask calls the model on an author's account. An error is either the cause of a context that is done,
// and then ctx.Err() is not nil, or one that the caller answers with a fallback.
func (t *Teller) ask(ctx context.Context, w *channel.Work, agent string, who chat.Author, d prompts.Data, show *llm.Show) (string, error) {
	p, err := t.o.Prompts.Compose(agent, d)
	if err != nil {
		return "", err
	}
	call, cancel := context.WithTimeoutCause(ctx, t.o.Timeout, fmt.Errorf("no answer within %s", t.o.Timeout))
	defer cancel()
	req := llm.Request{
		Agent: agent, Model: t.o.ModelName, Messages: p.Messages(),
		Conversation: w.Conversation, TraceID: trace(w),
		Shorten: func(round int) []llm.Message { return t.shorter(agent, d, round) },
	}
	if conv, err := chat.ParseConversation(w.Conversation); err == nil {
		req.Place, req.Workspace = conv.PlaceKey(), conv.WorkspaceKey()
		req.User = conv.UserKey(who.ID)
	}
	show.On(&req)
	resp, err := t.o.Model.Complete(call, req)
	show.Close(err == nil && ctx.Err() == nil && strings.TrimSpace(resp.Text) != "")
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	if text := strings.TrimSpace(resp.Text); text != "" {
		return text, nil
	}
	return "", errors.New("the model answered nothing")
}

// shorter gives the prompt with half of the history, a quarter, and none.
func (t *Teller) shorter(agent string, d prompts.Data, round int) []llm.Message {
	keep := len(d.History) >> round
	switch {
	case round > 3:
		return nil
	case round == 3:
		keep, d.Summary = 0, ""
	}
	d.History = d.History[len(d.History)-keep:]
	p, err := t.o.Prompts.Compose(agent, d)
	if err != nil {
		return nil // unreachable: the longer one was composed
	}
	return p.Messages()
}

func (t *Teller) tasks(ctx context.Context, conversation string) string {
	if t.o.Tasks == nil {
		return ""
	}
	s, err := t.o.Tasks(ctx, conversation)
	if err != nil {
		t.o.Logger.Warn("teller_tasks_unread", "conversation", conversation, "error", err)
		return ""
	}
	return s
}

func (t *Teller) now(w *channel.Work) time.Time {
	if w.Now.IsZero() {
		return t.o.Now().UTC()
	}
	return w.Now.UTC()
}

// said is the history line of a reply.
func (t *Teller) said(r *chat.Reply, note string) string {
	return history.Encode(chat.Line{
		ID: r.ID, Role: chat.LineAssistant, Author: chat.Author{Name: t.o.Bot, Bot: true},
		Text: r.Text, Note: note, At: r.CreatedAt,
	})
}

// post publishes a reply.
func post(r *chat.Reply) channel.Publish {
	return channel.Publish{To: channel.TellerReply, Value: r, InputIDs: r.InputIDs, Stage: "reply", Kind: string(r.Kind)}
}

// name makes an id from what a step was given, so that the step, repeated, says
// the same thing under the same name.
func name(prefix string, w *channel.Work) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", w.Conversation)
	for _, e := range w.Entries {
		fmt.Fprintf(h, "%s %s\n", e.Channel, e.ID)
	}
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:10]))
}

// conversation is where the work's answer goes.
func conversation(w *channel.Work) (chat.Conversation, error) {
	c, err := chat.ParseConversation(w.Conversation)
	if err != nil {
		return chat.Conversation{}, &channel.GiveUp{Why: "the conversation is not known: " + err.Error()}
	}
	return c, nil
}

func trace(w *channel.Work) string {
	for _, e := range w.Entries {
		if e.TraceID != "" {
			return e.TraceID
		}
	}
	return ""
}

// unread is the end of a step whose entry has no payload of the right type. The
// channel gives such entries up before a step sees them, so this is a mistake of
// the wiring, and one that no attempt mends.
func unread(e *channel.Entry) error {
	return &channel.GiveUp{Why: fmt.Sprintf("entry %s of %s could not be read (it holds a %T)", e.ID, e.Channel, e.Value)}
}
