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
	"mimikit/core/history"
	"mimikit/core/task"
)

// Bounds of a review.
const (
	MaxLines    = 100                 // lines of a conversation that are reviewed
	MaxFindings = 5                   // of one review
	KeepMarks   = 70 * 24 * time.Hour // longer than any conversation is kept that nobody speaks in
	maxFinding  = 1 << 10             // bytes of a finding's text
	recent      = 30 * 24 * time.Hour // a conversation that changed earlier is not reviewed any more
)

// History is what is reviewed; a *history.Store is one.
type History interface {
	Recent(ctx context.Context, conversation string, count int) (history.Found, error)
}

// Tasks tell whether any run; a *task.Queue is one.
type Tasks interface {
	Stats(ctx context.Context) (task.Stats, error)
}

// Options of a Reviewer. Client, Keys, History, Tasks and Ask are needed; every
// other zero value means its default.
type Options struct {
	Client  redis.UniversalClient
	Keys    channel.Keys
	History History
	Tasks   Tasks
	// Ask has a model review lines, oldest first, and gives its answer, for [Parse].
	// It must return soon after ctx is done.
	Ask func(ctx context.Context, c chat.Conversation, summary string, lines []chat.Line) (string, error)

	// Skip reports that a conversation is left alone for now; it is reviewed once it is
	// not. nil leaves none.
	Skip func(c chat.Conversation) bool

	Idle          time.Duration    // quiet after which a review begins, and pause between two (default 30 min)
	Conversations int              // of one review (default 20)
	Look          time.Duration    // how often is looked whether it is quiet (default 1 min)
	Watch         time.Duration    // the same while a review runs (default 1 s)
	Timeout       time.Duration    // of one Ask (default 2 min)
	Now           func() time.Time // default time.Now
	Logger        *slog.Logger     // default: none
}

// A Reviewer reviews conversations while all is quiet. One at a time is to run
// among all nodes; two would only ask the model twice.
type Reviewer struct{ o Options }

// New checks the options. It starts nothing.
func New(o Options) (*Reviewer, error) {
	if o.Client == nil || o.History == nil || o.Tasks == nil || o.Ask == nil || o.Keys.Partitions < 1 {
		return nil, errors.New("new reviewer: Client, Keys, History, Tasks and Ask are needed")
	}
	o.Idle = cmp.Or(o.Idle, 30*time.Minute)
	o.Conversations = cmp.Or(o.Conversations, 20)
	o.Look = cmp.Or(o.Look, time.Minute)
	o.Watch = cmp.Or(o.Watch, time.Second)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Idle < 0 || o.Conversations < 0 || o.Look < 0 || o.Watch < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("new reviewer: idle %s, %d conversations, look %s, watch %s, timeout %s: nothing below 0 is allowed", o.Idle, o.Conversations, o.Look, o.Watch, o.Timeout)
	}
	return &Reviewer{o}, nil
}

// Run looks again and again whether it is quiet, and reviews, until ctx ends; then
// it returns nil.
func (r *Reviewer) Run(ctx context.Context) error {
	tick := time.NewTicker(r.o.Look)
	defer tick.Stop()
	for {
		if did, err := r.Once(ctx); err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("review_failed", "reviewed", did.Reviewed, "findings", did.Findings, "error", err)
		} else if did.Reviewed > 0 {
			r.o.Logger.Info("review_end", "reviewed", did.Reviewed, "findings", did.Findings, "stopped", did.Stopped)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// A Round is what one look came to.
type Round struct {
	Due      bool // it was quiet for long enough, and since the last review too
	Reviewed int  // conversations that the model was asked about
	Findings int  // that were filed
	Stopped  bool // work came in between
}

// errWork stops a review: somebody wants something.
var errWork = errors.New("there is work")

// Once reviews what is to be reviewed, if it is quiet. A conversation whose answer
// nobody can read counts as reviewed; a model that fails ends the round, and what
// is left is taken up by the next.
func (r *Reviewer) Once(ctx context.Context) (Round, error) {
	var did Round
	now := r.o.Now()
	if due, err := r.due(ctx, now); err != nil || !due {
		return did, err
	}
	did.Due = true
	list, err := r.changed(ctx, now)
	if err != nil {
		return did, err
	}
	watched, stop := r.watch(ctx)
	defer stop()
	for _, c := range list {
		if did.Reviewed == r.o.Conversations || watched.Err() != nil {
			break
		}
		var n int
		var asked bool
		if n, asked, err = r.review(watched, c); asked {
			did.Reviewed++
		}
		did.Findings += n
		if err != nil {
			err = fmt.Errorf("review %s: %w", c.key, err)
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return did, context.Cause(ctx)
	case errors.Is(context.Cause(watched), errWork): // the rest waits until it is quiet again
		did.Stopped = true
		return did, nil
	}
	// After a failure too: what failed now is not to be tried again every minute.
	if e := r.o.Client.Set(ctx, r.lastKey(), r.o.Now().UnixMilli(), 0).Err(); e != nil {
		err = errors.Join(err, fmt.Errorf("note the end of a review: %w", e))
	}
	return did, err
}

// Last is when a review last ended; zero for never.
func (r *Reviewer) Last(ctx context.Context) (time.Time, error) {
	ms, err := r.o.Client.Get(ctx, r.lastKey()).Int64()
	if errors.Is(err, redis.Nil) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read when a review last ended: %w", err)
	}
	return time.UnixMilli(ms).UTC(), nil
}

func (r *Reviewer) lastKey() string { return r.o.Keys.Prefix + ":review:last" }

// watch gives a context that ends when there is work.
func (r *Reviewer) watch(ctx context.Context) (context.Context, func()) {
	watched, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(r.o.Watch)
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			busy, err := r.busy(watched)
			if err != nil && watched.Err() == nil {
				r.o.Logger.Warn("review_unwatched", "error", err)
			}
			if busy || err != nil { // who cannot look had better stop
				cancel(errWork)
			}
		}
	}()
	return watched, func() { cancel(nil); <-over }
}
