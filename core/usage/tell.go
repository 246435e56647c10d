package usage

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"mimikit/core/llm"
)

var (
	//go:embed lua/tell.lua
	tellSource string
	tellScript = redis.NewScript(tellSource)
)

// Tell gives the budgets of users, places and workspaces that are near their end
// today and of which no other turn has told people yet, and gives turn the right
// to tell: once for each subject and day. The same turn is given the same again,
// so that of a turn that is repeated and takes effect once, people hear once.
//
// A call's own warnings (llm.Response) cannot serve for that: they come with
// whichever call crossed the share, and most calls speak to nobody.
func (l *Ledger) Tell(ctx context.Context, turn string, subjects ...llm.Subject) ([]llm.BudgetWarning, error) {
	var accounts []account
	for _, s := range subjects {
		if s.ID != "" && s.Kind != llm.TaskSubject {
			accounts = append(accounts, account{dayOf(l.o.Now()), s})
		}
	}
	limits, err := l.limits(ctx, subjectsOf(accounts)...)
	if err != nil {
		return nil, err
	}
	var calls []call
	limited := accounts[:0]
	for _, a := range accounts {
		if limit := limits[a.s]; limit != (Limit{}) {
			limited = append(limited, a)
			calls = append(calls, call{tellScript, []string{l.key(a)}, []any{l.share(limit.Tokens), l.share(limit.Money), turn, a.end(l.o.Now()).Unix()}})
		}
	}
	if len(calls) == 0 {
		return nil, nil
	}
	var out []llm.BudgetWarning
	for i, r := range l.run(ctx, calls) {
		a := limited[i]
		if r.err != nil {
			err = errors.Join(err, fmt.Errorf("look whether the budget of %s was told of: %w", a.s, r.err))
			continue
		}
		if unit := r.text(1); unit != "" {
			out = append(out, llm.BudgetWarning{Budget: budget(a, limits[a.s], llm.Unit(unit), r, 2)})
		}
	}
	return out, err
}
