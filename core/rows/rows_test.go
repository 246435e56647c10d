package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"mimikit/core/rows"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestGet(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		ctx, c, prefix := t.Context(), s.Client, storetest.Prefix(t)
		row, state, run := prefix+":row", prefix+":state", prefix+":run"
		c.HSet(ctx, row, "a", "1", "b", "2", "c", "3")
		c.HSet(ctx, state, "a", "x", "c", "z", "d", "w")
		c.HSet(ctx, run, "c", "runs")
		of := func(id string) ([]rows.Field, error) {
			if id == "?" {
				return nil, errors.New("no id")
			}
			return []rows.Field{{Hash: run, Optional: true}, {Hash: row}, {Hash: state}}, nil
		}
		got, err := rows.Get(ctx, c, []string{"d", "c", "b", "a", "e"}, of)
		if want := "[{c [runs 3 z]} {a [ 1 x]}]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("read %v, %v; want %s", got, err, want)
		}
		if got, err := rows.Get(ctx, c, nil, of); len(got) != 0 || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		if _, err := rows.Get(ctx, c, []string{"a", "?"}, of); err == nil {
			t.Error("what is no id is read")
		}
		c.Set(ctx, prefix+":other", "text", 0)
		if _, err := rows.Get(ctx, c, []string{"a"}, func(string) ([]rows.Field, error) { return []rows.Field{{Hash: prefix + ":other"}}, nil }); err == nil {
			t.Error("a key of another type is no error")
		}
	})
}

// What is behind words is found in all indexes, the newest first, and nothing that is
// behind other words which begin alike; in pages, too.
func TestIndexes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		ctx, c, prefix := t.Context(), s.Client, storetest.Prefix(t)
		indexes := []string{prefix + ":0", prefix + ":1", prefix + ":none"}
		var want []string
		pipe := c.Pipeline()
		for i := range 2345 {
			id := fmt.Sprintf("t%05d", i)
			pipe.ZAdd(ctx, indexes[i%11%2], redis.Z{Member: "o conv" + fmt.Sprint(i%7) + " " + id}, redis.Z{Member: "a " + id}, redis.Z{Member: "open " + id})
			want = append(want, id)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(want)
		for _, words := range []string{"a", "o"} {
			if got, err := rows.All(ctx, c, indexes, words); err != nil || !slices.Equal(got, want) {
				t.Errorf("under %q are %d, %v; want all %d, the newest first", words, len(got), err, len(want))
			}
		}
		for before, first := range map[string]int{"": 0, want[99]: 100} {
			if got, err := rows.Newest(ctx, c, indexes, "a", before, 10); err != nil || !slices.Equal(got, want[first:first+10]) {
				t.Errorf("before %q the newest are %v, %v", before, got, err)
			}
		}
		if got, err := rows.Newest(ctx, c, indexes, "b", "", 10); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
		n, err := rows.Sum(ctx, c, len(indexes), func(pipe redis.Pipeliner, p int) *redis.IntCmd { return pipe.ZLexCount(ctx, indexes[p], "[a ", "(a!") })
		if err != nil || n != len(want) {
			t.Errorf("counted %d, %v", n, err)
		}
	})
}
