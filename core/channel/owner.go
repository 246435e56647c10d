package channel

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// An owner runs one partition while its token holds. All of its memory belongs
// to one goroutine, which alternates between deciding what to start and one call
// to Redis that commits what is done, counts what starts, and delivers what is
// new. Steps run in goroutines of their own and hand their effects back.
type owner struct {
	n          *Node
	p          int
	token      string
	generation uint64
	losses     int64 // of the partition when the owner began
	seq        int64 // of the last call; one that Redis sees late is refused
	keys       []string
	result     error // of run, set before it is reported over

	ctx    context.Context // ends, with a cause, when the owner may write no more
	cancel context.CancelCauseFunc

	clock   time.Duration // Redis' time minus ours
	renewAt time.Time     // Redis time
	suspect time.Time     // posts are looked up until then

	sweepAt time.Time // Redis time

	convs   map[string]*conversation // :: key -> what it has waiting
	runs    map[string]time.Time     // :: conversation -> when the thinker last ran there
	known   map[string]bool          // :: channel:entry in memory
	dirty   []*conversation          // to be examined
	timers  timers
	ops     []*op
	stopped []*run // refused for their stop number; taken back after the next read
	read    bool   // channels written by others may have something new
	readAll bool   // any channel may
	hot     bool   // the last read brought something: calls made for other reasons read too, until the waiter is armed
	reload  bool   // the pending list may hold more than memory

	lastID  map[Name]string // :: external channel -> newest id delivered
	heard   map[Name]string // :: external channel -> id that the waiter saw, until everything up to it was delivered
	waiting bool            // the waiter has been armed
	arm     chan []string   // to the waiter: streams and ids

	mu       sync.Mutex
	finished []func()          // handed over by other goroutines, run by the owner
	woken    map[string]string // :: stream -> id that the waiter saw there; nil while it sleeps
	leaveAt  time.Time
	asked    bool          // to leave
	wake     chan struct{} // capacity 1
}

func newOwner(n *Node, p int, token string, nowMs int64) *owner {
	ctx, cancel := context.WithCancelCause(context.Background())
	o := &owner{
		n: n, p: p, token: token, generation: n.opt.Generation(), losses: n.losses[p].Load(), ctx: ctx, cancel: cancel,
		convs: map[string]*conversation{}, runs: map[string]time.Time{}, known: map[string]bool{}, lastID: map[Name]string{}, heard: map[Name]string{},
		arm: make(chan []string, 1), wake: make(chan struct{}, 1),
	}
	k := n.keys
	o.keys = []string{k.Lease(p), k.Commits(p), k.Stops(p), k.Waiting(p), k.Active(p)}
	for _, r := range roads {
		o.keys = append(o.keys, k.Stream(p, r.name))
		o.lastID[r.name] = "0-0"
	}
	for _, f := range files {
		o.keys = append(o.keys, k.file(p, f))
	}
	for _, t := range tables {
		o.keys = append(o.keys, k.Table(p, t))
	}
	o.setClock(nowMs)
	o.renewAt = o.now().Add(n.opt.Lease / 3)
	return o
}

// setClock learns Redis' time, which decides every debounce, so that all nodes
// agree.
func (o *owner) setClock(ms int64) { o.clock = time.Until(time.UnixMilli(ms)) }

func (o *owner) now() time.Time { return time.Now().Add(o.clock) }

// reads reports whether a loop of this node takes from the channel.
func (o *owner) reads(n Name) bool {
	for _, l := range o.n.opt.Loops {
		if slices.Contains(l.From, n) {
			return true
		}
	}
	return false
}

// run owns the partition until it is asked to leave (nil) or loses it.
func (o *owner) run() error {
	o.n.steps.Go(o.waitForNews)
	err := o.loop()
	if err == nil {
		err = o.release()
	}
	o.cancel(cause(err))
	o.lose()
	return err
}

// cause is what steps and marks that are still under way are told.
func cause(err error) error {
	if err == nil {
		return ErrStopping
	}
	return err
}

