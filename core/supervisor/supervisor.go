package supervisor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// Tasks reads tasks; a *task.Queue is one.
type Tasks interface {
	Get(ctx context.Context, id string) (task.Task, error)
	Output(ctx context.Context, id string) (string, error)
}

// Files looks at the files of conversations. [WorkspaceFiles] makes one.
type Files interface {
	// Storages are the storages that this node has at this moment.
	Storages() []string
	// Look gives what files of a conversation fit a pattern. Without content only
	// Exists and Err matter.
	Look(ctx context.Context, c chat.Conversation, storage, pattern string, content bool) trigger.FileSight
}

// Options of a Supervisor. Triggers and Tasks are needed.
type Options struct {
	Triggers *trigger.Store
	Tasks    Tasks
	Files    Files    // nil: this node has no files
	Profiles []string // that some node runs; a plan that needs another is reported. nil: any
	Storage  string   // where a conversation's files are kept that has none yet

	// Questions are where planners' questions are asked, and whose deadlines the
	// clock keeps. nil: a plan that asks is given up, and its question told.
	Questions *question.Store
	// Closing is told of a question that the commit of a step is about to take back, so
	// that its post can say so. It must not wait. nil tells nobody.
	Closing func(id string)

	// Approvals say who is asked when a task that is no planner waits: whether it may do
	// something. The zero value asks who wanted the task, for question.DefaultTimeout.
	Approvals Approvals

	// Budget refuses a model's look at the conditions of a person, with the reason.
	// nil allows all.
	Budget func(ctx context.Context, c chat.Conversation, by chat.Author) error
	// Held says that the triggers of a conversation are left alone for now. One that
	// comes due meanwhile fires, once, soon after it is held no more. nil holds none.
	Held func(c chat.Conversation) bool
	// EvalProfile is the profile of the internal tasks that ask a model (default
	// standard).
	EvalProfile string
	// EvalPrompt words what is asked; EvalAnswers reads the answer, by the key of the
	// question. Both or neither; the default goes by the file evaluate.md.
	EvalPrompt  func(questions []Question) (string, error)
	EvalAnswers func(output string) map[string]bool

	Now   func() time.Time // of what is checked before it is carried out; nil means time.Now
	Look  time.Duration    // how often a partition is looked at when nothing is heard of it (default 1 min)
	Fired func(t trigger.Trigger, taskID string)
	// Firing is told that a trigger fires, before it does, and gives it with the trace
	// that its task is to belong to; over is told how that went. nil changes nothing.
	Firing func(ctx context.Context, t trigger.Trigger, f trigger.Firing) (traced trigger.Trigger, over func(error))
	Logger *slog.Logger // default: discards
}

// Approvals say who decides what a task may do.
type Approvals struct {
	By      chat.Role     // the least role in the conversation's workspace; 0: who wanted the task, alone
	Timeout time.Duration // after which the default is taken, up to question.MaxTimeout; 0 means question.DefaultTimeout
}

// A Question is one condition that a model is asked about.
type Question struct {
	Key  string // by which it is answered
	Text string
}

// A Supervisor has one loop and one clock. It holds no state that must last, and is
// safe for concurrent use.
type Supervisor struct {
	o     Options
	tasks *task.Issuer
	log   *slog.Logger
	words words
}

// New checks the options. It starts nothing.
func New(o Options) (*Supervisor, error) {
	if o.Triggers == nil || o.Tasks == nil {
		return nil, errors.New("new supervisor: Triggers and Tasks must be set")
	}
	if (o.EvalPrompt == nil) != (o.EvalAnswers == nil) {
		return nil, errors.New("new supervisor: EvalPrompt and EvalAnswers go together")
	}
	if o.Look < 0 {
		return nil, errors.New("new supervisor: Look is negative")
	}
	o.Look = cmp.Or(o.Look, time.Minute)
	o.EvalProfile = cmp.Or(o.EvalProfile, task.Standard)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w, err := parseWords()
	if err != nil {
		return nil, err
	}
	if o.EvalPrompt == nil {
		o.EvalPrompt, o.EvalAnswers = w.ask, readAnswers
	}
	return &Supervisor{o: o, tasks: o.Triggers.Issuer().Tasks, log: o.Logger, words: w}, nil
}

// Loop is the loop that hears what became of tasks. It belongs into a node's table
// before the loops of the turn, so that it goes first between two of their steps.
func (s *Supervisor) Loop() channel.Loop {
	return channel.Loop{
		Name: "supervise", Lane: channel.LaneTurn, From: []channel.Name{channel.SupervisorEvent},
		Ready: ready, Step: s.step, Failed: s.failed,
	}
}

func (s *Supervisor) now() time.Time {
	if s.o.Now != nil {
		return s.o.Now()
	}
	return time.Now()
}

// ready takes one result at a time: what a plan comes to has the size of a commit.
func ready(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
	e := b.Entries(channel.SupervisorEvent)
	return e[:min(1, len(e))], 0
}
