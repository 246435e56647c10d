package channel

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ChannelStats is how one channel stands over all partitions.
type ChannelStats struct {
	Channel Name
	Group   string
	Entries int64         // in the streams: everything that is not settled
	Pending int64         // of them delivered to an owner
	Oldest  time.Duration // age of the oldest; 0 when there is none
}

// PartitionStats is how one partition stands.
type PartitionStats struct {
	Partition int
	Node      string // its owner; "" when nobody owns it
	Expires   time.Duration
	Commits   int64
	Waiting   int64 // conversations with undigested inputs
	Entries   int64
	Dead      int64
}

// Stats is how the channels stand, as far as Redis tells: it needs no node to run.
type Stats struct {
	At         time.Time // Redis time
	Nodes      []string
	Channels   []ChannelStats
	Partitions []PartitionStats
	Dead       int64
}

// Stats reads the state of all channels and partitions.
func (n *Node) Stats(ctx context.Context) (Stats, error) {
	at, err := n.opt.Client.Time(ctx).Result()
	if err != nil {
		return Stats{}, fmt.Errorf("read Redis time: %w", err)
	}
	s := Stats{At: at}
	if s.Nodes, err = n.opt.Client.ZRange(ctx, n.keys.Nodes(), 0, -1).Result(); err != nil {
		return Stats{}, fmt.Errorf("list nodes: %w", err)
	}
	for _, r := range roads {
		s.Channels = append(s.Channels, ChannelStats{Channel: r.name, Group: r.group})
	}
	for p := range n.keys.Partitions {
		if err := n.partitionStats(ctx, &s, p); err != nil {
			return Stats{}, fmt.Errorf("read partition %d: %w", p, err)
		}
	}
	return s, nil
}

func (n *Node) partitionStats(ctx context.Context, s *Stats, p int) error {
	k := n.keys
	pipe := n.opt.Client.Pipeline()
	lease := pipe.HMGet(ctx, k.Lease(p), "token", "node", "until")
	commits := pipe.Get(ctx, k.Commits(p))
	waiting := pipe.HLen(ctx, k.Waiting(p))
	deadLetters := pipe.XLen(ctx, k.Dead(p))
	lens := make([]*redis.IntCmd, len(roads))
	firsts := make([]*redis.XMessageSliceCmd, len(roads))
	pendings := make([]*redis.XPendingCmd, len(roads))
	for i, r := range roads {
		key := k.Stream(p, r.name)
		lens[i] = pipe.XLen(ctx, key)
		firsts[i] = pipe.XRangeN(ctx, key, "-", "+", 1)
		pendings[i] = pipe.XPending(ctx, key, r.group)
	}
	if _, err := pipe.Exec(ctx); err != nil && lease.Err() != nil {
		return err
	}
	ps := PartitionStats{Partition: p, Waiting: waiting.Val(), Dead: deadLetters.Val()}
	ps.Commits, _ = commits.Int64() // 0 before the first
	if v := lease.Val(); len(v) == 3 && asString(v[0]) != "" {
		ps.Node = asString(v[1])
		ps.Expires = time.UnixMilli(asInt(v[2])).Sub(s.At)
	}
	for i := range roads {
		c := &s.Channels[i]
		c.Entries += lens[i].Val()
		ps.Entries += lens[i].Val()
		if x := pendings[i].Val(); x != nil {
			c.Pending += x.Count
		}
		if m := firsts[i].Val(); len(m) > 0 {
			c.Oldest = max(c.Oldest, s.At.Sub(idTime(m[0].ID)))
		}
	}
	s.Dead += ps.Dead
	s.Partitions = append(s.Partitions, ps)
	return nil
}
