package slack

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A wire is a network of one server, in memory, so that its clock is the test's.
type wire struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newWire() *wire { return &wire{conns: make(chan net.Conn), done: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error { w.once.Do(func() { close(w.done) }); return nil }

func (w *wire) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "tcp" }
func (addr) String() string  { return "slack.fake" }

func (w *wire) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := newStream(), newStream()
	select {
	case w.conns <- &end{in: a, out: b}:
		return &end{in: b, out: a}, nil
	case <-w.done:
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// An end of a connection. Unlike those of net.Pipe it takes what is written at
// once, as a kernel does; without that two ends that write at the same time wait
// for each other.
type end struct{ in, out *stream }

func (e *end) Read(p []byte) (int, error)        { return e.in.read(p) }
func (e *end) Write(p []byte) (int, error)       { return e.out.write(p) }
func (e *end) LocalAddr() net.Addr               { return addr{} }
func (e *end) RemoteAddr() net.Addr              { return addr{} }
func (e *end) SetWriteDeadline(time.Time) error  { return nil }
func (e *end) SetDeadline(t time.Time) error     { return e.SetReadDeadline(t) }
func (e *end) SetReadDeadline(t time.Time) error { e.in.until(t); return nil }
func (e *end) Close() error                      { e.in.close(); e.out.close(); return nil }

// A stream is one direction.
type stream struct {
	mu       sync.Mutex
	data     []byte
	closed   bool
	deadline time.Time
	changed  chan struct{}
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

func (s *stream) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	s.data = append(s.data, p...)
	s.touch()
	return len(p), nil
}

func (s *stream) until(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.touch()
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.touch()
}

func (s *stream) read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		changed, deadline := s.changed, s.deadline
		late := !deadline.IsZero() && !time.Now().Before(deadline)
		switch {
		case late:
			s.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0:
			n := copy(p, s.data)
			s.data = s.data[n:]
			s.mu.Unlock()
			return n, nil
		case s.closed:
			s.mu.Unlock()
			return 0, io.EOF
		}
		s.mu.Unlock()
		if deadline.IsZero() {
			<-changed
			continue
		}
		t := time.NewTimer(time.Until(deadline))
		select {
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}
