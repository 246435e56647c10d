package trigger

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"mimikit/core/rows"
)

// CountAll is how many triggers there are in all conversations, paused ones included.
func (s *Store) CountAll(ctx context.Context) (int, error) {
	n, err := rows.Sum(ctx, s.o.Client, s.keys.Partitions, func(pipe redis.Pipeliner, p int) *redis.IntCmd {
		return pipe.HLen(ctx, rowsKey(s.keys, p))
	})
	if err != nil {
		return 0, fmt.Errorf("count the triggers: %w", err)
	}
	return n, nil
}
