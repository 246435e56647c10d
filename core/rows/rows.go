// Package rows reads what tasks, triggers and questions keep in the same way: each is
// some texts under its id in hashes of its partition, and its id stands behind words in
// an index of the partition that is sorted by text. What the texts mean, and who writes
// them, is for those packages; no function here writes.
//
// Each function asks all partitions at once, so none of them reads a single moment of
// the whole.
package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Field is where one text of a row lies: the field that is called like the row, in a
// hash.
type Field struct {
	Hash     string
	Optional bool // a row without it is one all the same
}

// A Row is what was read under one id.
type Row struct {
	ID    string
	Texts []string // of the fields, in their order; "" for an optional one that is not there
}

// Get reads rows in the order of their ids, without those that are gone. The fields of a
// row are read in the order in which of gives them, which is an error for what is no id.
func Get(ctx context.Context, c redis.UniversalClient, ids []string, of func(id string) ([]Field, error)) ([]Row, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := c.Pipeline()
	fields, cmds := make([][]Field, len(ids)), make([][]*redis.StringCmd, len(ids))
	for i, id := range ids {
		var err error
		if fields[i], err = of(id); err != nil {
			return nil, err
		}
		for _, f := range fields[i] {
			cmds[i] = append(cmds[i], pipe.HGet(ctx, f.Hash, id))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read %d rows: %w", len(ids), err)
	}
	var out []Row
	for i, id := range ids {
		r, gone := Row{ID: id}, false
		for j, cmd := range cmds[i] {
			text, err := cmd.Result()
			switch {
			case errors.Is(err, redis.Nil):
				gone = gone || !fields[i][j].Optional
			case err != nil:
				return nil, fmt.Errorf("read %s of row %s: %w", fields[i][j].Hash, id, err)
			}
			r.Texts = append(r.Texts, text)
		}
		if !gone {
			out = append(out, r)
		}
	}
	return out, nil
}

// Newest gives the newest ids behind words in indexes, the newest first, at most limit.
// With before only those that are older than that id.
func Newest(ctx context.Context, c redis.UniversalClient, indexes []string, words, before string, limit int) ([]string, error) {
	r := &redis.ZRangeBy{Min: "[" + words + " ", Max: "(" + words + "!", Count: int64(limit)}
	if before != "" {
		r.Max = "(" + words + " " + before
	}
	pipe := c.Pipeline()
	cmds := make([]*redis.StringSliceCmd, len(indexes))
	for i, key := range indexes {
		cmds[i] = pipe.ZRevRangeByLex(ctx, key, r)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list what is under %q: %w", words, err)
	}
	var ids []string
	for _, cmd := range cmds {
		for _, m := range cmd.Val() {
			ids = append(ids, idOf(m))
		}
	}
	sortNewest(ids)
	return ids[:min(len(ids), limit)], nil
}

// page is how many ids are read of one index at once.
const page = 1000

// All gives all ids behind words in indexes, or behind words that begin so and go on
// with a space, the newest first. It reads the indexes in pages: what comes or goes
// meanwhile may be in it or not.
func All(ctx context.Context, c redis.UniversalClient, indexes []string, words string) ([]string, error) {
	var ids []string
	from := make(map[string]string, len(indexes)) // :: index → where its next page begins
	for _, key := range indexes {
		from[key] = "[" + words + " "
	}
	for len(from) > 0 {
		pipe := c.Pipeline()
		cmds := make(map[string]*redis.StringSliceCmd, len(from))
		for key, at := range from {
			cmds[key] = pipe.ZRangeByLex(ctx, key, &redis.ZRangeBy{Min: at, Max: "(" + words + "!", Count: page})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("list what is under %q: %w", words, err)
		}
		for key, cmd := range cmds {
			found := cmd.Val()
			for _, m := range found {
				ids = append(ids, idOf(m))
			}
			if delete(from, key); len(found) == page {
				from[key] = "(" + found[page-1]
			}
		}
	}
	sortNewest(ids)
	return ids, nil
}

// Sum counts in each of so many partitions and adds that up.
func Sum(ctx context.Context, c redis.UniversalClient, partitions int, count func(pipe redis.Pipeliner, partition int) *redis.IntCmd) (int, error) {
	pipe := c.Pipeline()
	counts := make([]*redis.IntCmd, partitions)
	for p := range counts {
		counts[p] = count(pipe, p)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	n := 0
	for _, cmd := range counts {
		n += int(cmd.Val())
	}
	return n, nil
}

// idOf is the id in a member of an index.
func idOf(member string) string { return member[strings.LastIndexByte(member, ' ')+1:] }

// sortNewest sorts ids, which grow with time.
func sortNewest(ids []string) {
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
}
