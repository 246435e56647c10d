package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/llm"
)

// A booking is what one account is to be told of one call. It can be sent any
// number of times within the time that a repeat is known.
type booking struct {
	account account
	limit   Limit
	call    call
}

// ErrBacklog is matched by errors of bookings that are lost, because Redis has
// been away so long that too many wait.
var ErrBacklog = errors.New("too many bookings wait for Redis")

// Settle implements [llm.Hold].
func (h *hold) Settle(ctx context.Context, c llm.Charge) ([]llm.BudgetWarning, error) {
	l := h.l
	fields := amounts(c)
	var all []booking
	for _, a := range append(budgeted(c), others(c)...) {
		all = append(all, booking{a, h.limitOf(a), l.settling(a, h, fields, a.end(c.Time).Unix())})
	}
	b := l.book(ctx, all)
	if b.away != nil {
		l.outage("settle", b.away)
		if lost := l.postpone(b.left); lost > 0 {
			return b.warnings, fmt.Errorf("%d bookings of model calls: %w: %w", lost, ErrBacklog, b.away)
		}
	}
	return b.warnings, b.refused
}

// amounts are the fields of a charge's totals, those that are not 0.
func amounts(c llm.Charge) []any {
	u := c.Usage
	var out []any
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"calls", 1}, {"failed", one(c.Failed)}, {"estimated", one(u.Estimated)},
		{"tokens", int64(u.Prompt) + int64(u.Completion)},
		{"prompt", int64(u.Prompt)}, {"cached", int64(u.Cached)}, {"completion", int64(u.Completion)},
		{"money", c.Cost}, {"took_ms", c.Took.Milliseconds()},
	} {
		if f.n > 0 {
			out = append(out, f.name, f.n)
		}
	}
	return out
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// settling is the script that ends an account's reservation of a hold and books
// fields in its place.
func (l *Ledger) settling(a account, h *hold, fields []any, end int64) call {
	member := ""
	for _, held := range h.held {
		if held == a {
			member = h.member()
		}
	}
	limit := h.limitOf(a)
	args := []any{h.id, member, h.tokens, h.money, repeatable.Milliseconds(), end, l.share(limit.Tokens), l.share(limit.Money)}
	return call{settleScript, []string{l.key(a), l.heldKey(a), l.settledKey(a)}, append(args, fields...)}
}

// limitOf is what held for an account when the hold was made.
func (h *hold) limitOf(a account) Limit {
	if a.day != life && a.s.Kind == llm.TaskSubject {
		return Limit{} // a task's ceiling is for its life
	}
	return h.limits[a.s]
}

// share is the part of a limit at which is warned; 0 for never.
func (l *Ledger) share(limit int64) int64 {
	if l.o.Budgets.Warn >= 1 || limit <= 0 {
		return 0
	}
	return max(int64(math.Ceil(float64(limit)*l.o.Budgets.Warn)), 1)
}

// A booked is what came of bookings.
type booked struct {
	warnings []llm.BudgetWarning
	left     []booking // not taken, because Redis was
	away     error     // that is, for this reason
	refused  error     // bookings that Redis will never take; they are lost
}

// book sends bookings. One that Redis refuses for what it is would be refused
// for ever; to keep it would hold up all others.
func (l *Ledger) book(ctx context.Context, all []booking) booked {
	calls := make([]call, len(all))
	for i, b := range all {
		calls[i] = b.call
	}
	var out booked
	var ranks []rank
	for i, r := range l.run(ctx, calls) {
		a := all[i].account
		switch {
		case hopeless(r.err):
			out.refused = errors.Join(out.refused, fmt.Errorf("book a call for %s on %s: %w", a.s, a.day, r.err))
			continue
		case r.err != nil:
			out.left, out.away = append(out.left, all[i]), r.err // one reason is as good as another
			continue
		}
		if unit := r.text(1); unit != "" {
			w := llm.BudgetWarning{Budget: budget(a, all[i].limit, llm.Unit(unit), r, 2)}
			out.warnings = append(out.warnings, w)
			if l.o.OnWarn != nil {
				l.o.OnWarn(w)
			}
		}
		if a.day != life && a.s.ID != "" {
			ranks = append(ranks, rank{a, r.number(2), r.number(3)})
		}
	}
	l.order(ctx, ranks)
	return out
}

// hopeless reports whether a script failed by itself: on a value or a key that
// is not what it takes. All else, even a server without memory, may pass.
func hopeless(err error) bool {
	var said redis.Error
	if !errors.As(err, &said) {
		return false
	}
	text := said.Error()
	return (strings.HasPrefix(text, "ERR ") || strings.HasPrefix(text, "WRONGTYPE ")) && strings.Contains(text, "script")
}

// A rank is where an account stands on its day.
type rank struct {
	account       account
	tokens, money int64
}

// order puts accounts in their place among those of their day. Places are
// whole sums that only grow, so what fails here is mended by the next call.
func (l *Ledger) order(ctx context.Context, ranks []rank) {
	if len(ranks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	_, err := l.o.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, r := range ranks {
			for by, score := range map[llm.Unit]int64{llm.Tokens: r.tokens, llm.Money: r.money} {
				if score == 0 && by == llm.Money {
					continue
				}
				key := l.rankKey(r.account.day, r.account.s.Kind, by)
				p.ZAddGT(ctx, key, redis.Z{Score: float64(score), Member: r.account.s.ID})
				p.ZRemRangeByRank(ctx, key, 0, -maxRanked-1)
				p.ExpireAt(ctx, key, r.account.end(time.Time{}))
			}
		}
		return nil
	})
	if err != nil {
		l.o.Logger.Debug("usage_order", "error", err)
	}
}

// postpone keeps bookings for later and gives how many are lost, the oldest.
func (l *Ledger) postpone(left []booking) (lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog = append(l.backlog, left...)
	if lost = len(l.backlog) - maxBacklog; lost <= 0 {
		return 0
	}
	l.backlog = append([]booking(nil), l.backlog[lost:]...)
	return lost
}

// Backlog gives how many bookings wait for Redis.
func (l *Ledger) Backlog() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.backlog)
}

// Flush books what could not be booked when it was due. It stops at the first
// exchange that fails; what is left waits on.
func (l *Ledger) Flush(ctx context.Context) error {
	const atOnce = 100
	for {
		l.mu.Lock()
		n := min(len(l.backlog), atOnce)
		batch := l.backlog[:n:n]
		l.backlog = l.backlog[n:]
		l.mu.Unlock()
		if n == 0 {
			return nil
		}
		b := l.book(ctx, batch)
		if b.refused != nil {
			l.o.Logger.Error("usage_booking_lost", "error", b.refused)
		}
		if b.away != nil {
			l.mu.Lock()
			l.backlog = append(b.left, l.backlog...)
			waiting := len(l.backlog)
			l.mu.Unlock()
			return fmt.Errorf("book %d accounts that wait for Redis: %w", waiting, b.away)
		}
	}
}

// Run flushes every few seconds until ctx ends, and then once more.
func (l *Ledger) Run(ctx context.Context) error {
	const every = 5 * time.Second
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := l.Flush(ctx); err != nil && ctx.Err() == nil {
				l.o.Logger.Warn("usage_backlog", "error", err)
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.o.Timeout)
			defer cancel()
			if err := l.Flush(last); err != nil {
				l.o.Logger.Error("usage_backlog_lost", "error", err)
			}
			return nil
		}
	}
}
