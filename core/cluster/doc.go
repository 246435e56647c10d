// Package cluster is what the nodes of a deployment agree on besides the roads:
// who holds a connection that only one may have, how far a place has been heard,
// and how much of a platform's rate limit is left. It exists so that adapters
// need not know of Redis, nor of one another.
//
// It is promised that
//
//   - at most one holder has a lease at a time, as long as no clock runs more than
//     a third of the lease's time wrong within it; whoever may have lost it hears
//     of that before another can have it, and every holder has a fence that is
//     greater than all before it, so that what must not be written twice can be
//     checked where it is written;
//   - marks move forward and never back, and everything here that only serves to
//     remember is forgotten by itself;
//   - a budget is one for all nodes: a call that was granted was not granted twice.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options of a Cluster. Client is needed.
type Options struct {
	Client redis.UniversalClient
	Prefix string           // of all keys; default "mimikit"
	Lease  time.Duration    // how long a silent holder keeps a lease; default 10 s
	Keep   time.Duration    // how long marks and notes are remembered that nobody touches; default 60 days
	Now    func() time.Time // default time.Now; only its monotonic part counts
	Logger *slog.Logger     // default: none
}

// A Cluster speaks for one node. It is safe for concurrent use.
type Cluster struct{ o Options }

// New makes a Cluster. It does not connect.
func New(o Options) *Cluster {
	o.Prefix = cmp.Or(o.Prefix, "mimikit")
	o.Lease = cmp.Or(o.Lease, 10*time.Second)
	o.Keep = cmp.Or(o.Keep, 60*24*time.Hour)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cluster{o}
}

// key spells a key; what stands in braces decides the slot, so keys of one topic
// lie together.
func (c *Cluster) key(topic, name string) string {
	return "{" + c.o.Prefix + ":cluster:" + topic + "}:" + name
}

// Claim reports whether nobody has claimed a name within its time. A claim whose
// answer was lost counts as made by somebody else.
func (c *Cluster) Claim(ctx context.Context, name string, ttl time.Duration) (first bool, err error) {
	first, err = c.o.Client.SetNX(ctx, c.key("claim", name), "1", ttl).Result()
	if err != nil {
		return false, fmt.Errorf("claim %q: %w", name, err)
	}
	return first, nil
}

// Note is a short text that was kept under a name; "" when there is none.
func (c *Cluster) Note(ctx context.Context, name string) (string, error) {
	text, err := c.o.Client.Get(ctx, c.key("note", name)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read note %q: %w", name, err)
	}
	return text, nil
}

// SetNote keeps a short text for a while; "" forgets it.
func (c *Cluster) SetNote(ctx context.Context, name, text string, ttl time.Duration) error {
	var err error
	if text == "" {
		err = c.o.Client.Del(ctx, c.key("note", name)).Err()
	} else {
		err = c.o.Client.Set(ctx, c.key("note", name), text, ttl).Err()
	}
	if err != nil {
		return fmt.Errorf("keep note %q: %w", name, err)
	}
	return nil
}

func token() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
