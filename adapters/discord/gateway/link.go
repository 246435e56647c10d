package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	helloTimeout = 20 * time.Second // for the dial and the Hello
	writeTimeout = 10 * time.Second
	queued       = 256 // frames read ahead of the handler
	askedBeats   = 60  // heartbeats a minute that Discord may ask for
)

// Why a link ended, besides what the network and Discord say.
var (
	errZombie    = errors.New("no answer to the last heartbeat")
	errBadFrame  = errors.New("a payload that cannot be read")
	errLeft      = errors.New("the connection was left")
	errTooSilent = errors.New("no session within 5 minutes")
)

// A link is one connection. Its reader answers what needs no order, and hands on
// the rest; when the link has ended, frames is closed after what was read.
type link struct {
	ws       *websocket.Conn
	unpack   *inflater // nil without compression
	interval time.Duration
	frames   chan frame

	stored   atomic.Int64 // what heartbeats tell: never ahead of what is stored
	acked    atomic.Bool
	lastRead atomic.Int64 // unix ns

	writing sync.Mutex
	greeted bool // there was a Hello
	ended   sync.Once
	over    chan struct{} // closed with the link
	err     error         // why; to be read after over

	beats     int       // asked for in the minute that began at beatsFrom
	beatsFrom time.Time // both are the reader's
}

// dial opens a connection and waits for its Hello.
func (c *Client) dial(ctx context.Context, gatewayURL string, stored int64) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	u, err := url.Parse(gatewayURL)
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" {
		return nil, fmt.Errorf("dial gateway %q: not a ws or wss URL", gatewayURL)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	q := u.Query()
	q.Set("v", "10")
	q.Set("encoding", "json")
	if c.o.Compress {
		q.Set("compress", "zlib-stream")
	}
	u.RawQuery = q.Encode()
	d := websocket.Dialer{NetDialContext: c.o.NetDial, Proxy: http.ProxyFromEnvironment, HandshakeTimeout: helloTimeout, ReadBufferSize: 16 << 10}
	ws, resp, err := d.DialContext(ctx, u.String(), nil)
	if err != nil {
		if resp != nil {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("dial gateway %s: HTTP %s: %w", u.Host, resp.Status, err)
		}
		return nil, fmt.Errorf("dial gateway %s: %w", u.Host, err)
	}
	ws.SetReadLimit(maxFrame)
	// The usual answer to a close is its own code, and with 1000 or 1001 that would
	// end the session.
	ws.SetCloseHandler(func(int, string) error { return nil })
	l := &link{ws: ws, frames: make(chan frame, queued), over: make(chan struct{}), interval: helloTimeout}
	l.stored.Store(stored)
	l.acked.Store(true)
	if c.o.Compress {
		l.unpack = newInflater(&messages{l: l})
	}
	// The context bounds the wait for Hello; after that the heartbeat does.
	stop := context.AfterFunc(ctx, func() { l.end(context.Cause(ctx), false) })
	first, err := l.read()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
	case first.Op == opHello:
		if l.interval, err = first.hello(); err == nil {
			l.greeted = true
			return l, nil
		}
		err = fmt.Errorf("%w: %w", errBadFrame, err)
	default:
		// Whatever it is, it is looked at in its turn; there will be no heartbeat.
		l.frames <- first
		l.end(fmt.Errorf("opcode %d came before hello", first.Op), true)
		close(l.frames)
		return l, nil
	}
	l.end(err, true)
	return nil, fmt.Errorf("wait for hello of %s: %w", u.Host, l.err)
}

// run reads and beats until the link ends. It returns when both have stopped.
func (l *link) run(jitter float64) {
	if !l.greeted {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.beat(jitter) })
	both.Go(l.readAll)
	both.Wait()
}

func (l *link) readAll() {
	defer close(l.frames)
	for {
		f, err := l.read()
		if err != nil {
			l.end(err, false)
			return
		}
		switch f.Op {
		case opHeartbeatAck:
			l.acked.Store(true)
		case opHeartbeat:
			if l.mayBeat() {
				l.send(heartbeat(l.stored.Load()))
			}
		default:
			select {
			case l.frames <- f:
			case <-l.over:
				return
			}
		}
	}
}

// mayBeat keeps a gateway that asks for heartbeats without end from having us
// thrown out for sending too many.
func (l *link) mayBeat() bool {
	if now := time.Now(); now.Sub(l.beatsFrom) >= time.Minute {
		l.beatsFrom, l.beats = now, 0
	}
	l.beats++
	return l.beats <= askedBeats
}

func (l *link) beat(jitter float64) {
	wait := time.NewTimer(time.Duration(float64(l.interval) * jitter))
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-l.over:
			return
		}
		if !l.acked.Swap(false) {
			l.end(errZombie, true)
			return
		}
		l.send(heartbeat(l.stored.Load()))
		wait.Reset(l.interval)
	}
}

// read gives the next frame. Discord answers heartbeats, so a link on which
// nothing comes for longer than one takes is dead.
func (l *link) read() (frame, error) {
	var raw []byte
	var err error
	if l.unpack != nil {
		raw, err = l.unpack.next()
	} else {
		raw, err = l.message()
	}
	if err != nil {
		return frame{}, sorted(err)
	}
	f, err := decodeFrame(raw)
	if err != nil {
		return frame{}, fmt.Errorf("%w: %w", errBadFrame, err)
	}
	f.at = time.Now()
	l.lastRead.Store(f.at.UnixNano())
	return f, nil
}

// sorted tells what Discord sent wrong from what the network did.
func sorted(err error) error {
	var closed *websocket.CloseError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
	case errors.As(err, &closed), errors.As(err, &timeout), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case errors.Is(err, errNetwork):
		return err
	}
	return fmt.Errorf("%w: %w", errBadFrame, err)
}

// errNetwork marks what the connection failed with.
var errNetwork = errors.New("read from gateway")

func (l *link) message() ([]byte, error) {
	_ = l.ws.SetReadDeadline(time.Now().Add(l.interval + l.interval/2 + 10*time.Second))
	_, raw, err := l.ws.ReadMessage()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNetwork, err)
	}
	return raw, nil
}

// messages are a link's messages as one stream of bytes.
type messages struct {
	l    *link
	rest []byte
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		var err error
		if m.rest, err = m.l.message(); err != nil {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (l *link) send(o outgoing) {
	l.writing.Lock()
	_ = l.ws.SetWriteDeadline(time.Now().Add(writeTimeout))
	err := l.ws.WriteJSON(o)
	l.writing.Unlock()
	if err != nil {
		l.end(fmt.Errorf("write to gateway: %w", err), false)
	}
}

// end closes the link, once; the first reason counts. With politely Discord is
// told, in a way that leaves the session to be resumed.
func (l *link) end(why error, politely bool) {
	l.ended.Do(func() {
		l.err = why
		close(l.over)
		if politely {
			// Whether it arrives does not matter: without it the session stays as well.
			_ = l.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeResumable, ""), time.Now().Add(time.Second))
		}
		_ = l.ws.Close()
	})
}
