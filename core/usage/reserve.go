package usage

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"mimikit/core/llm"
)

// The scripts. Each file names its keys, arguments and answers at its head.
var (
	//go:embed lua/reserve.lua
	reserveSource string
	//go:embed lua/settle.lua
	settleSource string

	reserveScript = redis.NewScript(reserveSource)
	settleScript  = redis.NewScript(settleSource)
)

// A hold is an [llm.Hold]: the call's id, and what was set aside in which
// accounts.
type hold struct {
	l             *Ledger
	id            string
	tokens, money int64
	held          []account
	limits        map[llm.Subject]Limit // that held when it was made
}

// member is the hold as a reservation is written.
func (h *hold) member() string { return fmt.Sprintf("%s|%d|%d", h.id, h.tokens, h.money) }

// reserve asks one account after the other, the smallest first: were all asked
// at once, a user over the budget would for a moment hold what others of the
// workspace need.
func (l *Ledger) reserve(ctx context.Context, c llm.Charge) (*hold, error) {
	h := &hold{l: l, id: l.o.ID(), tokens: int64(max(c.Usage.Prompt, 0) + max(c.Usage.Completion, 0)), money: max(c.Cost, 0)}
	accounts := budgeted(c)
	var away error
	h.limits, away = l.limits(ctx, subjectsOf(accounts)...)
	for _, a := range accounts {
		limit := h.limits[a.s]
		if limit == (Limit{}) {
			continue
		}
		if away != nil {
			return h, l.unsure(ctx, h, fmt.Errorf("reserve for %s: %w", a.s, away))
		}
		r := l.run(ctx, []call{{reserveScript, []string{l.key(a), l.heldKey(a)}, []any{
			h.member(), h.tokens, h.money, l.o.HoldFor.Milliseconds(), limit.Tokens, limit.Money, a.end(c.Time).Unix(),
		}}})[0]
		if r.err == nil && r.number(0) == 0 {
			l.giveBack(ctx, h)
			refused := &llm.BudgetError{Budget: budget(a, limit, llm.Unit(r.text(1)), r, 2)}
			if l.o.OnRefuse != nil {
				l.o.OnRefuse(refused)
			}
			return nil, refused
		}
		// After a failure it may have been taken all the same: a hold that
		// never was can be given back too.
		h.held = append(h.held, a)
		if r.err == nil {
			continue
		}
		// The others would fail too, each after its time.
		return h, l.unsure(ctx, h, fmt.Errorf("reserve for %s: %w", a.s, r.err))
	}
	return h, nil
}

// unsure decides on a call whose budgets cannot be checked: nil lets it be made.
func (l *Ledger) unsure(ctx context.Context, h *hold, err error) error {
	if ctx.Err() == nil {
		l.outage("reserve", err)
	}
	if ctx.Err() != nil || l.o.Strict {
		l.giveBack(ctx, h)
		return err
	}
	return nil
}

func subjectsOf(accounts []account) []llm.Subject {
	out := make([]llm.Subject, len(accounts))
	for i, a := range accounts {
		out[i] = a.s
	}
	return out
}

// budget reads the state of a budget from an answer that holds spent tokens and
// money, and what is reserved of each, from a place on.
func budget(a account, limit Limit, unit llm.Unit, r result, from int) llm.Budget {
	b := llm.Budget{Subject: a.s, Unit: unit, Limit: limit.Tokens, Spent: r.number(from), Reserved: r.number(from + 2), Resets: a.resets()}
	if unit == llm.Money {
		b.Limit, b.Spent, b.Reserved = limit.Money, r.number(from+1), r.number(from+3)
	}
	return b
}

// giveBack ends the reservations of a call that is not made. What fails here
// ends by itself.
func (l *Ledger) giveBack(ctx context.Context, h *hold) {
	var calls []call
	for _, a := range h.held {
		calls = append(calls, l.settling(a, h, nil, a.end(l.o.Now()).Unix()))
	}
	l.run(context.WithoutCancel(ctx), calls)
}

func (l *Ledger) outage(op string, err error) {
	l.o.Logger.Warn("usage_outage", "operation", op, "strict", l.o.Strict, "error", err)
	if l.o.OnOutage != nil {
		l.o.OnOutage(op, err)
	}
}

// A call is a script for one account.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

// A result is what a script answered: a list of strings and numbers.
type result struct {
	values []any
	err    error
}

func (r result) text(i int) string {
	if i < len(r.values) {
		switch v := r.values[i].(type) {
		case string:
			return v
		case int64:
			return strconv.FormatInt(v, 10)
		}
	}
	return ""
}

func (r result) number(i int) int64 {
	n, _ := strconv.ParseInt(r.text(i), 10, 64) // sums of HINCRBY, so they can be read
	return n
}

// run runs scripts in one exchange. Each is judged alone: they belong to
// different slots.
func (l *Ledger) run(ctx context.Context, calls []call) []result {
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	cmds := make([]*redis.Cmd, len(calls))
	// The pipeline's own error is the first of its commands'.
	_, _ = l.o.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range calls {
			cmds[i] = c.script.EvalSha(ctx, p, c.keys, c.args...)
		}
		return nil
	})
	out := make([]result, len(calls))
	for i, c := range calls {
		v, err := cmds[i].Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") { // of this command alone: it did not run
			v, err = c.script.Eval(ctx, l.o.Client, c.keys, c.args...).Result()
		}
		list, ok := v.([]any)
		if err == nil && !ok {
			err = fmt.Errorf("script answered %T, want a list", v)
		}
		out[i] = result{list, err}
	}
	return out
}
