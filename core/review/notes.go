package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// NotesOptions say what of tasks is noted. Client, Keys and Get are needed.
type NotesOptions struct {
	Client redis.UniversalClient
	Keys   channel.Keys
	Get    func(ctx context.Context, id string) (task.Task, error)
	Slow   time.Duration // wait for a worker from which on it is noted; 0 means never
	Heavy  int           // tokens of a task, likewise
	Now    func() time.Time
	Logger *slog.Logger
}

// Notes file what whoever runs the bot should know of tasks that did not fail: that
// one waited long for a worker, or used very many tokens. Failures and retries are
// filed with the task's own end.
type Notes struct {
	o     NotesOptions
	ended chan string
	last  time.Time // when a wait was noted
	more  int       // waits since that were not
}

const (
	mostEnded = 100              // tasks that wait to be looked at; more are left out
	waitEvery = 10 * time.Minute // between two notes of a wait: where one task waits, many do
)

// NewNotes makes Notes. Nothing is filed unless Run runs.
func NewNotes(o NotesOptions) *Notes {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Notes{o: o, ended: make(chan string, mostEnded)}
}

// Ended tells of a task that is over. It takes no time; when too many wait already
// it does nothing.
func (n *Notes) Ended(id string) {
	select {
	case n.ended <- id:
	default:
	}
}

// Run looks at the tasks that ended, until ctx ends; then it returns nil.
func (n *Notes) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-n.ended:
			if err := n.look(ctx, id); err != nil && ctx.Err() == nil {
				n.o.Logger.Warn("task_not_noted", "task_id", id, "error", err)
			}
		}
	}
}

func (n *Notes) look(ctx context.Context, id string) error {
	t, err := n.o.Get(ctx, id)
	if errors.Is(err, task.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	note := chat.Feedback{
		Conversation: t.Conversation, TaskID: t.ID, TraceID: t.TraceID, Author: t.Requester, At: n.o.Now().UTC().Truncate(time.Millisecond),
	}
	var problems error
	if used := t.Usage.Prompt + t.Usage.Completion; n.o.Heavy > 0 && used >= int64(n.o.Heavy) {
		note.Kind, note.Category, note.Severity = chat.FeedbackUsage, "other", severityOf(used >= 3*int64(n.o.Heavy))
		note.Message = fmt.Sprintf("A %s task used %d tokens (%d in, %d out) in %d calls.", t.Profile, used, t.Usage.Prompt, t.Usage.Completion, t.Usage.Calls)
		problems = File(ctx, n.o.Client, n.o.Keys, note)
	}
	if wait := waited(t); n.o.Slow > 0 && wait >= n.o.Slow && !t.Internal {
		if n.o.Now().Sub(n.last) < waitEvery {
			n.more++
			return problems
		}
		note.Kind, note.Category, note.Severity = chat.FeedbackSlow, "speed", severityOf(wait >= 10*n.o.Slow)
		note.Message = fmt.Sprintf("A %s task waited %s for a worker.", t.Profile, wait.Round(time.Second))
		if n.more > 0 {
			note.Message += fmt.Sprintf(" So did %d others before it.", n.more)
		}
		if err := File(ctx, n.o.Client, n.o.Keys, note); err != nil {
			return errors.Join(problems, err)
		}
		n.last, n.more = n.o.Now(), 0
	}
	return problems
}

// waited is how long a task was to be had before its first run began; 0 for one
// that never ran, or began again after it had been put off.
func waited(t task.Task) time.Duration {
	if t.StartedAt.IsZero() || t.DeferUntil.After(t.StartedAt) {
		return 0
	}
	from := t.CreatedAt
	if t.DeferUntil.After(from) {
		from = t.DeferUntil
	}
	return t.StartedAt.Sub(from)
}

func severityOf(much bool) string {
	if much {
		return "medium"
	}
	return "low"
}
