package slackfake

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	maxSockets = 10
	maxAck     = 20 << 10
	// lastWords is how long a socket stays open after it was said that it will be
	// closed.
	lastWords = 10 * time.Second
)

// A socket is one connection of the app.
type socket struct {
	s    *Server
	conn *websocket.Conn

	mu      sync.Mutex
	queue   [][]byte
	more    chan struct{} // has room for one
	silent  bool          // swallows everything and says nothing
	leaving bool          // gets no new envelopes
	gone    chan struct{}
	once    sync.Once
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	good := s.tickets[ticket] && !s.closed
	delete(s.tickets, ticket) // for one use
	s.mu.Unlock()
	if !good {
		http.Error(w, "bad ticket", http.StatusForbidden)
		return
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &socket{s: s, conn: conn, more: make(chan struct{}, 1), gone: make(chan struct{})}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	if len(s.sockets) >= maxSockets {
		s.mu.Unlock()
		c.write(frame(map[string]any{"type": "disconnect", "reason": "too_many_websockets"}))
		_ = conn.Close()
		return
	}
	s.sockets = append(s.sockets, c)
	c.send(frame(map[string]any{
		"type": "hello", "num_connections": len(s.sockets), "connection_info": map[string]any{"app_id": AppID},
		"debug_info": map[string]any{"host": "fake", "approximate_connection_time": 18060},
	}))
	waiting := s.waiting
	s.waiting = nil
	for _, e := range waiting {
		s.deliver(e)
	}
	s.touch()
	s.all.Go(c.writing)
	s.all.Go(c.reading)
	s.mu.Unlock()
}

func frame(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: it is our own
	}
	return data
}

// send queues a frame.
func (c *socket) send(data []byte) {
	c.mu.Lock()
	c.queue = append(c.queue, data)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *socket) write(data []byte) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = c.conn.WriteMessage(websocket.TextMessage, data)
}

// writing writes what is queued, and pings.
func (c *socket) writing() {
	t := time.NewTicker(c.s.o.Ping)
	defer t.Stop()
	for {
		c.mu.Lock()
		queue, silent := c.queue, c.silent
		c.queue = nil
		c.mu.Unlock()
		for _, data := range queue {
			if !silent {
				c.write(data)
			}
		}
		select {
		case <-c.more:
		case <-t.C:
			if !silent {
				_ = c.conn.WriteControl(websocket.PingMessage, []byte("Ping from the fake"), time.Now().Add(time.Second))
			}
		case <-c.gone:
			return
		}
	}
}

// reading takes acknowledgements until the connection ends.
func (c *socket) reading() {
	defer c.end()
	c.conn.SetPingHandler(func(data string) error {
		c.mu.Lock()
		silent := c.silent
		c.mu.Unlock()
		if silent {
			return nil
		}
		return c.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
	})
	for {
		_, data, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		var a struct {
			ID      string          `json:"envelope_id"`
			Payload json.RawMessage `json:"payload"`
		}
		c.mu.Lock()
		silent := c.silent
		c.mu.Unlock()
		if silent || len(data) >= maxAck || json.Unmarshal(data, &a) != nil {
			continue
		}
		c.s.acknowledged(a.ID, a.Payload)
	}
}

// end takes a connection out; what it had not acknowledged goes to another one.
func (c *socket) end() {
	c.once.Do(func() { close(c.gone) })
	_ = c.conn.Close()
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.sockets {
		if x == c {
			s.sockets = append(s.sockets[:i:i], s.sockets[i+1:]...)
			break
		}
	}
	if s.closed {
		return
	}
	for _, e := range s.inOrder() {
		if e.on == c {
			s.again(e, "timeout")
		}
	}
	s.touch()
}

// Sockets counts the connections.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets)
}

func (s *Server) list() []*socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*socket(nil), s.sockets...)
}

// DropSockets breaks all connections, as a network does.
func (s *Server) DropSockets() {
	for _, c := range s.list() {
		_ = c.conn.Close()
	}
}

// Silence makes the connections of now dead without closing them: nothing comes
// out of them and nothing goes in, pings included.
func (s *Server) Silence() {
	for _, c := range s.list() {
		c.mu.Lock()
		c.silent = true
		c.mu.Unlock()
	}
}

// Disconnect says of all connections of now that they will be closed, for a
// reason: "warning", "refresh_requested", "link_disabled" or any other. A warning
// is followed by a refresh. They get what is under way, and are closed ten seconds
// later.
func (s *Server) Disconnect(reason string) {
	for _, c := range s.list() {
		c.send(frame(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "fake"}}))
		c.mu.Lock()
		c.leaving = reason != "warning"
		c.mu.Unlock()
		s.all.Go(func() {
			t := time.NewTimer(lastWords)
			defer t.Stop()
			select {
			case <-t.C:
				_ = c.conn.Close()
			case <-c.gone:
			}
		})
	}
}

// Frame sends a frame, whatever it is, over one of the connections.
func (s *Server) Frame(data string) {
	if all := s.list(); len(all) > 0 {
		all[0].send([]byte(data))
	}
}
