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
	waitFold   = 30 * 24 * time.Hour  // for the fold of a conversation that was idle for keepIdle
	keepSum    = 365 * 24 * time.Hour // how long the summary of a removed conversation is kept
	foldEvery  = time.Minute          // how soon a conversation is looked at again that waits for its fold
	sweepEvery = time.Hour
	sweepPage  = 100
	keepRun    = time.Hour // longest pause between two runs of a thinker that config allows
)

// sweep cuts the feedback to its bound, removes conversations that were idle for
// keepIdle, have nothing waiting and are folded, and forgets runs that no pause
// can depend on any more. What is not folded is told to be, and removed when that
// did not come about in waitFold. What fails is tried again in the next round.
func (o *owner) sweep() {
	o.sweepAt = o.now().Add(sweepEvery)
	ctx, cancel := context.WithTimeout(o.ctx, o.n.opt.CallTimeout)
	defer cancel()
	o.forgetRuns()
	if err := o.trimFeedback(ctx); err != nil {
		o.n.log.Warn("sweep_failed", "partition", o.p, "error", err)
	}
	cutoff := o.now().Add(-keepIdle).UnixMilli()
	idle, err := o.n.opt.Client.ZRangeByScoreWithScores(ctx, o.n.keys.Active(o.p), &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(cutoff, 10), Count: sweepPage,
	}).Result()
	if err != nil {
		o.n.log.Warn("sweep_failed", "partition", o.p, "error", err)
		return
	}
	k, fold := o.n.keys, o.n.opt.Hooks.Idle
	unfolded := 0
	for _, z := range idle {
		conv, ok := z.Member.(string)
		if !ok || o.convs[conv] != nil {
			continue
		}
		given := fold == nil || int64(z.Score) < cutoff-waitFold.Milliseconds()
		got, err := o.n.run(ctx, false, sweepScript,
			[]string{k.Lease(o.p), k.Commits(o.p), k.Active(o.p), k.Stops(o.p), k.of(o.p, "h:"+conv), k.Waiting(o.p), k.Summary(conv)},
			o.token, conv, cutoff, flag(given), keepSum.Milliseconds())
		if err != nil {
			o.n.log.Warn("sweep_failed", "partition", o.p, "conversation", conv, "error", err)
			return
		}
		if len(got) < 3 {
			continue
		}
		switch lines := asInt(got[2]); {
		case asInt(got[1]) == 2:
			unfolded++
			fold(conv)
		case asInt(got[1]) == 1 && lines > 0 && fold != nil:
			o.n.log.Error("history_cut", "partition", o.p, "conversation", conv, "lines", lines, "idle_since", time.UnixMilli(int64(z.Score)).UTC())
			if h := o.n.opt.Hooks.HistoryCut; h != nil {
				h(conv, lines)
			}
		}
	}
	switch {
	case unfolded > 0:
		o.sweepAt = o.now().Add(foldEvery)
	case len(idle) == sweepPage:
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
