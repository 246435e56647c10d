package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/config"
)

// A chaosRedis is the Redis of a chaos run: one server, or a master with two
// replicas and three sentinels.
type chaosRedis struct {
	dir       string
	name      string // of the master
	servers   []*redisProcess
	watchers  []*redisProcess
	sentinels []string
}

// A redisProcess is one redis-server, as a server or as a sentinel.
type redisProcess struct {
	addr, dir string
	args      []string
	cmd       *exec.Cmd
	over      chan struct{}
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func startRedis(ctx context.Context, dir string, failover bool) (*chaosRedis, error) {
	r := &chaosRedis{dir: dir, name: "chaos"}
	n := 1
	if failover {
		n = 3
	}
	for i := range n {
		addr, err := freeAddr()
		if err != nil {
			return nil, r.abandon(err)
		}
		_, port, _ := net.SplitHostPort(addr)
		p := &redisProcess{addr: addr, dir: filepath.Join(dir, fmt.Sprintf("redis-%d", i))}
		p.args = []string{"--port", port, "--bind", "127.0.0.1", "--dir", p.dir, "--appendonly", "yes", "--appendfsync", "always",
			"--save", "", "--maxmemory-policy", "noeviction", "--repl-diskless-sync-delay", "0"}
		if i > 0 {
			host, master, _ := net.SplitHostPort(r.servers[0].addr)
			p.args = append(p.args, "--replicaof", host+" "+master)
		}
		r.servers = append(r.servers, p)
		if err := p.start(ctx); err != nil {
			return nil, r.abandon(err)
		}
	}
	if !failover {
		return r, nil
	}
	for i := range 3 {
		if err := r.startSentinel(ctx, i); err != nil {
			return nil, r.abandon(err)
		}
	}
	return r, r.awaitQuorum(ctx)
}

func (r *chaosRedis) startSentinel(ctx context.Context, i int) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(addr)
	host, master, _ := net.SplitHostPort(r.servers[0].addr)
	p := &redisProcess{addr: addr, dir: filepath.Join(r.dir, fmt.Sprintf("sentinel-%d", i))}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	conf := filepath.Join(p.dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %s 1000\nsentinel failover-timeout %s 5000\n",
		port, p.dir, r.name, host, master, r.name, r.name)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	p.args = []string{conf, "--sentinel"}
	r.watchers, r.sentinels = append(r.watchers, p), append(r.sentinels, addr)
	return p.start(ctx)
}

// awaitQuorum waits until the sentinels know each other and both replicas.
func (r *chaosRedis) awaitQuorum(ctx context.Context) error {
	for range 300 {
		ready := 0
		for _, addr := range r.sentinels {
			s := redis.NewSentinelClient(&redis.Options{Addr: addr})
			m, err := s.Master(ctx, r.name).Result()
			_ = s.Close()
			if err == nil && m["num-slaves"] == "2" && m["num-other-sentinels"] == "2" {
				ready++
			}
		}
		if ready == len(r.sentinels) {
			return nil
		}
		if err := pauseFor(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the sentinels did not find each other within 30 s")
}

// start starts the process and waits until it answers.
func (p *redisProcess) start(ctx context.Context) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.cmd = exec.Command("redis-server", p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		_ = log.Close()
		return fmt.Errorf("start redis-server: %w", err)
	}
	p.over = make(chan struct{})
	go func(cmd *exec.Cmd, over chan struct{}) {
		_ = cmd.Wait() // its end is what we made
		_ = log.Close()
		close(over)
	}(p.cmd, p.over)
	c := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	for range 300 {
		if err = c.Ping(ctx).Err(); err == nil {
			return nil
		}
		if err := pauseFor(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("redis-server on %s did not answer within 15 s: %w", p.addr, err)
}

func (p *redisProcess) kill() {
	if p.cmd != nil && p.over != nil {
		_ = p.cmd.Process.Kill() // one that is gone needs none
		<-p.over
	}
}

// addr is the address of the one server.
func (r *chaosRedis) addr() string { return r.servers[0].addr }

// settings are how a client reaches it.
func (r *chaosRedis) settings() config.Redis {
	if len(r.sentinels) > 0 {
		return config.Redis{Mode: config.Sentinel, Addrs: r.sentinels, MasterName: r.name}
	}
	return config.Redis{Mode: config.Single, Addrs: []string{r.addr()}}
}

// crash kills the server that takes writes, and starts it again: at once, or,
// in a Sentinel set, when another has taken over.
func (r *chaosRedis) crash(ctx context.Context) error {
	if len(r.sentinels) == 0 {
		r.servers[0].kill()
		return r.servers[0].start(ctx)
	}
	old, err := r.master(ctx)
	if err != nil {
		return err
	}
	for _, p := range r.servers {
		if p.addr == old {
			p.kill()
			for range 300 {
				if now, err := r.master(ctx); err == nil && now != old {
					break
				}
				if err := pauseFor(ctx, 50*time.Millisecond); err != nil {
					return err
				}
			}
			if err := p.start(ctx); err != nil {
				return err
			}
		}
	}
	return r.awaitReplicas(ctx)
}

// awaitReplicas waits until the master has both replicas again, so that the next
// fail-over finds somebody to take over.
func (r *chaosRedis) awaitReplicas(ctx context.Context) error {
	for range 300 {
		if addr, err := r.master(ctx); err == nil {
			c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
			info, err := c.Info(ctx, "replication").Result()
			_ = c.Close()
			if err == nil && strings.Count(info, "state=online") == len(r.servers)-1 {
				return nil
			}
		}
		if err := pauseFor(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the replicas did not come back within 30 s")
}

func (r *chaosRedis) master(ctx context.Context) (string, error) {
	s := redis.NewSentinelClient(&redis.Options{Addr: r.sentinels[0], MaxRetries: -1})
	defer func() { _ = s.Close() }()
	hp, err := s.GetMasterAddrByName(ctx, r.name).Result()
	if err != nil || len(hp) != 2 {
		return "", fmt.Errorf("ask the sentinel for the master: %v, %w", hp, err)
	}
	if _, err := strconv.Atoi(hp[1]); err != nil {
		return "", fmt.Errorf("the sentinel names the master's port %q: %w", hp[1], err)
	}
	return net.JoinHostPort(hp[0], hp[1]), nil
}

func (r *chaosRedis) close() {
	for _, p := range append(r.watchers, r.servers...) {
		p.kill()
	}
}

// abandon ends what was started, and returns why.
func (r *chaosRedis) abandon(err error) error {
	r.close()
	return err
}
