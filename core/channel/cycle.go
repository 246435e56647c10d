package channel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The statuses of an op.
const (
	opDone    = 1 // its effects are applied
	opSettled = 0 // its entries were settled before: nothing was changed
	opStopped = 2 // the conversation's stop number has moved on: nothing was changed
	opRefused = 3 // Redis refuses the op whenever it is tried: nothing was changed
)

// An op is one atomic change of a partition, judged alone within a cycle: one
// that settles is applied when all its entries are unsettled and its stop number
// still holds. One that does not settle only puts, which does no harm when it is
// repeated.
type op struct {
	conv    string
	stop    string // the stop number it must not be older than; "" for any
	settle  bool
	entries []*Entry
	letters []letter
	history []string
	puts    []Put
	calls   []Call
	durable bool // wait for replicas, where that is configured
	done    func(answer)
}

// An answer is what became of an op.
type answer struct {
	status   int
	stop     string
	ids      []string  // of the letters
	at, sent time.Time // Redis' time of the call, and ours before it was sent
	repeated bool      // the call was sent more than once, so a settled op may be our own
	err      error     // with opRefused
}

// The bounds of one call: ops, ids and bytes. They keep a script well under a
// megabyte and a few milliseconds.
const (
	maxOps   = 100
	maxIDs   = 1000
	maxBytes = 512 << 10
	readPage = 100
	// maxTake bounds what a step takes: a script passes at most some thousand
	// values to one command. Loops keep well below it.
	maxTake = 2 * maxIDs
)

// batch takes the ops of the next call. At least one is taken.
func (o *owner) batch() []*op {
	ids, bytes := 0, 0
	for i, op := range o.ops {
		ids += len(op.entries) + len(op.puts)
		for _, l := range op.letters {
			bytes += l.size + 200
		}
		for _, h := range op.history {
			bytes += len(h)
		}
		for _, c := range op.calls {
			ids += len(c.Keys)
			for _, a := range c.Args {
				bytes += len(a)
			}
		}
		if i > 0 && (i >= maxOps || ids > maxIDs || bytes > maxBytes) {
			return o.ops[:i]
		}
	}
	return o.ops
}

