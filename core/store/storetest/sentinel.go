package storetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
)

// MasterName is what the sentinels of a [SentinelSet] call their master.
const MasterName = "mimikit"

// A SentinelSet is one master, two replicas and three sentinels of one test's
// own. A master is given up after a second.
//
// All of them know a server by the address of a proxy before it, so that one
// can be cut off from the others and go on living: [SentinelSet.Isolate].
type SentinelSet struct {
	t       testing.TB
	servers []*Server
	proxies []*faultproxy.Proxy
	addrs   []string // of the sentinels
	clients []*redis.SentinelClient
}

// Sentinel starts the set. It takes about three seconds.
func Sentinel(t testing.TB) *SentinelSet {
	t.Helper()
	Need(t)
	s := &SentinelSet{t: t}
	for i := range 3 {
		s.addServer(i)
	}
	// Sentinels look once at their start, and then not for some time.
	master := dial(t, s.servers[0].Addr())
	Eventually(t, "replicas linked", func() error {
		info, err := master.Info(context.Background(), "replication").Result()
		if err == nil && strings.Count(info, "state=online") != 2 {
			err = fmt.Errorf("want 2 replicas online:\n%s", info)
		}
		return err
	})
	for i := range 3 {
		s.addSentinel(i)
	}
	s.AwaitQuorum()
	return s
}

// addServer starts server i, a replica of the first one unless it is that.
func (s *SentinelSet) addServer(i int) {
	s.t.Helper()
	// The server must be told of its proxy when it starts, and the proxy of the
	// server's port.
	port := FreePort(s.t)
	proxy, err := faultproxy.New(fmt.Sprintf("127.0.0.1:%d", port), faultproxy.Options{Seed: uint64(i)})
	if err != nil {
		s.t.Fatalf("start a proxy: %v", err)
	}
	s.t.Cleanup(func() { _ = proxy.Close() })
	args := []string{
		"--replica-announce-ip", "127.0.0.1", "--replica-announce-port", portOf(proxy.Addr()),
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-timeout", "5", "--repl-ping-replica-period", "1",
	}
	if i > 0 {
		args = append(args, "--replicaof", "127.0.0.1 "+portOf(s.proxies[0].Addr()))
	}
	server := newServer(s.t, port, args)
	server.Restart()
	s.servers = append(s.servers, server)
	s.proxies = append(s.proxies, proxy)
}

func (s *SentinelSet) addSentinel(i int) {
	s.t.Helper()
	dir := s.t.TempDir()
	for range 5 {
		port := FreePort(s.t)
		conf := filepath.Join(dir, "sentinel.conf") // sentinels write their state into it
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nprotected-mode no\n"+
			"sentinel monitor %s 127.0.0.1 %s 2\nsentinel down-after-milliseconds %[3]s 1000\n"+
			"sentinel failover-timeout %[3]s 5000\nsentinel parallel-syncs %[3]s 2\n",
			port, dir, MasterName, portOf(s.proxies[0].Addr()))
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		p, err := spawn(filepath.Join(dir, "server.log"), conf, "--sentinel")
		if err != nil {
			s.t.Fatalf("start sentinel: %v", err)
		}
		if awaitReady(p, addr) != nil {
			p.end(syscall.SIGKILL)
			continue
		}
		s.t.Cleanup(func() { p.end(syscall.SIGKILL) })
		c := redis.NewSentinelClient(&redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: time.Second})
		s.t.Cleanup(func() { _ = c.Close() })
		// Every half second instead of ten; known from 7.0 on, and done without
		// before.
		_ = dial(s.t, addr).Do(context.Background(), "sentinel", "debug", "info-period", "500").Err()
		s.addrs = append(s.addrs, addr)
		s.clients = append(s.clients, c)
		return
	}
	log, _ := os.ReadFile(filepath.Join(dir, "server.log"))
	s.t.Fatalf("sentinel %d did not start:\n%s", i, log)
}

