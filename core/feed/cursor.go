package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Cursor is the stream id of the last item that a reader showed, "" when it has
// shown none in as long as a feed is kept. A reader is whoever has its own idea
// of what was seen: one terminal, however often it is started.
func (f *Feed) Cursor(ctx context.Context, conversation, reader string) (string, error) {
	id, err := f.o.Client.HGet(ctx, f.cursorKey(conversation), reader).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read the cursor of %q in the feed of %s: %w", reader, conversation, err)
	}
	return id, nil
}

// SetCursor records that a reader showed everything up to and with an item. Of
// two processes under one reader's name the last to call decides.
func (f *Feed) SetCursor(ctx context.Context, conversation, reader, streamID string) error {
	key := f.cursorKey(conversation)
	_, err := f.o.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, key, reader, streamID)
		p.Expire(ctx, key, f.o.TTL)
		return nil
	})
	if err != nil {
		return fmt.Errorf("set the cursor of %q in the feed of %s to %s: %w", reader, conversation, streamID, err)
	}
	return nil
}

// Missed is what a reader has not shown yet.
type Missed struct {
	Entries []Entry // the newest of it, oldest first
	More    bool    // there is older that is not in Entries
	At      string  // the stream id to Follow from, to see what comes after Entries
}

// Missed reads what came after the reader's cursor, at most the newest most
// items of it (at least 1).
func (f *Feed) Missed(ctx context.Context, conversation, reader string, most int) (Missed, error) {
	at, err := f.Cursor(ctx, conversation, reader)
	if err != nil {
		return Missed{}, err
	}
	oldest := "-"
	if at != "" {
		oldest = "(" + at
	}
	page, err := f.o.Client.XRevRangeN(ctx, f.o.Key(conversation), "+", oldest, int64(most)+1).Result()
	if err != nil {
		return Missed{}, fmt.Errorf("read what %q missed in the feed of %s: %w", reader, conversation, err)
	}
	m := Missed{At: at, More: len(page) > most}
	if len(page) > 0 {
		m.At = page[0].ID
	}
	for _, x := range slices.Backward(page[:min(len(page), most)]) {
		if it, ok := f.decode(conversation, x); ok {
			m.Entries = append(m.Entries, Entry{x.ID, it})
		}
	}
	return m, nil
}
