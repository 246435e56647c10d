// Package thinker decides: it turns a digest of what people said and what tasks
// brought back into what they are told.
//
// It is one loop, a function from a digest to effects, and knows no Redis: the
// lines of history and the decision it returns are committed together with the
// settling of the digest, so a crash repeats a model call and never an effect.
//
// It is promised that every digest ends in a decision. When no model answers,
// the decision is a fixed text in plain words that says what went wrong, marked
// as a fallback, and what was said is kept in the history all the same.
package thinker

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/prompts"
)

// History reads what was said before; a *history.Store is one.
type History interface {
	Window(ctx context.Context, conversation string, l history.Limits) ([]chat.Line, error)
}

// Feedback is something about a turn that an admin may want to look at.
type Feedback struct {
	Kind         string // "thinker_error"
	Conversation string
	DigestID     string
	TraceID      string
	Message      string // what went wrong, for admins
}

// Options are the parts and the pace of a thinker. Model, Prompts and History
// are needed; every other zero value works.
type Options struct {
	Model        llm.Model
	ModelName    string    // name asked for; empty means the endpoint's default
	Fallback     llm.Model // asked when the primary fails; nil with a FallbackName means Model
	FallbackName string    // empty with a nil Fallback means there is none
	Prompts      *prompts.Set
	History      History
	// Tasks describes the conversation's tasks, one a line. Nil means there are
	// none; an error is logged and read as none.
	Tasks    func(ctx context.Context, conversation string) (string, error)
	Feedback func(ctx context.Context, f Feedback) // told of every failed turn; nil means nobody is
	Logger   *slog.Logger                          // nil means slog's default
	Now      func() time.Time                      // used where the work does not bring its time; nil means time.Now
	Bot      string                                // the name people know; empty means Mimikit
	Mode     prompts.Mode                          // empty means full when there is history, else minimal

	// Final says that the thinker's answer is posted as it words it
	// (teller.format: auto). Its prompt then carries the teller's voice.
	Final       bool
	MinInterval time.Duration  // between two starts in a conversation; 0 means none
	Timeout     time.Duration  // of one model call; 0 means 2 min
	Window      history.Limits // history in a prompt; zero means 20 to 100 lines within 20 KiB
}

// A Thinker gives the loop. It is safe for concurrent use.
type Thinker struct {
	o Options
}