func (o *owner) loop() error {
	if err := o.load(); err != nil {
		return err
	}
	for {
		o.takeHandedOver()
		if o.n.losses[o.p].Load() != o.losses {
			return fmt.Errorf("partition %d: Redis has lost writes: %w", o.p, errVoid)
		}
		if o.reload {
			// Nothing may be decided on a memory that lacks an entry.
			if err := o.load(); err != nil {
				return err
			}
		}
		leaving, until := o.departure()
		if leaving {
			// Again and again: what ends now publishes, and calls made for that read.
			o.takeBackBegun()
			if !o.now().Before(until) {
				o.cutOff(ErrStopping)
			}
			if !o.now().Before(until.Add(deafGrace)) {
				o.abandon()
			}
		} else {
			o.ring()
			for len(o.dirty) > 0 {
				c := o.dirty[0]
				o.dirty = o.dirty[1:]
				c.dirty = false
				if err := o.examine(c); err != nil {
					return err
				}
			}
		}
		switch {
		case len(o.ops) > 0, !leaving && (o.read || o.readAll):
			if err := o.cycle(); err != nil {
				return err
			}
			continue
		case leaving && o.running() == 0:
			return nil
		case o.now().After(o.renewAt):
			o.readAll = !leaving
			if !leaving && o.now().After(o.sweepAt) {
				o.sweep()
			}
			if err := o.cycle(); err != nil {
				return err
			}
			continue
		}
		o.idle(leaving, until)
	}
}

// idle waits until there is something to do.
func (o *owner) idle(leaving bool, until time.Time) {
	if !leaving && !o.waiting {
		o.waiting, o.hot = true, false
		o.arm <- o.news()
	}
	next := o.renewAt
	if leaving {
		if !until.After(o.now()) {
			until = until.Add(deafGrace)
		}
		if until.Before(next) {
			next = until
		}
	}
	if !leaving && len(o.timers) > 0 && o.timers[0].at.Before(next) {
		next = o.timers[0].at
	}
	t := time.NewTimer(max(next.Sub(o.now()), time.Millisecond))
	defer t.Stop()
	select {
	case <-o.wake:
	case <-t.C:
	}
}

// news spells what the waiter waits for: the channels that others write to.
func (o *owner) news() []string {
	var streams, ids []string
	for _, r := range roads {
		if r.external && o.reads(r.name) {
			streams = append(streams, o.n.keys.Stream(o.p, r.name))
			ids = append(ids, o.lastID[r.name])
		}
	}
	return append(streams, ids...)
}

// waitForNews sleeps in a plain XREAD, which consumes nothing, so that an owner
// that was replaced meanwhile steals no entry.
func (o *owner) waitForNews() {
	for {
		var streams []string
		select {
		case streams = <-o.arm:
		case <-o.ctx.Done():
			return
		}
		if len(streams) == 0 {
			<-o.ctx.Done() // no loop reads what others write
			return
		}
		var seen map[string]string // :: stream -> id
		for o.ctx.Err() == nil {
			got, err := o.n.opt.Blocking.XRead(o.ctx, &redis.XReadArgs{Streams: streams, Count: 1, Block: o.n.opt.Poll}).Result()
			if errors.Is(err, redis.Nil) || (err == nil && len(got) == 0) {
				continue
			}
			if err != nil {
				// The owner's own calls say what is wrong with Redis; here it is
				// enough not to spin.
				t := time.NewTimer(o.n.opt.Poll / 4)
				select {
				case <-t.C:
				case <-o.ctx.Done():
					t.Stop()
				}
				continue
			}
			seen = make(map[string]string, len(got))
			for _, s := range got {
				seen[s.Stream] = s.Messages[len(s.Messages)-1].ID
			}
			break
		}
		o.mu.Lock()
		o.woken = seen
		o.mu.Unlock()
		o.signal()
	}
}

