package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
)

// perform does a call of the extension by itself.
func (q *Queue) perform(ctx context.Context, c channel.Call, id string) ([]string, error) {
	_, p, _ := ParseID(id) // whoever made the call has parsed it
	args, size := make([]any, len(c.Args)), 0
	for i, a := range c.Args {
		args[i] = a
		size += len(a)
	}
	own := c.Keys[fixedKeys:]
	got, err := q.insist(ctx, func() ([]any, error) {
		return q.calls.do(ctx, &op{p: p, own: own, args: args, size: size})
	})
	if q.looked[p].Store(err == nil); err != nil {
		return nil, err
	}
	out := make([]string, 0, len(got))
	for _, v := range got {
		out = append(out, asString(v))
	}
	if len(out) < 2 {
		return nil, fmt.Errorf("the script answered %d parts, want 2", len(got))
	}
	return out, nil
}

// spellOps spells one call of ops of the extension.
func (q *Queue) spellOps(p int, ops []*op) call {
	c := call{p: p, script: callScript, keys: fenced(q.keys, p), args: []any{!q.looked[p].Load()}}
	for _, o := range ops {
		own := 0
		if len(o.own) > 0 {
			c.keys = append(c.keys, o.own...)
			own = len(c.keys) - 1 // the commit number is none of the extension's keys
		}
		c.args = append(append(c.args, own, len(o.args)), o.args...)
	}
	return c
}

// settle ends a run and says what became of its task. It calls Redis until that has
// answered or ctx is over.
func (q *Queue) settle(ctx context.Context, p int, token, id string, v verdict) (Status, error) {
	args, err := v.args(token, id)
	if err != nil {
		return "", fmt.Errorf("end the run of task %s: %w", id, err)
	}
	own := []string{outputKey(q.keys, p, id), checkpointKey(q.keys, p, id)}
	got, err := q.insist(ctx, func() ([]any, error) {
		return q.ends.do(ctx, &op{p: p, own: own, args: args, size: v.size()})
	})
	switch {
	case err != nil:
	case len(got) < 1:
		err = errors.New("the script answered nothing")
	case asString(got[0]) == "lost":
		err = errNotOurs
	default:
		return Status(asString(got[0])), nil
	}
	return "", fmt.Errorf("end the run of task %s: %w", id, err)
}

// spellEnds spells one call that ends runs.
func (q *Queue) spellEnds(p int, ops []*op) call {
	c := call{p: p, script: settleScript, keys: fenced(q.keys, p), args: []any{signals(q.keys), p, q.o.MaxLapses, maxBackoff.Milliseconds()}}
	for _, o := range ops {
		c.keys = append(c.keys, o.own...)
		c.args = append(c.args, o.args...)
	}
	return c
}

// sure calls a script until Redis has answered: what it did the first time, a
// repeat finds done. It ends with ctx, and where Redis refuses the call itself.
func (q *Queue) sure(ctx context.Context, p int, s *redis.Script, keys []string, args ...any) ([]any, error) {
	return q.insist(ctx, func() ([]any, error) { return q.send(ctx, p, q.o.CallTimeout, s, keys, args...) })
}

// insist is sure of any call.
func (q *Queue) insist(ctx context.Context, do func() ([]any, error)) ([]any, error) {
	for try := 0; ; try++ {
		got, err := do()
		if err == nil || refuses(err) {
			return got, err
		}
		wait := min(20*time.Millisecond<<min(try, 6), time.Second)
		t := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%w; the last try: %w", context.Cause(ctx), err)
		}
	}
}

// send calls a script once. Its first answer is the commit number, 0 when nothing
// was written.
func (q *Queue) send(ctx context.Context, p int, timeout time.Duration, s *redis.Script, keys []string, args ...any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a := q.sendAll(ctx, []call{{p, s, keys, args}})[0]
	return a.got, a.err
}

// mostParts are served in one call.
const mostParts = 32

// sendAll makes calls of one script for different partitions, each once, and gives
// their answers in the same order: in one round trip for some dozens of them,
// except on a Cluster.
func (q *Queue) sendAll(ctx context.Context, calls []call) []answer {
	ctx, cancel := context.WithTimeout(ctx, q.o.CallTimeout)
	defer cancel()
	if _, apart := q.o.Client.(*redis.ClusterClient); !apart {
		out := make([]answer, 0, len(calls))
		for some := range slices.Chunk(calls, mostParts) {
			out = append(out, q.together(ctx, some)...)
		}
		return out
	}
	out := make([]answer, len(calls))
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { out[i] = q.together(ctx, calls[i:i+1])[0] })
	}
	all.Wait()
	return out
}

// together makes calls of one script in one.
func (q *Queue) together(ctx context.Context, calls []call) []answer {
	out, sent := make([]answer, len(calls)), make([]int64, len(calls))
	var keys []string
	args := []any{len(calls)}
	for i, c := range calls {
		sent[i] = q.o.Sent(c.p)
		keys = append(keys, c.keys...)
		args = append(append(args, len(c.keys), len(c.args)), c.args...)
	}
	got, err := calls[0].script.Run(ctx, q.o.Client, keys, args...).Slice()
	if err == nil && len(got) != len(calls) {
		err = fmt.Errorf("the script answered for %d partitions, want %d", len(got), len(calls))
	}
	if err != nil && len(calls) > 1 && refuses(err) {
		// What is wrong in one partition must not stop the others.
		for i := range calls {
			out[i] = q.together(ctx, calls[i:i+1])[0]
		}
		return out
	}
	for i, c := range calls {
		if out[i].err = err; err == nil {
			out[i].got, out[i].err = q.saw(ctx, c.p, sent[i], asList(got[i]))
		}
	}
	return out
}

// saw hands on the commit number of an answer.
func (q *Queue) saw(ctx context.Context, p int, sent int64, got []any) ([]any, error) {
	if len(got) == 0 {
		return nil, errors.New("the script answered nothing")
	}
	if commits := asInt(got[0]); commits > 0 && q.o.Saw(ctx, p, sent, commits) {
		q.log.Error("task_queue_saw_lost_writes", "partition", p)
	}
	return got, nil
}
