package task

import (
	"context"
	"slices"
	"time"
)

// take takes tasks while there is room, until ctx is over. What it takes runs until
// rest is over.
func (p *Pool) take(ctx, rest context.Context) {
	fails := 0
	for ctx.Err() == nil {
		p.setClasses(p.classes(p.storages()))
		wait, err := p.takeAll(ctx, rest)
		if fails++; err == nil {
			fails = 0
		} else {
			wait = min(25*time.Millisecond<<min(fails, 7), 2*time.Second)
			if ctx.Err() == nil && fails%10 == 1 {
				p.log.Warn("task_take_failed", "node", p.o.Node, "error", err)
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-p.poke:
			if err != nil { // what is heard while Redis fails is no reason to hurry
				select {
				case <-t.C:
				case <-ctx.Done():
				}
			}
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// takeAll takes what there is and has room, and says how long until there may be
// more without anything being heard.
func (p *Pool) takeAll(ctx, rest context.Context) (time.Duration, error) {
	for ctx.Err() == nil {
		if p.o.Resting != nil && p.o.Resting() && len(p.claims.open) == 0 {
			p.board.hearAll() // there may be anything by the time it takes again
			return time.Second, nil
		}
		asked := p.board.askingAll()
		free, rooms := p.rooms()
		var wants []want
		if len(p.claims.open) == 0 {
			if free == 0 || len(rooms) == 0 {
				break // a run that ends pokes
			}
			if news := p.board.news(time.Now()); len(news) > 0 {
				classes := make([]string, len(rooms))
				for i, r := range rooms {
					classes[i] = r.class
				}
				views, err := p.q.lookAll(ctx, news, looker{}, classes)
				for part, v := range views {
					p.board.learn(part, asked[part], v.outlook, time.Now())
				}
				if err != nil {
					return 0, err
				}
			}
			if wants = p.board.plan(free); len(wants) == 0 {
				return p.board.nextDue(time.Now(), time.Hour), nil // the sweeper looks more often
			}
			if slices.ContainsFunc(rooms, func(r room) bool { return r.most < free }) {
				wants = wants[:1] // another partition would not know what this one takes of a profile
			}
		}
		got, outs, err := p.claims.ask(ctx, wants, rooms)
		for part, out := range outs {
			p.board.learn(part, asked[part], out, time.Now())
		}
		for _, t := range got {
			p.begin(rest, t)
		}
		if err != nil {
			for _, w := range wants {
				if _, ok := outs[w.p]; !ok {
					p.board.hear(w.p)
				}
			}
			return 0, err
		}
	}
	return time.Hour, nil
}

// giveBackUnknown asks once more for claims whose answers are not known, and hands
// back what they have taken.
func (p *Pool) giveBackUnknown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.q.o.CallTimeout)
	defer cancel()
	for len(p.claims.open) > 0 {
		list, _, err := p.claims.ask(ctx, nil, nil)
		for _, got := range list {
			if _, err := p.q.settle(ctx, got.p, got.token, got.task.ID, verdict{how: "back"}); err != nil {
				p.log.Warn("task_not_handed_back", "node", p.o.Node, "task_id", got.task.ID, "error", err)
			}
		}
		if err != nil {
			p.log.Warn("task_claim_unknown", "node", p.o.Node, "error", err)
			if pause(ctx, 50*time.Millisecond) != nil {
				return
			}
		}
	}
}

// pause waits, unless ctx is over before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
