package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/task"
	"mimikit/core/telemetry"
	"mimikit/core/workspace"
	"mimikit/prompts"
)

// The kinds of progress that a standard task reports by itself.
const (
	EventStart       = "standard_start"
	EventResume      = "standard_resume"
	EventActionStart = "action_call_start"
	EventActionEnd   = "action_call_end"
	EventProgress    = "progress" // what report_progress said, for people
)

// Options are the parts of a standard worker. Model, Prompts, Actions and Storage
// are needed.
type Options struct {
	Model     llm.Model
	ModelName string // name asked for; empty means the endpoint's default
	Prompts   *prompts.Set
	Actions   *action.Registry // with those of [Actions]
	// Tools gives the actions as they are now, in place of Actions, where some come and
	// go; nil means that none do.
	Tools    func(ctx context.Context) *action.Registry
	Storage  *workspace.Storage // where the conversations' files are
	Style    action.Style       // 0 means tool calls
	Rounds   int                // actions of a task, over all its runs; 0 means 50
	Mistakes int                // mistakes of one run that go back to the model; 0 means 5
	Bot      string             // empty means Mimikit
	Archive  *Archive           // nil keeps no files for people
	// Attached lists the files that people sent in a conversation, the oldest first;
	// nil means that there are none.
	Attached  func(ctx context.Context, c chat.Conversation) ([]Attached, error)
	Approvals *Approvals       // which calls ask first; nil: none
	Logger    *slog.Logger     // nil means slog's default
	Now       func() time.Time // nil means time.Now
}

// A Standard does the work of the standard profile. It is safe for concurrent use.
type Standard struct {
	o Options
}

// NewStandard checks the options. It panics when a needed part is missing, since
// only the wiring can be wrong then.
func NewStandard(o Options) *Standard {
	if o.Model == nil || o.Prompts == nil || o.Actions == nil || o.Storage == nil {
		panic("worker.NewStandard: Model, Prompts, Actions and Storage are needed")
	}
	o.Style = cmp.Or(o.Style, action.Native)
	o.Rounds, o.Mistakes = cmp.Or(o.Rounds, 50), cmp.Or(o.Mistakes, 5)
	o.Bot = cmp.Or(o.Bot, "Mimikit")
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Standard{o}
}

// Run does one run of a task; it is a [task.Runner].
func (s *Standard) Run(ctx context.Context, r *task.Run) (task.Outcome, error) {
	prompt, err := r.Prompt(ctx)
	if err != nil {
		return task.Outcome{}, err
	}
	return s.run(ctx, r.Task, prompt, r)
}

// A keeper keeps what a run must not lose; a *task.Run is one.
type keeper interface {
	Checkpoint(ctx context.Context) ([]byte, error)
	SaveCheckpoint(ctx context.Context, data []byte) error
	Report(ctx context.Context, e task.Event) error
}

func (s *Standard) run(ctx context.Context, t task.Task, prompt string, keep keeper) (out task.Outcome, err error) {
	log := s.o.Logger.With("task", t.ID, "profile", t.Profile, "conversation", t.Conversation.Key(), "trace_id", t.TraceID, "attempt", t.Attempts)
	log.InfoContext(ctx, "worker_start")
	began := s.o.Now()
	defer func() {
		if out.Ask == nil {
			out.ArchivePath = s.o.Archive.write(log, t, prompt, out, err, s.o.Now())
		}
		log.InfoContext(ctx, "worker_end", "took_ms", s.o.Now().Sub(began).Milliseconds(), "ok", err == nil, "asks", out.Ask != nil, "error", err,
			"calls", out.Usage.Calls, "prompt_tokens", out.Usage.Prompt, "completion_tokens", out.Usage.Completion, "cost_micros", out.Usage.Cost)
	}()
	j := &job{Standard: s, task: t, keep: keep, log: log}
	if err := j.open(ctx); err != nil {
		return out, err
	}
	defer j.files.Close()
	return j.work(ctx, prompt)
}

// A job is one run of one task.
type job struct {
	*Standard
	task    task.Task
	keep    keeper
	log     *slog.Logger
	files   *workspace.Workspace
	at      checkpoint
	resumed bool
	emptied bool // the files of earlier runs are not here
}

// load reads how far earlier runs have come.
func (j *job) load(ctx context.Context) error {
	data, err := j.keep.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if j.resumed = data != nil; j.resumed {
		if err := json.Unmarshal(data, &j.at); err != nil {
			// It was ours once; without it the work begins anew, and the files show how
			// far it had come.
			j.log.ErrorContext(ctx, "checkpoint_damaged", "error", err)
			j.at, j.resumed = checkpoint{}, false
		}
	}
	return nil
}

