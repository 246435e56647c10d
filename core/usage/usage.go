// Package usage is the ledger of model calls: what each used and cost, by whom,
// where and for what, day by day, and what may still be spent.
//
// A [Ledger] is promised to book each call exactly once for each of its
// subjects, also when the reply of Redis is lost and the booking is sent again
// within an hour; to stop a call before it is made when a budget of its user, place, workspace
// or task is spent; and to keep nothing longer than its retention. Calls at the
// same time see each other: an estimate is set aside before a call and given
// back after it, or by itself when the node dies. A budget is overshot by at
// most the call that crosses it and by what calls that run at that moment use
// beyond their estimates.
//
// When Redis cannot be reached, calls are let through by default, with a
// warning, and what they used is booked once Redis is back. A bot whose Redis
// is away can accept no message and answer none, so the calls in question are
// the few that were already running; to fail them would throw away answers that
// are about to be committed, for the sake of a figure that is put right a
// moment later. Where money matters more, [Options.Strict] refuses them.
//
// The keys, each subject in a slot of its own so that a Cluster spreads them:
//
//	prefix:usage:{day/kind/id}          hash  totals; with "rt", "rm" what is reserved, "warned", "told"
//	prefix:usage:{day/kind/id}:held     zset  reservations, by when they end
//	prefix:usage:{day/kind/id}:settled  zset  ids of calls booked lately
//	prefix:usage:{day/kind}:tokens      zset  the subjects of a day, by tokens
//	prefix:usage:{day/kind}:money       zset  the same by money, when there is any
//	prefix:usage:limits                 hash  limits that people set in place of the configured ones
//
// A task's lifetime has "life" in place of the day. All of them expire but the
// limits, which hold until they are unset, and are checked before each call.
package usage

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/llm"
)

// Kinds of subject that calls are booked for besides those of llm, which can
// have a budget.
const (
	ConversationSubject llm.SubjectKind = "conversation"
	AgentSubject        llm.SubjectKind = "agent"
	ModelSubject        llm.SubjectKind = "model"
	Everything          llm.SubjectKind = "all" // one subject, with the empty id
)

// A Limit bounds what a subject may spend. A zero bounds nothing.
type Limit struct {
	Tokens int64
	Money  int64 // millionths of the currency
}

// Budgets bound what subjects spend: users, places and workspaces in a UTC day,
// tasks in their life.
type Budgets struct {
	User, Place, Workspace, Task Limit
	// Of holds the limits of single subjects, in place of the general ones; the
	// zero Limit frees one of any.
	Of map[llm.Subject]Limit
	// Warn is the share of a limit at which is warned; default 0.8, and from 1
	// on there is no warning.
	Warn float64
}

// of gives a subject's limit.
func (b Budgets) of(s llm.Subject) Limit {
	if l, ok := b.Of[s]; ok {
		return l
	}
	switch s.Kind {
	case llm.UserSubject:
		return b.User
	case llm.PlaceSubject:
		return b.Place
	case llm.WorkspaceSubject:
		return b.Workspace
	case llm.TaskSubject:
		return b.Task
	}
	return Limit{}
}

// The bounds of a ledger.
const (
	Retention  = 90 * 24 * time.Hour // how long totals are kept after their day, and a task's after its last call
	maxBacklog = 10_000              // bookings that wait for Redis
	maxRanked  = 10_000              // subjects in the order of a day
	repeatable = time.Hour           // how long a booking that is sent again is known
)

// Options of a Ledger. Client is needed.
type Options struct {
	Client  redis.UniversalClient // need not repeat commands by itself
	Prefix  string                // of all keys; default "mimikit"
	Budgets Budgets
	// Strict makes a call whose budget cannot be checked fail. By default it is
	// made, see the package.
	Strict bool
	// HoldFor is how long an estimate stays set aside when nobody settles it:
	// longer than the longest call. Default 15 min.
	HoldFor time.Duration
	Timeout time.Duration    // of one exchange with Redis; default 2 s
	Now     func() time.Time // default time.Now
	ID      func() string    // names a call, unlike any other; default 32 random hex digits

	OnWarn   func(llm.BudgetWarning)  // hears once of each subject and day
	OnRefuse func(*llm.BudgetError)   // hears of each call that was not made
	OnOutage func(op string, e error) // hears of each exchange that failed; op is "reserve" or "settle"
	Logger   *slog.Logger             // default: none
}

// A Ledger books calls in Redis. It is an [llm.Ledger] and safe for concurrent
// use.
type Ledger struct {
	o Options

	mu      sync.Mutex
	backlog []booking             // :: what Redis has not taken yet, oldest first
	known   map[llm.Subject]Limit // :: subject → the limit last read, where that is not the configured one
}

// New makes a Ledger. It does not connect. Someone has to call [Ledger.Run], or
// [Ledger.Flush] now and then, so that what could not be booked is booked later.
func New(o Options) *Ledger {
	o.Prefix = cmp.Or(o.Prefix, "mimikit")
	o.Budgets.Warn = cmp.Or(o.Budgets.Warn, 0.8)
	o.HoldFor = cmp.Or(o.HoldFor, 15*time.Minute)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ID == nil {
		o.ID = func() string {
			b := make([]byte, 16)
			_, _ = rand.Read(b) // never fails
			return hex.EncodeToString(b)
		}
	}
	return &Ledger{o: o}
}

// Reserve implements [llm.Ledger].
func (l *Ledger) Reserve(ctx context.Context, estimate llm.Charge) (llm.Hold, error) {
	return l.reserve(ctx, estimate)
}

var _ llm.Ledger = (*Ledger)(nil)
