// Package blob keeps the texts that are too long for a stream. A stream entry is
// cut to its bound and names the blob that has the whole, so that streams stay
// small whatever people paste, and nothing that was said is lost.
//
// A blob is written before the entry that names it, under an id that the same
// message always gives, so writing it again after a lost answer changes nothing.
// It expires; what outlives it is the cut text.
package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrGone says that there is no such blob, or no longer.
var ErrGone = errors.New("the whole text is not kept any more")

// Options of a Store. Client and Key are needed.
type Options struct {
	Client redis.UniversalClient
	Key    func(conversation, id string) string // names a blob's key
	TTL    time.Duration                        // how long a blob is kept after it was put; default 30 days
}

// A Store keeps blobs in Redis. It is safe for concurrent use.
type Store struct{ o Options }

// New makes a Store. It does not connect.
func New(o Options) *Store {
	o.TTL = cmp.Or(o.TTL, 30*24*time.Hour)
	return &Store{o}
}

// Put keeps a text under an id of a conversation. After an error it may be kept
// or not; putting it again is safe.
func (s *Store) Put(ctx context.Context, conversation, id, text string) error {
	if err := s.o.Client.Set(ctx, s.o.Key(conversation, id), text, s.o.TTL).Err(); err != nil {
		return fmt.Errorf("keep the %d bytes of text %s of %s: %w", len(text), id, conversation, err)
	}
	return nil
}

// Get reads a text back. It fails with ErrGone when there is none.
func (s *Store) Get(ctx context.Context, conversation, id string) (string, error) {
	text, err := s.o.Client.Get(ctx, s.o.Key(conversation, id)).Result()
	if errors.Is(err, redis.Nil) {
		err = ErrGone
	}
	if err != nil {
		return "", fmt.Errorf("read text %s of %s: %w", id, conversation, err)
	}
	return text, nil
}
