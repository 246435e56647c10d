package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"mimikit/adapters"
)

const (
	handshake = 10 * time.Second // to connect, and then for the hello
	writeIn   = 5 * time.Second
	maxFrame  = 4 << 20
	// maxAck is what Slack takes as an acknowledgement; it drops a larger one
	// without a word.
	maxAck = 20 << 10
)

var (
	errDeaf    = errors.New("the socket was silent for too long")
	errNoHello = errors.New("the socket did not say hello")
	// errSwitchedOff is what Slack says when Socket Mode is off for the app.
	errSwitchedOff = errors.New("the app has Socket Mode switched off; switch it on under \"Socket Mode\" or use HTTP")
)

// A socket is one connection to Slack.
type socket struct {
	conn  *websocket.Conn
	idle  time.Duration
	begun time.Time

	write sync.Mutex
	read  sync.Mutex // guards the deadline
	ended bool       // nothing more is to be read

	hello   chan struct{} // closed with the first hello
	leaving chan struct{} // closed when Slack says that it will close it
	greeted sync.Once
	left    sync.Once
	why     atomic.Value  // string: what it said
	done    chan struct{} // closed when nothing is read any more
	err     error         // why; valid after done
	counted atomic.Bool   // among the open ones
}

// dial opens a connection. Its hello is still to come.
func (l *Listener) dial(ctx context.Context) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	begin := time.Now()
	_, address, err := l.b.api.sdk.StartSocketModeContext(ctx)
	l.b.api.told(ctx, "apps.connections.open", err, time.Since(begin))
	if err != nil {
		return nil, sorted(fmt.Errorf("apps.connections.open: %w", pathless(err)))
	}
	if address == "" {
		return nil, errors.New("apps.connections.open: the answer has no address")
	}
	d := websocket.Dialer{NetDialContext: l.b.o.Dial, Proxy: http.ProxyFromEnvironment, HandshakeTimeout: handshake}
	conn, resp, err := d.DialContext(ctx, address, nil)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("connect a socket: %w", pathless(err))
	}
	conn.SetReadLimit(maxFrame)
	return &socket{
		conn: conn, idle: l.b.o.Idle, begun: l.b.o.Now(),
		hello: make(chan struct{}), leaving: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// listen reads frames until the connection ends or is closed, and hands on each.
// take must not keep it waiting for long: pings are answered here.
func (s *socket) listen(take func(envelope)) {
	defer close(s.done)
	ping := s.conn.PingHandler()
	s.conn.SetPingHandler(func(data string) error { s.alive(); return ping(data) })
	s.conn.SetPongHandler(func(string) error { s.alive(); return nil })
	s.alive()
	for {
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			var late interface{ Timeout() bool }
			if errors.As(err, &late) && late.Timeout() {
				err = errDeaf
			}
			s.err = err
			return
		}
		s.alive()
		var e envelope
		if err := json.Unmarshal(data, &e); err != nil {
			e = envelope{Type: "unreadable", ID: e.ID}
		}
		take(e)
	}
}

// control notes what Slack says about the connection itself.
func (s *socket) control(e envelope) {
	switch e.Type {
	case "hello":
		s.greeted.Do(func() { close(s.hello) })
	case "disconnect":
		s.left.Do(func() {
			s.why.Store(e.Reason)
			close(s.leaving)
		})
	}
}

// alive gives the other end time until its next sign.
func (s *socket) alive() {
	s.read.Lock()
	defer s.read.Unlock()
	if !s.ended {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.idle))
	}
}

// ping keeps asking whether the other end is there, until the socket is done.
func (s *socket) ping() {
	t := time.NewTicker(s.idle / 3)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if s.conn.WriteControl(websocket.PingMessage, []byte("mimikit"), time.Now().Add(writeIn)) != nil {
				return // the reader finds out as well
			}
		case <-s.done:
			return
		}
	}
}

