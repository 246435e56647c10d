package channel

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// How long an idle conversation is kept, how often an owner looks for such, and
// how many it removes at once.
const (
	keepIdle   = 30 * 24 * time.Hour
	sweepEvery = time.Hour
	sweepPage  = 100
	keepRun    = time.Hour // longest pause between two runs of a thinker that config allows
)

// sweep cuts the feedback to its bound, removes conversations that were idle for keepIdle and have nothing
// waiting, and forgets runs that no pause can depend on any more. What fails is
// tried again in the next round.
func (o *owner) sweep() {
	o.sweepAt = o.now().Add(sweepEvery)
	ctx, cancel := context.WithTimeout(o.ctx, o.n.opt.CallTimeout)
	defer cancel()
	o.forgetRuns()
	if err := o.trimFeedback(ctx); err != nil {
		o.n.log.Warn("sweep_failed", "partition", o.p, "error", err)
	}
	cutoff := o.now().Add(-keepIdle).UnixMilli()
	idle, err := o.n.opt.Client.ZRangeByScore(ctx, o.n.keys.Active(o.p), &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(cutoff, 10), Count: sweepPage,
	}).Result()
	if err != nil {
		o.n.log.Warn("sweep_failed", "partition", o.p, "error", err)
		return
	}
	k := o.n.keys
	for _, conv := range idle {
		if o.convs[conv] != nil {
			continue
		}
		_, err := o.n.run(ctx, false, sweepScript,
			[]string{k.Lease(o.p), k.Commits(o.p), k.Active(o.p), k.Stops(o.p), k.of(o.p, "h:"+conv), k.Waiting(o.p)},
			o.token, conv, cutoff)
		if err != nil {
			o.n.log.Warn("sweep_failed", "partition", o.p, "conversation", conv, "error", err)
			return
		}
	}
	if len(idle) == sweepPage {
		o.sweepAt = o.now().Add(time.Second)
	}
}

// loadRuns reads when the thinker last ran in each conversation. Only a
// configured pause between runs leaves any.
func (o *owner) loadRuns(ctx context.Context) error {
	got, err := o.n.opt.Client.HGetAll(ctx, o.n.keys.Table(o.p, LastRun)).Result()
	if err != nil {
		return err
	}
	for conv, ms := range got {
		o.noteRun(conv, ms)
	}
	return nil
}

// noteRun remembers a put of the LastRun table.
func (o *owner) noteRun(conv, ms string) {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		delete(o.runs, conv)
		return
	}
	o.runs[conv] = time.UnixMilli(n)
}

func (o *owner) forgetRuns() {
	var puts []Put
	for conv, at := range o.runs {
		if o.now().Sub(at) > keepRun && len(puts) < maxIDs {
			delete(o.runs, conv)
			puts = append(puts, Put{LastRun, conv, ""})
		}
	}
	if len(puts) > 0 {
		o.enqueue(&op{puts: puts, done: func(answer) {}})
	}
}
