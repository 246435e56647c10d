package feed

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxBlock bounds how long a waiting read may keep Follow from noticing that its
// context ended: go-redis does not wake one.
const maxBlock = time.Second

// Follow calls fn for each item after a stream id ("" is the beginning), in
// order, then waits for more, until ctx ends or fn fails, and returns the cause
// of the one or the error of the other. While Redis is away it tries on, with
// pauses of at most a second, and goes on where it was.
//
// A status comes with an empty stream id, since it has no place among what a
// cursor can point at; the newest one not older than StatusTTL comes first.
//
// block is how long one read waits, at most 1 s; the end of ctx is noticed that
// late.
func (f *Feed) Follow(ctx context.Context, conversation, after string, block time.Duration, fn func(streamID string, it Item) error) error {
	key, status := f.o.Key(conversation), f.statusKey(conversation)
	// Where each stream was read to.
	at := map[string]string{key: cmp.Or(after, "0"), status: "0"}
	for fails := 0; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		streams, err := f.o.Blocking.XRead(ctx, &redis.XReadArgs{
			Streams: []string{key, status, at[key], at[status]},
			Count:   100,
			Block:   min(max(block, time.Millisecond), maxBlock),
		}).Result()
		switch {
		case errors.Is(err, redis.Nil):
			fails = 0
			continue
		case err != nil:
			if fails++; fails == 1 && ctx.Err() == nil {
				f.o.Logger.Warn("feed cannot be read; trying on", "conversation", conversation, "error", err)
			}
			pause(ctx, min(20*time.Millisecond<<min(fails, 6), time.Second))
			continue
		}
		fails = 0
		for _, m := range inOrder(streams, status) {
			at[m.stream] = m.ID
			it, ok := f.decode(conversation, m.XMessage)
			if !ok {
				continue
			}
			id := m.ID
			if m.stream == status {
				id = ""
			}
			if err := fn(id, it); err != nil {
				return err
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// A placed entry knows its stream.
type placed struct {
	stream string
	redis.XMessage
}

// inOrder merges the items and the statuses by the milliseconds of their stream
// ids, which both got from the clock of one server. Within a millisecond the
// statuses come first: one shown too early is taken away by the reply after it,
// one shown too late would stand until it expires.
func inOrder(streams []redis.XStream, status string) []placed {
	var out []placed
	for _, s := range streams {
		for _, m := range s.Messages {
			out = append(out, placed{s.Stream, m})
		}
	}
	slices.SortStableFunc(out, func(a, b placed) int {
		if c := cmp.Compare(millis(a.ID), millis(b.ID)); c != 0 || a.stream == b.stream {
			return c // entries of one stream are in order already
		}
		if a.stream == status {
			return -1
		}
		return 1
	})
	return out
}

// millis is the time in a stream id, "milliseconds-sequence".
func millis(id string) uint64 {
	ms, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseUint(ms, 10, 64)
	return n
}
