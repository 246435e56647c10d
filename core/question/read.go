package question

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/rows"
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
	got, err := s.get(ctx, []string{id}, true)
	if err == nil && len(got) == 0 {
		err = fmt.Errorf("question %s: %w", id, ErrUnknown)
	}
	if err != nil {
		return Question{}, err
	}
	return got[0], nil
}

// OfTask reads the question with which a task waits, by what the task calls it. It fails
// with ErrUnknown when it was not asked.
func (s *Store) OfTask(ctx context.Context, c chat.Conversation, taskID, question string) (Question, error) {
	id, err := s.is.OfTask(c, taskID, question)
	if err != nil {
		return Question{}, err
	}
	return s.Get(ctx, id)
}

// get reads questions in the order of their ids, without those that are gone. What
// cannot be read is left out and logged, unless strict.
func (s *Store) get(ctx context.Context, ids []string, strict bool) ([]Question, error) {
	got, err := rows.Get(ctx, s.o.Client, ids, func(id string) ([]rows.Field, error) {
		_, p, err := ParseID(id)
		return []rows.Field{{Hash: rowsKey(s.keys, p)}, {Hash: stateKey(s.keys, p)}}, err
	})
	if err != nil {
		return nil, fmt.Errorf("read %d questions: %w", len(ids), err)
	}
	var list []Question
	for _, r := range got {
		q, err := read(r.ID, r.Texts[0], r.Texts[1])
		if err != nil && strict {
			return nil, err
		}
		if err != nil {
			s.log.Error("question_unreadable", "question", r.ID, "error", err)
			continue
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
	list, err := s.get(ctx, ids, false)
	return slices.DeleteFunc(list, func(q Question) bool { return q.Conversation != c }), err
}

// List gives the newest questions of all conversations, at most limit (1 to 1,000).
func (s *Store) List(ctx context.Context, limit int) ([]Question, error) {
	return s.under(ctx, s.all(), "a", min(max(limit, 1), 1000))
}

// atOnce is how many questions EachOpen reads at once.
const atOnce = 200

// EachOpen gives the open questions of all conversations, the newest first, however
// many there are, and an error as the last. What is closed meanwhile is left out, what
// is asked meanwhile may be.
func (s *Store) EachOpen(ctx context.Context) iter.Seq2[Question, error] {
	return func(yield func(Question, error) bool) {
		ids, err := rows.All(ctx, s.o.Client, s.indexes(s.all()), "o")
		if err != nil {
			yield(Question{}, fmt.Errorf("list the open questions: %w", err))
			return
		}
		for some := range slices.Chunk(ids, atOnce) {
			list, err := s.get(ctx, some, false)
			if err != nil {
				yield(Question{}, err)
				return
			}
			for _, q := range list {
				if q.Status == Open && !yield(q, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) all() []int {
	parts := make([]int, s.keys.Partitions)
	for p := range parts {
		parts[p] = p
	}
	return parts
}

func (s *Store) indexes(parts []int) []string {
	keys := make([]string, len(parts))
	for i, p := range parts {
		keys[i] = indexKey(s.keys, p)
	}
	return keys
}

func (s *Store) under(ctx context.Context, parts []int, words string, limit int) ([]Question, error) {
	ids, err := rows.Newest(ctx, s.o.Client, s.indexes(parts), words, "", limit)
	if err != nil {
		return nil, fmt.Errorf("list questions: %w", err)
	}
	return s.get(ctx, ids, false)
}