// cycle sends one call: the gathered ops, what is to be read, and the renewal of
// the lease when that is due. It repeats the call until Redis has judged it.
func (o *owner) cycle() error {
	ops := o.batch()
	renew := o.now().After(o.renewAt)
	err := o.send(ops, renew)
	var refused *refusedError
	if errors.As(err, &refused) {
		if len(ops) <= 1 {
			o.ops = o.ops[len(ops):]
			if len(ops) == 0 {
				return err
			}
			ops[0].done(answer{status: opRefused, err: refused.err})
			return nil
		}
		// One of them is at fault: judge each alone, so that the others go on.
		for _, one := range ops {
			err := o.send([]*op{one}, false)
			switch {
			case errors.As(err, &refused):
				o.ops = o.ops[1:]
				one.done(answer{status: opRefused, err: refused.err})
			case err != nil:
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	return nil
}

// refusedError is Redis' own refusal of a call.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// send sends one call and applies its answer.
func (o *owner) send(ops []*op, renew bool) error {
	keys, args := o.call(ops, renew)
	reads, stopped := o.read || o.readAll || o.hot, len(o.stopped)
	durable := false
	for _, op := range ops {
		durable = durable || op.durable
	}
	start := time.Now()
	sent := start
	var got []any
	repeated := false
	for try := 0; ; try++ {
		before := o.n.commits[o.p].Load()
		o.seq++
		args[1] = strconv.FormatInt(o.seq, 10)
		sent = time.Now()
		var err error
		got, err = o.n.run(o.ctx, durable, o.n.cycle, keys, args...)
		if err == nil {
			if o.n.sawCommit(o.ctx, o.p, before, asInt(got[1])) {
				return errVoid
			}
			break
		}
		if err := o.explain(err); err != nil {
			return err
		}
		repeated = true
		o.reload = true // a lost answer may have held deliveries
		if err := o.pause(try, err); err != nil {
			return err
		}
	}
	if len(got) < 5 {
		return fmt.Errorf("partition %d: the cycle script answered %d parts: %w", o.p, len(got), errVoid)
	}
	if o.n.opt.Generation() != o.generation {
		return fmt.Errorf("partition %d: another Redis process answers: %w", o.p, errVoid)
	}
	if o.n.losses[o.p].Load() != o.losses {
		return fmt.Errorf("partition %d: Redis has lost writes: %w", o.p, errVoid)
	}
	o.setClock(asInt(got[2]))
	if renew {
		o.renewAt = o.now().Add(o.n.opt.Lease / 3)
	}
	if asString(got[0]) == "no" {
		return o.takeOut(ops, asList(got[3]), asList(got[4]), repeated)
	}
	if len(got) < 8 {
		return fmt.Errorf("partition %d: the cycle script answered %d parts, want 8: %w", o.p, len(got), errVoid)
	}
	o.ops = o.ops[len(ops):]
	if h := o.n.opt.Hooks.Commit; h != nil && len(ops) > 0 {
		h(len(ops), time.Since(start))
	}
	o.tellCuts(ops, asList(got[7]))
	ids, stops := asList(got[3]), asList(got[6])
	for i, op := range ops {
		a := answer{status: opDone, repeated: repeated, at: time.UnixMilli(asInt(got[2])), sent: sent}
		if i < len(stops) {
			a.stop = asString(stops[i])
		}
		for range min(len(op.letters), len(ids)) {
			a.ids = append(a.ids, asString(ids[0]))
			ids = ids[1:]
		}
		op.done(a)
	}
	arrived := false
	for _, s := range asList(got[4]) {
		pair := asList(s)
		if len(pair) != 2 {
			continue
		}
		r := roads[asInt(pair[0])-1]
		for _, e := range asList(pair[1]) {
			if kv := asList(e); len(kv) == 2 {
				e := readEntry(r.name, asString(kv[0]), asFields(kv[1]), r.decode)
				e.begun, e.attempts = true, 1
				o.deliver(e)
				arrived = arrived || r.external
			}
		}
	}
	o.hot = arrived
	if more := asInt(got[5]) == 1; reads && !more {
		o.allRead(stopped)
	}
	o.read = asInt(got[5]) == 1 || len(o.stopped) > 0
	o.readAll = o.readAll && asInt(got[5]) == 1
	return nil
}

// allRead notes that a call has read all there was. Of those that were stopped
// before it was sent, the request to stop is in memory now. And what the waiter
// saw was delivered: to this owner, or, when somebody has read and acknowledged
// it who is none, to nobody; it must not be waited for again.
func (o *owner) allRead(stopped int) {
	for _, r := range o.stopped[:stopped] {
		o.takeBack(r)
	}
	o.stopped = o.stopped[stopped:]
	for name, id := range o.heard {
		if idLess(o.lastID[name], id) {
			o.lastID[name] = id
		}
	}
	clear(o.heard)
}

// tellCuts logs the lines that histories lost, by the answer of a call with ops.
func (o *owner) tellCuts(ops []*op, cuts []any) {
	if len(cuts) == 0 {
		return
	}
	var convs []string // in the order of call
	for _, op := range ops {
		if len(op.history) > 0 {
			convs = append(convs, op.conv)
		}
	}
	for _, c := range cuts {
		pair := asList(c)
		if len(pair) != 2 || asInt(pair[0]) < 1 || asInt(pair[0]) > int64(len(convs)) {
			continue
		}
		conv, lines := convs[asInt(pair[0])-1], asInt(pair[1])
		o.n.log.Error("history_cut", "partition", o.p, "conversation", conv, "lines", lines, "cap", o.n.opt.HistoryCap)
		if h := o.n.opt.Hooks.HistoryCut; h != nil {
			h(conv, lines)
		}
	}
}

// takeOut answers the ops that do not hold; the rest of the batch, which was not
// applied because of them, stays to be sent again.
func (o *owner) takeOut(ops []*op, pending, stops []any, repeated bool) error {
	unsettled := map[string]bool{}
	for i, list := range pending {
		if i >= len(roads) {
			break
		}
		for _, id := range asList(list) {
			unsettled[string(roads[i].name)+":"+asString(id)] = true
		}
	}
	rest := o.ops[len(ops):]
	var hold, out []*op
	var answers []answer
	for i, op := range ops {
		a := answer{status: opDone, repeated: repeated}
		if i < len(stops) {
			a.stop = asString(stops[i])
		}
		if op.stop != "" && op.stop != a.stop {
			a.status = opStopped
		}
		for _, e := range op.entries {
			if op.settle && !unsettled[string(e.Channel)+":"+e.ID] {
				a.status = opSettled
			}
		}
		if a.status == opDone {
			hold = append(hold, op)
		} else {
			out, answers = append(out, op), append(answers, a)
		}
	}
	if len(out) == 0 {
		return fmt.Errorf("partition %d: the cycle script refused a batch in which every op holds: %w", o.p, errVoid)
	}
	o.ops = append(hold, rest...)
	for i, op := range out {
		op.done(answers[i])
	}
	return nil
}

// explain sorts the error of a fenced call: nil means the call may be sent again.
func (o *owner) explain(err error) error {
	switch {
	case errors.Is(err, ErrLost):
		if h := o.n.opt.Hooks.Stale; h != nil {
			h()
		}
		return fmt.Errorf("partition %d: %w", o.p, err)
	case errors.Is(err, errLate):
		return fmt.Errorf("partition %d: %w: %w", o.p, err, errVoid)
	case o.ctx.Err() != nil:
		return fmt.Errorf("partition %d: %w", o.p, context.Cause(o.ctx))
	case o.n.opt.Generation() != o.generation:
		return fmt.Errorf("partition %d: another Redis process answers: %w", o.p, errVoid)
	case noSuchGroup(err):
		ctx, cancel := context.WithTimeout(o.ctx, o.n.opt.CallTimeout)
		defer cancel()
		if err := o.n.createGroups(ctx, o.p); err != nil {
			return nil // Redis is away again; the call is repeated
		}
		return fmt.Errorf("partition %d: its streams were gone: %w", o.p, errVoid)
	case refusedByServer(err):
		return &refusedError{err}
	}
	return nil
}

// pause waits before a call is repeated: 20 ms, doubling to 1 s, with jitter.
func (o *owner) pause(try int, err error) error {
	if try == 0 || try%10 == 0 {
		o.n.log.Warn("redis_call_repeated", "partition", o.p, "try", try+1, "error", err)
	}
	if h := o.n.opt.Hooks.Retried; h != nil {
		h()
	}
	wait := min(20*time.Millisecond<<min(try, 6), time.Second)
	wait = wait/2 + time.Duration(o.n.opt.Rand()%uint64(wait/2))
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-o.ctx.Done():
		return fmt.Errorf("partition %d: %w", o.p, context.Cause(o.ctx))
	}
}
