package trigger

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// CountAll is how many triggers there are in all conversations, paused ones included.
func (s *Store) CountAll(ctx context.Context) (int, error) {
	pipe := s.o.Client.Pipeline()
	counts := make([]*redis.IntCmd, s.keys.Partitions)
	for p := range counts {
		counts[p] = pipe.HLen(ctx, rowsKey(s.keys, p))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("count the triggers: %w", err)
	}
	n := 0
	for _, c := range counts {
		n += int(c.Val())
	}
	return n, nil
}
