package task

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A claimer takes tasks for one pool, one claim at a time. Its claims are
// numbered: one that Redis sees late, after the next, is refused.
type claimer struct {
	q    *Queue
	id   string
	node string
	seq  uint64
	open map[int]*asked // :: partition -> a claim whose answer is not known
}

type asked struct {
	args []any
	at   time.Time // before it was sent first
}

func newClaimer(q *Queue, node string) *claimer {
	return &claimer{q: q, id: fmt.Sprintf("%013x", q.is.rand()>>12), node: node, open: map[int]*asked{}}
}

// An outlook is what a partition holds for who asked.
type outlook struct {
	score string        // of the best head; "" for none. Lower is better, compared as text
	later time.Duration // until the next deferred task is due; negative for none
}

// A taken is a task that a claim has begun to run.
type taken struct {
	p     int
	token string
	task  Task
	err   error     // why the task cannot be read
	at    time.Time // by our clock; the run did not begin earlier
}

// claim takes the task whose turn it is in a partition, unless its score is worse
// than worst ("" for any). nil means that there is none. It calls Redis until that
// has answered or ctx is over; then the same claim is asked again by the next call,
// which may so give what an earlier one has taken.
func (c *claimer) claim(ctx context.Context, p int, classes []string, worst string) (*taken, outlook, error) {
	a := c.open[p]
	if a == nil {
		c.seq++
		a = &asked{args: []any{signals(c.q.keys), p, c.id, c.seq, c.node, c.q.o.MaxPerConversation, worst}, at: time.Now()}
		for _, class := range classes {
			a.args = append(a.args, class)
		}
		c.open[p] = a
	}
	got, err := c.q.sure(ctx, p, claimScript, fenced(c.q.keys, p, claimsKey(c.q.keys, p)), a.args...)
	if err != nil {
		return nil, outlook{}, fmt.Errorf("claim a task of partition %d: %w", p, err)
	}
	delete(c.open, p)
	if len(got) < 4 {
		return nil, outlook{}, fmt.Errorf("claim a task of partition %d: the script answered %d parts, %q", p, len(got), asString(got[len(got)-1]))
	}
	out := readOutlook(got)
	if len(got) < 8 {
		return nil, out, nil
	}
	t := &taken{p: p, token: asString(got[4]), at: a.at}
	t.task, t.err = readTask(asString(got[5]), asString(got[6]), asString(got[7]))
	return t, out, nil
}

// readOutlook reads the second to fourth part of an answer.
func readOutlook(got []any) outlook {
	out := outlook{score: asString(got[2]), later: -1}
	if due := asString(got[3]); due != "" {
		out.later = max(0, time.Duration(number(due)-asInt(got[1]))*time.Millisecond)
	}
	return out
}

// A view is what a look at a partition shows.
type view struct {
	outlook
	runs     []beat
	sweep    bool      // this pool is to sweep
	cascades int       // cancels to be passed on
	oldest   time.Time // when the task that is kept longest ended, by Redis' clock; zero for none
	now      time.Time // Redis' clock
}

// A beat is a run as it is seen from outside.
type beat struct {
	token, id, count string
}

// look sees what there is to do in a partition; it is called once. who is the pool
// that would sweep, "" for none.
func (q *Queue) look(ctx context.Context, p int, who string, classes []string) (view, error) {
	args := []any{signals(q.keys), p, who, q.o.Lease.Milliseconds(), q.o.MaxPerConversation}
	for _, class := range classes {
		args = append(args, class)
	}
	got, err := q.send(ctx, p, q.o.CallTimeout, lookScript, fenced(q.keys, p, claimsKey(q.keys, p), sweeperKey(q.keys, p)), args...)
	if err != nil {
		return view{}, fmt.Errorf("look at the tasks of partition %d: %w", p, err)
	}
	if len(got) < 4 {
		return view{}, fmt.Errorf("look at the tasks of partition %d: the script answered %d parts, want 4", p, len(got))
	}
	v := view{outlook: readOutlook(got), now: moment(asString(got[1]))}
	if len(got) < 8 {
		return v, nil
	}
	for run := range slices.Chunk(asList(got[4]), 3) {
		if len(run) == 3 {
			v.runs = append(v.runs, beat{asString(run[0]), asString(run[1]), asString(run[2])})
		}
	}
	v.sweep, v.cascades, v.oldest = asString(got[5]) == "1", int(asInt(got[6])), moment(asString(got[7]))
	return v, nil
}

// shows tells Redis that runs of one partition live, once, and gives for each "ok",
// "canceled" or "lost".
func (q *Queue) shows(ctx context.Context, p int, timeout time.Duration, tokens []string) ([]string, error) {
	args := make([]any, len(tokens))
	for i, t := range tokens {
		args[i] = t
	}
	got, err := q.send(ctx, p, timeout, beatScript, fenced(q.keys, p), args...)
	if err != nil {
		return nil, fmt.Errorf("show that %d runs of partition %d live: %w", len(tokens), p, err)
	}
	if len(got) != len(tokens)+1 {
		return nil, fmt.Errorf("show that runs of partition %d live: the script answered for %d, want %d", p, len(got)-1, len(tokens))
	}
	out := make([]string, len(tokens))
	for i := range out {
		out[i] = asString(got[i+1])
	}
	return out, nil
}

// forget removes tasks of a partition that ended before the retention began, at
// most 50, and says whether there may be more.
func (q *Queue) forget(ctx context.Context, p int, now time.Time) (bool, error) {
	const page = 50
	cutoff := strconv.FormatInt(now.Add(-q.o.Retention).UnixMilli(), 10)
	ids, err := q.o.Client.ZRangeByScore(ctx, endedKey(q.keys, p), &redis.ZRangeBy{Min: "-inf", Max: cutoff, Count: page}).Result()
	if err != nil {
		return false, fmt.Errorf("list the tasks of partition %d that ended long ago: %w", p, err)
	}
	if len(ids) == 0 {
		return false, nil
	}
	keys := fenced(q.keys, p)
	args := []any{cutoff, len(keys)}
	for _, id := range ids {
		keys = append(keys, promptKey(q.keys, p, id), outputKey(q.keys, p, id), checkpointKey(q.keys, p, id), progressKey(q.keys, p, id))
		args = append(args, id)
	}
	got, err := q.send(ctx, p, q.o.CallTimeout, forgetScript, keys, args...)
	if err != nil {
		return false, fmt.Errorf("forget %d tasks of partition %d: %w", len(ids), p, err)
	}
	return len(ids) == page && len(got) > 1 && asInt(got[1]) > 0, nil
}
