package main

import (
	"context"
	"fmt"
	"time"

	"mimikit/core/chat"
	"mimikit/core/cluster"
)

// sharedState is what the nodes share about one platform, as its adapter asks for
// it.
type sharedState struct {
	c        *cluster.Cluster
	platform string
	timeOf   func(id string) (time.Time, error) // of a message, by its id
}

// Part tells whether the bot takes part in a thread, and whether it was read.
func (s sharedState) Part(ctx context.Context, c chat.Conversation) (joined, read bool, err error) {
	return s.c.Part(ctx, c.Key())
}

// Join makes it take part.
func (s sharedState) Join(ctx context.Context, c chat.Conversation) error {
	return s.c.Join(ctx, c.Key())
}

// MarkRead notes that the thread was read.
func (s sharedState) MarkRead(ctx context.Context, c chat.Conversation) error {
	return s.c.MarkRead(ctx, c.Key())
}

// Heard notes how far a conversation was heard.
func (s sharedState) Heard(ctx context.Context, c chat.Conversation, id string) error {
	at, err := s.timeOf(id)
	if err != nil {
		return fmt.Errorf("mark %s as heard up to %q: %w", c.Key(), id, err)
	}
	return s.c.Heard(ctx, s.platform, c.Key(), id, at)
}

// A heardUpTo is a conversation and the newest message heard in it.
type heardUpTo struct {
	conversation chat.Conversation
	id           string
}

// live lists the conversations that were heard of late.
func (s sharedState) live(ctx context.Context, since time.Time, most int) ([]heardUpTo, error) {
	marks, err := s.c.Live(ctx, s.platform, since, most)
	if err != nil {
		return nil, err
	}
	out := make([]heardUpTo, 0, len(marks))
	for _, m := range marks {
		c, err := chat.ParseConversation(m.Conversation)
		if err != nil {
			return nil, fmt.Errorf("list what was heard on %s: %w", s.platform, err)
		}
		out = append(out, heardUpTo{c, m.Heard})
	}
	return out, nil
}

// Claim lets one of several do a thing.
func (s sharedState) Claim(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	return s.c.Claim(ctx, s.platform+"/"+key, ttl)
}

// Note reads what another node may have left.
func (s sharedState) Note(ctx context.Context, key string) (string, error) {
	return s.c.Note(ctx, s.platform+"/"+key)
}

// SetNote leaves it.
func (s sharedState) SetNote(ctx context.Context, key, text string, ttl time.Duration) error {
	return s.c.SetNote(ctx, s.platform+"/"+key, text, ttl)
}

// Mark remembers a message that has the reaction.
func (s sharedState) Mark(ctx context.Context, c chat.Conversation, id string) error {
	return s.c.MarkMessage(ctx, s.platform+"-eyes", c.Key(), id)
}

// Unmark forgets them.
func (s sharedState) Unmark(ctx context.Context, c chat.Conversation, upTo string) ([]string, error) {
	return s.c.UnmarkMessages(ctx, s.platform+"-eyes", c.Key(), upTo)
}

// A rateBudget is one that a call draws from.
type rateBudget struct {
	name string
	rate cluster.Rate
}

// draw takes one call out of each budget. What may wait is told for how long, and
// what may not is told to be left out (cluster.Never).
func (s sharedState) draw(ctx context.Context, from []rateBudget, reserve float64, mayWait bool, patience time.Duration) (time.Duration, error) {
	var longest time.Duration
	for _, b := range from {
		wait, err := s.c.Draw(ctx, s.platform+"/"+b.name, b.rate, reserve, patience)
		if err != nil {
			return 0, err
		}
		if wait == cluster.Never && mayWait {
			// It is worth waiting for until there is more than the reserve again.
			wait = max(patience+time.Millisecond, time.Duration(reserve*float64(b.rate.Per)))
		}
		if wait == cluster.Never || wait > patience {
			return wait, nil
		}
		longest = max(longest, wait)
	}
	return longest, nil
}

// limited closes budgets that the platform refused for a while.
func (s sharedState) limited(ctx context.Context, which []rateBudget, wait time.Duration) error {
	for _, b := range which {
		if err := s.c.Limited(ctx, s.platform+"/"+b.name, wait); err != nil {
			return err
		}
	}
	return nil
}
