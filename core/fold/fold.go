// Package fold keeps histories short: when a conversation has grown long, a
// model sums up its oldest lines, and the summary takes their place.
//
// It exists because a history that is merely cut forgets, and one that is kept
// whole is paid for in every prompt. It is promised that
//
//   - no line is lost: lines leave the history in the script that stores the
//     summary of them, so a crash at any point leaves both as they were, and the
//     fold is made again;
//   - no line is folded twice, however many nodes try at once;
//   - no turn waits for a fold: an offer only remembers a name, and the script
//     takes well under a millisecond;
//   - a message that was deleted before the script ran is not in the summary;
//   - a model that fails is asked again later and later, never in a tight loop,
//     and one conversation's failure holds up no other.
//
// What waits to be looked at is in memory only: after a crash a conversation is
// looked at when somebody speaks in it again, or when it has been idle for long.
package fold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"mimikit/core/chat"
	"mimikit/core/history"
)

// Histories are what is folded; a *history.Store is one.
type Histories interface {
	Length(ctx context.Context, conversation string) (int, error)
	Unfolded(ctx context.Context, conversation string, newest int) (*history.Unfolded, error)
	Fold(ctx context.Context, conversation string, u *history.Unfolded, n int, text, model string, at time.Time) (int, error)
	Claim(ctx context.Context, conversation, token string, ttl time.Duration) (bool, error)
	Release(ctx context.Context, conversation, token string) error
}

// Options of a Folder. Histories and Summarize are needed; every other zero
// value means its default.
type Options struct {
	Histories Histories
	// Summarize sums up lines, oldest first, and what was summed up before ("" at
	// first) in one text. A line whose note is "deleted" or "replaced" has no text.
	Summarize func(ctx context.Context, conversation, previous string, lines []chat.Line) (string, error)
	Model     string // that Summarize asks: it is stored with the summary, and tokens are counted as its

	Lines  int // unfolded lines above which a conversation is folded (default 120)
	Tokens int // tokens of unfolded lines above which it is too (default 12,000)
	// Keep is how many of the newest lines are left unfolded (default 60, below
	// Lines). Where these alone are more than Tokens, it is the newest half of
	// Tokens, and a third of Keep at least.
	Keep    int
	Batch   int // tokens of lines that are summed up by one call (default 16,000); of a longer line, the rest is left out
	Longest int // tokens of a summary (default 2,000); what is longer is cut

	Workers    int           // folds at the same time (default 1)
	Timeout    time.Duration // of one Summarize (default 2 min)
	Pause      time.Duration // from an offer until the conversation is looked at, so that a burst of offers is one look (default 5 s)
	Backoff    time.Duration // before a fold that failed is tried again, doubling (default 30 s)
	MaxBackoff time.Duration // what Backoff doubles to (default 1 h)
	Waiting    int           // conversations that may wait to be looked at (default 10,000); more are not taken

	Folded func(conversation string, lines int, took time.Duration) // told of every fold; nil means nobody is
	Failed func(conversation string, err error)                     // told of every failure; nil means nobody is
	Now    func() time.Time                                         // nil means time.Now
	Rand   func() uint64                                            // for tokens and jitter; nil means the standard library's
	Logger *slog.Logger                                             // nil means slog's default
}

// defaults fills in what is zero and says what is wrong.
func (o *Options) defaults() error {
	if o.Histories == nil || o.Summarize == nil {
		return errors.New("Histories and Summarize are needed")
	}
	for _, n := range []struct {
		name  string
		value *int
		def   int
	}{
		{"Lines", &o.Lines, 120}, {"Tokens", &o.Tokens, 12000}, {"Keep", &o.Keep, 60}, {"Batch", &o.Batch, 16000},
		{"Longest", &o.Longest, 2000}, {"Workers", &o.Workers, 1}, {"Waiting", &o.Waiting, 10000},
	} {
		if *n.value = cmp.Or(*n.value, n.def); *n.value < 1 {
			return fmt.Errorf("%s is %d; at least 1 is allowed", n.name, *n.value)
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"Timeout", &o.Timeout, 2 * time.Minute}, {"Pause", &o.Pause, 5 * time.Second},
		{"Backoff", &o.Backoff, 30 * time.Second}, {"MaxBackoff", &o.MaxBackoff, time.Hour},
	} {
		if *d.value = cmp.Or(*d.value, d.def); *d.value < time.Millisecond {
			return fmt.Errorf("%s is %s; at least 1ms is allowed", d.name, *d.value)
		}
	}
	if o.Keep >= o.Lines {
		return fmt.Errorf("%s is %d; less than Lines, which is %d, is allowed", "Keep", o.Keep, o.Lines)
	}
	o.MaxBackoff = max(o.MaxBackoff, o.Backoff)
	if o.Folded == nil {
		o.Folded = func(string, int, time.Duration) {}
	}
	if o.Failed == nil {
		o.Failed = func(string, error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// A Folder folds the conversations that it is offered, while it runs. It is safe
// for concurrent use.
type Folder struct {
	o      Options
	queue  queue
	margin time.Duration // how long a claim outlives Timeout: calls to Redis are made besides
}

// New checks the options. It starts nothing.
func New(o Options) (*Folder, error) {
	if err := o.defaults(); err != nil {
		return nil, fmt.Errorf("new folder: %w", err)
	}
	return &Folder{o: o, queue: newQueue(o.Waiting), margin: 10 * time.Second}, nil
}

// Offer says that something was added to a conversation's history. It only
// remembers that, and takes no time; before Run it may be called too. When too
// many wait already it does nothing: the next line that is added offers the
// conversation again.
func (f *Folder) Offer(conversation string) { f.offer(conversation, false) }

// OfferIdle has all of a conversation folded, its newest lines too, since nobody
// spoke in it for long. An Offer takes that back.
func (f *Folder) OfferIdle(conversation string) { f.offer(conversation, true) }

func (f *Folder) offer(conversation string, idle bool) {
	if conversation == "" {
		return
	}
	if f.queue.offer(conversation, idle, f.o.Now().Add(f.o.Pause)) {
		f.o.Logger.Warn("fold_queue_full", "conversation", conversation, "waiting", f.o.Waiting)
	}
}

// Waiting gives how many conversations wait to be looked at, are being folded or
// are tried again later.
func (f *Folder) Waiting() int { return f.queue.len() }