// open finds out where the work stands.
func (j *job) open(ctx context.Context) error {
	if err := j.load(ctx); err != nil {
		return err
	}
	conversation := j.task.Conversation.Key()
	there, err := j.o.Storage.Exists(conversation)
	if err != nil {
		return fmt.Errorf("look for the workspace of task %s: %w", j.task.ID, err)
	}
	j.emptied = j.resumed && (!there || j.at.Storage != "" && j.at.Storage != j.o.Storage.ID())
	if j.files, err = j.o.Storage.Open(conversation); err != nil {
		return fmt.Errorf("open the workspace of task %s: %w", j.task.ID, err)
	}
	j.at.Storage = j.o.Storage.ID()
	return nil
}

// errNoResult is a task whose rounds are used up.
var errNoResult = errors.New("no result")

func (j *job) work(ctx context.Context, prompt string) (task.Outcome, error) {
	event := task.Event{Kind: EventStart, Message: j.task.Title}
	if j.resumed {
		event.Kind, event.Message = EventResume, fmt.Sprintf("going on after %d steps", j.at.Rounds)
	}
	if err := j.report(ctx, event); err != nil {
		return task.Outcome{}, err
	}
	if ask, err := j.decide(ctx); ask != nil || err != nil {
		return task.Outcome{Ask: ask}, err
	}
	p := j.at.Pending
	if p != nil && !p.allowed() {
		j.decline(j.refusal() + "; do not try it again, go on without it, or say in the result what was not done")
		if err := j.save(ctx); err != nil {
			return task.Outcome{}, err
		}
		p = nil
	}
	turn := action.NewTurn(j.task.Conversation, nil, j.task.Requester, j.o.Now(), j.task.TraceID)
	g := &gate{job: j, offer: j.actions(ctx).For(action.WorkerStandard, turn.Rights)}
	data := j.data(prompt, g.offer)
	data.Workspace = append(data.Workspace, j.bring(ctx)...)
	composed, err := j.o.Prompts.Compose("worker-standard", data)
	if err != nil {
		return task.Outcome{}, err
	}
	var spent chat.TaskUsage
	if p != nil {
		g.again, g.once, spent.Calls = true, p.Digest, -1 // that answer was counted when it came
	}
	for {
		if g.left = j.o.Rounds - j.at.Rounds; g.left <= 0 {
			return task.Outcome{Usage: spent}, task.Final(fmt.Errorf("%w after %d steps", errNoResult, j.at.Rounds))
		}
		got, err := j.rounds(ctx, composed.Messages(), g, turn)
		spent = added(spent, used(got))
		var h *held
		if ctx.Err() != nil || !errors.As(err, &h) {
			out, err := j.outcome(ctx, got, err)
			out.Usage = spent
			return out, err
		}
		spent.Calls++ // whose answer is held
		if ask, err := j.hold(ctx, h); ask != nil || err != nil {
			return task.Outcome{Usage: spent, Ask: ask}, err
		}
	}
}

// rounds asks the model until the task is done, or a call is held.
func (j *job) rounds(ctx context.Context, base []llm.Message, g *gate, turn action.Turn) (action.Result, error) {
	req := j.request(append(base[:len(base):len(base)], j.at.messages()...))
	req.Shorten = func(round int) []llm.Message { return append(base[:len(base):len(base)], j.at.shorter(round)...) }
	return action.Run(context.WithValue(ctx, jobKey{}, j), g, req, g.offer, turn, action.Bounds{
		Rounds: g.left, Errors: j.o.Mistakes, Calls: callsAtOnce, Style: j.o.Style, Hooks: j.hooks(),
	})
}

func added(a, b chat.TaskUsage) chat.TaskUsage {
	return chat.TaskUsage{
		Calls: a.Calls + b.Calls, Prompt: a.Prompt + b.Prompt, Cached: a.Cached + b.Cached,
		Completion: a.Completion + b.Completion, Cost: a.Cost + b.Cost,
	}
}

// data is what the model is shown besides the steps that were taken.
func (j *job) data(prompt string, offer *action.Offer) prompts.Data {
	d := prompts.Data{
		Bot: j.o.Bot, Platform: j.task.Conversation.Platform, Actions: offer.Describe(j.o.Style),
		Request: prompts.Request{Task: j.task.ID, Author: j.task.Requester, Title: j.task.Title, Text: prompt},
		Limits:  []prompts.Fact{{Name: "steps", Value: strconv.Itoa(j.o.Rounds)}},
		Now:     j.task.CreatedAt, // constant, so that the prompt's beginning is the same in every round and run
	}
	if j.task.Timeout > 0 {
		d.Limits = append(d.Limits, prompts.Fact{Name: "time", Value: j.task.Timeout.String()})
	}
	if j.emptied {
		d.Workspace = append(d.Workspace, prompts.Fact{Name: "note", Value: "an earlier run of this task worked elsewhere; the files it made are not here"})
	}
	return d
}

