package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/store"
)

// The bare pipeline is what the same hops cost without leases, fencing, turns,
// attempts or partitions: one stream a channel, one loop a stage, and for a
// batch of at most 100 entries one script that publishes, writes the same history
// and state, and settles. It is the yardstick, not a thing to run.

// bareIngest remembers a message and publishes it, once.
// KEYS: seen hash, stream. ARGV: digest, data. Returns 1, or 0 when it was seen.
var bareIngest = redis.NewScript(`
if redis.call('HSETNX', KEYS[1], ARGV[1], '1') == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', 'data', ARGV[2])
return 1`)

// bareHop moves a batch one stage on.
// KEYS: stream, next stream, state hash, then a history list for each entry.
// ARGV: group, n, then n times: id, payload ("" for none), history line ("" for none), state field
var bareHop = redis.NewScript(`
local n, ids, state = tonumber(ARGV[2]), {}, {}
for i = 1, n do
  local at = 3 + (i - 1) * 4
  ids[i] = ARGV[at]
  if ARGV[at + 1] ~= '' then redis.call('XADD', KEYS[2], '*', 'data', ARGV[at + 1]) end
  if ARGV[at + 2] ~= '' then redis.call('RPUSH', KEYS[3 + i], ARGV[at + 2]) end
  state[#state + 1] = ARGV[at + 3]
  state[#state + 1] = ARGV[at]
end
redis.call('HSET', KEYS[3], unpack(state))
redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
redis.call('XDEL', KEYS[1], unpack(ids))
return n`)

// A bareStage turns an entry into the next one and a line of history.
type bareStage struct {
	name string
	step func(data string) (conversation string, next any, line *chat.Line, err error)
}

func decode[T any](data string) (*T, error) {
	v := new(T)
	return v, json.Unmarshal([]byte(data), v)
}

// bareStages are the stages of the pipeline with the payloads of the real one.
func bareStages() []bareStage {
	return []bareStage{
		{"input", func(data string) (string, any, *chat.Line, error) {
			in, err := decode[chat.UserInput](data)
			if err != nil {
				return "", nil, nil, err
			}
			return in.Conversation.Key(), &chat.TellerDigest{ID: "d-" + in.ID, Summary: in.Text, Inputs: []chat.UserInput{*in}}, nil, nil
		}},
		{"digest", func(data string) (string, any, *chat.Line, error) {
			d, err := decode[chat.TellerDigest](data)
			if err != nil {
				return "", nil, nil, err
			}
			line := history.InputLine(d.Inputs[0])
			return d.Inputs[0].Conversation.Key(), &chat.ThinkerDecision{
				ID: "t-" + d.ID, Decision: benchAnswer, Final: true, InputIDs: []string{d.Inputs[0].ID}, Inputs: d.Inputs,
			}, &line, nil
		}},
		{"decision", func(data string) (string, any, *chat.Line, error) {
			t, err := decode[chat.ThinkerDecision](data)
			if err != nil {
				return "", nil, nil, err
			}
			r := &chat.Reply{
				ID: "r-" + t.ID, Conversation: t.Inputs[0].Conversation, Kind: chat.ReplyAnswer, Text: t.Decision,
				InputIDs: t.InputIDs, ReplyTo: t.Inputs[0].Message, CreatedAt: time.Now(),
			}
			return r.Conversation.Key(), r, &chat.Line{ID: r.ID, Role: chat.LineAssistant, Text: r.Text, At: r.CreatedAt}, nil
		}},
		{"reply", func(data string) (string, any, *chat.Line, error) {
			r, err := decode[chat.Reply](data)
			if err != nil {
				return "", nil, nil, err
			}
			return r.Conversation.Key(), nil, nil, nil
		}},
	}
}

// runBare runs a load through the bare pipeline.
func runBare(ctx context.Context, st *store.Store, prefix string, l load) (measure, error) {
	trips := &tripCounter{}
	st.Client.AddHook(trips)
	st.Blocking.AddHook(trips)
	key := func(name string) string { return "{" + prefix + ":0}:" + name }
	s := newSender(l, func(ctx context.Context, conversation, message int) error {
		in := benchInput(conversation, message)
		in.Value.ID = channel.InputID(in.Dedupe)
		data, err := json.Marshal(&in.Value)
		if err != nil {
			return err
		}
		return bareIngest.Run(ctx, st.Client, []string{key("seen"), key("input")}, in.Value.ID, data).Err()
	})
	stages := bareStages()
	stop, cancel := context.WithCancel(ctx)
	g, gctx := errgroup.WithContext(stop)
	for i, stage := range stages {
		if err := st.Client.XGroupCreateMkStream(ctx, key(stage.name), "g", "0").Err(); err != nil {
			cancel()
			return measure{}, fmt.Errorf("bare pipeline: %w", err)
		}
		next := key("none")
		if i+1 < len(stages) {
			next = key(stages[i+1].name)
		}
		published := func(string) {}
		if stage.name == "decision" {
			published = s.answered
		}
		g.Go(func() error { return bareLoop(gctx, st, key, stage, next, published) })
	}
	trips.n.Store(0)
	m, err := s.run(gctx)
	m.Trips = float64(trips.n.Load()) / float64(l.messages)
	cancel()
	if gerr := g.Wait(); gerr != nil && !errors.Is(gerr, context.Canceled) {
		err = errors.Join(err, gerr)
	}
	return m, err
}

func bareLoop(ctx context.Context, st *store.Store, key func(string) string, stage bareStage, next string, published func(inputID string)) error {
	for ctx.Err() == nil {
		got, err := st.Blocking.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: "g", Consumer: "c", Streams: []string{key(stage.name), ">"}, Count: 100, Block: time.Second,
		}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return fmt.Errorf("bare %s: %w", stage.name, err)
		}
		batch := got[0].Messages
		keys := []string{key(stage.name), next, key("state")}
		args := []any{"g", len(batch)}
		var ids []string
		for _, m := range batch {
			data, _ := m.Values["data"].(string)
			conversation, value, line, err := stage.step(data)
			if err != nil {
				return fmt.Errorf("bare %s: %w", stage.name, err)
			}
			payload, text := "", ""
			if value != nil {
				p, err := json.Marshal(value)
				if err != nil {
					return fmt.Errorf("bare %s: %w", stage.name, err)
				}
				payload = string(p)
			}
			if line != nil {
				text = history.Encode(*line)
			}
			if r, ok := value.(*chat.Reply); ok {
				ids = append(ids, r.InputIDs...)
			}
			keys = append(keys, key("h:"+conversation))
			args = append(args, m.ID, payload, text, conversation)
		}
		if err := bareHop.Run(ctx, st.Client, keys, args...).Err(); err != nil {
			return fmt.Errorf("bare %s: %w", stage.name, err)
		}
		for _, id := range ids {
			published(id)
		}
	}
	return nil
}
