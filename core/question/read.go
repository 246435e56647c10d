package question

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// Get reads a question. It fails with ErrUnknown when there is none of that id.
func (s *Store) Get(ctx context.Context, id string) (Question, error) {
	_, p, err := ParseID(id)
	if err == nil && p >= s.keys.Partitions {
		err = fmt.Errorf("question %s: %w", id, ErrUnknown)
	}
	if err != nil {
		return Question{}, err
	}
	got, err := s.get(ctx, []string{id})
	if err == nil && len(got) == 0 {
		err = fmt.Errorf("question %s: %w", id, ErrUnknown)
	}
	if err != nil {
		return Question{}, err
	}
	return got[0], nil
}

// get reads questions in the order of their ids, without those that are gone.
func (s *Store) get(ctx context.Context, ids []string) ([]Question, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := s.o.Client.Pipeline()
	rows, states := make([]*redis.StringCmd, len(ids)), make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		_, p, err := ParseID(id)
		if err != nil {
			return nil, err
		}
		rows[i], states[i] = pipe.HGet(ctx, rowsKey(s.keys, p), id), pipe.HGet(ctx, stateKey(s.keys, p), id)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read %d questions: %w", len(ids), err)
	}
	var list []Question
	for i, id := range ids {
		if errors.Is(rows[i].Err(), redis.Nil) || errors.Is(states[i].Err(), redis.Nil) {
			continue
		}
		if err := errors.Join(rows[i].Err(), states[i].Err()); err != nil {
			return nil, fmt.Errorf("read question %s: %w", id, err)
		}
		q, err := read(id, rows[i].Val(), states[i].Val())
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// Open lists the open questions of a conversation, the newest first.
func (s *Store) Open(ctx context.Context, c chat.Conversation) ([]Question, error) {
	return s.under(ctx, []int{s.keys.Partition(c.Key())}, "o "+c.Key(), MaxOpen)
}

// Newest gives the newest open question of a conversation, and whether there is one.
func (s *Store) Newest(ctx context.Context, c chat.Conversation) (Question, bool, error) {
	list, err := s.under(ctx, []int{s.keys.Partition(c.Key())}, "o "+c.Key(), 1)
	if err != nil || len(list) == 0 {
		return Question{}, false, err
	}
	return list[0], true, nil
}

// mostClosed bounds how many ClosedSince looks at.
const mostClosed = 200

// ClosedSince lists the questions of a conversation that were answered or withdrawn at
// or after a time, the earliest first. It looks at the first 200 that were closed then
// in the conversation's partition.
func (s *Store) ClosedSince(ctx context.Context, c chat.Conversation, since time.Time) ([]Question, error) {
	ids, err := s.o.Client.ZRangeByScore(ctx, overKey(s.keys, s.keys.Partition(c.Key())), &redis.ZRangeBy{
		Min: strconv.FormatInt(since.UnixMilli(), 10), Max: "+inf", Count: mostClosed,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list closed questions: %w", err)
	}
	list, err := s.get(ctx, ids)
	return slices.DeleteFunc(list, func(q Question) bool { return q.Conversation != c }), err
}

// List gives the newest questions of all conversations, at most limit (1 to 1,000).
func (s *Store) List(ctx context.Context, limit int) ([]Question, error) {
	parts := make([]int, s.keys.Partitions)
	for p := range parts {
		parts[p] = p
	}
	return s.under(ctx, parts, "a", min(max(limit, 1), 1000))
}

// AllOpen lists open questions of all conversations, at most limit (1 to 1,000), the
// newest first. How many were closed does not matter.
func (s *Store) AllOpen(ctx context.Context, limit int) ([]Question, error) {
	parts := make([]int, s.keys.Partitions)
	for p := range parts {
		parts[p] = p
	}
	return s.under(ctx, parts, "o", min(max(limit, 1), 1000))
}

func (s *Store) under(ctx context.Context, parts []int, words string, limit int) ([]Question, error) {
	pipe := s.o.Client.Pipeline()
	cmds := make([]*redis.StringSliceCmd, len(parts))
	for i, p := range parts {
		cmds[i] = pipe.ZRevRangeByLex(ctx, indexKey(s.keys, p), &redis.ZRangeBy{Min: "[" + words + " ", Max: "(" + words + "!", Count: int64(limit)})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list questions: %w", err)
	}
	var ids []string
	for _, c := range cmds {
		for _, m := range c.Val() {
			ids = append(ids, m[strings.LastIndexByte(m, ' ')+1:])
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	return s.get(ctx, ids[:min(len(ids), limit)])
}
