// Package history reads what was said in a conversation and spells its lines.
//
// A history is one Redis list per conversation, oldest line first. Steps add to
// it through their commit, never here, so a line is there exactly when the step
// that wrote it took effect; this package only says how a line is spelled
// ([Encode], [InputLine], [ResultLine]) and gives back windows of what is there.
//
// A [Store.Window] is promised to be bounded, to give at least the asked minimum,
// and to keep its first line for several turns: a prompt whose start changes
// every turn is paid for in full every turn.
package history

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// A Store reads histories. It is safe for concurrent use.
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

// Limits bound a window. Bytes and Tokens count the texts and names of lines,
// tokens by estimate.
type Limits struct {
	Min    int // lines that are given however long they are, their texts cut to fit; at most Max
	Max    int // lines at most; 0 means 100
	Bytes  int // 0 means no bound
	Tokens int // 0 means no bound
}

// Window gives the newest lines of a conversation within the limits, oldest
// first; a conversation that is not known has none. Lines that cannot be decoded
// are left out and counted in [Store.Undecodable]; a line that came before (same id
// and time) is left out too, since a replayed dead letter says it again.
func (s *Store) Window(ctx context.Context, conversation string, l Limits) ([]chat.Line, error) {
	l = l.normal()
	var (
		size   *redis.IntCmd
		values *redis.StringSliceCmd
	)
	// Where a window starts depends on the positions of its lines. Nothing is
	// appended between the two commands: only a turn of this conversation
	// appends, and it is this turn that asks.
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		key := s.key(conversation)
		size = p.LLen(ctx, key)
		values = p.LRange(ctx, key, int64(-l.Max), -1)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", conversation, err)
	}
	return window(s.decode(conversation, values.Val(), int(size.Val())), int(size.Val()), l), nil
}

// decode reads the newest of a list of total lines and places them.
func (s *Store) decode(conversation string, values []string, total int) []placed {
	lines := make([]placed, 0, len(values))
	first := total - len(values)
	for i, v := range values {
		lines = append(lines, placed{at: first + i})
		before, p := lines[:len(lines)-1], &lines[len(lines)-1]
		if err := decodeTo(v, &p.line); err != nil {
			s.bad.Add(1)
			s.log.Warn("history_line_undecodable", "conversation", conversation, "position", first+i, "error", err)
			lines = before
		} else if p.again(before) {
			lines = before
		}
	}
	return lines
}

// Undecodable counts the lines that were left out since the start because they
// could not be decoded. A line is counted each time it is met.
func (s *Store) Undecodable() int64 { return s.bad.Load() }
