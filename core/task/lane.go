package task

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"
)

// The bounds of one call of a lane. Bytes are those of the args, about.
const (
	mostOps   = 64
	mostBytes = 512 << 10
)

// A call is one call of a script.
type call struct {
	p      int // partition
	script *redis.Script
	keys   []string
	args   []any
}

// An answer is what a call came to.
type answer struct {
	got []any // the commit number, and what the script did
	err error
}

// An op is what somebody wants of a script that does many in one call.
type op struct {
	p    int
	own  []string // keys beside the fixed ones
	args []any
	size int // bytes of args, about

	ctx  context.Context // of who waits for it
	done chan answer     // capacity 1; got is what the script did for this op alone
}

// A lane has one script do what is wanted at a time: while a call is under way,
// what comes gathers, and goes with the next one. It never waits for more to come.
// Each op is judged alone, and who gives up waiting for one does not know what
// became of it.
type lane struct {
	q     *Queue
	spell func(p int, ops []*op) call

	mu      sync.Mutex
	waiting []*op
	busy    bool
}

// do has an op done, once.
func (l *lane) do(ctx context.Context, o *op) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	o.ctx, o.done = ctx, make(chan answer, 1)
	l.mu.Lock()
	l.waiting = append(l.waiting, o)
	start := !l.busy
	l.busy = true
	l.mu.Unlock()
	if start {
		go l.run()
	}
	select {
	case a := <-o.done:
		return a.got, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run sends what waits until nothing does.
func (l *lane) run() {
	for first := true; ; first = false {
		if !first {
			runtime.Gosched() // who was just answered may come again
		}
		ops := l.take()
		if ops == nil {
			return
		}
		l.send(ops)
	}
}

// take gives the ops that go next, by partition; nil ends the run.
func (l *lane) take() map[int][]*op {
	l.mu.Lock()
	defer l.mu.Unlock()
	ops, rest, n, size := map[int][]*op{}, l.waiting[:0], 0, 0
	for _, o := range l.waiting {
		switch {
		case o.ctx.Err() != nil: // nobody waits for it
		case n == mostOps, n > 0 && size+o.size > mostBytes:
			rest = append(rest, o)
			size = mostBytes // what follows keeps its place
		default:
			ops[o.p] = append(ops[o.p], o)
			size += o.size
			n++
		}
	}
	clear(l.waiting[len(rest):])
	l.waiting = rest
	if len(ops) == 0 {
		l.busy = false
		return nil
	}
	return ops
}

func (l *lane) send(ops map[int][]*op) {
	calls := make([]call, 0, len(ops))
	for p, list := range ops {
		calls = append(calls, l.spell(p, list))
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.q.o.CallTimeout)
	defer cancel()
	for i, a := range l.q.sendAll(ctx, calls) {
		list := ops[calls[i].p]
		if a.err != nil && len(list) > 1 && refuses(a.err) {
			// One that is refused must not take the others with it.
			for _, o := range list {
				one := l.q.sendAll(ctx, []call{l.spell(o.p, []*op{o})})
				deliver([]*op{o}, one[0])
			}
			continue
		}
		deliver(list, a)
	}
}

// deliver gives each op its part of an answer.
func deliver(list []*op, a answer) {
	if a.err == nil && len(a.got) != len(list)+1 {
		a.err = errors.New("the script answered for others than it was asked for")
	}
	for i, o := range list {
		if a.err != nil {
			o.done <- answer{err: a.err}
			continue
		}
		o.done <- answer{got: asList(a.got[i+1])}
	}
}

// refuses reports whether Redis has refused a call for what it is, so that a
// repeat would be refused as well.
func refuses(err error) bool {
	var refused redis.Error
	return errors.As(err, &refused) && !passing(err)
}
