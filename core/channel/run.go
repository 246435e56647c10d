package channel

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A run is one step under way.
type run struct {
	loop    *Loop
	c       *conversation
	work    *Work
	stop    string // the stop number when it began
	ctx     context.Context
	cancel  context.CancelCauseFunc
	started time.Time
	step    context.Context      // what the loop is given; ends with ctx
	end     func(outcome string) // told once what became of it; may be nil
}

func (o *owner) newRun(c *conversation, loop *Loop, take []*Entry) *run {
	take = take[:min(len(take), maxTake)]
	r := &run{loop: loop, c: c, started: time.Now()}
	r.ctx, r.cancel = context.WithCancelCause(o.ctx)
	r.work = &Work{
		Conversation: c.key, Partition: o.p, Entries: append([]*Entry(nil), take...),
		Attempt: 1, Suspect: o.now().Before(o.suspect), Now: o.now(),
	}
	r.work.Mark = func(ctx context.Context, puts ...Put) (time.Time, error) { return o.mark(ctx, r, puts) }
	r.work.Field = o.field
	c.running[loop.Lane] = r
	return r
}

// begin counts the start of a step durably, and then starts it.
func (o *owner) begin(r *run) error {
	begun, fresh := true, true
	for _, e := range r.work.Entries {
		begun, fresh = begun && e.begun, fresh && e.begun && e.own
	}
	for _, e := range r.work.Entries {
		if e.begun {
			e.begun, e.attempts = false, 0 // counted ahead, not started yet
		}
	}
	r.work.Attempt = 1
	for _, e := range r.work.Entries {
		r.work.Attempt = max(r.work.Attempt, e.attempts+1)
	}
	if begun {
		// The call that published or delivered the entries has counted this start.
		r.work.Fresh = fresh
		if fresh && len(r.work.Entries) == 1 {
			r.work.Ahead = r.work.Entries[0].ahead
		}
		for _, e := range r.work.Entries {
			e.attempts = 1
		}
		newest := int64(0)
		for _, e := range r.work.Entries {
			newest = max(newest, e.stop)
		}
		r.stop = strconv.FormatInt(newest, 10)
		if err := o.makeWhole(r); err != nil {
			return err
		}
		o.start(r)
		return nil
	}
	most := r.loop.MaxAttempts
	if most == 0 {
		most = 5
	}
	if r.work.Attempt > most {
		// Only what had all its tries; the rest is tried without it.
		r.work.Entries = slices.DeleteFunc(r.work.Entries, func(e *Entry) bool { return e.attempts < most })
		often := "once"
		if tries := r.work.Attempt - 1; tries > 1 {
			often = fmt.Sprintf("%d times", tries)
		}
		o.giveUp(r, "it was tried "+often+" without success", false)
		return nil
	}
	if err := o.makeWhole(r); err != nil {
		return err
	}
	for _, e := range r.work.Entries {
		e.attempts++
	}
	o.enqueue(&op{
		conv: r.c.key, entries: r.work.Entries, puts: attemptPuts(r.work.Entries),
		done: func(a answer) {
			switch {
			case a.status == opDone && r.ctx.Err() == nil:
				r.stop = a.stop
				o.start(r)
			case a.status == opDone:
				o.takeBack(r)
			case a.status == opRefused:
				for _, e := range r.work.Entries {
					e.attempts-- // neither counted nor started
				}
				o.retry(r, a.err)
			default:
				o.drop(r, a)
			}
		},
	})
	return nil
}

// attemptPuts spells how often steps were started with each entry.
func attemptPuts(entries []*Entry) []Put {
	puts := make([]Put, len(entries))
	for i, e := range entries {
		puts[i] = Put{Attempts, string(e.Channel) + ":" + e.ID, ""}
		if e.attempts > 0 {
			puts[i].Value = strconv.Itoa(e.attempts)
		}
	}
	return puts
}

func (o *owner) enqueue(op *op) { o.ops = append(o.ops, op) }

// start runs the step in a goroutine of its own.
func (o *owner) start(r *run) {
	o.announce(r)
	o.n.steps.Go(func() {
		var effects Effects
		var letters []letter
		err := safely(r, func() (err error) {
			if effects, err = r.loop.Step(r.step, r.work); err == nil {
				letters, err = o.letters(r, effects)
			}
			return err
		})
		o.hand(func() { o.finish(r, effects, letters, err) })
	})
}

// announce tells that a step begins.
func (o *owner) announce(r *run) {
	r.step = r.ctx
	if h := o.n.opt.Hooks.Begin; h != nil {
		r.step, r.end = h(r.ctx, r.loop.Name, r.work)
	}
}

