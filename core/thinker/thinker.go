// Package thinker decides: it turns a digest of what people said and what tasks
// brought back into what they are told.
//
// It is one loop, a function from a digest to effects, and knows no Redis: the
// lines of history and the decision it returns are committed together with the
// settling of the digest, so a crash repeats a model call and never an effect.
//
// What it does besides speaking are actions ([Actions], and those of other
// packages): look-ups are answered while the model thinks, and effects are part
// of the same commit as the decision.
//
// It is promised that every digest ends in a decision. When no model answers,
// the decision is a fixed text in plain words that says what went wrong, marked
// as a fallback; nothing that a failed model asked for is done, and what was said
// is kept in the history all the same.
package thinker

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/prompts"
)

// History reads what was said before; a *history.Store is one.
type History interface {
	Read(ctx context.Context, conversation string, l history.Limits) (history.Past, error)
}

// Options are the parts and the pace of a thinker. Model, Prompts and History
// are needed; every other zero value works.
type Options struct {
	Model     llm.Model
	ModelName string // name asked for; empty means the endpoint's default
	Prompts   *prompts.Set
	History   History
	Actions   *action.Registry // what the thinker may do; nil means that it can only answer
	Style     action.Style     // how the model asks for actions; 0 means tool calls
	Rounds    int              // model calls of one turn; 0 means 6
	Mistakes  int              // rounds with mistakes that go back to the model; 0 means 3
	Notes     Notes            // what is remembered and shown with what is said; nil means nothing
	// Tasks describes the conversation's tasks, one a line. Nil means there are
	// none; an error is logged and read as none.
	Tasks  func(ctx context.Context, conversation string) (string, error)
	Logger *slog.Logger     // nil means slog's default
	Now    func() time.Time // used where the work does not bring its time; nil means time.Now
	Bot    string           // the name people know; empty means Mimikit
	Mode   prompts.Mode     // empty means full when there is history, else minimal

	// NearEnd says which budgets to tell people of; nil leaves it to the warnings of
	// the turn's own calls.
	NearEnd NearEnd
	Slow    time.Duration // from a message to its decision, above which feedback is filed; 0 means never
	Heavy   int           // tokens of one turn, likewise

	// Final says that the thinker's answer is posted as it words it
	// (teller.format: auto). Its prompt then carries the teller's voice.
	Final bool
	// Show lets people see an answer that is final while it is worded, as the reply
	// of this id and to this person; nil, or its nil, shows nothing.
	Show        func(ctx context.Context, c chat.Conversation, replyID string, to chat.Author) *llm.Show
	MinInterval time.Duration  // between two starts in a conversation; 0 means none
	Timeout     time.Duration  // of a turn's thinking, all rounds together; 0 means 10 min
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
	o.Bot = cmp.Or(o.Bot, "Mimikit")
	o.Timeout = cmp.Or(o.Timeout, 10*time.Minute)
	o.Window = cmp.Or(o.Window, history.ThinkerWindow)
	o.Style = cmp.Or(o.Style, action.Native)
	if o.Actions == nil {
		none, err := action.New()
		if err != nil {
			panic("thinker.New: " + err.Error())
		}
		o.Actions = none
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

	past, err := t.o.History.Read(ctx, w.Conversation, t.o.Window)
	if err != nil {
		log.Error("thinker_end", "ok", false, "error", err)
		return channel.Effects{}, err
	}
	decision := &chat.ThinkerDecision{
		ID: "t-" + strings.TrimPrefix(d.ID, "d-"), Final: t.o.Final,
		InputIDs: inputIDs(e, d), ResultIDs: resultIDs(d), Inputs: d.Inputs, TaskSummary: d.TaskSummary,
	}
	c := t.newCommit(w, d)
	decision.OnBehalfOf = c.Turn.OnBehalfOf
	p := t.prompt(ctx, w, d, past)
	p.Memory = t.remembered(ctx, c)
	got, err := t.think(ctx, w, c, p)
	if ctx.Err() != nil {
		log.Info("thinker_end", "ok", false, "error", context.Cause(ctx))
		return channel.Effects{}, context.Cause(ctx)
	}
	end := []any{"took_ms", t.o.Now().Sub(started).Milliseconds(), "model", got.Model, "rounds", got.Rounds,
		"effects", len(got.Effects), "prompt_tokens", got.Usage.Prompt, "cached_tokens", got.Usage.Cached,
		"completion_tokens", got.Usage.Completion, "cost_micros", got.Cost}
	if err == nil {
		decision.Decision, err = t.commit(c, got)
	}
	if err != nil {
		c = t.newCommit(w, d) // nothing of what was asked for
		decision.Decision, decision.Fallback, decision.Final = apology(err), true, true
		c.feedback(chat.Feedback{Kind: chat.FeedbackThinkerError, Message: history.Cut(err.Error(), maxFeedback)})
		log.Error("thinker_end", append(end, "ok", false, "error", err)...)
	} else {
		log.Info("thinker_end", append(end, "ok", true)...)
	}
	if err == nil { // else the apology tells of a budget that is spent
		decision.Notice = warnings(t.near(ctx, c, got))
	}
	decision.Decision = history.Cut(decision.Decision, chat.MaxText)
	t.noted(c, e, w, got, t.o.Now().Sub(started))
	fx := c.Effects
	fx.Publish = append([]channel.Publish{{
		To: channel.ThinkerDecision, Value: decision, InputIDs: decision.InputIDs, Stage: "decision",
	}}, fx.Publish...)
	fx.History = append(heard(d, c.gists), fx.History...)
	if t.o.MinInterval > 0 {
		fx.Puts = append(fx.Puts, channel.Put{
			Table: channel.LastRun, Field: w.Conversation, Value: strconv.FormatInt(t.now(w).UnixMilli(), 10),
		})
	}
	return fx, nil
}

// prompt gathers what the model is shown.
func (t *Thinker) prompt(ctx context.Context, w *channel.Work, d *chat.TellerDigest, past history.Past) prompts.Data {
	p := prompts.Data{
		Mode: t.o.Mode, Bot: t.o.Bot, Final: t.o.Final, Summary: past.Summary.Text, History: past.Lines, Now: t.now(w),
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

// heard is the history of a digest: every input and every result, once. Of a
// result with a gist that is kept instead.
func heard(d *chat.TellerDigest, gists map[string]string) []string {
	var out []string
	for _, in := range d.Inputs {
		l := history.InputLine(in)
		if in.Kind == chat.KindEdit {
			l.Note = "" // this edit is where the conversation first hears of the message
		}
		out = append(out, history.Encode(l))
	}
	for _, r := range d.Results {
		if gist := gists[r.ID]; gist != "" {
			r.Output = gist
		}
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