func portOf(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(err) // a listener's own address
	}
	return port
}

// AwaitQuorum returns when the sentinels know each other and both replicas, so
// that a failover can take place. Those cut off or dead count as known.
func (s *SentinelSet) AwaitQuorum() {
	s.t.Helper()
	ctx := context.Background()
	for _, c := range s.clients {
		Eventually(s.t, "sentinels ready", func() error {
			m, err := c.Master(ctx, MasterName).Result()
			if err != nil {
				return err
			}
			if m["flags"] != "master" || m["num-slaves"] != "2" || m["num-other-sentinels"] != "2" {
				return fmt.Errorf("flags %q, %s replicas, %s other sentinels", m["flags"], m["num-slaves"], m["num-other-sentinels"])
			}
			replicas, err := c.Replicas(ctx, MasterName).Result()
			if err != nil {
				return err
			}
			for _, r := range replicas {
				if r["flags"] != "slave" || r["master-link-status"] != "ok" {
					return fmt.Errorf("replica %s: flags %q, link %q", r["name"], r["flags"], r["master-link-status"])
				}
			}
			return nil
		})
	}
}

// Options open the set's master.
func (s *SentinelSet) Options() store.Options {
	return store.Options{Mode: store.Sentinel, MasterName: MasterName, Addrs: s.addrs}
}

// Store opens a store on the set, closed with the test.
func (s *SentinelSet) Store() *store.Store {
	s.t.Helper()
	return Open(s.t, s.Options())
}

// Master returns which server, 0 to 2, the sentinels hold for the master.
func (s *SentinelSet) Master() int {
	s.t.Helper()
	at, err := s.master()
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

func (s *SentinelSet) master() (int, error) {
	addr, err := s.clients[0].GetMasterAddrByName(context.Background(), MasterName).Result()
	if err != nil {
		return 0, err
	}
	for i, p := range s.proxies {
		if portOf(p.Addr()) == addr[1] {
			return i, nil
		}
	}
	return 0, errors.New("the sentinels' master is unknown: " + strings.Join(addr, ":"))
}

// Server is server i itself; its Addr goes past the proxy, and so reaches it
// even while it is cut off.
func (s *SentinelSet) Server(i int) *Server { return s.servers[i] }

// KillMaster ends the master as a crash would, and returns when another one
// has taken over.
func (s *SentinelSet) KillMaster() {
	s.t.Helper()
	old := s.Master()
	s.servers[old].Kill()
	s.awaitMasterOtherThan(old)
}

// Isolate cuts the master off from the replicas, the sentinels and their
// clients, and returns, when another one has taken over, which server the old
// one is. It lives and takes writes from those who connect to its Addr.
func (s *SentinelSet) Isolate() int {
	s.t.Helper()
	old := s.Master()
	s.proxies[old].Block(true)
	s.awaitMasterOtherThan(old)
	return old
}

// Heal lets all servers be reached again. A former master then becomes a
// replica and forgets what it was written to alone; see [SentinelSet.AwaitQuorum].
func (s *SentinelSet) Heal() {
	for _, p := range s.proxies {
		p.Block(false)
	}
}

// awaitMasterOtherThan returns when all sentinels name one other server and
// that one takes writes.
func (s *SentinelSet) awaitMasterOtherThan(old int) {
	s.t.Helper()
	Eventually(s.t, "failover", func() error {
		at, err := s.master()
		if err != nil {
			return err
		}
		if at == old {
			return fmt.Errorf("server %d is still the master", old)
		}
		for _, c := range s.clients {
			addr, err := c.GetMasterAddrByName(context.Background(), MasterName).Result()
			if err != nil {
				return err
			}
			if addr[1] != portOf(s.proxies[at].Addr()) {
				return fmt.Errorf("a sentinel still names %v", addr)
			}
		}
		info, err := dial(s.t, s.servers[at].Addr()).Info(context.Background(), "replication").Result()
		if err != nil {
			return err
		}
		return has(info, "role:master")
	})
}
