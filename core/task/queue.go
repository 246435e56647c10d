package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// ErrUnknown says that there is no such task, or no longer.
var ErrUnknown = errors.New("there is no such task")

// Options of a Queue. Issuer.Keys and Client are needed; the zero value of a
// duration or a bound means its default.
type Options struct {
	Issuer Issuer
	Client redis.UniversalClient // must not repeat commands by itself

	MaxPerConversation int           // tasks of one conversation that run at once, on all nodes; 0 means no bound. To be the same on all nodes
	MaxLapses          int           // so many lapses end a task (default 3)
	Lease              time.Duration // how long a silent run keeps its task (default 15 s). To be the same on all nodes
	Retention          time.Duration // how long a task is kept after its end (default 30 days)
	CallTimeout        time.Duration // bound of one call to Redis (default 5 s)
	StorageGone        time.Duration // people whose tasks wait for a storage that is mounted nowhere are told after this time (default 10 min). To be the same on all nodes

	// Sent and Saw tell who looks after the partition's commit number what was
	// answered to a call: Sent is asked before it is sent, Saw is given that and
	// the number in the answer, and reports whether Redis has lost writes.
	Sent func(partition int) int64
	Saw  func(ctx context.Context, partition int, sent, got int64) (lost bool)

	// Triggers cancels the triggers that have a canceled task for their parent. It
	// is called again after an error or a crash. nil cancels none.
	Triggers func(ctx context.Context, parent, conversation string, by chat.Author, reason string) error

	Logger *slog.Logger // default: discards
}

// A Queue is where tasks wait, run and are remembered. What it holds itself is only
// what is on its way to Redis. It is safe for concurrent use, and what is asked of
// it at the same time goes there together.
type Queue struct {
	o      Options
	is     *Issuer
	keys   channel.Keys
	log    *slog.Logger
	calls  *lane         // ops of the extension
	ends   *lane         // ends of runs
	looked []atomic.Bool // the types of a partition's keys were seen to be right
}

