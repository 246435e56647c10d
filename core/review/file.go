package review

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// File files feedback that belongs to no turn's commit, such as what a node notes
// of a task that is over.
func File(ctx context.Context, client redis.UniversalClient, keys channel.Keys, f chat.Feedback) error {
	fields, err := entryOf(f)
	if err != nil {
		return err
	}
	stream := keys.In(keys.Partition(f.Conversation.Key()), string(channel.Feedback))
	if err := client.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: fields}).Err(); err != nil {
		return fmt.Errorf("file feedback of the kind %s: %w", f.Kind, err)
	}
	return nil
}

// entryOf spells feedback as an entry of its stream.
func entryOf(f chat.Feedback) ([]string, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode feedback of the kind %s: %w", f.Kind, err)
	}
	fields := channel.EntryFields(channel.Entry{Conversation: f.Conversation.Key(), Kind: string(f.Kind), TraceID: f.TraceID})
	fields[len(fields)-1] = string(data)
	return fields, nil
}