// over tells what became of a step, once.
func (r *run) over(outcome string) {
	if r.end != nil {
		r.end(outcome)
		r.end = nil
	}
}

// lose tells of the steps whose end nobody will hear of, since the owner is done.
func (o *owner) lose() {
	for _, c := range o.convs {
		for _, r := range c.running {
			r.over("lost")
		}
	}
}

// safely turns a panic of a loop into an error, so that one conversation cannot
// take the node down.
func safely(r *run, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("loop %s panicked: %v\n%s", r.loop.Name, p, debug.Stack())
		}
	}()
	return f()
}

// letters encodes what effects publish, and refuses what no call can carry.
func (o *owner) letters(r *run, effects Effects) ([]letter, error) {
	if err := knownTables(effects.Puts); err != nil {
		return nil, fmt.Errorf("step %s: %w", r.loop.Name, err)
	}
	for _, c := range effects.Calls {
		if !slices.ContainsFunc(o.n.opt.Extensions, func(e Extension) bool { return e.Name == c.Extension }) {
			return nil, fmt.Errorf("step %s calls the unknown extension %q", r.loop.Name, c.Extension)
		}
	}
	now := time.Now().Add(o.clockFor(r))
	letters := make([]letter, 0, len(effects.Publish))
	for _, p := range effects.Publish {
		if !isRoad(p.To) && p.To != Feedback {
			return nil, fmt.Errorf("step %s publishes to the unknown channel %q", r.loop.Name, p.To)
		}
		l, err := newLetter(p, r.c.key, r.work.Entries[0], r.work.Traceparent, now)
		if err != nil {
			return nil, err
		}
		if !o.reads(p.To) {
			l.entry = nil
		}
		if l.begun = l.entry != nil; l.begun {
			if loop := o.loopOf(p.To); loop.Ahead != nil {
				l.entry.ahead.Puts = loop.Ahead(p.Value, now)
				if err := knownTables(l.entry.ahead.Puts); err != nil {
					return nil, fmt.Errorf("loop %s marks ahead: %w", loop.Name, err)
				}
			}
		}
		letters = append(letters, l)
	}
	return letters, nil
}

// clockFor is Redis' time minus ours as it was when the run began; the owner's
// own value belongs to its goroutine.
func (o *owner) clockFor(r *run) time.Duration { return r.work.Now.Sub(r.started) }

// finish commits what a step gave, or decides what its failure means.
func (o *owner) finish(r *run, effects Effects, letters []letter, err error) {
	var later *Later
	var enough *GiveUp
	switch {
	case errors.Is(context.Cause(r.ctx), ErrStopped):
		// Also when the step went on to its end: what was stopped is not said.
		o.tell(r, "stopped")
		o.takeBack(r)
	case err == nil:
		gate := ""
		if r.loop.Lane == LaneTurn && !r.loop.Preempts {
			gate = r.stop
		}
		o.commit(r, gate, effects, letters)
	case errors.As(err, &later):
		r.c.notBefore[r.loop.Lane] = o.now().Add(later.After)
		o.takeBack(r)
	case errors.As(err, &enough):
		o.giveUp(r, enough.Why, enough.Quiet)
	case r.ctx.Err() != nil:
		// Cut off: by a person, by a stop, or because the partition is lost, in
		// which case nothing that is enqueued here will be sent.
		o.tell(r, "stopped")
		o.takeBack(r)
	default:
		o.retry(r, err)
	}
}

// commit enqueues the op that applies a step's effects and settles its entries,
// unless the conversation's stop number is no longer gate ("" for any).
func (o *owner) commit(r *run, gate string, effects Effects, letters []letter) {
	puts := effects.Puts
	for _, l := range letters {
		if l.begun {
			puts = append(puts[:len(puts):len(puts)], l.entry.ahead.Puts...)
		}
	}
	o.enqueue(&op{
		conv: r.c.key, stop: gate, settle: true, entries: r.work.Entries,
		letters: letters, history: effects.History, puts: puts, calls: effects.Calls,
		done: func(a answer) {
			switch a.status {
			case opDone:
				o.tell(r, "ok")
				if h := o.n.opt.Hooks.History; h != nil && len(effects.History) > 0 {
					h(r.c.key)
				}
				for _, p := range effects.Puts {
					if p.Table == LastRun {
						o.noteRun(p.Field, p.Value)
					}
				}
				o.settled(r, letters, a)
			case opStopped:
				// The request to stop stands in the stream. The lane is kept until it
				// is read, or the step would begin again before it.
				o.tell(r, "stopped")
				o.stopped = append(o.stopped, r)
				o.read = true
			case opRefused:
				o.retry(r, a.err)
			default:
				o.drop(r, a)
			}
		},
	})
}

