package review

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/task"
)

// roads are the channels in which what people wait for is under way.
var roads = []channel.Name{
	channel.UserInput, channel.WorkerResult, channel.SupervisorEvent, channel.TellerDigest, channel.ThinkerDecision, channel.TellerReply,
}

// due reports whether it has been quiet for long enough. What counts is when a
// conversation last changed, which everything does that people are told of; what
// only passes between parts of the program, such as looking at conditions, does not
// keep reviews off, but none is begun while it runs.
func (r *Reviewer) due(ctx context.Context, now time.Time) (bool, error) {
	last, err := r.Last(ctx)
	if err != nil || now.Sub(last) < r.o.Idle {
		return false, err
	}
	newest, err := r.newest(ctx)
	if err != nil || newest.IsZero() || now.Sub(newest) < r.o.Idle {
		return false, err
	}
	busy, err := r.busy(ctx)
	return !busy && err == nil, err
}

// newest is when any conversation last changed.
func (r *Reviewer) newest(ctx context.Context) (time.Time, error) {
	pipe := r.o.Client.Pipeline()
	cmds := make([]*redis.ZSliceCmd, r.o.Keys.Partitions)
	for p := range cmds {
		cmds[p] = pipe.ZRevRangeWithScores(ctx, r.o.Keys.Active(p), 0, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return time.Time{}, fmt.Errorf("look when conversations last changed: %w", err)
	}
	var newest time.Time
	for _, c := range cmds {
		for _, z := range c.Val() {
			if at := time.UnixMilli(int64(z.Score)); at.After(newest) {
				newest = at
			}
		}
	}
	return newest, nil
}

// busy reports whether anything runs or is in flight on any node.
func (r *Reviewer) busy(ctx context.Context) (bool, error) {
	pipe := r.o.Client.Pipeline()
	var lens []*redis.IntCmd
	for p := range r.o.Keys.Partitions {
		for _, road := range roads {
			lens = append(lens, pipe.XLen(ctx, r.o.Keys.Stream(p, road)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return false, fmt.Errorf("look what is in flight: %w", err)
	}
	for _, n := range lens {
		if n.Val() > 0 {
			return true, nil
		}
	}
	s, err := r.o.Tasks.Stats(ctx)
	if err != nil {
		return false, err
	}
	return s.ByStatus[task.Pending]+s.ByStatus[task.Running] > 0, nil
}

// A candidate is a conversation that changed since it was reviewed.
type candidate struct {
	key    string
	active int64  // when it last changed, Unix ms
	mark   string // as it is stored; "" when it was never reviewed
}

// A mark says up to where a conversation was reviewed: when it had last changed,
// and its last line. Stored as "active at id".
type mark struct {
	active, at int64
	id         string
}

func (m mark) String() string { return fmt.Sprintf("%d %d %s", m.active, m.at, m.id) }

func readMark(text string) (mark, bool) {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return mark{}, false
	}
	active, err := strconv.ParseInt(parts[0], 10, 64)
	at, err2 := strconv.ParseInt(parts[1], 10, 64)
	return mark{active, at, parts[2]}, err == nil && err2 == nil
}

func (r *Reviewer) markKey(conversation string) string {
	return r.o.Keys.In(r.o.Keys.Partition(conversation), "review:"+conversation)
}

// lookedAt is among how many of the conversations of a partition, those first that
// changed last, those are looked for that are to be reviewed.
const lookedAt = 500

// changed lists the conversations that changed since they were reviewed, those
// first that changed last.
func (r *Reviewer) changed(ctx context.Context, now time.Time) ([]candidate, error) {
	oldest := strconv.FormatInt(now.Add(-recent).UnixMilli(), 10)
	pipe := r.o.Client.Pipeline()
	cmds := make([]*redis.ZSliceCmd, r.o.Keys.Partitions)
	for p := range cmds {
		cmds[p] = pipe.ZRevRangeByScoreWithScores(ctx, r.o.Keys.Active(p), &redis.ZRangeBy{Min: oldest, Max: "+inf", Count: lookedAt})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list conversations that changed: %w", err)
	}
	var all []candidate
	for _, c := range cmds {
		for _, z := range c.Val() {
			if key, ok := z.Member.(string); ok {
				all = append(all, candidate{key: key, active: int64(z.Score)})
			}
		}
	}
	pipe = r.o.Client.Pipeline()
	marks := make([]*redis.StringCmd, len(all))
	for i, c := range all {
		marks[i] = pipe.Get(ctx, r.markKey(c.key))
	}
	if len(all) > 0 {
		_, _ = pipe.Exec(ctx) // each is judged alone: one that is not there is an error of its own
	}
	out := all[:0]
	for i, c := range all {
		text, err := marks[i].Result()
		if err != nil && err != redis.Nil { //nolint:errorlint // the client returns it bare
			return nil, fmt.Errorf("look whether %s was reviewed: %w", c.key, err)
		}
		c.mark = text
		if m, ok := readMark(text); !ok || m.active < c.active {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b candidate) int {
		if a.active != b.active {
			return int(min(max(b.active-a.active, -1), 1))
		}
		return strings.Compare(a.key, b.key)
	})
	return out, nil
}