func (o *owner) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// hand gives the owner something to do in its own goroutine.
func (o *owner) hand(f func()) {
	o.mu.Lock()
	o.finished = append(o.finished, f)
	o.mu.Unlock()
	o.signal()
}

func (o *owner) takeHandedOver() {
	o.mu.Lock()
	todo := o.finished
	o.finished = nil
	if o.woken != nil {
		for _, r := range roads {
			if id := o.woken[o.n.keys.Stream(o.p, r.name)]; id != "" {
				o.heard[r.name] = id
			}
		}
		o.woken, o.waiting, o.read = nil, false, true
	}
	o.mu.Unlock()
	for _, f := range todo {
		f()
	}
}

// leave asks the owner to start nothing more, to wait so long for running steps,
// to cut off the rest, and to give the partition back.
func (o *owner) leave(grace time.Duration) {
	o.mu.Lock()
	at := time.Now().Add(grace)
	if !o.asked || at.Before(o.leaveAt) {
		o.asked, o.leaveAt = true, at
	}
	o.mu.Unlock()
	o.signal()
}

func (o *owner) leaving() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// departure is whether the owner is to leave, and until when (Redis time)
// running steps may go on.
func (o *owner) departure() (bool, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked, o.leaveAt.Add(o.clock)
}

func (o *owner) release() error {
	_, err := releaseScript.Run(o.ctx, o.n.opt.Client, o.keys[:2], o.token).Result()
	if err != nil {
		return fmt.Errorf("release partition %d: %w", o.p, err)
	}
	return nil
}

// running counts the works under way.
func (o *owner) running() int {
	n := 0
	for _, c := range o.convs {
		n += len(c.running)
	}
	return n
}

func (o *owner) cutOff(why error) {
	for _, c := range o.convs {
		for _, r := range c.running {
			r.cancel(why)
		}
	}
}

// deafGrace is how long a step that was cut off may take to return before the
// node goes on without it.
const deafGrace = time.Second

// abandon takes back the starts of steps that do not hear that they were cut
// off, so that the partition can be given back. What they do later is refused
// with the token.
func (o *owner) abandon() {
	for _, c := range o.convs {
		for _, r := range c.running {
			o.n.log.Error("step_abandoned", "loop", r.loop.Name, "partition", o.p, "conversation", c.key,
				"entry", r.work.Entries[0].ID, "running_for", time.Since(r.started))
			o.tell(r, "stopped")
			o.takeBack(r)
		}
	}
}

// takeBackBegun takes back the starts that a commit counted ahead, of steps that
// this owner will not start any more.
func (o *owner) takeBackBegun() {
	for _, c := range o.convs {
		for _, list := range c.buffer.entries {
			for _, e := range list {
				if e.begun {
					e.begun, e.attempts = false, 0
					puts := attemptPuts([]*Entry{e})
					for _, p := range e.ahead.Puts {
						puts = append(puts, Put{Table: p.Table, Field: p.Field})
					}
					o.enqueue(&op{conv: c.key, entries: []*Entry{e}, puts: puts, done: func(answer) {}})
				}
			}
		}
	}
}

// ring makes the conversations dirty whose time has come.
func (o *owner) ring() {
	now := o.now()
	for len(o.timers) > 0 && !o.timers[0].at.After(now) {
		t := heap.Pop(&o.timers).(timer)
		if t.c.timer.Equal(t.at) {
			t.c.timer = time.Time{}
		}
		if o.convs[t.c.key] == t.c {
			o.touch(t.c)
		}
	}
}

func (o *owner) touch(c *conversation) {
	if !c.dirty {
		c.dirty = true
		o.dirty = append(o.dirty, c)
	}
}

// lookAgain examines a conversation after a while.
func (o *owner) lookAgain(c *conversation, after time.Duration) {
	at := o.now().Add(after)
	if !c.timer.IsZero() && !c.timer.After(at) {
		return // an earlier look will decide again
	}
	c.timer = at
	heap.Push(&o.timers, timer{at: at, c: c})
}

type timer struct {
	at time.Time
	c  *conversation
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}
