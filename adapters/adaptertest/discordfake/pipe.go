package discordfake

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// A Pipe is a network of two ends in memory: the server listens on it, and
// clients dial it whatever the address. Unlike loopback it works in a testing/synctest bubble.
type Pipe struct {
	calls chan net.Conn
	over  chan struct{}
	once  sync.Once
}

// NewPipe makes a Pipe.
func NewPipe() *Pipe { return &Pipe{calls: make(chan net.Conn), over: make(chan struct{})} }

var errPipeClosed = errors.New("the pipe is closed")

// Dial connects to whoever listens.
func (p *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.calls <- theirs:
		return ours, nil
	case <-p.over:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errPipeClosed}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: context.Cause(ctx)}
	}
}

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// Client is an HTTP client over the pipe. Its idle connections are to be closed
// before a bubble ends.
func (p *Pipe) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: p.Dial}}
}
