package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Run is one try at a task. Whatever it writes is refused once another run has
// the task.
type Run struct {
	Task  Task // as it was when the run began
	q     *Queue
	p     int
	token string

	ctx    context.Context
	cancel context.CancelCauseFunc
	alarm  *time.Timer // ends the run when it cannot show that it lives
	begun  time.Time   // by our clock; it did not begin earlier

	mu  sync.Mutex // notes go one after the other
	seq int
}

// newRun makes the run that a claim has begun.
func (q *Queue) newRun(ctx context.Context, p int, token string, t Task) *Run {
	r := &Run{Task: t, q: q, p: p, token: token}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// Context ends when the run must: its cause is ErrCanceled, ErrTimedOut, ErrLapsed
// or ErrStopping. A runner is given it.
func (r *Run) Context() context.Context { return r.ctx }

// Prompt is the whole prompt, also where Task.Prompt was cut.
func (r *Run) Prompt(ctx context.Context) (string, error) {
	if r.Task.PromptSize == 0 {
		return r.Task.Prompt, nil
	}
	return r.q.Prompt(ctx, r.Task.ID)
}

// Checkpoint is what SaveCheckpoint kept last, in this or an earlier run; nil when
// there is nothing.
func (r *Run) Checkpoint(ctx context.Context) ([]byte, error) {
	data, err := r.q.o.Client.Get(ctx, checkpointKey(r.q.keys, r.p, r.Task.ID)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of task %s: %w", r.Task.ID, err)
	}
	return data, nil
}

// SaveCheckpoint keeps what a later run needs to go on from here, at most
// MaxCheckpoint bytes; it is forgotten when the task ends. While Redis is away it
// waits, as long as ctx lives. With ErrLapsed the run must end.
func (r *Run) SaveCheckpoint(ctx context.Context, data []byte) error {
	if len(data) > MaxCheckpoint {
		return fmt.Errorf("checkpoint of task %s has %d bytes; at most %d are allowed", r.Task.ID, len(data), MaxCheckpoint)
	}
	return r.note(ctx, "checkpoint", checkpointKey(r.q.keys, r.p, r.Task.ID), data)
}

// An Event is one event of a task's progress.
type Event struct {
	At      time.Time       `json:"at"`
	Attempt int             `json:"attempt"`
	Kind    string          `json:"kind"` // what happened, such as action_call_start
	Message string          `json:"message,omitempty"`
	Percent *int            `json:"percent,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Report adds an event to the task's progress; At and Attempt are filled in. An
// event has at most MaxEvent bytes encoded, and the newest KeepEvents are kept.
func (r *Run) Report(ctx context.Context, e Event) error {
	e.At, e.Attempt = r.q.is.now(), r.Task.Attempts
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event %s of task %s: %w", e.Kind, r.Task.ID, err)
	}
	if len(data) > MaxEvent {
		return fmt.Errorf("event %s of task %s has %d bytes; at most %d are allowed", e.Kind, r.Task.ID, len(data), MaxEvent)
	}
	return r.note(ctx, "progress", progressKey(r.q.keys, r.p, r.Task.ID), data)
}

// note writes one of the two, once.
func (r *Run) note(ctx context.Context, what, key string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	got, err := r.q.sure(ctx, r.p, noteScript, fenced(r.q.keys, r.p, key), r.Task.ID, r.token, r.seq, what, data, KeepEvents)
	if err == nil && len(got) > 1 && asString(got[1]) == "lost" {
		r.cancel(ErrLapsed)
		err = ErrLapsed
	}
	if err != nil {
		return fmt.Errorf("keep the %s of task %s: %w", what, r.Task.ID, err)
	}
	return nil
}

// errNotOurs says that the task had passed to another run before this one ended.
var errNotOurs = errors.New("another run has the task")

// settle ends the run in Redis and says what became of the task.
func (r *Run) settle(ctx context.Context, v verdict) (Status, error) {
	return r.q.settle(ctx, r.p, r.token, r.Task.ID, v)
}
