package question

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"mimikit/core/rows"
)

// CountOpen is how many questions are open in all conversations.
func (s *Store) CountOpen(ctx context.Context) (int, error) {
	n, err := rows.Sum(ctx, s.o.Client, s.keys.Partitions, func(pipe redis.Pipeliner, p int) *redis.IntCmd {
		return pipe.ZLexCount(ctx, indexKey(s.keys, p), "[o ", "(o!")
	})
	if err != nil {
		return 0, fmt.Errorf("count the open questions: %w", err)
	}
	return n, nil
}