func (j *job) request(messages []llm.Message) llm.Request {
	c := j.task.Conversation
	return llm.Request{
		Agent: action.WorkerStandard, Model: j.o.ModelName, Messages: messages,
		Conversation: c.Key(), TraceID: j.task.TraceID, Task: j.task.ID,
		User: c.UserKey(j.task.Requester.ID), Place: c.PlaceKey(), Workspace: c.WorkspaceKey(),
	}
}

// hooks report each action and keep a checkpoint after each round.
func (j *job) hooks() action.Hooks {
	var watch telemetry.Watch
	return action.Hooks{
		Start: func(ctx context.Context, s action.Step) {
			watch.Begin()
			j.note(ctx, EventActionStart, s, nil)
		},
		Done: func(ctx context.Context, s action.Step) {
			watch.Acted(ctx, s.Call.Name, s.Kind != 0, string(s.Verdict))
			j.note(ctx, EventActionEnd, s, map[string]any{"verdict": s.Verdict, "error": short(s.Error), "bytes": s.Answer})
			j.log.InfoContext(ctx, "worker_action", "action", s.Named(), "round", j.at.Rounds+1, "verdict", s.Verdict)
		},
		Round: func(ctx context.Context, added []llm.Message) error {
			j.at.Pending = nil // it was done in this round, if there was one
			j.at.add(added)
			return j.save(ctx)
		},
		Failed: func(ctx context.Context, s action.Step, err error) {
			j.log.ErrorContext(ctx, "worker_action_failed", "action", s.Call.Name, "error", err)
		},
		Panicked: func(ctx context.Context, s action.Step, value any, stack []byte) {
			j.log.ErrorContext(ctx, "worker_action_panicked", "action", s.Call.Name, "panic", value, "stack", string(stack))
		},
	}
}

// note reports an action. That it cannot be told is no reason to stop the work:
// a lost task shows at the next checkpoint.
func (j *job) note(ctx context.Context, kind string, s action.Step, more map[string]any) {
	data := map[string]any{"action": s.Call.Name, "step": j.at.Rounds + 1, "arguments": short(string(s.Call.Arguments))}
	for k, v := range more {
		data[k] = v
	}
	raw, err := json.Marshal(data)
	if err == nil {
		err = j.report(ctx, task.Event{Kind: kind, Message: s.Call.Name, Data: raw})
	}
	if err != nil && ctx.Err() == nil {
		j.log.WarnContext(ctx, "progress_not_told", "kind", kind, "error", err)
	}
}

// report tells an event, and keeps it in the archive.
func (j *job) report(ctx context.Context, e task.Event) error {
	e.At, e.Attempt = j.o.Now().UTC(), j.task.Attempts
	j.o.Archive.event(j.log, j.task, e)
	return j.keep.Report(ctx, e)
}

// short is the beginning of a text for an event.
func short(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// outcome judges what the model came to.
func (j *job) outcome(ctx context.Context, got action.Result, err error) (task.Outcome, error) {
	out := task.Outcome{Usage: used(got)}
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil:
		return out, sorted(err)
	case got.Ended.Name != "":
		var response action.Response
		if err := json.Unmarshal(got.Ended.Arguments, &response); err != nil {
			return out, fmt.Errorf("read the result: %w", err) // unreachable: it was judged by its schema
		}
		out.Output, out.ResultType = response.Output, response.ResultType
		return out, nil
	}
	// What it said last is better than nothing.
	out.Output, out.ResultType = got.Text, "text"
	return out, task.Final(fmt.Errorf("%w after %d steps: the model did not end its work", errNoResult, j.at.Rounds+1))
}

// sorted marks what no other run can mend. The text is for people, so it holds
// nothing of an endpoint's address.
func sorted(err error) error {
	var spent *llm.BudgetError
	var e *llm.Error
	switch {
	case errors.As(err, &spent):
		return task.Final(fmt.Errorf("the budget of the %s for the language model is used up", spent.Subject.Kind))
	case !errors.As(err, &e):
		return err
	}
	switch e.Kind {
	case llm.Refused:
		return task.Final(errors.New("the language model refused this"))
	case llm.TooLong:
		return task.Final(errors.New("the work has become longer than the language model can read"))
	case llm.Fatal:
		return errors.New("the language model is not set up correctly")
	case llm.RateLimited:
		return errors.New("the language model is getting too many requests")
	}
	return errors.New("the language model could not be reached or took too long")
}
