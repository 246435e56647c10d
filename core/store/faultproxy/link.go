package faultproxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// chances are sources of chance, one for each kind of fault: which draw comes
// first is up to the scheduler between kinds, and never within one.
type chances struct{ life, up, down, replies *rand.Rand }

// chancesOf is the fate of connection n.
func chancesOf(seed uint64, n int) chances {
	source := func(kind uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(n)<<2|kind)) }
	return chances{life: source(0), up: source(1), down: source(2), replies: source(3)}
}

// A link is one connection of a client and the one to the server that it
// stands for.
type link struct {
	p      *Proxy
	client net.Conn

	endOnce sync.Once
	ended   chan struct{}

	// Guarded by p.mu.
	server  net.Conn
	chance  chances
	cut     *time.Timer
	command string // of the last request
	waiting bool   // no byte of its reply has come yet
}

func (l *link) run() {
	defer l.forget()
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(l.p.ctx, network(l.p.target), l.p.target)
	if err != nil {
		l.p.log.Debug("proxy target not reached", "target", l.p.target, "error", err)
		l.end()
		return
	}
	l.p.mu.Lock()
	l.server = server
	l.p.mu.Unlock()
	select {
	case <-l.ended: // while we dialled
		_ = server.Close()
		return
	default:
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(server, l.client, l.chance.up, l.request) })
	both.Go(func() { l.pump(l.client, server, l.chance.down, l.reply) })
	both.Wait()
	l.end()
}

// pump passes chunks on until the connection ends. admit is asked about each
// one before it goes on, and ends the link by saying no.
func (l *link) pump(to, from net.Conn, delays *rand.Rand, admit func(chunk []byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !l.hold(delays) || !admit(buf[:n]) {
				l.end()
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				l.end()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			// The other direction may still have something to say.
			if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			l.end()
			return
		}
	}
}

// hold keeps a chunk for as long as the faults say, and while the proxy is
// frozen. It reports whether the link is still there.
func (l *link) hold(delays *rand.Rand) bool {
	l.p.mu.Lock()
	f := l.p.faults
	delay := f.DelayMin
	if spread := f.DelayMax - f.DelayMin; spread > 0 {
		delay += time.Duration(delays.Int64N(int64(spread) + 1))
	}
	l.p.mu.Unlock()
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-l.ended:
			return false
		case <-t.C:
		}
	}
	for {
		l.p.mu.Lock()
		open, frozen := l.p.open, l.p.frozen
		l.p.mu.Unlock()
		if !frozen {
			return true
		}
		select {
		case <-l.ended:
			return false
		case <-open:
		}
	}
}

// request takes note of what is asked. All requests pass.
func (l *link) request(chunk []byte) bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if name, ok := commandOf(chunk); ok {
		l.command = name
	}
	l.waiting = true
	return true
}

// reply decides, at the first bytes after a request, whether they are lost.
func (l *link) reply([]byte) bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if !l.waiting {
		return true
	}
	l.waiting = false
	if slices.Contains(setUp, l.command) {
		return true
	}
	lose := false
	if next := &l.p.next; next.n > 0 && among(l.command, next.commands) {
		next.n--
		lose = true
	}
	if f := l.p.faults; f.SwallowReply > 0 && among(l.command, f.Commands) {
		// Chance is asked even if the reply is lost already, to keep its order.
		lose = l.chance.replies.Float64() < f.SwallowReply || lose
	}
	if lose {
		l.p.stats.Swallowed++
		l.p.log.Debug("proxy swallowed a reply", "command", l.command)
	}
	return !lose
}

// setUp are the commands of a connection's start, and those by which a client
// learns about the server.
var setUp = []string{"HELLO", "AUTH", "CLIENT", "SELECT", "INFO", "READONLY", "COMMAND", "CLUSTER", "SENTINEL", "PING"}

// among reports whether command is one of list, or list is empty.
func among(command string, list []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(c string) bool { return strings.EqualFold(c, command) })
}

// commandOf reads the name of the first command in a chunk that starts a
// request: "*3\r\n$4\r\nXADD\r\n…". Other chunks go on with an earlier one.
func commandOf(chunk []byte) (string, bool) {
	const longest = 64 // bytes that matter
	head := string(chunk[:min(len(chunk), longest)])
	lines := strings.SplitN(head, "\r\n", 4)
	if len(lines) < 4 || !strings.HasPrefix(lines[0], "*") || !strings.HasPrefix(lines[1], "$") {
		return "", false
	}
	return strings.ToUpper(lines[2]), true
}

// armLocked draws how long the link has to live; p.mu is held.
func (l *link) armLocked(mean time.Duration) {
	if l.cut != nil {
		l.cut.Stop()
		l.cut = nil
	}
	if mean <= 0 {
		return
	}
	l.cut = time.AfterFunc(time.Duration(l.chance.life.ExpFloat64()*float64(mean)), func() {
		select {
		case <-l.ended:
			return
		default:
		}
		l.p.mu.Lock()
		l.p.stats.Cut++
		l.endLocked()
		l.p.mu.Unlock()
	})
}

func (l *link) end() {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.endLocked()
}

// endLocked closes both connections; p.mu is held.
func (l *link) endLocked() {
	l.endOnce.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		if l.server != nil {
			_ = l.server.Close()
		}
	})
}

func (l *link) forget() {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.cut != nil {
		l.cut.Stop()
	}
	delete(l.p.links, l)
}
