package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
)

// whereabouts finds inputs on their way: in the streams, among the dead letters,
// and in the histories of the conversations that changed last.
type whereabouts struct {
	client  redis.UniversalClient
	keys    channel.Keys
	node    *channel.Node
	history *history.Store
}

// How far is looked for what is not on its way any more.
const (
	mostDeadSought = 1000
	mostTalks      = 200 // conversations
)

// A road is a channel and who reads it.
type road struct {
	name  channel.Name
	group string
}

// roads are the channels in which messages wait, the first stage first.
var roads = []road{
	{channel.UserInput, "teller"}, {channel.TellerDigest, "thinker"}, {channel.ThinkerDecision, "teller"}, {channel.TellerReply, "deliver"},
}

var results = []road{{channel.WorkerResult, "teller"}, {channel.SupervisorEvent, "supervisor"}}

// Journey tells of one input, in one conversation or in all.
func (w *whereabouts) Journey(ctx context.Context, id, in string) (admin.Journey, error) {
	from, to := 0, w.keys.Partitions
	if in != "" {
		from = w.keys.Partition(in)
		to = from + 1
	}
	for p := from; p < to; p++ {
		for _, r := range roads {
			found, err := w.search(ctx, p, r, 1, func(m redis.XMessage) bool {
				return (in == "" || field(m, "conv") == in) && slices.Contains(strings.Split(field(m, "inputs"), ","), id)
			})
			if err != nil || len(found) > 0 {
				return append(found, admin.Journey{})[0], err
			}
		}
	}
	dead, err := w.node.Dead(ctx, mostDeadSought)
	if err != nil {
		return admin.Journey{}, err
	}
	for _, d := range dead {
		if (in == "" || d.Conversation == in) && slices.Contains(d.InputIDs, id) {
			c, _ := chat.ParseConversation(d.Conversation) // a damaged one is nobody's
			return admin.Journey{
				InputIDs: d.InputIDs, Conversation: c, Stage: admin.StageDead, Attempts: d.Attempts, Since: d.At, Reason: d.Reason, DeadID: d.ID.String(),
			}, nil
		}
	}
	talks := []string{in}
	if in == "" {
		if talks, err = w.talks(ctx); err != nil {
			return admin.Journey{}, err
		}
	}
	return w.answered(ctx, id, talks)
}

// Waiting lists what is on its way in a conversation.
func (w *whereabouts) Waiting(ctx context.Context, conversation string) ([]admin.Journey, error) {
	var list []admin.Journey
	for _, r := range slices.Concat(roads, results) {
		found, err := w.search(ctx, w.keys.Partition(conversation), r, 100, func(m redis.XMessage) bool { return field(m, "conv") == conversation })
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	slices.SortStableFunc(list, func(a, b admin.Journey) int { return a.Since.Compare(b.Since) })
	return list, nil
}

func field(m redis.XMessage, name string) string {
	s, _ := m.Values[name].(string)
	return s
}

// search gives the first entries of a stream that are wanted.
func (w *whereabouts) search(ctx context.Context, p int, r road, most int, wanted func(redis.XMessage) bool) ([]admin.Journey, error) {
	const page = 100
	var out []admin.Journey
	for from := "-"; ; {
		got, err := w.client.XRangeN(ctx, w.keys.Stream(p, r.name), from, "+", page).Result()
		if err != nil {
			return nil, fmt.Errorf("look through %s of partition %d: %w", r.name, p, err)
		}
		for _, m := range got {
			if !wanted(m) {
				continue
			}
			j, err := w.journey(ctx, p, r, m)
			if err != nil {
				return nil, err
			}
			if out = append(out, j); len(out) == most {
				return out, nil
			}
		}
		if len(got) < page {
			return out, nil
		}
		from = "(" + got[len(got)-1].ID
	}
}

// journey tells how far an entry has come.
func (w *whereabouts) journey(ctx context.Context, p int, r road, m redis.XMessage) (admin.Journey, error) {
	pipe := w.client.Pipeline()
	starts := pipe.HGet(ctx, w.keys.Table(p, channel.Attempts), string(r.name)+":"+m.ID)
	pending := pipe.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: w.keys.Stream(p, r.name), Group: r.group, Start: m.ID, End: m.ID, Count: 1})
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return admin.Journey{}, fmt.Errorf("read how far %s of %s has come: %w", m.ID, r.name, err)
	}
	j := admin.Journey{Stage: string(r.name), Pending: len(pending.Val()) > 0, Since: streamTime(m.ID)}
	j.Attempts, _ = starts.Int() // 0 when none was counted
	if s := field(m, "inputs"); s != "" {
		j.InputIDs = strings.Split(s, ",")
	}
	j.Conversation, _ = chat.ParseConversation(field(m, "conv")) // a damaged one is nobody's
	for hop := range strings.SplitSeq(field(m, "hops"), ";") {
		stage, us, _ := strings.Cut(hop, "=")
		if n, err := strconv.ParseInt(us, 10, 64); err == nil {
			j.Hops = append(j.Hops, admin.Hop{Stage: stage, At: time.UnixMicro(n).UTC()})
		}
	}
	return j, nil
}

func streamTime(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(ms, 10, 64) // an id of Redis' own
	return time.UnixMilli(n).UTC()
}

// answered looks for an input in what was said last.
func (w *whereabouts) answered(ctx context.Context, id string, talks []string) (admin.Journey, error) {
	for _, conversation := range talks {
		found, err := w.history.Recent(ctx, conversation, history.MaxLookup)
		if err != nil {
			return admin.Journey{}, err
		}
		i := slices.IndexFunc(found.Lines, func(l chat.Line) bool { return l.ID == id && l.Role == chat.LineUser })
		if i < 0 {
			continue
		}
		j := admin.Journey{InputIDs: []string{id}, Stage: admin.StageAnswered, Since: found.Lines[i].At}
		j.Conversation, _ = chat.ParseConversation(conversation) // it was written by a node
		j.Hops = []admin.Hop{{Stage: "said", At: found.Lines[i].At}}
		for _, l := range found.Lines[i:] {
			if l.Role == chat.LineAssistant {
				j.Since = l.At
				j.Hops = append(j.Hops, admin.Hop{Stage: "answered", At: l.At})
				break
			}
		}
		return j, nil
	}
	return admin.Journey{}, fmt.Errorf("input %s: %w", id, admin.ErrNotFound)
}

// talks lists the conversations that changed last, the newest first.
func (w *whereabouts) talks(ctx context.Context) ([]string, error) {
	pipe := w.client.Pipeline()
	cmds := make([]*redis.ZSliceCmd, w.keys.Partitions)
	for p := range cmds {
		cmds[p] = pipe.ZRevRangeWithScores(ctx, w.keys.Active(p), 0, mostTalks-1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	var all []redis.Z
	for _, c := range cmds {
		all = append(all, c.Val()...)
	}
	slices.SortFunc(all, func(a, b redis.Z) int { return cmp.Compare(b.Score, a.Score) })
	var out []string
	for _, z := range all[:min(mostTalks, len(all))] {
		if s, ok := z.Member.(string); ok {
			out = append(out, s)
		}
	}
	return out, nil
}
