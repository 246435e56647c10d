package task

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// listen hears what the scripts signal. Nothing depends on it but time: what is
// not heard is found by looking.
func (p *Pool) listen(ctx context.Context) {
	sub := p.q.o.Client.Subscribe(ctx, signals(p.q.keys))
	defer func() { _ = sub.Close() }()
	heard := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(time.Minute), redis.WithChannelSize(1000))
	for {
		select {
		case m := <-heard:
			switch m := m.(type) {
			case *redis.Message:
				p.hear(m.Payload)
			case *redis.Subscription:
				// What was signalled before was not heard.
				p.board.hearAll()
				nudge(p.poke)
			case nil:
				return // closed
			}
		case <-ctx.Done():
			return
		}
	}
}

func (p *Pool) hear(signal string) {
	what, about, _ := strings.Cut(signal, " ")
	about, heads, _ := strings.Cut(about, " ")
	if what == "cancel" {
		p.each(func(r *Run) {
			if r.Task.ID == about {
				r.cancel(ErrCanceled)
			}
		})
		return
	}
	part, err := strconv.Atoi(about)
	if err != nil || part < 0 || part >= p.q.keys.Partitions {
		return
	}
	switch what {
	case "wake":
		if p.wake(part, strings.Fields(heads)) {
			nudge(p.poke)
		}
	case "sweep":
		p.board.want(part)
		nudge(p.urge)
	}
}

// wake takes in what is told of a partition's new heads, pairs of class and score,
// and reports whether any is for us. Nothing at all is for everybody.
func (p *Pool) wake(part int, heads []string) bool {
	known := p.known.Load()
	if len(heads) == 0 || known == nil {
		p.board.hear(part)
		return true
	}
	ours := false
	for i := 0; i+1 < len(heads); i += 2 {
		if (*known)[heads[i]] {
			p.board.hearOf(part, heads[i+1])
			ours = true
		}
	}
	return ours
}
