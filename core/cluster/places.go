package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/heard.lua
	heardSource string
	//go:embed lua/unmark.lua
	unmarkSource string

	heardScript  = redis.NewScript(heardSource)
	unmarkScript = redis.NewScript(unmarkSource)
)

// A Mark is a conversation, or a place, and how far it has been heard.
type Mark struct {
	Conversation string // its key
	Heard        string // the platform's id of the newest message, a decimal number
}

// Heard moves the mark of a conversation of a platform forward, never back. id is
// a decimal number that grows with time, at the platform's time at.
func (c *Cluster) Heard(ctx context.Context, platform, conversation, id string, at time.Time) error {
	if _, err := strconv.ParseFloat(id, 64); err != nil {
		return fmt.Errorf("mark %s as heard up to %q: want a decimal number", conversation, id)
	}
	keys := []string{c.key("heard:"+platform, "at"), c.key("heard:"+platform, "id")}
	oldest := at.Add(-c.o.Keep).UnixMilli()
	if err := heardScript.Run(ctx, c.o.Client, keys, conversation, id, at.UnixMilli(), oldest).Err(); err != nil {
		return fmt.Errorf("mark %s as heard up to %s: %w", conversation, id, err)
	}
	return nil
}

// Live lists the marks of a platform that were moved since a time, the newest
// first, at most so many.
func (c *Cluster) Live(ctx context.Context, platform string, since time.Time, most int) ([]Mark, error) {
	names, err := c.o.Client.ZRevRangeByScore(ctx, c.key("heard:"+platform, "at"), &redis.ZRangeBy{
		Min: strconv.FormatInt(since.UnixMilli(), 10), Max: "+inf", Count: int64(most),
	}).Result()
	if err != nil || len(names) == 0 {
		return nil, wrap("list what was heard on "+platform, err)
	}
	ids, err := c.o.Client.HMGet(ctx, c.key("heard:"+platform, "id"), names...).Result()
	if err != nil {
		return nil, wrap("list what was heard on "+platform, err)
	}
	var out []Mark
	for i, id := range ids {
		if s, ok := id.(string); ok {
			out = append(out, Mark{names[i], s})
		}
	}
	return out, nil
}

// The steps of taking part in a thread.
const (
	joined = "joined"
	read   = "read"
)

// Part tells whether the bot takes part in a conversation, and whether what was
// said there before has been read.
func (c *Cluster) Part(ctx context.Context, conversation string) (takesPart, wasRead bool, err error) {
	got, err := c.o.Client.Get(ctx, c.key("part", conversation)).Result()
	if errors.Is(err, redis.Nil) {
		return false, false, nil
	}
	return got != "", got == read, wrap("look whether we take part in "+conversation, err)
}

// Join makes the bot take part in a conversation, as long as anybody speaks there
// within the time that is kept. It is harmless to repeat.
func (c *Cluster) Join(ctx context.Context, conversation string) error {
	key := c.key("part", conversation)
	_, err := c.o.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SetNX(ctx, key, joined, c.o.Keep)
		p.Expire(ctx, key, c.o.Keep)
		return nil
	})
	return wrap("take part in "+conversation, err)
}

// MarkRead remembers that what was said before has been read.
func (c *Cluster) MarkRead(ctx context.Context, conversation string) error {
	return wrap("note that "+conversation+" was read", c.o.Client.Set(ctx, c.key("part", conversation), read, c.o.Keep).Err())
}

// MarkMessage remembers a message of a conversation by its id, a decimal number.
func (c *Cluster) MarkMessage(ctx context.Context, topic, conversation, id string) error {
	score, err := strconv.ParseFloat(id, 64)
	if err != nil {
		return fmt.Errorf("mark message %q of %s: want a decimal number", id, conversation)
	}
	key := c.key(topic, conversation)
	_, err = c.o.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, key, redis.Z{Score: score, Member: id})
		p.ZRemRangeByRank(ctx, key, 0, -1001) // the newest thousand
		p.Expire(ctx, key, 24*time.Hour)
		return nil
	})
	return wrap("mark message "+id+" of "+conversation, err)
}

// UnmarkMessages forgets the messages of a conversation up to and with an id, ""
// for all, and returns those it forgot: each is returned once.
func (c *Cluster) UnmarkMessages(ctx context.Context, topic, conversation, upTo string) ([]string, error) {
	if upTo == "" {
		upTo = "+inf"
	}
	got, err := unmarkScript.Run(ctx, c.o.Client, []string{c.key(topic, conversation)}, upTo).StringSlice()
	return got, wrap("unmark messages of "+conversation, err)
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
