package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// A ClusterSet is a Redis Cluster of one test's own, each master with a third
// of the slots. It keeps nothing on disk.
type ClusterSet struct {
	Masters []*Server
	Store   *store.Store
}

// Cluster is a store on a Redis Cluster of the test's own: three masters, no
// replicas. It takes about two seconds to come up.
func Cluster(t testing.TB) *store.Store {
	t.Helper()
	return NewCluster(t).Store
}

// NewCluster is Cluster with its servers.
func NewCluster(t testing.TB) *ClusterSet {
	t.Helper()
	const masters = 3
	c := &ClusterSet{}
	var clients []*redis.Client
	for range masters {
		s := NewServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		c.Masters = append(c.Masters, s)
		clients = append(clients, dial(t, s.Addr()))
	}
	ctx := context.Background()
	for i, n := range clients {
		// Epochs given by hand: the nodes would need seconds to agree on them.
		if err := n.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			t.Fatalf("set epoch of cluster node: %v", err)
		}
		if err := n.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			t.Fatalf("give slots to cluster node: %v", err)
		}
		if err := n.ClusterMeet(ctx, "127.0.0.1", fmt.Sprint(c.Masters[0].port)).Err(); err != nil {
			t.Fatalf("introduce cluster node: %v", err)
		}
	}
	var addrs []string
	for i, n := range clients {
		Eventually(t, "cluster up", func() error {
			info, err := n.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			return has(info, "cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", masters), fmt.Sprintf("cluster_slots_assigned:%d", slots))
		})
		addrs = append(addrs, c.Masters[i].Addr())
	}
	c.Store = Open(t, store.Options{Mode: store.Cluster, Addrs: addrs})
	return c
}

// dial is a plain client of one server, closed with the test.
func dial(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, PoolSize: 4, PipelinePoolSize: -1, DialTimeout: time.Second, ReadTimeout: 3 * time.Second})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
