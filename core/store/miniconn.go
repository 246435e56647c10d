package store

import (
	"net"
	"sync"
)

// A miniConn is the client's end of a pipe to a miniredis, whose writes never
// wait for the reader. A bare pipe has no buffer: a client that still writes a
// pipeline and a server that already answers it would wait for each other for
// ever.
type miniConn struct {
	net.Conn
	mu     sync.Mutex
	more   *sync.Cond
	queue  []byte
	err    error // of the pump, or net.ErrClosed
	closed bool
}

func newMiniConn(c net.Conn) *miniConn {
	m := &miniConn{Conn: c}
	m.more = sync.NewCond(&m.mu)
	go m.pump()
	return m
}

// Write takes the bytes and returns. An error of the connection is told by a
// later call.
func (m *miniConn) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return 0, m.err
	}
	m.queue = append(m.queue, p...)
	m.more.Signal()
	return len(p), nil
}

// Close drops what was not yet sent, as a reset would.
func (m *miniConn) Close() error {
	m.mu.Lock()
	m.closed, m.err = true, net.ErrClosed
	m.more.Signal()
	m.mu.Unlock()
	return m.Conn.Close()
}

func (m *miniConn) pump() {
	for {
		m.mu.Lock()
		for len(m.queue) == 0 && !m.closed {
			m.more.Wait()
		}
		chunk := m.queue
		m.queue = nil
		closed := m.closed
		m.mu.Unlock()
		if closed {
			return
		}
		if _, err := m.Conn.Write(chunk); err != nil {
			m.mu.Lock()
			if m.err == nil {
				m.err = err
			}
			m.mu.Unlock()
			return
		}
	}
}
