package channel

import (
	"context"
	"runtime/debug"
	"sort"
	"time"

	"github.com/redis/go-redis/v9"
)

// The bounds within which a conversation's waiting entries are held whole; the
// rest is held by id and read again when its turn comes.
const (
	heldEntries = 100
	heldBytes   = 256 << 10
)

// A conversation is what an owner remembers of one while it has work. It is
// dropped when nothing waits and nothing runs.
type conversation struct {
	key       string
	buffer    Buffer
	entries   int // in the buffer
	whole     int // of them with their payload
	bytes     int // of those payloads
	running   map[Lane]*run
	notBefore map[Lane]time.Time // Redis time
	dirty     bool
	timer     time.Time
}

// deliver takes an entry into memory, once.
func (o *owner) deliver(e *Entry) {
	if idLess(o.lastID[e.Channel], e.ID) {
		o.lastID[e.Channel] = e.ID
	}
	key := string(e.Channel) + ":" + e.ID
	if o.known[key] {
		return
	}
	o.known[key] = true
	c := o.convs[e.Conversation]
	if c == nil {
		c = &conversation{
			key: e.Conversation, running: map[Lane]*run{}, notBefore: map[Lane]time.Time{},
			buffer: Buffer{Conversation: e.Conversation, entries: map[Name][]*Entry{}},
		}
		o.convs[e.Conversation] = c
	}
	c.entries++
	if e.bad == nil {
		if c.whole >= heldEntries || c.bytes+e.Size > heldBytes {
			e.Value = nil
		} else {
			c.whole++
			c.bytes += e.Size
		}
	}
	list := append(c.buffer.entries[e.Channel], e)
	if n := len(list); n > 1 && idLess(e.ID, list[n-2].ID) {
		sort.Slice(list, func(i, j int) bool { return idLess(list[i].ID, list[j].ID) })
	}
	c.buffer.entries[e.Channel] = list
	o.touch(c)
}

// forget takes settled entries out of memory.
func (o *owner) forget(c *conversation, entries []*Entry) {
	for _, e := range entries {
		delete(o.known, string(e.Channel)+":"+e.ID)
		list := c.buffer.entries[e.Channel]
		for i, have := range list {
			if have != e {
				continue
			}
			list = append(list[:i:i], list[i+1:]...)
			c.entries--
			if e.bad == nil && e.Value != nil {
				c.whole--
				c.bytes -= e.Size
			}
			break
		}
		if len(list) == 0 {
			delete(c.buffer.entries, e.Channel)
		} else {
			c.buffer.entries[e.Channel] = list
		}
	}
	o.touch(c)
}

// examine decides what a conversation starts now.
func (o *owner) examine(c *conversation) error {
	if c.entries == 0 {
		if len(c.running) == 0 {
			delete(o.convs, c.key)
		}
		return nil
	}
	c.buffer.Now, c.buffer.LastRun = o.now(), o.runs[c.key]
	for _, lane := range []Lane{LaneTurn, LaneDeliver} {
		// Nothing new is begun before what cannot be read is out of the way; a
		// request to stop passes it.
		bad := c.firstBad(o.n.opt.Loops, lane)
		if bad != nil && c.running[lane] == nil && !c.notBefore[lane].After(c.buffer.Now) {
			loop := o.loopOf(bad.Channel)
			o.giveUp(o.newRun(c, loop, []*Entry{bad}), "it cannot be read: "+bad.bad.Error(), false)
			continue
		}
		if err := o.examineLane(c, lane); err != nil {
			return err
		}
	}
	return nil
}

func (o *owner) examineLane(c *conversation, lane Lane) error {
	current := c.running[lane]
	early := c.notBefore[lane].Sub(c.buffer.Now)
	var next time.Duration
	for i := range o.n.opt.Loops {
		loop := &o.n.opt.Loops[i]
		if loop.Lane != lane || (!loop.Preempts && (current != nil || early > 0)) {
			continue
		}
		take, wait := o.ask(loop, c)
		if len(take) == 0 {
			if wait > 0 && (next == 0 || wait < next) {
				next = wait
			}
			continue
		}
		if current != nil {
			if !current.loop.Preempts {
				current.cancel(ErrStopped)
			}
			return nil
		}
		return o.begin(o.newRun(c, loop, take))
	}
	if current == nil && early > 0 && (next == 0 || early < next) {
		next = early
	}
	if next > 0 {
		o.lookAgain(c, next)
	}
	return nil
}

// ask asks a loop what it takes. One that panics takes nothing for a while, so
// that one conversation cannot take the node down.
func (o *owner) ask(loop *Loop, c *conversation) (take []*Entry, wait time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			o.n.log.Error("ready_panicked", "loop", loop.Name, "partition", o.p, "conversation", c.key,
				"panic", p, "stack", string(debug.Stack()))
			take, wait = nil, time.Minute
		}
	}()
	return loop.Ready(&c.buffer)
}

// firstBad is the oldest entry of the lane whose payload cannot be decoded.
func (c *conversation) firstBad(loops []Loop, lane Lane) *Entry {
	for i := range loops {
		if loops[i].Lane != lane {
			continue
		}
		for _, from := range loops[i].From {
			for _, e := range c.buffer.entries[from] {
				if e.bad != nil {
					return e
				}
			}
		}
	}
	return nil
}

func (o *owner) loopOf(n Name) *Loop {
	for i := range o.n.opt.Loops {
		l := &o.n.opt.Loops[i]
		for _, from := range l.From {
			if from == n && !l.Preempts {
				return l
			}
		}
	}
	return &o.n.opt.Loops[0] // reads() admits only channels that a loop takes from
}

// makeWhole reads again the payloads that were beyond the buffer's bounds.
func (o *owner) makeWhole(r *run) error {
	var missing []*Entry
	for _, e := range r.work.Entries {
		if e.Value == nil && e.bad == nil {
			missing = append(missing, e)
		}
	}
	for try := 0; len(missing) > 0; try++ {
		err := o.fetch(missing)
		if err == nil {
			break
		}
		if err := o.explain(err); err != nil {
			return err
		}
		if err := o.pause(try, err); err != nil {
			return err
		}
	}
	for _, e := range missing {
		if e.Value != nil {
			r.c.whole++
			r.c.bytes += e.Size
		}
	}
	return nil
}

func (o *owner) fetch(missing []*Entry) error {
	ctx, cancel := context.WithTimeout(o.ctx, o.n.opt.CallTimeout)
	defer cancel()
	raw, err := o.raw(ctx, missing)
	if err != nil {
		return err
	}
	for i, e := range missing {
		if raw[i] == nil {
			continue // settled or deleted meanwhile; the script will say so
		}
		whole := readEntry(e.Channel, e.ID, raw[i], roads[roadNumber(e.Channel)-1].decode)
		e.Value = whole.Value
	}
	return nil
}

// raw reads entries as they stand in their streams; nil for one that is gone.
func (o *owner) raw(ctx context.Context, entries []*Entry) ([]map[string]string, error) {
	pipe := o.n.opt.Client.Pipeline()
	cmds := make([]*redis.XMessageSliceCmd, len(entries))
	for i, e := range entries {
		cmds[i] = pipe.XRange(ctx, o.n.keys.Stream(o.p, e.Channel), e.ID, e.ID)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	out := make([]map[string]string, len(entries))
	for i, c := range cmds {
		if len(c.Val()) == 0 {
			continue
		}
		out[i] = map[string]string{}
		for k, v := range c.Val()[0].Values {
			out[i][k] = asString(v)
		}
	}
	return out, nil
}