// settled takes the work out of memory and its letters in.
func (o *owner) settled(r *run, letters []letter, a answer) {
	o.end(r)
	o.forget(r.c, r.work.Entries)
	for i, l := range letters {
		if l.entry == nil || i >= len(a.ids) {
			continue
		}
		l.entry.ID, l.entry.begun, l.entry.own, l.entry.attempts = a.ids[i], l.begun, true, 1
		l.entry.ahead.At, l.entry.ahead.Sent = a.at, a.sent
		l.entry.stop, _ = strconv.ParseInt(a.stop, 10, 64) // the script gives a number
		o.deliver(l.entry)
	}
}

// drop forgets work whose entries were settled before. When the call was sent
// more than once that was this very op, and what it published is found in the
// pending list.
func (o *owner) drop(r *run, a answer) {
	if a.repeated {
		o.reload = true
		o.tell(r, "ok")
	} else {
		o.n.log.Error("entries_settled_by_others", "partition", o.p, "loop", r.loop.Name,
			"conversation", r.c.key, "entry", r.work.Entries[0].ID)
		o.reload = true
	}
	o.end(r)
	o.forget(r.c, r.work.Entries)
}

// end frees the lane.
func (o *owner) end(r *run) {
	r.over("lost")
	r.cancel(nil)
	if r.c.running[r.loop.Lane] == r {
		delete(r.c.running, r.loop.Lane)
	}
	o.touch(r.c)
}

// takeBack ends a run that does not count as an attempt.
func (o *owner) takeBack(r *run) {
	if r.c.running[r.loop.Lane] != r {
		return // it was taken back before
	}
	o.end(r)
	for _, e := range r.work.Entries {
		e.attempts = max(e.attempts-1, 0)
	}
	o.enqueue(&op{
		conv: r.c.key, entries: r.work.Entries, puts: attemptPuts(r.work.Entries),
		done: func(answer) {}, // a settled entry has no count to take back
	})
}

// retry ends a failed run; it is tried again after 200 ms, doubling to 30 s.
func (o *owner) retry(r *run, err error) {
	o.tell(r, "retry")
	o.n.log.Warn("step_failed", "loop", r.loop.Name, "partition", o.p, "conversation", r.c.key,
		"attempt", r.work.Attempt, "entry", r.work.Entries[0].ID, "error", err)
	o.end(r)
	wait := min(200*time.Millisecond<<min(r.work.Attempt-1, 8), 30*time.Second)
	r.c.notBefore[r.loop.Lane] = o.now().Add(wait/2 + time.Duration(o.n.opt.Rand()%uint64(wait/2+1)))
}

func (o *owner) tell(r *run, outcome string) {
	r.over(outcome)
	if h := o.n.opt.Hooks.Step; h != nil {
		h(r.loop.Name, outcome, time.Since(r.started))
	}
	if h := o.n.opt.Hooks.Hop; h != nil && outcome == "ok" {
		h(r.loop.Name, o.now().Sub(r.work.Entries[0].accepted()))
	}
}

// mark commits puts of a running step. It must not outlive the owner.
func (o *owner) mark(ctx context.Context, r *run, puts []Put) (time.Time, error) {
	if err := knownTables(puts); err != nil {
		return time.Time{}, fmt.Errorf("mark in %s: %w", r.c.key, err)
	}
	type outcome struct {
		at  time.Time
		err error
	}
	result := make(chan outcome, 1)
	o.hand(func() {
		o.enqueue(&op{
			conv: r.c.key, entries: r.work.Entries, puts: puts, durable: true,
			done: func(a answer) {
				switch a.status {
				case opDone:
					result <- outcome{at: o.now()} // the clock was set by this very answer
				case opRefused:
					result <- outcome{err: fmt.Errorf("mark in %s: %w", r.c.key, a.err)}
				default:
					result <- outcome{err: fmt.Errorf("mark in %s: its entries are settled: %w", r.c.key, ErrLost)}
				}
			},
		})
	})
	select {
	case out := <-result:
		return out.at, out.err
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	case <-o.ctx.Done():
		return time.Time{}, context.Cause(o.ctx)
	}
}

// field reads one field of a table.
func (o *owner) field(ctx context.Context, t Table, field string) (string, error) {
	v, err := o.n.opt.Client.HGet(ctx, o.n.keys.Table(o.p, t), field).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read field %q of %s: %w", field, o.n.keys.Table(o.p, t), err)
	}
	return v, nil
}
