package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/config"
	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/store/storetest"
	"mimikit/core/teller"
	"mimikit/core/thinker"
	"mimikit/prompts"
)

// A deed is an action that a turn has done.
type deed struct {
	Name      string
	Arguments map[string]any
	For       string // on whose behalf
}

func (d deed) String() string { return fmt.Sprintf("%s%s", d.Name, mustJSON(d.Arguments)) }

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v (%v)", v, err)
	}
	return string(b)
}

// An outcome is what became of a conversation.
type outcome struct {
	Reply    string // all of them, as a rule one
	Replies  []chat.Reply
	Done     []deed // effects that were committed
	Looked   []deed // look-ups
	Mistakes []string
	Summary  string   // of the digest
	Refused  string   // why a step gave up or failed
	Data     []string // texts that people, tasks and files brought into the conversation
	Requests []llm.Request
	Errors   []error // of the model
	Usage    llm.Usage
	Cost     int64
	Took     time.Duration
}

// A stage is where conversations are played: the loops as functions, between
// them what the channels do, and a history in a miniredis.
type stage struct {
	testing.TB
	hist    *history.Store
	push    func(conversation string, lines ...string) error
	prompts *prompts.Set

	registries sync.Map // :: names of further actions → *action.Registry
}

func newStage(t testing.TB) *stage {
	t.Helper()
	set, err := prompts.Open("")
	if err != nil {
		t.Fatal(err)
	}
	st := storetest.Mini(t)
	key := func(conversation string) string { return "history:" + conversation }
	return &stage{
		TB: t, prompts: set, hist: history.New(st.Client, key, slog.New(slog.DiscardHandler)),
		push: func(conversation string, lines ...string) error {
			for _, l := range lines {
				if err := st.Client.RPush(context.Background(), key(conversation), l).Err(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// A way is how a conversation is played.
type way struct {
	Model  llm.Model
	Names  config.Models
	Style  action.Style
	Prefix string // of the history, so that one conversation can be played more than once
}

// play plays a scenario to its end.
func (st *stage) play(ctx context.Context, s *scenario, w way) (*outcome, error) {
	ends, err := s.ends()
	if err != nil {
		return nil, err
	}
	past, err := s.past()
	if err != nil {
		return nil, err
	}
	talk := s.conversation()
	talk.Place = w.Prefix + talk.Place
	for _, l := range past {
		if err := st.push(talk.Key(), history.Encode(l)); err != nil {
			return nil, err
		}
	}
	o := &outcome{Data: []string{s.Summary, s.Tasks}}
	for _, l := range past {
		o.Data = append(o.Data, l.Text)
	}
	for _, answer := range s.Finds {
		o.Data = append(o.Data, answer)
	}
	p := &player{stage: st, s: s, talk: talk, o: o, waiting: map[channel.Name][]*channel.Entry{}}
	for _, in := range s.inputs() {
		in.Conversation = talk
		o.Data = append(o.Data, in.Text)
		for _, f := range in.Attachments {
			o.Data = append(o.Data, f.Text)
		}
		if err := p.arrive(channel.UserInput, in.At, string(in.Kind), in); err != nil {
			return nil, err
		}
	}
	for _, r := range ends {
		r.Conversation = talk
		o.Data = append(o.Data, r.Output, r.Error)
		if err := p.arrive(channel.WorkerResult, r.CompletedAt, "", r); err != nil {
			return nil, err
		}
	}
	begun := time.Now()
	err = p.perform(context.WithValue(ctx, playerKey{}, p), w)
	o.Took = time.Since(begun)
	return o, err
}

// A player is one conversation on its way.
type player struct {
	*stage
	s       *scenario
	talk    chat.Conversation
	o       *outcome
	waiting map[channel.Name][]*channel.Entry
	lastRun time.Time
	now     time.Time
	count   int
}

// decoders are what a channel does to a value on its way.
var decoders = map[channel.Name]channel.Decoder{
	channel.UserInput:       channel.DecodeJSON[chat.UserInput],
	channel.WorkerResult:    channel.DecodeJSON[chat.TaskResult],
	channel.TellerDigest:    channel.DecodeJSON[chat.TellerDigest],
	channel.ThinkerDecision: channel.DecodeJSON[chat.ThinkerDecision],
	channel.TellerReply:     channel.DecodeJSON[chat.Reply],
}

// arrive puts a value into a channel, through JSON as Redis has it.
func (p *player) arrive(to channel.Name, at time.Time, kind string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	decoded, err := decoders[to](1, data)
	if err != nil {
		return err
	}
	p.count++
	e := &channel.Entry{
		Channel: to, ID: fmt.Sprintf("%d-%d", at.UnixMilli(), p.count), Conversation: p.talk.Key(), Kind: kind,
		TraceID: "trace", Size: len(data), Value: decoded,
	}
	if in, ok := decoded.(*chat.UserInput); ok {
		e.InputIDs = []string{in.ID}
	}
	if at.After(p.now) {
		p.now = at
	}
	p.waiting[to] = append(p.waiting[to], e)
	return nil
}

// perform asks the loops in the order of the table in app.go, as the owner of a
// partition does, until none has anything to take.
func (p *player) perform(ctx context.Context, w way) error {
	loops, err := p.loops(w)
	if err != nil {
		return err
	}
	const most = 20 // steps; the longest conversation takes four
	for range most {
		work, loop, wait := p.next(loops)
		if loop == nil && wait == 0 {
			for _, r := range p.o.Replies {
				p.o.Reply = strings.TrimPrefix(p.o.Reply+"\n\n"+r.Text, "\n\n")
			}
			return nil
		}
		if loop == nil {
			p.now = p.now.Add(wait)
			continue
		}
		fx, err := loop.Step(ctx, work)
		if err != nil {
			p.o.Refused = fmt.Sprintf("%s: %v", loop.Name, err)
			return ctx.Err()
		}
		if err := p.commit(work, fx); err != nil {
			return fmt.Errorf("commit of %s: %w", loop.Name, err)
		}
	}
	return fmt.Errorf("it goes on after %d steps", most)
}

// next is what is to be done now, or how long to wait for it.
func (p *player) next(loops []channel.Loop) (*channel.Work, *channel.Loop, time.Duration) {
	var entries []*channel.Entry
	for _, e := range p.waiting {
		entries = append(entries, e...)
	}
	slices.SortFunc(entries, func(a, b *channel.Entry) int { return cmp.Or(a.At().Compare(b.At()), cmp.Compare(a.ID, b.ID)) })
	b := channel.NewBuffer(p.talk.Key(), p.now, entries...)
	b.LastRun = p.lastRun
	soonest := time.Duration(0)
	for i := range loops {
		take, wait := loops[i].Ready(b)
		if len(take) > 0 {
			return &channel.Work{Conversation: p.talk.Key(), Entries: take, Attempt: 1, Fresh: true, Now: p.now}, &loops[i], 0
		}
		if wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	return nil, nil, soonest
}

// commit does what the script of a commit does.
func (p *player) commit(w *channel.Work, fx channel.Effects) error {
	for _, e := range w.Entries {
		p.waiting[e.Channel] = slices.DeleteFunc(p.waiting[e.Channel], func(x *channel.Entry) bool { return x == e })
	}
	if err := p.push(p.talk.Key(), fx.History...); err != nil {
		return err
	}
	for _, put := range fx.Puts {
		ms, err := strconv.ParseInt(put.Value, 10, 64)
		if put.Table != channel.LastRun || err != nil {
			return fmt.Errorf("a put that is not known here: %+v", put)
		}
		p.lastRun = time.UnixMilli(ms)
	}
	for _, out := range fx.Publish {
		if out.To == channel.Feedback {
			continue // of a turn that failed, which the fallback tells of
		}
		if err := p.arrive(out.To, p.now, out.Kind, out.Value); err != nil {
			return err
		}
		last := p.waiting[out.To][len(p.waiting[out.To])-1]
		last.InputIDs = out.InputIDs
		switch v := last.Value.(type) {
		case *chat.TellerDigest:
			p.o.Summary = v.Summary
		case *chat.ThinkerDecision:
			if v.Fallback {
				p.o.Refused = "the thinker failed: " + v.Decision
			}
		case *chat.Reply:
			p.o.Replies = append(p.o.Replies, *v)
			p.waiting[out.To] = nil
		}
	}
	return nil
}

// loops are those of a node whose settings are the defaults of the scenario's
// pace, see app.go.
func (p *player) loops(w way) ([]channel.Loop, error) {
	c, err := paced(p.s.Pace)
	if err != nil {
		return nil, err
	}
	actions, err := p.actions(p.s.With)
	if err != nil {
		return nil, err
	}
	heard := &witness{model: w.Model, o: p.o}
	past := summarized{p.hist, p.s.Summary}
	tasks := func(context.Context, string) (string, error) { return p.s.Tasks, nil }
	log := slog.New(&ear{o: p.o})
	t := teller.New(teller.Options{
		Model: heard, ModelName: w.Names.Teller, Prompts: p.prompts, History: past, Tasks: tasks, Logger: log, Bot: c.Name,
		Digest: when(c.Teller.Digest), Format: when(c.Teller.Format),
		Debounce: orNone(c.Teller.Debounce), MaxInputWait: c.Teller.MaxInputWait, MaxResultWait: orNone(c.Thinker.MaxResultWait),
		Timeout: c.LLM.Timeout,
		Window:  history.Limits{Min: c.Teller.HistoryMessages.Min, Max: c.Teller.HistoryMessages.Max, Tokens: c.Teller.HistoryTokens},
	})
	th := thinker.New(thinker.Options{
		Model: heard, ModelName: w.Names.Thinker, Prompts: p.prompts, History: past, Tasks: tasks, Logger: log, Bot: c.Name,
		Actions: actions, Style: w.Style, Rounds: c.Thinker.Rounds, Mistakes: c.Thinker.Mistakes,
		Final: c.Teller.Format == config.Auto, MinInterval: c.Thinker.MinInterval,
		Window: history.Limits{
			Min: c.Thinker.HistoryMessages.Min, Max: c.Thinker.HistoryMessages.Max,
			Bytes: int(c.Thinker.HistoryBytes), Tokens: c.Thinker.HistoryTokens,
		},
	})
	return []channel.Loop{t.StopLoop(), t.FormatLoop(), th.Loop(), t.DigestLoop()}, nil
}

// paced are the default settings at a pace.
func paced(pace string) (config.Config, error) {
	return config.Load("", []string{"MIMIKIT_PACE=" + pace, "HOME=" + os.TempDir()})
}

// summarized is a history of which the oldest part was folded.
type summarized struct {
	*history.Store
	summary string
}

// Read implements the loops' History.
func (s summarized) Read(ctx context.Context, conversation string, l history.Limits) (history.Past, error) {
	p, err := s.Store.Read(ctx, conversation, l)
	p.Summary.Text = s.summary
	return p, err
}

// A witness hears what the model is asked and what it costs.
type witness struct {
	model llm.Model
	o     *outcome
}

// Complete implements llm.Model. A conversation's calls come one at a time.
func (w *witness) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	w.o.Requests = append(w.o.Requests, req)
	r, err := w.model.Complete(ctx, req)
	if err != nil {
		w.o.Errors = append(w.o.Errors, fmt.Errorf("call %d, of %s: %w", len(w.o.Requests), req.Agent, err))
	}
	u := &w.o.Usage
	u.Prompt, u.Completion, u.Cached = u.Prompt+r.Usage.Prompt, u.Completion+r.Usage.Completion, u.Cached+r.Usage.Cached
	u.Estimated = u.Estimated || r.Usage.Estimated
	w.o.Cost += r.Cost
	return r, err
}

// An ear hears in the log which calls of actions were wrong.
type ear struct {
	slog.Handler
	mu sync.Mutex
	o  *outcome
}

func (e *ear) Enabled(context.Context, slog.Level) bool { return true }
func (e *ear) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e *ear) WithGroup(string) slog.Handler            { return e }

// Handle implements slog.Handler.
func (e *ear) Handle(_ context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "thinker_action") {
		return nil
	}
	said := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = a.Value.String()
		return true
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := action.Verdict(said["verdict"]); v == action.Mistaken || v == action.Failed || r.Message != "thinker_action" {
		e.o.Mistakes = append(e.o.Mistakes, strings.TrimSpace(said["action"]+": "+said["verdict"]+said["error"]+said["panic"]))
	}
	return nil
}
