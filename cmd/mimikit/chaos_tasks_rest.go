package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/task"
)

// judgeRest says what is left in Redis that should not be: of the queue nothing
// but the rows that are kept, each with its index and, where it reported, its
// progress; and what those who run the bot are told of failures.
func (v *taskVerdict) judgeRest(ctx context.Context, st *store.Store) error {
	it := st.Client.Scan(ctx, 0, "{"+v.w.prefix+":*}:t:*", 1000).Iterator()
	for it.Next(ctx) {
		_, name, _ := strings.Cut(it.Val(), "}:t:")
		id, progress := strings.CutPrefix(name, "progress:")
		switch {
		case slices.Contains([]string{"rows", "state", "index", "ended", "order", "claims", "sweeper"}, name):
		case progress && v.plans[id].Do == doSteps:
		default:
			v.breach("%s is left behind", it.Val())
		}
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("look for what is left behind: %w", err)
	}
	count, members := make([]int64, v.keys.Partitions), make([]int64, v.keys.Partitions)
	retries, failed := 0, 0
	for _, t := range v.tasks {
		p := v.keys.Partition(t.Conversation.Key())
		count[p]++
		members[p] += 3 // conversation, requester, status
		if t.ParentTaskID != "" {
			members[p]++
		}
		retries += t.Retries
		if t.Status == task.Failed {
			failed++
		}
	}
	filed, whole := map[chat.FeedbackKind]int{}, true
	for p := range v.keys.Partitions {
		c := st.Client
		rows, err1 := c.HLen(ctx, v.keys.In(p, "t:rows")).Result()
		states, err2 := c.HLen(ctx, v.keys.In(p, "t:state")).Result()
		ended, err3 := c.ZCard(ctx, v.keys.In(p, "t:ended")).Result()
		index, err4 := c.ZCard(ctx, v.keys.In(p, "t:index")).Result()
		noted, err5 := c.XLen(ctx, v.keys.In(p, string(channel.Feedback))).Result()
		order, err6 := c.HLen(ctx, v.keys.In(p, "t:order")).Result()
		if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
			return fmt.Errorf("count what is left of tasks: %w", err)
		}
		if order > 1 { // it counts what was enqueued, and the rest is of open tasks
			v.breach("%d heads and digests are left behind in partition %d", order-1, p)
		}
		whole = whole && noted < 1000 // the oldest beyond that are forgotten
		if rows != count[p] || states != rows || ended != rows || index != members[p] {
			v.breach("partition %d has %d tasks: %d rows, %d states, %d ended, %d words of index (want %d)", p, count[p], rows, states, ended, index, members[p])
		}
	}
	n, err := channel.New(channel.Options{Client: st.Client, Blocking: st.Blocking, Keys: v.keys, NodeID: "judge"})
	if err != nil {
		return err
	}
	feedback, err := n.Feedback(ctx, 1_000_000)
	if err != nil {
		return err
	}
	for _, f := range feedback {
		filed[f.Kind]++
	}
	if whole && (filed[task.FeedbackRetry] != retries || filed[task.FeedbackError] != failed) {
		v.breach("%d retries and %d failures were noted, want %d and %d", filed[task.FeedbackRetry], filed[task.FeedbackError], retries, failed)
	}
	return nil
}
