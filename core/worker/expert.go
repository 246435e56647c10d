package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/sandbox"
	"mimikit/core/task"
	"mimikit/core/workspace"
	"mimikit/prompts"
)

// The kinds of progress that an expert's task reports.
const (
	EventExpertStart  = "expert_start"
	EventExpertResume = "expert_resume"
	EventCommandStart = "expert_command_start"
	EventCommandEnd   = "expert_command_end"
	EventFiles        = "expert_files"   // files that were changed
	EventMessage      = "expert_message" // what the agent said
	EventPlanned      = "expert_plan"    // its list of things to do
	EventTool         = "expert_tool"    // any other tool
	EventTrouble      = "expert_trouble" // it has a problem and goes on
)

// An AgentKind says how a command line agent is spoken to.
type AgentKind string

// The kinds of agent.
const (
	// Codex is OpenAI's: it tells of its work in JSON lines and can resume.
	Codex AgentKind = "codex"
	// Plain is any command that takes a prompt, as the argument {prompt} or else on
	// its input, and whose output is the result. It cannot resume.
	Plain AgentKind = "plain"
)

// ExpertOptions are the parts of an expert. Command, Prompts, Storage and Homes are
// needed.
type ExpertOptions struct {
	Agent   AgentKind // "" means Codex
	Command string    // the agent's program, on PATH or a path
	Args    []string  // further arguments; those of a plain agent may be {prompt}
	// Endpoint is the model that the agent asks.
	Endpoint AgentEndpoint
	// Env is what the agent is given of an environment besides its own. The commands
	// that it runs see it too.
	Env     map[string]string
	Network bool // commands of the agent may reach the network
	// Walls are around the agent; nil trusts the walls that it has itself, which keep
	// its commands from writing outside of the workspace and not from reading there.
	Walls *Walls
	// Homes is the folder in which each conversation has one for the agent: what it
	// remembers of its talks is there, and no other conversation's.
	Homes string
	Stall time.Duration // silence after which it is ended; 0 means 5 min
	// Disk bounds what the workspace may hold while the agent works; it is measured now
	// and then. Zero bounds nothing.
	Disk workspace.Bounds

	Prompts  *prompts.Set
	Storage  *workspace.Storage
	Bot      string // empty means Mimikit
	Archive  *Archive
	Talks    *Talks // keeps what agents said, in files for people; nil keeps none
	Attached func(ctx context.Context, c chat.Conversation) ([]Attached, error)
	// Approvals may have it ask before it begins. They do not reach the commands that
	// the agent runs by itself. nil: it never asks.
	Approvals *Approvals
	Scrubber  *llm.Scrubber // takes secrets out of what is kept; nil means one that knows the key
	// Ledger books what the agent used, and lets none begin whose budget is spent; nil
	// books nothing. Prices say what it cost.
	Ledger llm.Ledger
	Prices llm.Prices
	Ran    func(u chat.TaskUsage, took time.Duration, err error) // hears of each run; may be nil
	Logger *slog.Logger
	Now    func() time.Time
}

// An AgentEndpoint is where an agent's model answers. Codex speaks only the
// Responses API.
type AgentEndpoint struct {
	BaseURL string // empty means OpenAI's
	Model   string // empty means what the agent chooses
	Key     string // empty where none is needed
	Headers map[string]string
}

// An Expert does the work of the expert profile: a command line agent carries out
// the task in the conversation's workspace. It is safe for concurrent use.
type Expert struct {
	o     ExpertOptions
	inner *Standard // what all workers have: workspace, checkpoint, progress

	mu    sync.Mutex
	found *agentProgram // what Available has found
	homes inUse
}

// NewExpert checks the options. It starts nothing. It panics when a needed part is
// missing, since only the wiring can be wrong then.
func NewExpert(o ExpertOptions) *Expert {
	if o.Command == "" || o.Prompts == nil || o.Storage == nil || o.Homes == "" {
		panic("worker.NewExpert: Command, Prompts, Storage and Homes are needed")
	}
	o.Agent, o.Stall = cmp.Or(o.Agent, Codex), cmp.Or(o.Stall, 5*time.Minute)
	o.Bot = cmp.Or(o.Bot, "Mimikit")
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Scrubber == nil {
		o.Scrubber = llm.NewScrubber(o.Endpoint.Key)
	}
	return &Expert{o: o, homes: inUse{of: map[string]int{}}, inner: &Standard{Options{
		Archive: o.Archive, Logger: o.Logger, Now: o.Now, Storage: o.Storage, Attached: o.Attached, Approvals: o.Approvals,
	}}}
}

