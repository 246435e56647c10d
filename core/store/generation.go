package store

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// generation counts the servers that have held our state, by their run ids: a
// server gets a new one each time it starts, and a replica that takes over has
// its own. Either may lack writes that were acknowledged.
type generation struct {
	cluster bool

	mu      sync.Mutex
	settled bool                // Open is done; from now on a new id counts
	last    string              // the run id seen last
	seen    map[string]struct{} // in a Cluster: all run ids of masters
	number  uint64
	changed chan struct{} // closed and replaced when number grows
}

func newGeneration(cluster bool) *generation {
	return &generation{cluster: cluster, seen: map[string]struct{}{}, number: 1, changed: make(chan struct{})}
}

// Generation is a number that grows each time a new connection meets a server
// other than the one before, that is, after every restart and failover; in a
// Cluster, a master not met before, for which Run looks as well. It starts at 1
// and stays there for a store in this process.
//
// It has grown before the first command on the new server is answered, save in
// a Cluster, where a replica that took over may answer up to a second earlier.
// It may grow without need, when connections to an old and a new master
// overlap.
func (s *Store) Generation() uint64 {
	s.generation.mu.Lock()
	defer s.generation.mu.Unlock()
	return s.generation.number
}

// Changed returns a channel that is closed when Generation next grows. To miss
// nothing, take the channel first and read Generation then.
func (s *Store) Changed() <-chan struct{} {
	s.generation.mu.Lock()
	defer s.generation.mu.Unlock()
	return s.generation.changed
}

// settle ends the time in which the servers of Open are met for the first time.
func (g *generation) settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settled = true
}

func (g *generation) observe(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cluster {
		if _, ok := g.seen[id]; ok {
			return
		}
		g.seen[id] = struct{}{}
	} else if g.last == id {
		return
	}
	known := g.cluster || g.last != ""
	g.last = id
	if !g.settled || !known {
		return
	}
	g.number++
	close(g.changed)
	g.changed = make(chan struct{})
}

// onConnect is run by go-redis on each new connection, before its first use,
// with a client that speaks on that connection alone. A server that knows no
// INFO is let pass; a connection that breaks, or a server that a script keeps
// busy, fails the connect, or its run id would go unseen.
func (g *generation) onConnect(ctx context.Context, c *redis.Conn) error {
	id, err := masterRunID(ctx, c)
	if err != nil {
		return err
	}
	if id != "" {
		g.observe(id)
	}
	return nil
}

// masterRunID asks a server who it is. It is empty for one that is not a
// master, as sentinels and replicas hold no state of ours, and for one that
// does not say.
func masterRunID(ctx context.Context, c redis.Cmdable) (string, error) {
	pipe := c.Pipeline()
	// Two sections in one INFO are understood from 7.0 on only.
	server, replication := pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")
	if _, err := pipe.Exec(ctx); err != nil {
		if !isAnswer(err) || strings.HasPrefix(err.Error(), "BUSY") {
			return "", err
		}
		return "", nil
	}
	if field(replication.Val(), "role") != "master" {
		return "", nil
	}
	return field(server.Val(), "run_id"), nil
}

// mastersEvery is how often a Cluster's masters are asked for their run ids.
const mastersEvery = time.Second

// watchMasters finds replicas that have become masters. A Cluster client may
// have connections to a replica before that, and would use them on without a
// new one being made.
func (s *Store) watchMasters(ctx context.Context) error {
	cluster, ok := s.Client.(*redis.ClusterClient)
	if !ok {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(mastersEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			id, err := masterRunID(ctx, c)
			if err == nil && id != "" {
				s.generation.observe(id)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.log.DebugContext(ctx, "cluster master not reached", "error", err)
		}
	}
}
