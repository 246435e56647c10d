package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
)

// A world is all that a chaos run has: Redis, the nodes, and the platform where
// there is one.
type world struct {
	c        *chaosCmd
	dir      string
	prefix   string
	rand     *rand.Rand
	platform *chaosPlatform // set by whoever has one
	redis    *chaosRedis
	nodes    []*chaosNode
	args     func(n *chaosNode) []string // how a node is called, but for its Redis
	say      func(format string, args ...any)
	faults   map[string]int
	client   *http.Client
}

func newWorld(ctx context.Context, c *chaosCmd, dir string, args func(n *chaosNode) []string) (*world, error) {
	w := &world{
		c: c, dir: dir, args: args, prefix: runName(), rand: rand.New(rand.NewPCG(c.Seed, 1)), faults: map[string]int{},
		say: func(string, ...any) {}, client: &http.Client{Timeout: 3 * time.Second},
	}
	var err error
	if w.redis, err = startRedis(ctx, dir, c.Failover); err != nil {
		w.close()
		return nil, err
	}
	for i := range c.Nodes {
		n := &chaosNode{w: w, i: i}
		if n.listen, err = freeAddr(); err != nil {
			w.close()
			return nil, err
		}
		if !c.Failover {
			if n.proxy, err = faultproxy.New(w.redis.addr(), faultproxy.Options{Seed: c.Seed + uint64(i)}); err != nil {
				w.close()
				return nil, err
			}
		}
		w.nodes = append(w.nodes, n)
	}
	return w, nil
}

func (w *world) close() {
	for _, n := range w.nodes {
		n.kill()
		if n.proxy != nil {
			_ = n.proxy.Close()
		}
	}
	if w.redis != nil {
		w.redis.close()
	}
}

func (w *world) startNodes() error {
	for _, n := range w.nodes {
		if n.proxy != nil {
			n.proxy.SetFaults(faultproxy.Faults{DelayMax: 2 * time.Millisecond, CutEvery: 4 * time.Second, SwallowReply: 0.004})
		}
		if err := n.start(); err != nil {
			return err
		}
	}
	return nil
}

// torment makes one fault after the other until everything is sent.
func (w *world) torment(ctx context.Context, sent <-chan error) error {
	for {
		if err := pauseFor(ctx, time.Duration(100+w.rand.IntN(500))*time.Millisecond); err != nil {
			return err
		}
		select {
		case err := <-sent:
			return err
		default:
		}
		if err := w.fault(ctx); err != nil {
			return err
		}
	}
}

// fault makes one fault, and waits for its end where it has one.
func (w *world) fault(ctx context.Context) error {
	n := w.nodes[w.rand.IntN(len(w.nodes))]
	span := func(low, high time.Duration) time.Duration {
		return low + time.Duration(w.rand.Int64N(int64(high-low)))
	}
	x := w.rand.IntN(100)
	switch {
	case x < 25:
		w.note("kill -9", "kill -9 node %d", n.i)
		n.kill()
		if err := pauseFor(ctx, span(0, w.c.Lease*3/2)); err != nil {
			return err
		}
		return n.start()
	case x < 45:
		d := span(w.c.Lease/4, w.c.Lease*3)
		w.note("pause", "pause node %d for %s", n.i, d.Round(time.Millisecond))
		n.signal(syscall.SIGSTOP)
		err := pauseFor(ctx, d)
		n.signal(syscall.SIGCONT)
		return err
	case x < 55:
		w.note("clean stop", "SIGTERM node %d", n.i)
		if err := n.stop(); err != nil {
			return err
		}
		return n.start()
	case x < 70 && n.proxy != nil:
		d := span(100*time.Millisecond, w.c.Lease*2)
		w.note("cut off", "cut node %d off Redis for %s", n.i, d.Round(time.Millisecond))
		n.proxy.Block(true)
		err := pauseFor(ctx, d)
		n.proxy.Block(false)
		return err
	case x < 80 && n.proxy != nil:
		w.note("cut all", "cut all connections of node %d", n.i)
		n.proxy.CutAll()
		return nil
	case x < 90 && n.proxy != nil:
		w.note("swallow", "swallow the next 3 replies to node %d", n.i)
		n.proxy.SwallowNext(3)
		return nil
	default:
		if n.proxy == nil && x < 80 {
			return nil // a fail-over takes seconds: not too many of them
		}
		w.note("Redis killed", "kill -9 Redis")
		return w.redis.crash(ctx)
	}
}

func (w *world) note(kind, format string, args ...any) {
	w.faults[kind]++
	w.say(format, args...)
}

// heal ends all faults; every node runs when it is called.
func (w *world) heal() {
	w.say("all is sent; healing")
	for _, n := range w.nodes {
		if n.proxy != nil {
			n.proxy.SetFaults(faultproxy.Faults{})
		}
	}
}

// drain waits until every accepted message is answered and the streams are
// empty. With fail-overs messages may be gone, so it waits for the streams alone.
func (w *world) drain(ctx context.Context, most time.Duration, failover bool) bool {
	for until := time.Now().Add(most); time.Now().Before(until); {
		if failover || w.platform.unanswered() == 0 {
			if s, err := w.stats(ctx); err == nil && s == "" {
				return true
			}
		}
		if pauseFor(ctx, 100*time.Millisecond) != nil {
			return false
		}
	}
	return false
}