// Run does one run of an expert's task; it is a [task.Runner].
func (e *Expert) Run(ctx context.Context, r *task.Run) (task.Outcome, error) {
	prompt, err := r.Prompt(ctx)
	if err != nil {
		return task.Outcome{}, err
	}
	return e.run(ctx, r.Task, prompt, r)
}

func (e *Expert) run(ctx context.Context, t task.Task, prompt string, keep keeper) (out task.Outcome, err error) {
	log := e.o.Logger.With("task", t.ID, "profile", t.Profile, "conversation", t.Conversation.Key(), "trace_id", t.TraceID, "attempt", t.Attempts)
	log.InfoContext(ctx, "worker_start", "agent", e.o.Agent, "prompt_chars", len(prompt))
	began := e.o.Now()
	defer func() {
		took := e.o.Now().Sub(began)
		if out.Ask != nil {
			log.InfoContext(ctx, "worker_end", "took_ms", took.Milliseconds(), "ok", err == nil, "asks", true)
			return
		}
		out.ArchivePath = e.o.Archive.write(log, t, prompt, out, err, e.o.Now())
		if e.o.Ran != nil {
			e.o.Ran(out.Usage, took, err)
		}
		log.InfoContext(ctx, "worker_end", "took_ms", took.Milliseconds(), "ok", err == nil, "error", err,
			"calls", out.Usage.Calls, "prompt_tokens", out.Usage.Prompt, "completion_tokens", out.Usage.Completion, "cost_micros", out.Usage.Cost)
	}()
	if err := e.Available(ctx); err != nil {
		return out, err
	}
	j := &job{Standard: e.inner, task: t, keep: keep, log: log}
	if err := j.open(ctx); err != nil {
		return out, err
	}
	defer j.files.Close()
	if out.Ask, err = j.begin(ctx, e.o.Approvals, prompt); out.Ask != nil || err != nil {
		return out, err
	}
	home, release, err := e.home(t.Conversation.Key())
	if err != nil {
		return out, err
	}
	defer release()
	w := &expertWork{job: j, e: e, home: home}
	return w.do(ctx, prompt)
}

// An expertWork is one run of one expert's task.
type expertWork struct {
	*job
	e    *Expert
	home string
	via  *relay // to its model; nil where the agent has a way of its own
	talk *talk
	pace pace
}

