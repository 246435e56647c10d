// Package history reads what was said in a conversation, spells its lines, and
// replaces the oldest of them by a summary.
//
// A history is one Redis list per conversation, oldest line first, and beside it
// a summary of the lines that were taken off its head. Steps add to the list
// through their commit, never here, so a line is there exactly when the step
// that wrote it took effect; this package says how a line is spelled ([Encode],
// [InputLine], [ResultLine]), gives back windows of what is there ([Store.Read])
// and looks things up in it ([Store.Recent], [Store.ByTime]). A line leaves the
// list only in the script that puts it into the summary ([Store.Fold]), or with
// its whole conversation.
//
// A window is promised to be bounded, to give at least the asked minimum, and to
// keep its first line for several turns: a prompt whose start changes every turn
// is paid for in full every turn. Of a message that was deleted, no reading gives
// the text, and of one that was edited, only where it was edited.
//
// Three keys belong to a conversation, named after the one that New is given and
// so under its hash tag: see [SummaryKey] and [ClaimKey].
package history

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// A Store reads and folds histories. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	key    func(conversation string) string
	log    *slog.Logger
	bad    atomic.Int64
}

// New returns a Store. key gives the list of a conversation (its
// chat.Conversation key), as the package that commits the lines names it; a nil
// log means slog's default.
func New(client redis.UniversalClient, key func(conversation string) string, log *slog.Logger) *Store {
	if log == nil {
		log = slog.Default()
	}
	return &Store{client: client, key: key, log: log}
}

// SummaryKey is the key of the summary beside a history's key. A conversation's
// key escapes question marks, so that no other conversation has this one.
func SummaryKey(history string) string { return history + "?summary" }

// ClaimKey is the key by which one node at a time folds a history. String with a
// TTL.
func ClaimKey(history string) string { return history + "?folding" }

// Past is what a prompt shows of a conversation.
type Past struct {
	Summary Summary     // of the lines that were folded; zero when none were
	Lines   []chat.Line // the newest, oldest first
	Between int         // lines that are neither folded nor shown: they lie between the two
}

// Read gives the newest lines of a conversation within the limits and the
// summary of what was folded, as they are at one moment, in one round trip. A
// conversation that is not known has neither. Lines that cannot be decoded are
// left out and counted in [Store.Undecodable]; a line that came before (same id
// and time) is left out too, since a replayed dead letter says it again.
func (s *Store) Read(ctx context.Context, conversation string, l Limits) (Past, error) {
	l = l.normal()
	p, err := s.newest(ctx, conversation, l.Max)
	if err != nil {
		return Past{}, err
	}
	lines := p.lines
	current(lines)
	lines = window(lines, p.total, l)
	past := Past{Summary: p.summary, Lines: texts(lines), Between: p.total}
	if len(lines) > 0 {
		past.Between = lines[0].at
	}
	return past, nil
}

// Window is Read without the summary.
func (s *Store) Window(ctx context.Context, conversation string, l Limits) ([]chat.Line, error) {
	p, err := s.Read(ctx, conversation, l)
	return p.Lines, err
}

// A page is a part of a list as it was at one moment.
type page struct {
	summary Summary
	total   int // lines of the whole list
	values  []string
	lines   []placed
}

// newest reads the last n lines.
func (s *Store) newest(ctx context.Context, conversation string, n int) (page, error) {
	p, err := s.page(ctx, conversation, -n, -1)
	p.lines = s.decode(conversation, p.values, p.total-len(p.values))
	return p, err
}

// page reads a part of the list, its length and the summary, in one transaction:
// a fold between them would take lines away that the summary does not have yet.
// Its lines are not decoded.
func (s *Store) page(ctx context.Context, conversation string, from, to int) (page, error) {
	var (
		size   *redis.IntCmd
		values *redis.StringSliceCmd
		fields *redis.MapStringStringCmd
	)
	key := s.key(conversation)
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		size = p.LLen(ctx, key)
		values = p.LRange(ctx, key, int64(from), int64(to))
		fields = p.HGetAll(ctx, SummaryKey(key))
		return nil
	})
	if err != nil {
		return page{}, fmt.Errorf("read the history of %s: %w", conversation, err)
	}
	return page{
		summary: s.summary(conversation, fields.Val()), total: int(size.Val()), values: values.Val(),
	}, nil
}

// decode reads a part of a list that begins at position first.
func (s *Store) decode(conversation string, values []string, first int) []placed {
	lines := make([]placed, 0, len(values))
	for i, v := range values {
		lines = append(lines, placed{at: first + i})
		before, p := lines[:len(lines)-1], &lines[len(lines)-1]
		if err := decodeTo(v, &p.line); err != nil {
			s.bad.Add(1)
			s.log.Warn("history_line_undecodable", "conversation", conversation, "position", first+i, "error", err)
			lines = before
			continue
		}
		p.line.ID, p.subject = subjectOf(p.line)
		if p.again(before) {
			lines = before
		}
	}
	return lines
}

// Undecodable counts the lines that were left out since the start because they
// could not be decoded. A line is counted each time it is met.
func (s *Store) Undecodable() int64 { return s.bad.Load() }
