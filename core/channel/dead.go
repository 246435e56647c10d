package channel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// A DeadLetter is an entry that was given up: it could not be decoded, or its
// step failed too often. It is kept until somebody replays or drops it.
type DeadLetter struct {
	ID           DeadID
	From         Name
	Group        string
	Reason       string
	Attempts     int
	Conversation string
	InputIDs     []string
	TraceID      string
	At           time.Time // when it was given up
	Data         string    // the payload as it was
}

// ErrNoDeadLetter means that no dead letter has the id.
var ErrNoDeadLetter = errors.New("no such dead letter")

// Dead lists the newest dead letters of all partitions, newest first.
func (n *Node) Dead(ctx context.Context, limit int) ([]DeadLetter, error) {
	var out []DeadLetter
	for p := range n.keys.Partitions {
		got, err := n.opt.Client.XRevRangeN(ctx, n.keys.Dead(p), "+", "-", int64(limit)).Result()
		if err != nil {
			return nil, fmt.Errorf("list dead letters of partition %d: %w", p, err)
		}
		for _, m := range got {
			out = append(out, readDead(p, m))
		}
	}
	slices.SortFunc(out, func(a, b DeadLetter) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(b.ID.String(), a.ID.String()))
	})
	return out[:min(limit, len(out))], nil
}

func readDead(p int, m redis.XMessage) DeadLetter {
	f := map[string]string{}
	for k, v := range m.Values {
		f[k] = asString(v)
	}
	d := DeadLetter{
		ID: DeadID{p, m.ID}, From: Name(f[deadFrom]), Group: f[deadGroup], Reason: f[deadReason],
		Conversation: f[fieldConversation], TraceID: f[fieldTrace], At: idTime(m.ID), Data: f[fieldData],
	}
	d.Attempts, _ = strconv.Atoi(f[deadCount]) // 0 when damaged
	if s := f[fieldInputs]; s != "" {
		d.InputIDs = strings.Split(s, ",")
	}
	return d
}

// Replay puts a dead letter back at the end of the channel it came from, with
// its attempts counted anew.
func (n *Node) Replay(ctx context.Context, id DeadID) error { return n.bury(ctx, id, "replay") }

// Drop removes a dead letter for good.
func (n *Node) Drop(ctx context.Context, id DeadID) error { return n.bury(ctx, id, "drop") }

func (n *Node) bury(ctx context.Context, id DeadID, what string) error {
	if id.Partition < 0 || id.Partition >= n.keys.Partitions {
		return fmt.Errorf("%s dead letter %s: this deployment has partitions 0 to %d", what, id, n.keys.Partitions-1)
	}
	k, p := n.keys, id.Partition
	got, err := n.opt.Client.XRangeN(ctx, k.Dead(p), id.ID, id.ID, 1).Result()
	if err != nil {
		return fmt.Errorf("%s dead letter %s: %w", what, id, err)
	}
	if len(got) == 0 {
		return fmt.Errorf("%s dead letter %s: %w", what, id, ErrNoDeadLetter)
	}
	d := readDead(p, got[0])
	if !isRoad(d.From) {
		return fmt.Errorf("%s dead letter %s: it came from the unknown channel %q", what, id, d.From)
	}
	input, post := "0", ""
	if d.From == UserInput {
		input = "1"
	}
	if d.From == TellerReply {
		var r chat.Reply
		if json.Unmarshal([]byte(d.Data), &r) == nil {
			post = r.ID // how far its posting came is of no use any more
		}
	}
	err = replayScript.Run(ctx, n.opt.Client,
		[]string{k.Commits(p), k.Dead(p), k.Stream(p, d.From), k.Waiting(p), k.Table(p, PostTable), k.Stops(p)},
		id.ID, what, deadLeading, input, post, d.Conversation).Err()
	if errors.Is(err, redis.Nil) {
		return fmt.Errorf("%s dead letter %s: %w", what, id, ErrNoDeadLetter)
	}
	if err != nil {
		return fmt.Errorf("%s dead letter %s: %w", what, id, err)
	}
	return nil
}