// do lets the agent work, and once more when it does not know its earlier talk.
func (w *expertWork) do(ctx context.Context, prompt string) (task.Outcome, error) {
	if w.at.Agent == nil {
		w.at.Agent = &agentState{}
	}
	s := w.at.Agent
	if s.Thread != "" && (w.emptied || !w.e.knows(w.home, s.Thread)) {
		*s = agentState{Lost: true}
	}
	event := task.Event{Kind: EventExpertStart, Message: w.task.Title}
	switch {
	case s.Thread != "":
		event.Kind, event.Message = EventExpertResume, "going on with the earlier talk"
	case w.resumed:
		event.Kind, event.Message = EventExpertResume, "beginning a new talk over the files of the earlier run"
	}
	if err := w.report(ctx, event); err != nil {
		return task.Outcome{}, err
	}
	facts := w.bring(ctx)
	hold, err := w.reserve(ctx, prompt)
	if err != nil {
		return task.Outcome{}, err
	}
	began, before := w.e.o.Now(), *s
	a, err := w.turn(ctx, prompt, facts)
	if errors.Is(err, errUnknownThread) && ctx.Err() == nil {
		*s = agentState{Lost: true}
		a, err = w.turn(ctx, prompt, facts)
	}
	if err != nil && ctx.Err() == nil && *s != before {
		if lost := w.tell(ctx, heard{keep: true}); lost != nil { // such as a talk that cannot be gone on with
			err = errors.Join(err, lost)
		}
	}
	u := w.settle(ctx, hold, a, began, err)
	out := task.Outcome{Usage: u}
	if a != nil {
		out.Output, out.ResultType = w.clean(a.output()), a.resultType()
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

// turn is one start of the agent.
func (w *expertWork) turn(ctx context.Context, prompt string, facts []prompts.Fact) (account, error) {
	text, err := w.words(prompt, facts)
	if err != nil {
		return nil, err
	}
	s := w.at.Agent
	if w.e.o.Agent == Codex {
		if w.via, err = newRelay(w.e.o.Endpoint, w.log); err != nil {
			return nil, err
		}
		defer w.via.close()
	}
	a := w.newAccount()
	p, input := w.e.program(s, w.via, w.home, w.files.HostDir(), text)
	w.talk = w.e.o.Talks.begin(w.log, w.task, w.e.o.Agent, s.Thread, text, w.e.o.Now())
	stderr, err := w.attend(ctx, p, input, a)
	err = w.verdict(ctx, a, stderr, err)
	w.talk.end(w.e.o.Now(), err, a.spent(), w.clean(stderr))
	return a, err
}

// words are what the agent is told: all of it once, later only what is new.
func (w *expertWork) words(prompt string, facts []prompts.Fact) (string, error) {
	e, s := w.e, w.at.Agent
	d := prompts.Data{
		Bot: e.o.Bot, Platform: w.task.Conversation.Platform, Workspace: facts, Now: e.o.Now(),
		Request: prompts.Request{Task: w.task.ID, Author: w.task.Requester, Title: w.task.Title, Text: prompt},
	}
	note := ""
	switch {
	case s.Thread != "":
		note = "your work at this task was cut off; see how far it came, and go on from there"
	case w.emptied:
		note = "an earlier run of this task worked elsewhere; the files it made are not here"
	case w.resumed || s.Lost:
		note = "an earlier run of this task was cut off; what it left in the files is here"
	}
	if note != "" {
		d.Workspace = append([]prompts.Fact{{Name: "note", Value: note}}, d.Workspace...)
	}
	network := "none for commands"
	if e.o.Network {
		network = "commands may reach it"
	}
	d.Workspace = append(d.Workspace, prompts.Fact{Name: "network", Value: network})
	if w.task.Timeout > 0 {
		d.Limits = append(d.Limits, prompts.Fact{Name: "time", Value: w.task.Timeout.String()})
	}
	p, err := e.o.Prompts.Compose("worker-expert", d)
	if err != nil {
		return "", err
	}
	if s.Thread != "" {
		return p.Latest, nil // the rest stands in its talk
	}
	return strings.TrimSpace(p.System + "\n\n" + p.Latest), nil
}

// clean takes secrets and places of this machine out of what people or models read.
func (w *expertWork) clean(s string) string {
	s = strings.NewReplacer(w.files.HostDir(), sandbox.Inside, w.home, agentHome).Replace(s)
	if key := w.e.o.Endpoint.Key; len(key) >= 6 {
		s = strings.ReplaceAll(s, key, "[secret]")
	}
	if w.via != nil { // it is worth nothing any more, and looks like what is
		s = strings.ReplaceAll(s, w.via.Token, "[secret]")
	}
	return s
}

// reserve asks whether the task may spend anything, before the agent begins.
func (w *expertWork) reserve(ctx context.Context, prompt string) (llm.Hold, error) {
	e := w.e
	if e.o.Ledger == nil {
		return nil, nil
	}
	// Nobody knows what an agent will use: this much it uses at least.
	c := w.charge(llm.Usage{Prompt: 4000 + len(prompt)/4, Completion: 1000, Estimated: true})
	hold, err := e.o.Ledger.Reserve(ctx, c)
	var spent *llm.BudgetError
	switch {
	case errors.As(err, &spent):
		return nil, sorted(err)
	case err != nil:
		return nil, fmt.Errorf("set aside what the agent may use: %w", err)
	}
	return hold, nil
}

func (w *expertWork) charge(u llm.Usage) llm.Charge {
	c, t, e := w.task.Conversation, w.task, w.e
	charge := llm.Charge{
		Time: e.o.Now(), Agent: "worker-expert", Model: e.o.Endpoint.Model, Conversation: c.Key(), TraceID: t.TraceID,
		User: c.UserKey(t.Requester.ID), Place: c.PlaceKey(), Workspace: c.WorkspaceKey(), Task: t.ID, Usage: u,
	}
	charge.Cost, _ = e.o.Prices.Cost(e.o.Endpoint.Model, "", u)
	return charge
}

// settle books what the agent used. What was used was used, also when the run was
// canceled, so it does not wait for ctx.
func (w *expertWork) settle(ctx context.Context, hold llm.Hold, a account, began time.Time, failed error) chat.TaskUsage {
	var u agentUsage
	if a != nil {
		u = a.spent()
	}
	charge := w.charge(llm.Usage{Prompt: int(u.Prompt), Completion: int(u.Completion), Cached: int(u.Cached)})
	charge.Failed, charge.Took = failed != nil, w.e.o.Now().Sub(began)
	if hold != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, err := hold.Settle(after, charge); err != nil {
			w.log.ErrorContext(ctx, "llm_booking_lost", "error", err, "prompt_tokens", u.Prompt, "completion_tokens", u.Completion)
		}
	}
	return chat.TaskUsage{Calls: u.Turns, Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion, Cost: charge.Cost}
}

// With is the expert with other options, and what Available has found. The options
// that say where its agent is and what it may do must stay.
func (e *Expert) With(edit func(*ExpertOptions)) *Expert {
	o := e.o
	edit(&o)
	out := NewExpert(o)
	e.mu.Lock()
	defer e.mu.Unlock()
	out.found = e.found
	return out
}
