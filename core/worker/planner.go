package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/task"
	"mimikit/prompts"
)

// The kinds of progress that a planner reports besides its look-ups.
const (
	EventPlan       = "planner_start"
	EventPlanResume = "planner_resume"
)

// PlannerOptions are the parts of a planner. Model, Prompts, Actions and History
// are needed.
type PlannerOptions struct {
	Model     llm.Model
	ModelName string // name asked for; empty means the endpoint's default
	Prompts   *prompts.Set
	Actions   *action.Registry // with those of [PlannerActions], and look-ups
	History   PlannerHistory
	// Notes are what is remembered and may matter for a request; nil means nothing.
	Notes func(ctx context.Context, c chat.Conversation, by chat.Author, text string) ([]prompts.Note, error)
	// Tasks describes the conversation's tasks, one a line; nil means there are none.
	Tasks    func(ctx context.Context, conversation string) (string, error)
	Profiles []string         // that tasks of a plan may have
	Window   history.Limits   // history in a prompt; zero means that of the thinker
	Style    action.Style     // 0 means tool calls
	Rounds   int              // model calls of a plan, over all its runs; 0 means 20
	Mistakes int              // mistakes of one run that go back to the model; 0 means 5
	Bot      string           // empty means Mimikit
	Archive  *Archive         // nil keeps no files for people
	Logger   *slog.Logger     // nil means slog's default
	Now      func() time.Time // nil means time.Now
}

// PlannerHistory reads what was said before; a *history.Store is one.
type PlannerHistory interface {
	Read(ctx context.Context, conversation string, l history.Limits) (history.Past, error)
}

// A Planner breaks requests into tasks and triggers. It does none of the work: what
// it hands in is the task's output, and the supervisor carries it out. It is safe for
// concurrent use.
type Planner struct {
	o     PlannerOptions
	inner *Standard // what both have: rounds, checkpoints, progress
}

// NewPlanner checks the options. It panics when a needed part is missing, since only
// the wiring can be wrong then.
func NewPlanner(o PlannerOptions) *Planner {
	if o.Model == nil || o.Prompts == nil || o.Actions == nil || o.History == nil {
		panic("worker.NewPlanner: Model, Prompts, Actions and History are needed")
	}
	o.Style = cmp.Or(o.Style, action.Native)
	o.Rounds, o.Mistakes = cmp.Or(o.Rounds, 20), cmp.Or(o.Mistakes, 5)
	o.Window = cmp.Or(o.Window, history.ThinkerWindow)
	o.Bot = cmp.Or(o.Bot, "Mimikit")
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Planner{o, &Standard{Options{Archive: o.Archive, Logger: o.Logger, Now: o.Now}}}
}

// PlannerActions are the planner's three ways to end. check says what of a plan
// cannot be carried out, in words that the model can mend; nil checks nothing.
func PlannerActions(check func(ctx context.Context, t action.Turn, p action.Plan) error) []action.Definition {
	return []action.Definition{
		action.Define(action.PlanDone, func(ctx context.Context, t action.Turn, p action.Plan) (action.Outcome, error) {
			if check != nil {
				if err := check(ctx, t, p); err != nil {
					return action.Outcome{}, action.Mistakef("%v", err)
				}
			}
			return action.Outcome{}, nil
		}),
		action.Define(action.PlanNeedsInput, func(context.Context, action.Turn, action.PlanQuestion) (action.Outcome, error) {
			return action.Outcome{}, nil
		}),
		action.Define(action.PlanFailed, func(context.Context, action.Turn, action.PlanFailure) (action.Outcome, error) {
			return action.Outcome{}, nil
		}),
	}
}

// Run does one run of a planner's task; it is a [task.Runner].
func (p *Planner) Run(ctx context.Context, r *task.Run) (task.Outcome, error) {
	prompt, err := r.Prompt(ctx)
	if err != nil {
		return task.Outcome{}, err
	}
	return p.run(ctx, r.Task, prompt, r)
}

