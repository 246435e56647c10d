package history

import (
	"context"
	"fmt"
	"time"

	"mimikit/core/chat"
)

// The bounds of a look-up: lines, and bytes of their texts, the longest of which
// are cut to hold them.
const (
	DefaultLookup = 20
	MaxLookup     = 100
	lookupBytes   = chat.MaxText
)

// Found is the answer to a look-up.
type Found struct {
	Lines []chat.Line // oldest first
	More  bool        // there are more lines like these, not folded: older ones for Recent, later ones for ByTime
	// Folded says that part of what was asked for is folded. Summary tells what
	// was said then; its From and Upto, when that was.
	Folded  bool
	Summary Summary
}

// Recent gives the newest count lines, at most MaxLookup; 0 means DefaultLookup.
func (s *Store) Recent(ctx context.Context, conversation string, count int) (Found, error) {
	count, err := lookup(count)
	if err != nil {
		return Found{}, fmt.Errorf("recent lines of %s: %w", conversation, err)
	}
	p, err := s.newest(ctx, conversation, count)
	if err != nil {
		return Found{}, err
	}
	current(p.lines)
	f := found(p.lines, p.summary)
	f.More = p.total > len(p.values)
	f.Folded = p.total < count && p.summary.Version > 0
	return f, nil
}

// ByTime gives the first lines from a time on and before another, at most limit
// and MaxLookup; 0 means DefaultLookup. A zero time is no bound. Where there are
// More, the time of the last line is where to go on.
func (s *Store) ByTime(ctx context.Context, conversation string, from, to time.Time, limit int) (Found, error) {
	limit, err := lookup(limit)
	if err == nil && !to.IsZero() && to.Before(from) {
		err = fmt.Errorf("they end at %s, before they begin at %s", stamp(to), stamp(from))
	}
	if err != nil {
		return Found{}, fmt.Errorf("lines of %s by time: %w", conversation, err)
	}
	var (
		lines   []placed
		c       changes
		more    bool
		summary Summary
	)
	err = s.walk(ctx, conversation, func(p page, first int) {
		if first == 0 {
			lines, c, more, summary = nil, changes{}, false, p.summary
		}
		for _, l := range p.lines {
			c.note(l.at, l.line, l.subject)
			switch {
			case l.line.At.Before(from) || !to.IsZero() && !l.line.At.Before(to) || l.again(lines):
			case len(lines) == limit:
				more = true
			default:
				lines = append(lines, l)
			}
		}
	})
	if err != nil {
		return Found{}, err
	}
	for i := range lines {
		c.apply(lines[i].at, &lines[i].line, lines[i].subject)
	}
	f := found(lines, summary)
	f.More = more
	f.Folded = summary.Version > 0 && !summary.Upto.Before(from) && (to.IsZero() || summary.From.Before(to))
	return f, nil
}

func found(lines []placed, m Summary) Found {
	l := Limits{Min: max(1, len(lines)), Max: max(1, len(lines)), Bytes: lookupBytes}
	// Names do not count here, so that no line is ever left out.
	return Found{Lines: Fit(texts(lines), l, func(l *chat.Line) (*string, string) { return &l.Text, "" }), Summary: m}
}

func lookup(count int) (int, error) {
	switch {
	case count == 0:
		return DefaultLookup, nil
	case count < 0 || count > MaxLookup:
		return 0, fmt.Errorf("%d lines; 1 to %d are allowed", count, MaxLookup)
	}
	return count, nil
}
