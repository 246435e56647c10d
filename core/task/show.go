package task

import (
	"context"
	"sync"
	"time"
)

// showRuns shows again and again that this node's runs live. What cannot be shown
// for two thirds of a lease is ended by its alarm, before anybody else may think
// that it has lapsed.
func (p *Pool) showRuns(ctx context.Context) {
	tick := time.NewTicker(p.q.o.Lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.showOnce(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// showOnce shows all runs, one call a partition, none of which outlives the tick. A
// young run has shown itself by its claim, and is shown twice all the same before
// its alarm goes off.
func (p *Pool) showOnce(ctx context.Context) {
	byPart := map[int][]*Run{}
	p.each(func(r *Run) {
		if time.Since(r.begun) >= p.q.o.Lease/8 {
			byPart[r.p] = append(byPart[r.p], r)
		}
	})
	var calls sync.WaitGroup
	for part, runs := range byPart {
		calls.Go(func() {
			at := time.Now()
			got, err := p.q.shows(ctx, part, min(p.q.o.CallTimeout, p.q.o.Lease/4), runs)
			if err != nil {
				p.log.Warn("task_heartbeat_failed", "node", p.o.Node, "partition", part, "error", err)
				return
			}
			for i, r := range runs {
				switch got[i] {
				case "lost":
					r.cancel(ErrLapsed)
				case "canceled":
					r.shown(at, p.q.o.Lease)
					r.cancel(ErrCanceled)
				default:
					r.shown(at, p.q.o.Lease)
				}
			}
		})
	}
	calls.Wait()
}

// shown puts the alarm off: the run has shown that it lives, not before at. An
// alarm that has gone off stays so.
func (r *Run) shown(at time.Time, lease time.Duration) {
	if left := lease*2/3 - time.Since(at); left > 0 && r.alarm.Stop() {
		r.alarm.Reset(left)
	}
}
