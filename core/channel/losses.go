package channel

import (
	"context"
	"fmt"
	"time"
)

// Sent is the highest commit number of a partition that was seen before a call
// is sent, by whoever writes there beside the node: see [Node.Saw].
func (n *Node) Sent(partition int) int64 { return n.commits[partition].Load() }

// Saw compares the commit number in the answer to a call with what [Node.Sent]
// gave before it, and reports whether Redis has lost writes. It logs and counts a
// loss, and has posts of the next minutes looked up.
func (n *Node) Saw(ctx context.Context, partition int, sent, got int64) (lost bool) {
	return n.sawCommit(ctx, partition, sent, got)
}

// suspectFor is how long after a found loss posts are looked up before they are
// made.
const suspectFor = 5 * time.Minute

// errVoid ends an owner whose memory may not agree with Redis any more.
var errVoid = fmt.Errorf("the memory of the partition is void: %w", ErrLost)

// sawCommit compares a commit number from Redis with the highest that was seen
// before the call was sent, and reports whether Redis has lost writes.
func (n *Node) sawCommit(ctx context.Context, p int, before, got int64) bool {
	for {
		now := n.commits[p].Load()
		if got <= before {
			// Whoever first sets the number back reports the loss.
			if now < before {
				return true
			}
			if n.commits[p].CompareAndSwap(now, got) {
				break
			}
			continue
		}
		if got <= now || n.commits[p].CompareAndSwap(now, got) {
			return false
		}
	}
	lost := before - got + 1
	n.log.Error("redis_lost_writes", "partition", p, "commits_lost", lost, "seen", before, "got", got,
		"effect", "messages or replies of the last moments may be missing; posts are looked up before they are made")
	if n.opt.Hooks.Lost != nil {
		n.opt.Hooks.Lost(lost)
	}
	until := time.Now().Add(suspectFor).UnixMilli()
	n.suspect[p].Store(until)
	n.losses[p].Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.opt.CallTimeout)
	defer cancel()
	if err := n.opt.Client.HSet(ctx, n.keys.Lease(p), "suspect", until).Err(); err != nil {
		n.log.Warn("mark_suspect_failed", "partition", p, "error", err)
	}
	return true
}
