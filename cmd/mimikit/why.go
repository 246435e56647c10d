package main

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

	"mimikit/adapters/discord"
	"mimikit/adapters/inbox"
	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/cluster"
	"mimikit/core/history"
)

// whereabouts finds inputs on their way: in the streams, among the dead letters,
// and in the histories of the conversations that changed last.
type whereabouts struct {
	client  redis.UniversalClient
	keys    channel.Keys
	node    *channel.Node
	history *history.Store
	journal *journal
	cluster *cluster.Cluster
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

// Inputs gives the ids under which a message may have come in: of its newest wording,
// of its removal, and its own.
func (w *whereabouts) Inputs(ctx context.Context, s admin.Spot) (ids, conversations []string, err error) {
	var ours []chat.Conversation
	switch s.Platform {
	case "slack":
		ours, err = w.onSlack(ctx, s)
	case "discord":
		ours, err = w.onDiscord(ctx, s)
	}
	if err != nil {
		return nil, nil, err
	}
	id, err := w.journal.edited(ctx, s.Platform, s.Place, s.Message)
	if err != nil {
		return nil, nil, err
	}
	add := func(list []string, one string) []string {
		if one == "" || slices.Contains(list, one) {
			return list
		}
		return append(list, one)
	}
	ids = add(ids, id)
	for _, edit := range []string{"deleted", ""} {
		for _, c := range ours {
			ids = add(ids, inbox.ID(c, s.Message, edit))
			conversations = add(conversations, c.Key())
		}
	}
	return ids, conversations, nil
}

// onSlack gives the conversations to which a message may belong: the thread it is in,
// the one it begins, or its place.
func (w *whereabouts) onSlack(ctx context.Context, s admin.Spot) ([]chat.Conversation, error) {
	spaces := []string{s.Workspace}
	if s.Workspace == "" { // the link does not say, and who holds the machine need not
		talks, err := w.talks(ctx)
		if err != nil {
			return nil, err
		}
		spaces = nil
		for _, key := range talks {
			if c, err := chat.ParseConversation(key); err == nil && c.Platform == s.Platform && !slices.Contains(spaces, c.Workspace) {
				spaces = append(spaces, c.Workspace)
			}
		}
	}
	var out []chat.Conversation
	for _, space := range spaces {
		for _, thread := range []string{s.Thread, s.Message, ""} {
			c := chat.Conversation{Platform: s.Platform, Workspace: space, Place: s.Place, Thread: thread}
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// onDiscord does the same there, where a thread is a place of its own and the adapter
// notes which conversation it belongs to.
func (w *whereabouts) onDiscord(ctx context.Context, s admin.Spot) ([]chat.Conversation, error) {
	here := chat.Conversation{Platform: s.Platform, Workspace: s.Workspace, Place: s.Place}
	if s.Workspace == "" {
		return []chat.Conversation{here}, nil
	}
	var out []chat.Conversation
	for _, id := range []string{s.Message, s.Place} {
		c, ok, err := discord.TalkOf(ctx, sharedState{c: w.cluster, platform: s.Platform}, id)
		if err != nil {
			return nil, err
		}
		if ok && c.Workspace == s.Workspace {
			out = append(out, c)
		}
	}
	opened := here
	opened.Thread = s.Message // a thread has the id of the message that it begins with
	return append(out, opened, here), nil
}

// Journey tells of one input: where it is on its way, or how it went.
func (w *whereabouts) Journey(ctx context.Context, id string, conversations []string) (admin.Journey, error) {
	for p := range w.keys.Partitions {
		for _, r := range roads {
			payload := ""
			found, err := w.search(ctx, p, r, 1, func(m redis.XMessage) bool {
				payload = field(m, "data")
				return slices.Contains(strings.Split(field(m, "inputs"), ","), id)
			})
			if err != nil {
				return admin.Journey{}, err
			}
			if len(found) > 0 {
				wrote(&found[0], []byte(payload), id)
				return w.written(ctx, found[0], id)
			}
		}
	}
	dead, err := w.node.Dead(ctx, mostDeadSought)
	if err != nil {
		return admin.Journey{}, err
	}
	for _, d := range dead {
		if !slices.Contains(d.InputIDs, id) {
			continue
		}
		j := admin.Journey{
			InputIDs: d.InputIDs, Stage: admin.StageDead, Attempts: d.Attempts, Since: d.At, Reason: d.Reason, DeadID: d.ID.String(),
		}
		j.Conversation, _ = chat.ParseConversation(d.Conversation) // a damaged one is nobody's
		wrote(&j, []byte(d.Data), id)
		return w.written(ctx, j, id)
	}
	went, ok, err := w.journal.way(ctx, id)
	if err != nil {
		return admin.Journey{}, err
	}
	if ok {
		return w.written(ctx, went, id)
	}
	if conversations == nil {
		if conversations, err = w.talks(ctx); err != nil {
			return admin.Journey{}, err
		}
	}
	return w.answered(ctx, id, conversations)
}

// wrote takes out of a payload who wrote an input, and what kind it is of.
func wrote(j *admin.Journey, payload []byte, id string) {
	var v struct {
		chat.UserInput
		Inputs []chat.UserInput `json:"inputs"`
	}
	if json.Unmarshal(payload, &v) != nil {
		return // what cannot be read has nobody
	}
	for _, in := range append(v.Inputs, v.UserInput) {
		if in.ID == id && in.Author.ID != "" {
			j.Author, j.Edit, j.Removed = in.Author, in.Kind == chat.KindEdit, in.Kind == chat.KindDelete
			return
		}
	}
}

// written looks up who wrote an input, where its entry does not say.
func (w *whereabouts) written(ctx context.Context, j admin.Journey, id string) (admin.Journey, error) {
	if j.Author.ID != "" || j.Conversation == (chat.Conversation{}) {
		return j, nil
	}
	found, err := w.history.Recent(ctx, j.Conversation.Key(), history.MaxLookup)
	if err != nil {
		return admin.Journey{}, err
	}
	for _, l := range found.Lines {
		if l.ID == id && l.Role == chat.LineUser {
			j.Author = l.Author
		}
	}
	return j, nil
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
	j.Hops = readHops(field(m, "hops"))
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
		j := admin.Journey{InputIDs: []string{id}, Stage: admin.StageAnswered, Since: found.Lines[i].At, Author: found.Lines[i].Author}
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
