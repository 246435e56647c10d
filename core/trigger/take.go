package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Taken are triggers of a partition that were due.
type Taken struct {
	Triggers []Trigger
	Now      time.Time     // Redis' time
	Next     time.Duration // until the next one is due, from now on; negative when there is none
	Full     bool          // there may be more that are due
}

// Take claims triggers of a partition that are due: those that anybody can look at,
// and those whose files are in the given storages. Nobody else takes them for a
// while; whoever does not settle them by then has lost nothing but time.
func (s *Store) Take(ctx context.Context, p int, storages []string) (Taken, error) {
	const most = 20
	args := []any{signals(s.keys), p, most, class(""), s.o.Claim.Milliseconds()}
	for _, name := range storages {
		if name != "" {
			args = append(args, class(name), s.o.Look.Milliseconds())
		}
	}
	got, err := s.send(ctx, p, takeScript, append([]string{s.keys.Commits(p)}, own(s.keys, p)...), args...)
	if err != nil {
		return Taken{}, fmt.Errorf("take the due triggers of partition %d: %w", p, err)
	}
	if len(got) < 3 {
		return Taken{}, errors.New("take due triggers: the script answered too little")
	}
	taken := Taken{Now: moment(asString(got[1])), Next: -1, Full: (len(got)-3)/3 >= most}
	if next := moment(asString(got[2])); !next.IsZero() {
		taken.Next = max(next.Sub(taken.Now), 0)
	}
	for i := 3; i+2 < len(got); i += 3 {
		id := asString(got[i])
		t, err := readTrigger(id, asString(got[i+1]), asString(got[i+2]))
		if err != nil {
			s.log.Error("trigger_unreadable", "trigger_id", id, "error", err)
			continue
		}
		taken.Triggers = append(taken.Triggers, t)
	}
	return taken, nil
}

// Listen hears until ctx is over in which partition something may be due earlier
// than was known; -1 stands for all, when signals may have been missed.
func (s *Store) Listen(ctx context.Context, heard func(partition int)) {
	sub := s.o.Client.Subscribe(ctx, signals(s.keys))
	defer func() { _ = sub.Close() }()
	messages := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(time.Minute), redis.WithChannelSize(1000))
	for {
		select {
		case m := <-messages:
			switch m := m.(type) {
			case *redis.Message:
				if p := int(number(m.Payload)); p >= 0 && p < s.keys.Partitions {
					heard(p)
				}
			case *redis.Subscription:
				heard(-1)
			case nil:
				return // closed
			}
		case <-ctx.Done():
			return
		}
	}
}
