package task

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A claimer takes tasks for one pool, one claim of a partition at a time. Its claims
// are numbered: one that Redis sees late, after the next, is refused.
type claimer struct {
	q    *Queue
	id   string
	node string
	seq  uint64
	open map[int]*asked // :: partition -> a claim whose answer is not known
}

type asked struct {
	call call
	at   time.Time // before it was sent first
}

func newClaimer(q *Queue, node string) *claimer {
	return &claimer{q: q, id: fmt.Sprintf("%013x", q.is.rand()>>12), node: node, open: map[int]*asked{}}
}

// A room is a class of task, and how many more tasks of its profile a pool takes.
type room struct {
	class string
	most  int
}

// A want is what is asked of one partition.
type want struct {
	p     int
	most  int    // tasks
	worst string // score that is taken; "" for any
}

// An outlook is what a partition holds for who asked.
type outlook struct {
	scores []string      // of its best heads, the best first. Lower is better, compared as text
	more   bool          // there are others behind them
	later  time.Duration // until the next deferred task is due; negative for none
}

// A taken is a task that a claim has begun to run.
type taken struct {
	p     int
	token string
	task  Task
	err   error     // why the task cannot be read
	at    time.Time // by our clock; the run did not begin earlier
}

// furtherHeads is how many heads a caller is told of beyond what it takes.
const furtherHeads = 4

// ask takes the tasks whose turn it is, in several partitions in one round trip, once.
// What was asked before and never answered is asked again first, with nothing
// beside it: it may give what Redis has thought to be given then. It gives what was
// taken and what the partitions hold that have answered, also with an error.
func (c *claimer) ask(ctx context.Context, wants []want, rooms []room) ([]*taken, map[int]outlook, error) {
	if len(c.open) == 0 {
		for _, w := range wants {
			c.seq++
			args := []any{signals(c.q.keys), w.p, c.id, c.seq, c.node, c.q.o.MaxPerConversation, w.most, w.worst, furtherHeads}
			for _, r := range rooms {
				args = append(args, r.class, r.most)
			}
			c.open[w.p] = &asked{call{w.p, claimScript, fenced(c.q.keys, w.p, claimsKey(c.q.keys, w.p)), args}, time.Now()}
		}
	}
	calls := make([]call, 0, len(c.open))
	for _, a := range c.open {
		calls = append(calls, a.call)
	}
	var list []*taken
	outs := make(map[int]outlook, len(calls))
	var failed error
	for i, a := range c.q.sendAll(ctx, calls) {
		p := calls[i].p
		if a.err == nil && len(a.got) < 4 {
			delete(c.open, p) // it was asked too late to do anything
			a.err = fmt.Errorf("the script answered %d parts, %q", len(a.got), asString(a.got[len(a.got)-1]))
		}
		if a.err != nil {
			failed = fmt.Errorf("claim tasks of partition %d: %w", p, a.err)
			continue
		}
		for run := range slices.Chunk(a.got[4:], 5) {
			if len(run) == 5 {
				t := &taken{p: p, token: asString(run[0]), at: c.open[p].at}
				t.task, t.err = readTask(asString(run[1]), asString(run[2]), asString(run[3]), asString(run[4]))
				list = append(list, t)
			}
		}
		outs[p] = readOutlook(a.got)
		delete(c.open, p)
	}
	return list, outs, failed
}

// readOutlook reads the second to fourth part of an answer.
func readOutlook(got []any) outlook {
	out := outlook{later: -1}
	for _, v := range asList(got[2]) {
		out.scores = append(out.scores, asString(v))
	}
	if n := len(out.scores); n > 0 && out.scores[n-1] == "more" {
		out.scores, out.more = out.scores[:n-1], true
	}
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
	told     int       // people who were told just now that a storage is gone
	now      time.Time // Redis' clock
}

// A beat is a run as it is seen from outside.
type beat struct {
	token, id, count string
}

// A looker is a pool that would sweep, and what it has mounted.
type looker struct {
	id       string // "" for one that would not
	storages []string
}

// look sees what there is to do in a partition; it is called once.
func (q *Queue) look(ctx context.Context, p int, who looker, classes []string) (view, error) {
	v, err := q.lookAll(ctx, []int{p}, who, classes)
	return v[p], err
}

// lookAll is look of several partitions in one round trip. It gives those that have
// answered, also with an error.
func (q *Queue) lookAll(ctx context.Context, parts []int, who looker, classes []string) (map[int]view, error) {
	calls := make([]call, len(parts))
	for i, p := range parts {
		args := []any{
			signals(q.keys), p, who.id, q.o.Lease.Milliseconds(), q.o.MaxPerConversation, furtherHeads,
			q.o.StorageGone.Milliseconds(), len(who.storages),
		}
		for _, s := range who.storages {
			args = append(args, url.QueryEscape(s))
		}
		for _, class := range classes {
			args = append(args, class)
		}
		keys := fenced(q.keys, p, claimsKey(q.keys, p), sweeperKey(q.keys, p), storagesKey(q.keys, p))
		calls[i] = call{p, lookScript, keys, args}
	}
	views := make(map[int]view, len(parts))
	var failed error
	for i, a := range q.sendAll(ctx, calls) {
		if a.err == nil && len(a.got) < 4 {
			a.err = fmt.Errorf("the script answered %d parts, want 4", len(a.got))
		}
		if a.err != nil {
			failed = fmt.Errorf("look at the tasks of partition %d: %w", parts[i], a.err)
			continue
		}
		views[parts[i]] = readView(a.got)
	}
	return views, failed
}

func readView(got []any) view {
	v := view{outlook: readOutlook(got), now: moment(asString(got[1]))}
	if len(got) < 9 {
		return v
	}
	for run := range slices.Chunk(asList(got[4]), 3) {
		if len(run) == 3 {
			v.runs = append(v.runs, beat{asString(run[0]), asString(run[1]), asString(run[2])})
		}
	}
	v.sweep, v.cascades, v.oldest, v.told = asString(got[5]) == "1", int(asInt(got[6])), moment(asString(got[7])), int(asInt(got[8]))
	return v
}

// shows tells Redis that runs of one partition live, once, and gives for each "ok",
// "canceled" or "lost".
func (q *Queue) shows(ctx context.Context, p int, timeout time.Duration, runs []*Run) ([]string, error) {
	args := make([]any, 0, 2*len(runs))
	for _, r := range runs {
		args = append(args, r.Task.ID, r.token)
	}
	got, err := q.send(ctx, p, timeout, beatScript, fenced(q.keys, p), args...)
	if err != nil {
		return nil, fmt.Errorf("show that %d runs of partition %d live: %w", len(runs), p, err)
	}
	if len(got) != len(runs)+1 {
		return nil, fmt.Errorf("show that runs of partition %d live: the script answered for %d, want %d", p, len(got)-1, len(runs))
	}
	out := make([]string, len(runs))
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