// New checks the options. It does not connect.
func New(o Options) (*Queue, error) {
	if o.Client == nil {
		return nil, errors.New("new task queue: Client must be set")
	}
	if o.Issuer.Keys.Prefix == "" || o.Issuer.Keys.Partitions < 1 || o.Issuer.Keys.Partitions > 1024 {
		return nil, fmt.Errorf("new task queue: prefix %q with %d partitions; want a prefix, and 1 to 1024", o.Issuer.Keys.Prefix, o.Issuer.Keys.Partitions)
	}
	if o.MaxPerConversation < 0 || o.MaxLapses < 0 || o.Lease < 0 || o.Retention < 0 || o.CallTimeout < 0 || o.StorageGone < 0 {
		return nil, errors.New("new task queue: a bound or a duration is negative")
	}
	for name, p := range o.Issuer.Profiles {
		if !plain(name) || p.Timeout < 0 || p.Timeout > maxTimeout || p.Retry.MaxAttempts < 0 || p.Retry.Backoff < 0 || p.Retry.Backoff > maxBackoff {
			return nil, fmt.Errorf("new task queue: profile %q %+v: want a name of a-z, 0-9, _ and -, a timeout up to %s, a backoff up to %s", name, p, maxTimeout, maxBackoff)
		}
	}
	o.MaxLapses = cmp.Or(o.MaxLapses, 3)
	o.Lease = cmp.Or(o.Lease, 15*time.Second)
	o.Retention = cmp.Or(o.Retention, 30*24*time.Hour)
	o.CallTimeout = cmp.Or(o.CallTimeout, 5*time.Second)
	o.StorageGone = cmp.Or(o.StorageGone, 10*time.Minute)
	if o.Sent == nil {
		o.Sent = func(int) int64 { return 0 }
	}
	if o.Saw == nil {
		o.Saw = func(context.Context, int, int64, int64) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	q := &Queue{o: o, is: &o.Issuer, keys: o.Issuer.Keys, log: o.Logger, looked: make([]atomic.Bool, o.Issuer.Keys.Partitions)}
	q.calls, q.ends = &lane{q: q, spell: q.spellOps}, &lane{q: q, spell: q.spellEnds}
	return q, nil
}

// Issuer spells what commits do to the tasks of this queue.
func (q *Queue) Issuer() *Issuer { return q.is }

// Enqueue creates a task by itself, as [Issuer.Create] does in a commit, and says
// which task stands for the draft: a new one, or the one that there is. It calls
// Redis until that has answered or ctx is over.
func (q *Queue) Enqueue(ctx context.Context, d Draft) (id string, created bool, err error) {
	t, call, err := q.is.Create(d)
	if err != nil {
		return "", false, err
	}
	got, err := q.perform(ctx, call, t.ID)
	if err != nil {
		return "", false, fmt.Errorf("create task %s: %w", t.ID, err)
	}
	return got[1], got[0] == "created", nil
}

// A Cancellation says what a cancel did.
type Cancellation struct {
	Status  Status // of the task afterwards
	Did     Did
	Partial bool // what it started could not all be canceled yet; a sweeper does the rest
}

// Did is what a cancel did to the task that it named.
type Did string

// What a cancel can do.
const (
	DidEnd   Did = "canceled" // it has ended
	DidFlag  Did = "flagged"  // it runs, and its worker was told to end it
	DidAgain Did = "again"    // it runs, and somebody had canceled it before
	DidOver  Did = "ended"    // it was over; what it started is canceled
)

// Cancel cancels a task and all that it started, as [Issuer.Cancel] does in a
// commit, whatever conversation it belongs to. It fails with ErrUnknown when there
// is no such task.
func (q *Queue) Cancel(ctx context.Context, id string, by chat.Author, reason string) (Cancellation, error) {
	p, err := q.partition(id)
	if err != nil {
		return Cancellation{}, fmt.Errorf("cancel: %w", err)
	}
	call, err := q.is.cancel(p, id, "", by, reason)
	if err != nil {
		return Cancellation{}, err
	}
	got, err := q.perform(ctx, call, id)
	if err == nil && got[0] == "unknown" {
		err = ErrUnknown
	}
	if err != nil {
		return Cancellation{}, fmt.Errorf("cancel task %s: %w", id, err)
	}
	c := Cancellation{Did: Did(got[0])}
	if len(got) > 2 {
		c.Status = Status(got[2])
	}
	if err := q.Cascade(ctx, p); err != nil {
		c.Partial = true
		q.log.Warn("cancel_cascade_unfinished", "task_id", id, "error", err)
	}
	return c, nil
}

// ErrClosed says that a question was answered before, or that its task does not
// wait for it any more.
var ErrClosed = errors.New("the question is not open any more")

// Answer answers the question of a task by itself, as [Issuer.Answer] does in a
// commit. It fails with ErrUnknown or ErrClosed.
func (q *Queue) Answer(ctx context.Context, c chat.Conversation, id, question, text string, by chat.Author) error {
	call, err := q.is.Answer(c, id, question, text, by)
	if err != nil {
		return err
	}
	got, err := q.perform(ctx, call, id)
	switch {
	case err != nil:
	case got[0] == "unknown":
		err = ErrUnknown
	case got[0] != "answered":
		err = ErrClosed
	default:
		return nil
	}
	return fmt.Errorf("answer question %s of task %s: %w", question, id, err)
}

// Archived notes where the archive of a task that is over lies, for those whose
// worker could not say so: it was canceled before it ran, or killed.
func (q *Queue) Archived(ctx context.Context, id, path string) error {
	p, err := q.partition(id)
	if err != nil {
		return fmt.Errorf("note the archive: %w", err)
	}
	got, err := q.perform(ctx, q.is.op(p, "archived", id, path), id)
	switch {
	case err != nil:
	case got[0] == "unknown":
		err = ErrUnknown
	case got[0] != "archived":
		err = errors.New("it is not over")
	default:
		return nil
	}
	return fmt.Errorf("note the archive of task %s: %w", id, err)
}

// Cascade goes on with the cancels of a partition that concern more than their
// task, until there is nothing left of them.
func (q *Queue) Cascade(ctx context.Context, p int) error {
	var done []string
	for {
		args := []any{signals(q.keys), p, 50}
		for _, id := range done {
			args = append(args, id)
		}
		got, err := q.sure(ctx, p, cascadeScript, fenced(q.keys, p), args...)
		if err != nil {
			return fmt.Errorf("cancel what canceled tasks of partition %d started: %w", p, err)
		}
		if len(got) < 3 {
			return fmt.Errorf("cancel what canceled tasks of partition %d started: the script answered %d parts, want 3", p, len(got))
		}
		done = done[:0]
		for _, v := range asList(got[2]) {
			id := asString(v)
			if err := q.cancelTriggers(ctx, id); err != nil {
				return fmt.Errorf("cancel the triggers of task %s: %w", id, err)
			}
			done = append(done, id)
		}
		if len(done) == 0 && asString(got[1]) != "1" {
			return nil
		}
	}
}

func (q *Queue) cancelTriggers(ctx context.Context, id string) error {
	if q.o.Triggers == nil {
		return nil
	}
	t, err := q.Get(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return q.o.Triggers(ctx, id, t.Conversation.Key(), t.CanceledBy, t.CancelReason)
}

// partition says where a task lives.
func (q *Queue) partition(id string) (int, error) {
	_, p, err := ParseID(id)
	if err == nil && p >= q.keys.Partitions {
		err = fmt.Errorf("task %s: %w", id, ErrUnknown)
	}
	return p, err
}
