package store

import (
	"context"
	"net"
	"syscall"
)

// sealing makes a Cluster client keep its hands off lost replies.
//
// MaxRetries -1 does nothing there: the loop that follows MOVED also sends a
// command again after EOF or a timeout, up to MaxRedirects times, and without
// that loop no slot can move. It tells the two apart by the error, so the
// connection hands out its errors as a [lostError], which the loop does not
// know and returns. A failed dial sent nothing and stays as it is.
func sealing(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if sc, ok := conn.(syscall.Conn); ok {
			return &sealedSocket{sealedConn{conn}, sc}, nil
		}
		return &sealedConn{conn}, nil
	}
}

// A lostError is the end of a connection on which a command may have been
// under way. It does not unwrap, see [sealing].
type lostError struct{ cause error }

func (e *lostError) Error() string {
	return "connection lost, the command may have run: " + e.cause.Error()
}

type sealedConn struct{ net.Conn }

func (c *sealedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, seal(err)
}

func (c *sealedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, seal(err)
}

func seal(err error) error {
	if err == nil {
		return nil
	}
	return &lostError{err}
}

// A sealedSocket also lets the pool look for connections that ended while they
// were idle, which it does on the file descriptor.
type sealedSocket struct {
	sealedConn
	syscall.Conn
}
