package channel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mimikit/core/chat"
)

// keepFeedback is how much feedback a partition keeps, the newest: people read
// it, and nothing depends on it.
const keepFeedback = 1000

// Feedback lists the newest feedback of all partitions, newest first. What cannot
// be read is left out and logged.
func (n *Node) Feedback(ctx context.Context, limit int) ([]chat.Feedback, error) {
	type filed struct {
		id string
		chat.Feedback
	}
	var all []filed
	for p := range n.keys.Partitions {
		got, err := n.opt.Client.XRevRangeN(ctx, n.keys.file(p, Feedback), "+", "-", int64(limit)).Result()
		if err != nil {
			return nil, fmt.Errorf("list feedback of partition %d: %w", p, err)
		}
		for _, m := range got {
			f := filed{id: m.ID}
			if err := json.Unmarshal([]byte(asString(m.Values[fieldData])), &f.Feedback); err != nil {
				n.log.Warn("feedback_unreadable", "partition", p, "entry", m.ID, "error", err)
				continue
			}
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b filed) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(b.id, a.id))
	})
	out := make([]chat.Feedback, 0, min(limit, len(all)))
	for _, f := range all[:min(limit, len(all))] {
		out = append(out, f.Feedback)
	}
	return out, nil
}

// trimFeedback forgets the oldest feedback of a partition. It needs no fence:
// whoever does it, the same is gone.
func (o *owner) trimFeedback(ctx context.Context) error {
	return o.n.opt.Client.XTrimMaxLenApprox(ctx, o.n.keys.file(o.p, Feedback), keepFeedback, 0).Err()
}
