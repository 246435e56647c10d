package channel

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// load reads everything that is delivered and unsettled, page by page, and takes
// into memory what is not there yet. It makes a new owner's memory whole, and
// heals one that missed an answer.
func (o *owner) load() error {
	if err := o.checkTypes(); err != nil {
		return err
	}
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

// checkTypes refuses a partition one of whose keys holds another type, which
// another program has put there: a script that met it half way would keep what
// it did until then.
func (o *owner) checkTypes() error {
	want := append([]string{"hash", "string", "hash", "hash", "zset"}, slices.Repeat([]string{"stream"}, len(roads)+len(files))...)
	want = append(want, slices.Repeat([]string{"hash"}, len(tables))...)
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(o.ctx, o.n.opt.CallTimeout)
		pipe := o.n.opt.Client.Pipeline()
		types := make([]*redis.StatusCmd, len(o.keys))
		for i, k := range o.keys {
			types[i] = pipe.Type(ctx, k)
		}
		_, err := pipe.Exec(ctx)
		cancel()
		if err == nil {
			for i, t := range types {
				if got := t.Val(); got != want[i] && got != "none" {
					return fmt.Errorf("partition %d: %s holds a %s and must be a %s: another program uses this Redis with the same prefix", o.p, o.keys[i], got, want[i])
				}
			}
			return nil
		}
		if err := o.explain(err); err != nil {
			return err
		}
		if err := o.pause(try, err); err != nil {
			return err
		}
	}
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

// starts reads how often the steps of unsettled entries were started, and when
// the thinker last ran.
func (o *owner) starts() (map[string]int, error) {
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(o.ctx, o.n.opt.CallTimeout)
		got, err := o.n.opt.Client.HGetAll(ctx, o.n.keys.Table(o.p, Attempts)).Result()
		if err == nil {
			err = o.loadRuns(ctx)
		}
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
