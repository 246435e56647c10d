package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/llm"
)

// Totals are what a subject's calls used.
type Totals struct {
	Calls, Failed, Estimated   int64 // Estimated are the calls whose usage the endpoint did not say
	Prompt, Cached, Completion int64 // tokens; Cached is a part of Prompt
	Money                      int64 // millionths of the currency
	Took                       time.Duration
}

// Tokens are those of prompt and completion.
func (t Totals) Tokens() int64 { return t.Prompt + t.Completion }

func (t Totals) plus(u Totals) Totals {
	return Totals{
		t.Calls + u.Calls, t.Failed + u.Failed, t.Estimated + u.Estimated,
		t.Prompt + u.Prompt, t.Cached + u.Cached, t.Completion + u.Completion, t.Money + u.Money, t.Took + u.Took,
	}
}

// A DayTotals is a subject's totals on one UTC day.
type DayTotals struct {
	Day time.Time // its midnight
	Totals
}

// A Row is a subject among others.
type Row struct {
	Subject llm.Subject
	Totals
}

// maxDays bounds what is read at once: more days are not kept.
const maxDays = int(Retention/(24*time.Hour)) + 1

// Days gives a subject's totals for each UTC day from the one of from to the one
// of to, days without calls included, oldest first; at most the newest 91. For
// the sum of all calls ask for kind Everything with the id "".
func (l *Ledger) Days(ctx context.Context, s llm.Subject, from, to time.Time) ([]DayTotals, error) {
	days := daysBetween(from, to)
	accounts := make([]account, len(days))
	for i, d := range days {
		accounts[i] = account{dayOf(d), s}
	}
	totals, err := l.totals(ctx, accounts)
	if err != nil {
		return nil, fmt.Errorf("read the usage of %s: %w", s, err)
	}
	out := make([]DayTotals, len(days))
	for i, d := range days {
		out[i] = DayTotals{d, totals[i]}
	}
	return out, nil
}

// Task gives what a task has used in its whole life.
func (l *Ledger) Task(ctx context.Context, id string) (Totals, error) {
	totals, err := l.totals(ctx, []account{{life, llm.Subject{Kind: llm.TaskSubject, ID: id}}})
	if err != nil {
		return Totals{}, fmt.Errorf("read the usage of task %s: %w", id, err)
	}
	return totals[0], nil
}

// Top gives the n subjects of a kind that used most on a UTC day, most first;
// at most 1,000. Only subjects that used anything of the unit are there.
func (l *Ledger) Top(ctx context.Context, kind llm.SubjectKind, day time.Time, by llm.Unit, n int) ([]Row, error) {
	if n = min(n, 1000); n <= 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	ids, err := l.o.Client.ZRevRange(ctx, l.rankKey(dayOf(day), kind, by), 0, int64(n-1)).Result()
	if err != nil {
		return nil, fmt.Errorf("read who used most %s on %s: %w", by, dayOf(day), err)
	}
	accounts := make([]account, len(ids))
	for i, id := range ids {
		accounts[i] = account{dayOf(day), llm.Subject{Kind: kind, ID: id}}
	}
	totals, err := l.totals(ctx, accounts)
	if err != nil {
		return nil, fmt.Errorf("read the usage of the top %d of %s: %w", n, kind, err)
	}
	rows := make([]Row, len(ids))
	for i, a := range accounts {
		rows[i] = Row{a.s, totals[i]}
	}
	return rows, nil
}

// Models gives what each model used from one UTC day to another, most tokens
// first.
func (l *Ledger) Models(ctx context.Context, from, to time.Time) ([]Row, error) {
	sums := map[string]Totals{}
	for _, day := range daysBetween(from, to) {
		rows, err := l.Top(ctx, ModelSubject, day, llm.Tokens, 1000)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			sums[r.Subject.ID] = sums[r.Subject.ID].plus(r.Totals)
		}
	}
	rows := make([]Row, 0, len(sums))
	for id, t := range sums {
		rows = append(rows, Row{llm.Subject{Kind: ModelSubject, ID: id}, t})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Tokens(), a.Tokens()), cmp.Compare(a.Subject.ID, b.Subject.ID))
	})
	return rows, nil
}

// Budgets gives how the budgets of a subject stand now, one for each unit that
// is limited; none for a subject without a limit. Reserved may hold what nodes
// that died had set aside, until the next call of the subject.
func (l *Ledger) Budgets(ctx context.Context, s llm.Subject) ([]llm.Budget, error) {
	a := account{dayOf(l.o.Now()), s}
	if s.Kind == llm.TaskSubject {
		a.day = life
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	values, err := l.o.Client.HMGet(ctx, l.key(a), "tokens", "money", "rt", "rm").Result()
	if err != nil {
		return nil, fmt.Errorf("read the budget of %s: %w", s, err)
	}
	limits, err := l.limits(ctx, s)
	if err != nil {
		return nil, err
	}
	limit := limits[s]
	var out []llm.Budget
	if limit.Tokens > 0 {
		out = append(out, budget(a, limit, llm.Tokens, result{values: values}, 0))
	}
	if limit.Money > 0 {
		out = append(out, budget(a, limit, llm.Money, result{values: values}, 0))
	}
	return out, nil
}

func (l *Ledger) totals(ctx context.Context, accounts []account) ([]Totals, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	cmds := make([]*redis.MapStringStringCmd, len(accounts))
	_, err := l.o.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, a := range accounts {
			cmds[i] = p.HGetAll(ctx, l.key(a))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]Totals, len(accounts))
	for i, c := range cmds {
		out[i] = read(c.Val())
	}
	return out, nil
}

func read(fields map[string]string) Totals {
	n := func(field string) int64 {
		v, _ := strconv.ParseInt(fields[field], 10, 64) // a sum of HINCRBY, or not there
		return v
	}
	return Totals{
		n("calls"), n("failed"), n("estimated"), n("prompt"), n("cached"), n("completion"), n("money"),
		time.Duration(n("took_ms")) * time.Millisecond,
	}
}

// daysBetween gives the midnights of the UTC days from one to another.
func daysBetween(from, to time.Time) []time.Time {
	from, to = from.UTC().Truncate(24*time.Hour), to.UTC().Truncate(24*time.Hour)
	if oldest := to.AddDate(0, 0, 1-maxDays); from.Before(oldest) {
		from = oldest
	}
	var days []time.Time
	for d := from; !d.After(to); d = d.AddDate(0, 0, 1) {
		days = append(days, d)
	}
	return days
}
