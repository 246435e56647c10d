package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/acquire.lua
	acquireSource string
	//go:embed lua/renew.lua
	renewSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/save.lua
	saveSource string

	acquireScript = redis.NewScript(acquireSource)
	renewScript   = redis.NewScript(renewSource)
	releaseScript = redis.NewScript(releaseSource)
	saveScript    = redis.NewScript(saveSource)
)

// ErrFenced says that a lease is held by another by now.
var ErrFenced = errors.New("the lease is held by another")

// A Lease is the right to one of the places of a name.
type Lease struct {
	c     *Cluster
	name  string
	place int
	token string
	fence string
	lost  chan struct{}
	over  chan struct{}
	once  sync.Once
	done  sync.WaitGroup
}

// Acquire waits until one of so many places of a name is free, and takes it. It
// fails only when ctx ends. The lease is renewed until it is released or lost.
func (c *Cluster) Acquire(ctx context.Context, name string, places int) (*Lease, error) {
	for try := 0; ; try++ {
		l, err := c.tryAcquire(ctx, name, places)
		if err != nil && ctx.Err() == nil && try%20 == 0 {
			c.o.Logger.Warn("lease_not_acquired", "lease", name, "error", err)
		}
		if l != nil {
			return l, nil
		}
		wait := c.o.Lease/4 + rand.N(c.o.Lease/8+1) //nolint:gosec // no secret
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("wait for the lease %s: %w", name, context.Cause(ctx))
		}
	}
}

func (c *Cluster) tryAcquire(ctx context.Context, name string, places int) (*Lease, error) {
	l := &Lease{c: c, name: name, token: token(), lost: make(chan struct{}), over: make(chan struct{})}
	keys := []string{c.key("lease:"+name, "epoch")}
	for i := range places {
		keys = append(keys, c.key("lease:"+name, strconv.Itoa(i)))
	}
	began := c.o.Now()
	got, err := acquireScript.Run(ctx, c.o.Client, keys, l.token, c.o.Lease.Milliseconds()).Int64Slice()
	if err != nil || len(got) != 2 {
		return nil, err // not free, or nobody knows: a lease that was given runs out by itself
	}
	l.place, l.fence = int(got[0]), strconv.FormatInt(got[1], 10)
	l.done.Go(func() { l.renew(context.WithoutCancel(ctx), began) })
	return l, nil
}

// renew keeps the lease, and tells that it is lost when two thirds of its time
// have passed since Redis last confirmed it, also while it waits for an answer.
func (l *Lease) renew(ctx context.Context, confirmed time.Time) {
	tick := time.NewTicker(l.c.o.Lease / 5)
	defer tick.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-tick.C:
		}
		began := l.c.o.Now()
		short, cancel := context.WithTimeout(ctx, min(l.c.o.Lease/4, max(l.c.o.Lease*2/3-began.Sub(confirmed), 0)))
		kept, err := renewScript.Run(short, l.c.o.Client, []string{l.key()}, l.token, l.c.o.Lease.Milliseconds()).Int()
		cancel()
		switch {
		case err == nil && kept == 1:
			confirmed = began
		case err == nil, l.c.o.Now().Sub(confirmed) >= l.c.o.Lease*2/3:
			l.c.o.Logger.Warn("lease_lost", "lease", l.name, "place", l.place, "error", err)
			close(l.lost)
			return
		}
	}
}

func (l *Lease) key() string { return l.c.key("lease:"+l.name, strconv.Itoa(l.place)) }

// Lost is closed when another may hold the place, or soon will.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Fence names this holding; a later one has a greater number.
func (l *Lease) Fence() string { return l.fence }

// Place is which of the places this is, from 0.
func (l *Lease) Place() int { return l.place }

// Release gives the place back. It may be repeated.
func (l *Lease) Release() {
	l.once.Do(func() {
		close(l.over)
		l.done.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), l.c.o.Lease/2)
		defer cancel()
		if err := releaseScript.Run(ctx, l.c.o.Client, []string{l.key()}, l.token).Err(); err != nil {
			l.c.o.Logger.Warn("lease_not_released", "lease", l.name, "error", err) // it runs out
		}
	})
}

// State reads what was saved under a lease's name; "" when there is nothing.
func (c *Cluster) State(ctx context.Context, name string) (string, error) {
	text, err := c.o.Client.Get(ctx, c.key("lease:"+name, "state")).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read the state of %s: %w", name, err)
	}
	return text, nil
}

// SaveState saves a text under a lease's name, unless a lease with a greater fence
// was given since: then it fails with ErrFenced and writes nothing.
func (c *Cluster) SaveState(ctx context.Context, name, fence, text string) error {
	keys := []string{c.key("lease:"+name, "epoch"), c.key("lease:"+name, "state")}
	saved, err := saveScript.Run(ctx, c.o.Client, keys, fence, text).Int()
	if err == nil && saved == 0 {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("save the state of %s: %w", name, err)
	}
	return nil
}