// New returns a Thinker. It panics when a needed part is missing, since only the
// wiring can be wrong then.
func New(o Options) *Thinker {
	if o.Model == nil || o.Prompts == nil || o.History == nil {
		panic("thinker.New: Model, Prompts and History are needed")
	}
	if o.Fallback == nil && o.FallbackName != "" {
		o.Fallback = o.Model
	}
	o.Bot = cmp.Or(o.Bot, "Mimikit")
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.Window = cmp.Or(o.Window, history.Limits{Min: 20, Max: 100, Bytes: 20 << 10})
	if o.Feedback == nil {
		o.Feedback = func(context.Context, Feedback) {}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Thinker{o}
}

// Loop decides on digests. It stands between the teller's format and digest.
func (t *Thinker) Loop() channel.Loop {
	return channel.Loop{
		Name: "thinker", Lane: channel.LaneTurn,
		From:  []channel.Name{channel.TellerDigest},
		Ready: t.ready, Step: t.step, Failed: t.failed,
	}
}

// ready takes one digest, not before MinInterval has passed since the last run
// and not while a decision waits for its words.
func (t *Thinker) ready(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
	digests := b.Entries(channel.TellerDigest)
	if len(digests) == 0 || len(b.Entries(channel.ThinkerDecision)) > 0 {
		return nil, 0
	}
	if t.o.MinInterval > 0 && !b.LastRun.IsZero() {
		if wait := t.o.MinInterval - b.Now.Sub(b.LastRun); wait > 0 {
			return nil, wait
		}
	}
	return digests[:1], 0
}

func (t *Thinker) step(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	e := w.Entries[0]
	d, ok := e.Value.(*chat.TellerDigest)
	if !ok || d == nil {
		return channel.Effects{}, &channel.GiveUp{Why: "the digest " + e.ID + " could not be read"}
	}
	log := t.o.Logger.With("conversation", w.Conversation, "digest_id", d.ID, "trace_id", e.TraceID)
	log.Info("thinker_start", "inputs", len(d.Inputs), "results", len(d.Results), "attempt", w.Attempt)
	started := t.o.Now()

	lines, err := t.o.History.Window(ctx, w.Conversation, t.o.Window)
	if err != nil {
		log.Error("thinker_end", "ok", false, "error", err)
		return channel.Effects{}, err
	}
	decision := &chat.ThinkerDecision{
		ID: "t-" + strings.TrimPrefix(d.ID, "d-"), Final: t.o.Final,
		InputIDs: inputIDs(e, d), ResultIDs: resultIDs(d), Inputs: d.Inputs, TaskSummary: d.TaskSummary,
	}
	resp, err := t.think(ctx, w, t.prompt(ctx, w, d, lines))
	if ctx.Err() != nil {
		log.Info("thinker_end", "ok", false, "error", context.Cause(ctx))
		return channel.Effects{}, context.Cause(ctx)
	}
	end := []any{"took_ms", t.o.Now().Sub(started).Milliseconds(), "model", resp.Model,
		"prompt_tokens", resp.Usage.Prompt, "cached_tokens", resp.Usage.Cached, "completion_tokens", resp.Usage.Completion}
	if err != nil {
		decision.Decision, decision.Fallback, decision.Final = apology(err), true, true
		t.o.Feedback(ctx, Feedback{
			Kind: "thinker_error", Conversation: w.Conversation, DigestID: d.ID, TraceID: e.TraceID, Message: err.Error(),
		})
		log.Error("thinker_end", append(end, "ok", false, "error", err)...)
	} else {
		decision.Decision = history.Cut(resp.Text, chat.MaxText)
		log.Info("thinker_end", append(end, "ok", true)...)
	}
	fx := channel.Effects{
		Publish: []channel.Publish{{
			To: channel.ThinkerDecision, Value: decision, InputIDs: decision.InputIDs, Stage: "decision",
		}},
		History: heard(d),
	}
	if t.o.MinInterval > 0 {
		fx.Puts = []channel.Put{{
			Table: channel.LastRun, Field: w.Conversation, Value: strconv.FormatInt(t.now(w).UnixMilli(), 10),
		}}
	}
	return fx, nil
}

// prompt gathers what the model is shown.
func (t *Thinker) prompt(ctx context.Context, w *channel.Work, d *chat.TellerDigest, lines []chat.Line) prompts.Data {
	p := prompts.Data{
		Mode: t.o.Mode, Bot: t.o.Bot, Final: t.o.Final, History: lines, Now: t.now(w),
		Tasks: d.TaskSummary, Results: d.Results, Inputs: d.Inputs,
	}
	if c, err := chat.ParseConversation(w.Conversation); err == nil {
		p.Platform = c.Platform
	}
	// A digest that needed no model has its one input as summary.
	if len(d.Inputs) != 1 || strings.TrimSpace(d.Inputs[0].Text) != d.Summary {
		p.Facts = []prompts.Fact{{Name: "summary", Value: d.Summary}}
	}
	if t.o.Tasks != nil {
		tasks, err := t.o.Tasks(ctx, w.Conversation)
		if err != nil {
			t.o.Logger.Warn("thinker_tasks_unread", "conversation", w.Conversation, "error", err)
		} else {
			p.Tasks = tasks
		}
	}
	return p
}

func (t *Thinker) now(w *channel.Work) time.Time {
	if w.Now.IsZero() {
		return t.o.Now().UTC()
	}
	return w.Now.UTC()
}

// heard is the history of a digest: every input and every result, once.
func heard(d *chat.TellerDigest) []string {
	var out []string
	for _, in := range d.Inputs {
		l := history.InputLine(in)
		if in.Kind == chat.KindEdit {
			l.Note = "" // this edit is where the conversation first hears of the message
		}
		out = append(out, history.Encode(l))
	}
	for _, r := range d.Results {
		out = append(out, history.Encode(history.ResultLine(r)))
	}
	return out
}

// inputIDs are those of the entry, which name every message that was folded into
// the digest; those of the digest itself come after, should the entry lack them.
func inputIDs(e *channel.Entry, d *chat.TellerDigest) []string {
	out := append([]string(nil), e.InputIDs...)
	for i := range d.Inputs {
		if id := d.Inputs[i].ID; !slices.Contains(out, id) { // a few ids, as a rule one
			out = append(out, id)
		}
	}
	return out
}

func resultIDs(d *chat.TellerDigest) []string {
	var out []string
	for _, r := range d.Results {
		out = append(out, r.ID)
	}
	return out
}
