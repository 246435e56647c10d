package task

import (
	"context"
	"time"
)

// sweep looks at every partition now and then, so that nothing waits for a signal
// that was lost, and does what no run does for itself: it finds lapsed runs, passes
// cancels on and forgets what is old. All nodes look, so that each can take over
// from another at once; in each partition one acts.
func (p *Pool) sweep(ctx context.Context) {
	parts := make([]sweeping, p.q.keys.Partitions)
	for i := range parts {
		parts[i].watch.lease = p.q.o.Lease
	}
	for ctx.Err() == nil {
		now := time.Now()
		next := now.Add(p.o.Look)
		for i := range parts {
			s := &parts[i]
			// Of a partition that another sweeps its signals are not for us.
			if wanted := p.board.wanted(i); wanted && s.ours || !now.Before(s.next) {
				p.sweepPart(ctx, i, s)
			}
			if s.next.Before(next) {
				next = s.next
			}
		}
		t := time.NewTimer(max(time.Until(next), time.Millisecond))
		select {
		case <-t.C:
		case <-p.urge:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// sweeping is what the sweeper knows of a partition.
type sweeping struct {
	watch watch
	next  time.Time
	ours  bool // we were the ones to act when we looked last
}

func (p *Pool) sweepPart(ctx context.Context, part int, s *sweeping) {
	lease := p.q.o.Lease
	asked := p.board.asking(part)
	storages := p.storages()
	v, err := p.q.look(ctx, part, looker{p.claims.id, storages}, p.classes(storages))
	now := time.Now()
	if err != nil {
		s.watch.forget()
		s.next = now.Add(lease / 3)
		if ctx.Err() == nil {
			p.log.Warn("task_sweep_failed", "node", p.o.Node, "partition", part, "error", err)
		}
		return
	}
	p.board.learn(part, asked, v.outlook, now)
	if len(v.scores) > 0 {
		nudge(p.poke)
	}
	if v.told > 0 {
		p.log.Warn("task_storage_away", "node", p.o.Node, "partition", part, "tasks", v.told)
	}
	lapsed := s.watch.look(now, v.runs)
	s.ours, s.next = v.sweep, now.Add(p.o.Look)
	if len(v.runs) > 0 {
		s.next = now.Add(min(p.o.Look, lease/3))
	}
	if !v.sweep {
		return
	}
	for _, r := range lapsed {
		p.lapse(ctx, part, s, r)
	}
	if v.cascades > 0 {
		ctx, cancel := context.WithTimeout(ctx, lease)
		if err := p.q.Cascade(ctx, part); err != nil {
			p.log.Warn("cancel_cascade_unfinished", "node", p.o.Node, "partition", part, "error", err)
		}
		cancel()
	}
	if !v.oldest.IsZero() && v.now.Sub(v.oldest) >= p.q.o.Retention {
		p.forget(ctx, part, v.now)
	}
}

// lapse ends a run that nobody has heard of for a lease, unless it has shown itself
// after all.
func (p *Pool) lapse(ctx context.Context, part int, s *sweeping, r beat) {
	ctx, cancel := context.WithTimeout(ctx, p.q.o.CallTimeout)
	defer cancel()
	to, err := p.q.settle(ctx, part, r.token, r.id, verdict{how: "lapse", beats: r.count})
	if err != nil {
		s.watch.forget()
		p.log.Warn("task_lapse_failed", "node", p.o.Node, "task_id", r.id, "error", err)
		return
	}
	if to == "alive" {
		return
	}
	p.log.Warn("task_lapsed", "node", p.o.Node, "task_id", r.id, "run", r.token, "status", to)
	if p.o.Hooks.Lapsed != nil {
		p.o.Hooks.Lapsed()
	}
}

// forget removes what ended long ago, a bounded number at a time.
func (p *Pool) forget(ctx context.Context, part int, now time.Time) {
	for range 20 {
		more, err := p.q.forget(ctx, part, now)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("task_forget_failed", "node", p.o.Node, "partition", part, "error", err)
		}
		if err != nil || !more {
			return
		}
	}
}
