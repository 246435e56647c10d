package question

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// CountOpen is how many questions are open in all conversations.
func (s *Store) CountOpen(ctx context.Context) (int, error) {
	pipe := s.o.Client.Pipeline()
	counts := make([]*redis.IntCmd, s.keys.Partitions)
	for p := range counts {
		counts[p] = pipe.ZLexCount(ctx, indexKey(s.keys, p), "[o ", "(o!")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("count the open questions: %w", err)
	}
	n := 0
	for _, c := range counts {
		n += int(c.Val())
	}
	return n, nil
}
