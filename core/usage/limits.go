package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/llm"
)

// maxLimits bounds how many limits can be set besides the configured ones.
const maxLimits = 10_000

// ErrTooManyLimits says that a limit was not set because too many are.
var ErrTooManyLimits = errors.New("too many limits are set")

// A SetLimit is a limit that was set with [Ledger.SetLimit].
type SetLimit struct {
	Subject llm.Subject
	Unit    llm.Unit
	Limit   int64 // 0 bounds nothing
}

// Everyone is the subject that stands for all users or all places of a
// workspace, each by itself. A limit of a single one goes before it.
func Everyone(kind llm.SubjectKind, workspace string) llm.Subject {
	return llm.Subject{Kind: kind, ID: workspace + "/*"}
}

// everyone is the subject that stands for s among others; false when none does.
func everyone(s llm.Subject) (llm.Subject, bool) {
	i := strings.LastIndexByte(s.ID, '/')
	if i < 0 || s.Kind != llm.UserSubject && s.Kind != llm.PlaceSubject {
		return llm.Subject{}, false
	}
	return Everyone(s.Kind, s.ID[:i]), true
}

// limitsKey holds the limits that were set. Hash: "unit kind/id" → limit. It has no
// end: what was set holds until it is unset.
func (l *Ledger) limitsKey() string { return l.o.Prefix + ":usage:limits" }

func limitField(unit llm.Unit, s llm.Subject) string {
	return string(unit) + " " + string(s.Kind) + "/" + s.ID
}

// SetLimit sets what a user, a place or a workspace may spend in a day, in place
// of what is configured, on every node from its next call on. 0 bounds nothing.
func (l *Ledger) SetLimit(ctx context.Context, s llm.Subject, unit llm.Unit, limit int64) error {
	switch {
	case s.Kind != llm.UserSubject && s.Kind != llm.PlaceSubject && s.Kind != llm.WorkspaceSubject:
		return fmt.Errorf("set the limit of %s: only users, places and workspaces can have one", s)
	case s.ID == "" || len(s.ID) > maxID:
		return fmt.Errorf("set the limit of %s: an id of 1 to %d bytes is allowed", s, maxID)
	case unit != llm.Tokens && unit != llm.Money:
		return fmt.Errorf("set the limit of %s: unit %q; tokens and money are allowed", s, unit)
	case limit < 0:
		return fmt.Errorf("set the limit of %s: %d; 0 and more are allowed", s, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	n, err := l.o.Client.HLen(ctx, l.limitsKey()).Result()
	if err == nil && n >= maxLimits {
		err = ErrTooManyLimits
	}
	if err == nil {
		err = l.o.Client.HSet(ctx, l.limitsKey(), limitField(unit, s), limit).Err()
	}
	if err != nil {
		return fmt.Errorf("set the limit of %s: %w", s, err)
	}
	return nil
}

// UnsetLimit has a subject's configured limits hold again.
func (l *Ledger) UnsetLimit(ctx context.Context, s llm.Subject) error {
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	if err := l.o.Client.HDel(ctx, l.limitsKey(), limitField(llm.Tokens, s), limitField(llm.Money, s)).Err(); err != nil {
		return fmt.Errorf("unset the limit of %s: %w", s, err)
	}
	return nil
}

// SetLimits lists the limits that were set, in the order of their subjects.
func (l *Ledger) SetLimits(ctx context.Context) ([]SetLimit, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	all, err := l.o.Client.HGetAll(ctx, l.limitsKey()).Result()
	if err != nil {
		return nil, fmt.Errorf("list the limits that were set: %w", err)
	}
	out := make([]SetLimit, 0, len(all))
	for field, value := range all {
		unit, name, _ := strings.Cut(field, " ")
		kind, id, _ := strings.Cut(name, "/")
		if n, ok := readLimit(value); ok {
			out = append(out, SetLimit{llm.Subject{Kind: llm.SubjectKind(kind), ID: id}, llm.Unit(unit), n})
		}
	}
	slices.SortFunc(out, func(a, b SetLimit) int {
		return strings.Compare(a.Subject.String()+" "+string(a.Unit), b.Subject.String()+" "+string(b.Unit))
	})
	return out, nil
}

func (l *Ledger) limits(ctx context.Context, subjects ...llm.Subject) (map[llm.Subject]Limit, error) {
	out := map[llm.Subject]Limit{}
	var fields []string
	type place struct {
		of   llm.Subject
		unit llm.Unit
	}
	var places []place // :: what each field is for; a later one of the same goes before
	for _, s := range subjects {
		out[s] = l.o.Budgets.of(s)
		for _, unit := range []llm.Unit{llm.Tokens, llm.Money} {
			if all, ok := everyone(s); ok {
				fields, places = append(fields, limitField(unit, all)), append(places, place{s, unit})
			}
			if s.Kind != llm.TaskSubject {
				fields, places = append(fields, limitField(unit, s)), append(places, place{s, unit})
			}
		}
	}
	if len(fields) == 0 {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	values, err := l.o.Client.HMGet(ctx, l.limitsKey(), fields...).Result()
	if err != nil {
		l.recall(out)
		return out, fmt.Errorf("read the limits that were set: %w", err)
	}
	for i, v := range values {
		text, _ := v.(string)
		n, ok := readLimit(text)
		if !ok {
			continue
		}
		limit := out[places[i].of]
		if places[i].unit == llm.Tokens {
			limit.Tokens = n
		} else {
			limit.Money = n
		}
		out[places[i].of] = limit
	}
	l.remember(out)
	return out, nil
}

// remember keeps limits that differ from the configured ones for an outage.
func (l *Ledger) remember(limits map[llm.Subject]Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, limit := range limits {
		switch {
		case limit == l.o.Budgets.of(s):
			delete(l.known, s)
		case len(l.known) < maxLimits:
			if l.known == nil {
				l.known = map[llm.Subject]Limit{}
			}
			l.known[s] = limit
		}
	}
}

func (l *Ledger) recall(limits map[llm.Subject]Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range limits {
		if limit, known := l.known[s]; known {
			limits[s] = limit
		}
	}
}

func readLimit(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}