func (p *Planner) run(ctx context.Context, t task.Task, prompt string, keep keeper) (out task.Outcome, err error) {
	log := p.o.Logger.With("task", t.ID, "profile", t.Profile, "conversation", t.Conversation.Key(), "trace_id", t.TraceID, "attempt", t.Attempts)
	log.InfoContext(ctx, "worker_start")
	began := p.o.Now()
	defer func() {
		if out.Ask == nil {
			out.ArchivePath = p.o.Archive.write(log, t, prompt, out, err, p.o.Now())
		}
		log.InfoContext(ctx, "worker_end", "took_ms", p.o.Now().Sub(began).Milliseconds(), "ok", err == nil, "asks", out.Ask != nil, "error", err,
			"calls", out.Usage.Calls, "prompt_tokens", out.Usage.Prompt, "completion_tokens", out.Usage.Completion, "cost_micros", out.Usage.Cost)
	}()
	j := &job{Standard: p.inner, task: t, keep: keep, log: log}
	if err := j.load(ctx); err != nil {
		return out, err
	}
	return p.plan(ctx, j, prompt)
}

func (p *Planner) plan(ctx context.Context, j *job, prompt string) (task.Outcome, error) {
	t := j.task
	event := task.Event{Kind: EventPlan, Message: t.Title}
	if j.resumed || t.Answer != "" {
		event.Kind, event.Message = EventPlanResume, fmt.Sprintf("going on after %d steps", j.at.Rounds)
	}
	if err := j.report(ctx, event); err != nil {
		return task.Outcome{}, err
	}
	if j.hear(t) {
		if err := j.save(ctx); err != nil {
			return task.Outcome{}, err
		}
	}
	left := p.o.Rounds - j.at.Rounds
	if left <= 0 {
		return task.Outcome{}, task.Final(fmt.Errorf("%w after %d steps", errNoResult, j.at.Rounds))
	}
	turn := action.NewTurn(t.Conversation, nil, t.Requester, p.o.Now(), t.TraceID)
	turn.Authors = []chat.Author{t.Requester} // whose notes may be looked up; the rights stay those of a user
	offer := p.o.Actions.For(action.Planner, turn.Rights)
	data, err := p.data(ctx, j, prompt, offer)
	if err != nil {
		return task.Outcome{}, err
	}
	composed, err := p.o.Prompts.Compose("planner", data)
	if err != nil {
		return task.Outcome{}, err
	}
	base := composed.Messages()
	c := t.Conversation
	got, err := action.Run(ctx, p.o.Model, llm.Request{
		Agent: action.Planner, Model: p.o.ModelName, Messages: append(base, j.at.messages()...),
		Conversation: c.Key(), TraceID: t.TraceID, Task: t.ID,
		User: c.UserKey(t.Requester.ID), Place: c.PlaceKey(), Workspace: c.WorkspaceKey(),
		Shorten: func(round int) []llm.Message { return append(base[:len(base):len(base)], j.at.shorter(round)...) },
	}, offer, turn, action.Bounds{Rounds: left, Errors: p.o.Mistakes, Style: p.o.Style, Hooks: j.hooks()})
	return p.outcome(ctx, j, got, err)
}

// maxAnswer bounds what a checkpoint keeps of one answer, in bytes.
const maxAnswer = 8 << 10

// hear takes the answer to the task's question in, once. What was looked up before it
// is looked up again where it matters: the steps were taken without the answer.
func (j *job) hear(t task.Task) bool {
	if t.Question == nil || t.Answer == "" {
		return false
	}
	for _, a := range j.at.Asked {
		if a.ID == t.Question.ID {
			return false
		}
	}
	j.at.Asked = append(j.at.Asked, asked{*t.Question, history.Cut(t.Answer, maxAnswer), t.AnsweredBy})
	return true
}

