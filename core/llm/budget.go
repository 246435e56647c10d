package llm

import (
	"context"
	"fmt"
	"time"
)

// A SubjectKind is a kind of account that calls go to.
type SubjectKind string

// The kinds that can have a budget. The empty kind is invalid.
const (
	UserSubject      SubjectKind = "user"
	PlaceSubject     SubjectKind = "place"
	WorkspaceSubject SubjectKind = "workspace"
	TaskSubject      SubjectKind = "task"
)

// A Subject is one account.
type Subject struct {
	Kind SubjectKind
	ID   string
}

// String names the subject as errors and logs do.
func (s Subject) String() string { return string(s.Kind) + " " + s.ID }

// A Unit is what a budget is counted in.
type Unit string

// The units. The empty unit is invalid.
const (
	Tokens Unit = "tokens" // of prompt and completion
	Money  Unit = "money"  // in millionths of the currency of the prices
)

// A Budget is the state of one budget of one subject.
type Budget struct {
	Subject      Subject
	Unit         Unit
	Limit, Spent int64
	Reserved     int64     // of calls that run now, by estimate; not in Spent
	Resets       time.Time // when Spent is 0 again; zero for a task, whose ceiling is for good
}

// String says how a budget stands.
func (b Budget) String() string {
	spent, limit := fmt.Sprint(b.Spent), fmt.Sprint(b.Limit)+" tokens"
	if b.Unit == Money {
		spent, limit = fmt.Sprintf("%.2f", float64(b.Spent)/1e6), fmt.Sprintf("%.2f", float64(b.Limit)/1e6)
	}
	text := fmt.Sprintf("budget of %s: %s of %s spent", b.Subject, spent, limit)
	if !b.Resets.IsZero() {
		text += ", until " + b.Resets.UTC().Format(time.RFC3339)
	}
	return text
}

// A BudgetWarning tells that a budget nears its end. It is given once for each
// subject and day.
type BudgetWarning struct{ Budget }

// A BudgetError is a call that was not made because a budget is spent. It comes
// as the cause of an [*Error] of kind OverBudget.
type BudgetError struct{ Budget }

// Error says whose budget is spent, how much it is and when it begins anew.
func (e *BudgetError) Error() string { return e.String() }

// A Charge is what one call used, or is expected to use, and whose it is.
type Charge struct {
	Time                                                time.Time // when the call began
	Agent, Model                                        string
	Conversation, User, Place, Workspace, Task, TraceID string // "" where there is none
	Usage                                               Usage
	Cost                                                int64         // millionths of the currency
	Took                                                time.Duration // 0 in an estimate
	Failed                                              bool
}

// A Ledger keeps what calls cost and what may still be spent. core/usage has
// one in Redis.
type Ledger interface {
	// Reserve sets an estimate aside before a call, so that calls at the same
	// time see each other. It fails with a *BudgetError when a budget of the
	// charge is spent; any other error means that the ledger cannot tell and
	// wants the call not made.
	Reserve(ctx context.Context, estimate Charge) (Hold, error)
}

// A Hold is what was set aside for one call.
type Hold interface {
	// Settle gives back what was set aside and books what was spent in its
	// place. It is called once for each hold. An error means that the booking
	// is lost.
	Settle(ctx context.Context, spent Charge) ([]BudgetWarning, error)
}
