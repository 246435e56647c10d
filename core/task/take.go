package task

import (
	"context"
	"slices"
	"time"
)

// take takes tasks while there is room, until ctx is over. What it takes runs until
// rest is over.
func (p *Pool) take(ctx, rest context.Context) {
	var storages []string
	fails := 0
	for ctx.Err() == nil {
		if p.o.Storages != nil {
			if now := slices.Sorted(slices.Values(p.o.Storages())); !slices.Equal(now, storages) {
				storages = now
				p.board.hearAll()
			}
		}
		wait, err := p.takeAll(ctx, rest)
		if fails++; err == nil {
			fails = 0
		} else {
			wait = min(100*time.Millisecond<<min(fails, 5), 2*time.Second)
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
		asked := p.board.askingAll()
		classes := p.classes(true)
		if len(classes) == 0 {
			break // a run that ends pokes
		}
		for _, part := range p.board.news(time.Now()) {
			v, err := p.q.look(ctx, part, "", classes)
			if err != nil {
				return 0, err
			}
			p.board.learn(part, asked[part], v.outlook, time.Now())
		}
		part, next := p.board.best()
		if part < 0 {
			return p.board.nextDue(time.Now(), time.Hour), nil // the sweeper looks more often
		}
		got, out, err := p.claims.claim(ctx, part, classes, next)
		if err != nil {
			p.board.hear(part)
			return 0, err
		}
		p.board.learn(part, asked[part], out, time.Now())
		if got != nil {
			p.begin(rest, got)
		}
	}
	return time.Hour, nil
}

// giveBackUnknown asks once more for claims whose answers are not known, and hands
// back what they have taken.
func (p *Pool) giveBackUnknown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.q.o.CallTimeout)
	defer cancel()
	for part := range p.claims.open {
		got, _, err := p.claims.claim(ctx, part, nil, "")
		if err == nil && got != nil {
			_, err = p.q.settle(ctx, part, got.token, got.task.ID, verdict{how: "back"})
		}
		if err != nil {
			p.log.Warn("task_claim_unknown", "node", p.o.Node, "partition", part, "error", err)
			return
		}
	}
}
