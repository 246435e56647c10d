// Package faultproxy stands between a Redis and its clients and does to them
// what networks do: it delays, cuts connections, goes silent, and loses
// replies.
//
// The lost reply is what it is for. A request goes through to the server, which
// carries it out; then the reply is dropped and the connection closed. The
// client sees EOF and cannot know that its write took place. Whatever is built
// on Redis must stand that without doing anything twice.
//
// Until it is told otherwise a proxy passes every byte on unchanged, both ways,
// half-closed connections included. Replies that set a connection up (HELLO,
// AUTH, CLIENT, SELECT, INFO and their like) are never swallowed: nothing is
// written by them, and the count of lost writes stays exact.
package faultproxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Faults are what a proxy does at random. The zero value is a sound network.
type Faults struct {
	// DelayMin and DelayMax bound the time that each chunk of bytes is held,
	// each way, order kept.
	DelayMin, DelayMax time.Duration
	// CutEvery is the mean life of a connection; lives are spread
	// exponentially. 0 is for ever.
	CutEvery time.Duration
	// SwallowReply is the chance, 0 to 1, that a request is carried out and its
	// reply lost. Requests sent together are one; of more than 64 KiB of them a
	// part may not reach the server.
	SwallowReply float64
	// Commands, if not empty, are those whose replies may be lost.
	Commands []string
}

// Options of a proxy; the zero value works.
type Options struct {
	// Seed makes chance repeat itself: the fate of the n-th connection depends
	// on Seed, n and what passes over it, and not on the clock.
	Seed uint64
	// Listen is where the proxy listens: host:port, or the path of a unix
	// socket. Default 127.0.0.1:0.
	Listen string
	Logger *slog.Logger // default: none
}

// Stats count what a proxy did since it was made.
type Stats struct {
	Connections int // accepted
	Swallowed   int // replies lost after their request went through
	Cut         int // connections that CutEvery ended
}

// A Proxy is a running proxy. Its methods may be called from any goroutine.
type Proxy struct {
	target   string
	opts     Options
	log      *slog.Logger
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu      sync.Mutex
	faults  Faults
	next    swallow // see SwallowNext
	blocked bool
	open    chan struct{} // closed while bytes may pass; see Freeze
	frozen  bool
	links   map[*link]struct{}
	stats   Stats
}

// swallow is an order to lose the next n replies to some commands.
type swallow struct {
	n        int
	commands []string
}

// New starts a proxy to target, host:port or the path of a unix socket. The
// target need not be there yet. The caller must Close the proxy.
func New(target string, opts Options) (*Proxy, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	l, err := net.Listen(network(opts.Listen), opts.Listen)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		target: target, opts: opts, log: opts.Logger, listener: l,
		ctx: ctx, cancel: cancel,
		open: make(chan struct{}), links: map[*link]struct{}{},
	}
	close(p.open)
	p.wg.Go(p.accept)
	return p, nil
}

func network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Stats returns what happened so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// SetFaults replaces the faults, for open connections too.
func (p *Proxy) SetFaults(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	for l := range p.links {
		l.armLocked(f.CutEvery)
	}
}

// SwallowNext loses the next n replies, whatever SetFaults says: of any request
// if no commands are named, else only of those that start with one of them,
// such as "XADD". It replaces an earlier order; 0 takes it back.
func (p *Proxy) SwallowNext(n int, commands ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = swallow{n, slices.Clone(commands)}
}

// Block takes the network down, or with false up again: all connections end, and new ones end at
// once. Block(false) brings it back.
func (p *Proxy) Block(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = down
	if down {
		for l := range p.links {
			l.endLocked()
		}
	}
}

// Freeze makes the network silent, or with false lets it speak again: connections stay, and no byte moves.
// Freeze(false) lets what was held move on, as after a pause of the peer.
func (p *Proxy) Freeze(silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if silent == p.frozen {
		return
	}
	p.frozen = silent
	if silent {
		p.open = make(chan struct{})
	} else {
		close(p.open)
	}
}

// CutAll ends all connections that are open now.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.endLocked()
	}
}

// Close ends the proxy and all its connections, and returns when nothing of it
// is left running.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.CutAll()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			p.log.Warn("proxy accept failed", "error", err)
			if !p.sleep(50 * time.Millisecond) { // out of file descriptors, most likely
				return
			}
			continue
		}
		p.mu.Lock()
		p.stats.Connections++
		l := &link{p: p, client: conn, ended: make(chan struct{}), chance: chancesOf(p.opts.Seed, p.stats.Connections)}
		if p.blocked || p.ctx.Err() != nil {
			p.mu.Unlock()
			_ = conn.Close()
			continue
		}
		p.links[l] = struct{}{}
		l.armLocked(p.faults.CutEvery)
		p.wg.Go(l.run)
		p.mu.Unlock()
	}
}

// sleep reports whether the proxy is still open after d.
func (p *Proxy) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
