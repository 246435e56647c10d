package channel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The statuses of an op.
const (
	opDone    = 1 // its effects are applied
	opSettled = 0 // its entries were settled before: nothing was changed
	opStopped = 2 // the conversation's stop number has moved on: nothing was changed
	opRefused = 3 // Redis refuses the op whenever it is tried: nothing was changed
)

// An op is one atomic change of a partition, judged alone within a cycle: it is
// applied when all its entries are unsettled and its stop number still holds.
type op struct {
	conv    string
	stop    string   // the stop number it must not be older than; "" for any
	settle  bool     // settle the entries, or only check them
	entries []*Entry // empty only where a repeat of the op does no harm
	letters []letter
	history []string
	puts    []Put
	durable bool // wait for replicas, where that is configured
	done    func(answer)
}

// An answer is what became of an op.
type answer struct {
	status   int
	stop     string
	ids      []string // of the letters
	repeated bool     // the call was sent more than once, so a settled op may be our own
	err      error    // with opRefused
}

// The bounds of one call: ops, ids and bytes. They keep a script well under a
// megabyte and a few milliseconds.
const (
	maxOps   = 100
	maxIDs   = 1000
	maxBytes = 512 << 10
	readPage = 100
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
	waiting := o.stopped // for what this call reads
	if !o.read && !o.readAll {
		waiting = nil
	}
	durable := false
	for _, op := range ops {
		durable = durable || op.durable
	}
	start := time.Now()
	var got []any
	repeated := false
	for try := 0; ; try++ {
		before := o.n.commits[o.p].Load()
		o.seq++
		args[1] = strconv.FormatInt(o.seq, 10)
		var err error
		got, err = o.n.run(o.ctx, durable, cycleScript, keys, args...)
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
	if len(got) < 6 {
		return fmt.Errorf("partition %d: the cycle script answered %d parts, want 6: %w", o.p, len(got), errVoid)
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
	o.ops = o.ops[min(len(ops), len(o.ops)):]
	if h := o.n.opt.Hooks.Commit; h != nil && len(ops) > 0 {
		h(len(ops), time.Since(start))
	}
	for i, a := range asList(got[3]) {
		list := asList(a)
		if i >= len(ops) || len(list) < 2 {
			return fmt.Errorf("partition %d: op answer %v: %w", o.p, a, errVoid)
		}
		ans := answer{status: int(asInt(list[0])), stop: asString(list[1]), repeated: repeated}
		for _, id := range list[2:] {
			ans.ids = append(ans.ids, asString(id))
		}
		ops[i].done(ans)
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
				o.deliver(readEntry(r.name, asString(kv[0]), asFields(kv[1]), r.decode))
				arrived = arrived || r.external
			}
		}
	}
	for _, r := range waiting {
		o.takeBack(r)
	}
	o.stopped = o.stopped[len(waiting):]
	o.read = arrived || asInt(got[5]) == 1 || len(o.stopped) > 0
	o.readAll = o.readAll && asInt(got[5]) == 1
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

// call spells the keys and arguments of the cycle script.
func (o *owner) call(ops []*op, renew bool) ([]string, []any) {
	k, p := o.n.keys, o.p
	keys := append(make([]string, 0, 20+len(ops)), o.keys...)
	ttl := "0"
	if renew {
		ttl = strconv.FormatInt(o.n.opt.Lease.Milliseconds(), 10)
	}
	args := make([]any, 0, 40+len(ops)*24)
	args = append(args, o.token, "", ttl, len(roads)+1, len(tables), o.n.opt.HistoryCap)
	for _, r := range roads {
		read := "0"
		if o.reads(r.name) && (o.readAll || (o.read && r.external)) {
			read = "1"
		}
		args = append(args, string(r.name), r.group, read)
	}
	args = append(args, string(dead), "", "0", readPage, len(ops))
	for _, op := range ops {
		history := 0
		if len(op.history) > 0 {
			keys = append(keys, k.of(p, "h:"+op.conv))
			history = len(keys)
		}
		settle := "0"
		if op.settle {
			settle = "1"
		}
		args = append(args, op.conv, history, op.stop, settle, len(op.entries))
		for _, e := range op.entries {
			args = append(args, roadNumber(e.Channel), e.ID)
		}
		args = append(args, len(op.letters))
		for _, l := range op.letters {
			begun := "0"
			if l.begun {
				begun = "1"
			}
			args = append(args, roadNumber(l.to), begun, len(l.fields))
			for _, f := range l.fields {
				args = append(args, f)
			}
		}
		args = append(args, len(op.history))
		for _, h := range op.history {
			args = append(args, h)
		}
		args = append(args, len(op.puts))
		for _, put := range op.puts {
			args = append(args, tableNumber(put.Table), put.Field, put.Value)
		}
	}
	return keys, args
}

// load reads everything that is delivered and unsettled, page by page, and takes
// into memory what is not there yet. It makes a new owner's memory whole, and
// heals one that missed an answer.
func (o *owner) load() error {
	starts, err := o.starts()
	if err != nil {
		return err
	}
	for i, r := range roads {
		if !o.reads(r.name) {
			continue
		}
		after := "0"
		for {
			got, err := o.page(r, o.n.keys.Stream(o.p, r.name), after)
			if err != nil {
				return err
			}
			for _, e := range got {
				kv := asList(e)
				if len(kv) != 2 {
					continue
				}
				after = asString(kv[0])
				if kv[1] == nil {
					// Somebody deleted the entry behind our back: there is
					// nothing left to work on, only the group's memory of it.
					o.n.log.Error("entry_deleted_by_others", "channel", r.name, "partition", o.p, "entry", after)
					_ = o.n.opt.Client.XAck(o.ctx, o.keys[5+i], r.group, after).Err()
					continue
				}
				e := readEntry(r.name, after, asFields(kv[1]), r.decode)
				e.attempts = starts[string(r.name)+":"+after]
				delete(starts, string(r.name)+":"+after)
				o.deliver(e)
			}
			if len(got) < readPage {
				break
			}
		}
	}
	o.dropStale(starts)
	o.reload = false
	o.read, o.readAll = true, true
	return nil
}

// dropStale forgets the counts of entries that are gone, which only an entry
// leaves that was deleted by others or lost by Redis.
func (o *owner) dropStale(starts map[string]int) {
	var puts []Put
	for field := range starts {
		if channel, _, _ := strings.Cut(field, ":"); o.reads(Name(channel)) {
			puts = append(puts, Put{Attempts, field, ""})
		}
	}
	for len(puts) > 0 {
		n := min(len(puts), maxIDs)
		o.enqueue(&op{puts: puts[:n], done: func(answer) {}})
		puts = puts[n:]
	}
}

// page reads one page of the pending list of a channel.
func (o *owner) page(r road, stream, after string) ([]any, error) {
	for try := 0; ; try++ {
		before := o.n.commits[o.p].Load()
		o.seq++
		got, err := o.n.run(o.ctx, false, pendingScript, []string{o.keys[0], o.keys[1], stream},
			o.token, o.seq, r.group, after, readPage)
		if err == nil {
			if o.n.sawCommit(o.ctx, o.p, before, asInt(got[1])) {
				return nil, errVoid
			}
			o.setClock(asInt(got[2]))
			return asList(got[3]), nil
		}
		if err := o.explain(err); err != nil {
			return nil, err
		}
		if err := o.pause(try, err); err != nil {
			return nil, err
		}
	}
}

// starts reads how often the steps of unsettled entries were started.
func (o *owner) starts() (map[string]int, error) {
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(o.ctx, o.n.opt.CallTimeout)
		got, err := o.n.opt.Client.HGetAll(ctx, o.n.keys.Table(o.p, Attempts)).Result()
		cancel()
		if err == nil {
			starts := make(map[string]int, len(got))
			for field, n := range got {
				starts[field], _ = strconv.Atoi(n) // 0 when damaged: counted anew
			}
			return starts, nil
		}
		if err := o.explain(err); err != nil {
			return nil, err
		}
		if err := o.pause(try, err); err != nil {
			return nil, err
		}
	}
}