// data is what the model is shown besides the look-ups that it made.
func (p *Planner) data(ctx context.Context, j *job, prompt string, offer *action.Offer) (prompts.Data, error) {
	t := j.task
	past, err := p.o.History.Read(ctx, t.Conversation.Key(), p.o.Window)
	if err != nil {
		return prompts.Data{}, fmt.Errorf("read the history of task %s: %w", t.ID, err)
	}
	d := prompts.Data{
		Bot: p.o.Bot, Platform: t.Conversation.Platform, Actions: offer.Describe(p.o.Style), Now: p.o.Now(),
		Summary: past.Summary.Text, History: past.Lines,
		Request: prompts.Request{Task: t.ID, Author: t.Requester, Title: t.Title, Text: prompt},
	}
	if len(p.o.Profiles) > 0 {
		d.Limits = append(d.Limits, prompts.Fact{Name: "profiles", Value: strings.Join(p.o.Profiles, ", ")})
	}
	for i, a := range j.at.Asked {
		call, err := json.Marshal(action.PlanQuestion{Question: a.Question, Options: a.Options, Default: a.Default})
		if err != nil {
			return d, fmt.Errorf("encode the question %s: %w", a.ID, err)
		}
		d.Steps = append(d.Steps, prompts.Step{N: i + 1, Action: action.PlanNeedsInput.Name, OK: true, Call: string(call), Output: "The answer is the input of question " + a.ID + "."})
		d.Inputs = append(d.Inputs, chat.UserInput{ID: "answer-" + a.ID, Kind: chat.KindAnswer, Question: a.ID, Conversation: t.Conversation, Author: a.By, Text: a.Answer})
	}
	// What is missing of these makes a plan poorer and no worse.
	if p.o.Tasks != nil {
		if d.Tasks, err = p.o.Tasks(ctx, t.Conversation.Key()); err != nil {
			j.log.WarnContext(ctx, "planner_tasks_unread", "error", err)
		}
	}
	if p.o.Notes != nil {
		if d.Memory, err = p.o.Notes(ctx, t.Conversation, t.Requester, prompt); err != nil {
			j.log.WarnContext(ctx, "planner_notes_unread", "error", err)
		}
	}
	return d, nil
}

// outcome judges what the model came to: a plan, a question, or why there is none.
func (p *Planner) outcome(ctx context.Context, j *job, got action.Result, err error) (task.Outcome, error) {
	out := task.Outcome{Usage: used(got)}
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil:
		return out, sorted(err)
	}
	switch raw := got.Ended.Arguments; got.Ended.Name {
	case action.PlanDone.Name:
		out.ResultType, out.Output = "text", string(raw)
		var pretty bytes.Buffer // people read it in the archive
		if json.Indent(&pretty, raw, "", "  ") == nil && pretty.Len() <= chat.MaxText {
			out.Output = pretty.String()
		}
		if len(out.Output) > task.MaxOutput {
			return task.Outcome{Usage: out.Usage}, task.Final(fmt.Errorf("the plan has %d bytes; at most %d can be kept", len(out.Output), task.MaxOutput))
		}
		return out, nil
	case action.PlanNeedsInput.Name:
		var q action.PlanQuestion
		if err := json.Unmarshal(raw, &q); err != nil {
			return out, fmt.Errorf("read the question: %w", err) // unreachable: it was judged by its schema
		}
		if j.at.Rounds++; j.at.Rounds >= p.o.Rounds {
			return out, task.Final(fmt.Errorf("%w after %d steps: there are more questions than steps", errNoResult, j.at.Rounds))
		}
		j.at.Steps = nil // the answer may change what they were for
		out.Ask = &chat.TaskQuestion{Question: q.Question, Options: q.Options, Default: q.Default}
		return out, j.save(ctx)
	case action.PlanFailed.Name:
		var f action.PlanFailure
		if err := json.Unmarshal(raw, &f); err != nil {
			return out, fmt.Errorf("read why there is no plan: %w", err) // unreachable, likewise
		}
		return out, task.Final(errors.New(f.Error))
	}
	return out, task.Final(fmt.Errorf("%w after %d steps: the model did not end its planning", errNoResult, j.at.Rounds+1))
}

// used is what a run used of models.
func used(got action.Result) chat.TaskUsage {
	return chat.TaskUsage{
		Calls: int64(got.Rounds), Prompt: int64(got.Usage.Prompt), Cached: int64(got.Usage.Cached),
		Completion: int64(got.Usage.Completion), Cost: got.Cost,
	}
}