// An ack acknowledges an envelope.
type ack struct {
	ID      string `json:"envelope_id"`
	Payload any    `json:"payload,omitempty"`
}

// acknowledge tells Slack that an envelope is dealt with. payload may be nil.
func (s *socket) acknowledge(id string, payload any) error {
	data, err := json.Marshal(ack{ID: id, Payload: payload})
	if err != nil {
		return fmt.Errorf("encode the acknowledgement of %s: %w", id, err)
	}
	if len(data) >= maxAck {
		return fmt.Errorf("acknowledge %s: %d bytes, fewer than %d are allowed", id, len(data), maxAck)
	}
	s.write.Lock()
	defer s.write.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeIn))
	if err := s.conn.WriteMessage(websocket.TextMessage, data); err != nil {
		return fmt.Errorf("acknowledge %s: %w", id, err)
	}
	return nil
}

// close says goodbye and closes the connection, so that Slack does not go on
// sending into one that nobody reads. The reader ends soon after.
func (s *socket) close() {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
	_ = s.conn.Close()
}

// stopReading ends the reader and leaves the connection open for what is still
// to be acknowledged.
func (s *socket) stopReading() {
	s.read.Lock()
	s.ended = true
	_ = s.conn.SetReadDeadline(time.Now().Add(-time.Second))
	s.read.Unlock()
	<-s.done
}

// take handles one frame.
func (l *Listener) take(ctx context.Context, s *socket, inbox adapters.Inbox, e envelope) {
	switch e.Type {
	case "hello":
		l.connections.Store(int64(e.Connections))
		s.control(e)
	case "disconnect":
		s.control(e)
	case "events_api":
		// When there is no room before we stop, Slack delivers it elsewhere.
		l.lanes.do(ctx, laneOf(e.Payload), func() { l.deliver(s, inbox, e) })
	case "slash_commands", "interactive":
		l.front.send(func() { l.interact(s, inbox, e) })
	default:
		o := Unknown
		if e.Type == "unreadable" {
			o = Unreadable
		}
		l.told(e.Type, o)
		if e.ID != "" {
			l.confirm(s, e.ID)
		}
	}
}

// deliver stores what an envelope carries and then acknowledges it.
func (l *Listener) deliver(s *socket, inbox adapters.Inbox, e envelope) {
	a := &arrival{l: l, inbox: inbox}
	kind, o := l.insist(l.work, func(ctx context.Context) (string, Outcome, error) { return a.event(ctx, e.Payload) })
	l.told(kind, o)
	if o != Unstored && e.ID != "" {
		l.confirm(s, e.ID)
	}
}

// confirm acknowledges an envelope. When the connection is gone Slack delivers it
// again, and then it is known.
func (l *Listener) confirm(s *socket, id string) {
	if err := s.acknowledge(id, nil); err != nil {
		l.b.o.Logger.Debug("slack_ack_failed", "envelope", id, "error", err)
	}
}

// laneOf gives what keeps its order: a thread, or a place outside of one.
func laneOf(payload json.RawMessage) string {
	var c struct {
		Event struct {
			Channel  string `json:"channel"`
			TS       string `json:"ts"`
			ThreadTS string `json:"thread_ts"`
			Deleted  string `json:"deleted_ts"`
			Message  struct {
				TS       string `json:"ts"`
				ThreadTS string `json:"thread_ts"`
			} `json:"message"`
			Previous struct {
				ThreadTS string `json:"thread_ts"`
			} `json:"previous_message"`
		} `json:"event"`
	}
	if json.Unmarshal(payload, &c) != nil {
		return ""
	}
	e := c.Event
	if len(e.Channel) > 0 && e.Channel[0] == 'D' {
		return e.Channel
	}
	for _, root := range []string{e.ThreadTS, e.Message.ThreadTS, e.Previous.ThreadTS, e.Message.TS, e.Deleted, e.TS} {
		if root != "" {
			return e.Channel + "/" + root
		}
	}
	return e.Channel
}