// stats says what is left in the streams, "" for nothing.
func (w *world) stats(ctx context.Context) (string, error) {
	cfg := config.Default()
	cfg.Redis = w.redis.settings()
	cfg.Redis.Prefix, cfg.Channel.Partitions, cfg.Node = w.prefix, w.c.Partitions, "judge"
	st, err := openStore(ctx, cfg, nil, false)
	if err != nil {
		return "", err
	}
	defer func() { _ = st.Close() }()
	return leftBehind(ctx, st, channel.Keys{Prefix: w.prefix, Partitions: w.c.Partitions})
}

func leftBehind(ctx context.Context, st *store.Store, keys channel.Keys) (string, error) {
	n, err := channel.New(channel.Options{Client: st.Client, Blocking: st.Blocking, Keys: keys, NodeID: "judge", Mini: st.Volatile()})
	if err != nil {
		return "", err
	}
	s, err := n.Stats(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range s.Channels {
		if c.Entries > 0 || c.Pending > 0 {
			return fmt.Sprintf("%s holds %d entries, %d pending", c.Channel, c.Entries, c.Pending), nil
		}
	}
	if s.Dead > 0 {
		return fmt.Sprintf("%d dead letters", s.Dead), nil
	}
	for p := range keys.Partitions {
		for _, k := range []string{keys.Table(p, channel.Attempts), keys.Table(p, channel.PostTable), keys.Waiting(p)} {
			left, err := st.Client.HLen(ctx, k).Result()
			if err != nil {
				return "", err
			}
			if left > 0 {
				return fmt.Sprintf("%s holds %d fields", k, left), nil
			}
		}
	}
	return "", nil
}

// stopNodes stops every node cleanly and notes one that does not.
func (w *world) stopNodes(v *verdict) {
	for _, n := range w.nodes {
		if err := n.stop(); err != nil {
			v.breach("node %d did not stop cleanly: %v", n.i, err)
		}
	}
}

// A chaosNode is one node process.
type chaosNode struct {
	w      *world
	i      int
	listen string
	proxy  *faultproxy.Proxy
	cmd    *exec.Cmd
	over   chan error
}

// loopArgs call a node of the pipeline.
func (n *chaosNode) loopArgs() []string {
	return []string{"chaos-node", "--platform", n.w.platform.url, "--listen", n.listen}
}

func (n *chaosNode) start() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	args := append(n.w.args(n), "--id", fmt.Sprintf("n%d-%d", n.i, time.Now().UnixNano()),
		"--prefix", n.w.prefix, "--partitions", strconv.Itoa(n.w.c.Partitions), "--lease", n.w.c.Lease.String())
	if n.proxy != nil {
		args = append(args, "--redis", n.proxy.Addr())
	} else {
		args = append(args, "--master", n.w.redis.name)
		for _, a := range n.w.redis.sentinels {
			args = append(args, "--redis", a)
		}
	}
	log, err := os.OpenFile(filepath.Join(n.w.dir, fmt.Sprintf("node-%d.log", n.i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of node %d: %w", n.i, err)
	}
	n.cmd = exec.Command(self, args...)
	n.cmd.Stderr = log
	if err := n.cmd.Start(); err != nil {
		_ = log.Close()
		return fmt.Errorf("start node %d: %w", n.i, err)
	}
	n.over = make(chan error, 1)
	go func(cmd *exec.Cmd, over chan<- error) {
		over <- cmd.Wait()
		close(over)
		_ = log.Close()
	}(n.cmd, n.over)
	return nil
}

func (n *chaosNode) signal(s syscall.Signal) {
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s) // one that is gone needs none
	}
}

func (n *chaosNode) kill() {
	if n.cmd != nil {
		n.signal(syscall.SIGKILL)
		for range n.over { // killed, as was meant
		}
		n.cmd = nil
	}
}

// stop asks the node to stop and waits for its exit code 0, at most 15 s.
func (n *chaosNode) stop() error {
	if n.cmd == nil {
		return nil
	}
	n.signal(syscall.SIGTERM)
	select {
	case err := <-n.over:
		n.cmd = nil
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGTERM {
				return nil // it came before the process could listen for it
			}
		}
		if err != nil {
			return fmt.Errorf("node %d: %w; its log is node-%d.log (--keep)", n.i, err, n.i)
		}
		return nil
	case <-time.After(15 * time.Second):
		n.kill()
		return fmt.Errorf("node %d did not end within 15 s of SIGTERM", n.i)
	}
}

// say offers a message to the node and returns the id of the accepted input.
func (n *chaosNode) say(ctx context.Context, conv, i int) (string, error) {
	q := url.Values{"conv": {strconv.Itoa(conv)}, "i": {strconv.Itoa(i)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.listen+"/say?"+q.Encode(), nil)
	if err != nil {
		return "", err
	}
	resp, err := n.w.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	id, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(string(id))
	}
	return string(id), nil
}
