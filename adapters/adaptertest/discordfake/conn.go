package discordfake

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A conn is one gateway connection. Frames are written by a goroutine of its own
// in the order in which they were queued.
type conn struct {
	s  *Server
	ws *websocket.Conn

	session *session    // guarded by s.mu, as what follows
	beats   int         // heartbeats received
	sends   []time.Time // payloads of the client in the last minute
	out     [][]byte
	ended   bool
	code    int  // close with it after what is queued; 0 is none
	cutting bool // cut without a word after what is queued
	wake    chan struct{}
	over    chan struct{}
	once    sync.Once
	zip     bool
}

// queue has a frame written after those before it. s.mu is held.
func (c *conn) queue(body []byte) {
	if !c.ended && !c.cutting && c.code == 0 {
		c.out = append(c.out, body)
		c.poke()
	}
}

func (c *conn) queueCut() {
	c.cutting = true
	c.poke()
}

func (c *conn) close(code int) {
	if c.code == 0 {
		c.code = code
		c.poke()
	}
}

func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// cut ends the connection as a broken line does.
func (c *conn) cut() {
	c.once.Do(func() {
		close(c.over)
		_ = c.ws.UnderlyingConn().Close()
	})
}

func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{s: s, ws: ws, wake: make(chan struct{}, 1), over: make(chan struct{}), zip: q.Get("compress") == "zlib-stream"}
	s.mu.Lock()
	s.gateway.dials++
	s.gateway.conns = append(s.gateway.conns, c)
	interval := s.gateway.heartbeat
	c.queue(encode(10, map[string]any{"heartbeat_interval": s.gateway.heartbeat.Milliseconds()}))
	if s.gateway.earlyOp7 > 0 {
		s.gateway.earlyOp7--
		c.queue(encode(7, nil))
	}
	if q.Get("v") != "10" || q.Get("encoding") != "json" {
		c.close(4012)
	}
	s.note()
	s.mu.Unlock()
	var beside sync.WaitGroup
	beside.Go(c.write)
	beside.Go(func() { c.listen(interval) })
	c.read()
	c.cut()
	beside.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ended = true
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
	s.gateway.conns = slices.DeleteFunc(s.gateway.conns, func(o *conn) bool { return o == c })
	s.note()
}

func encode(op int, d any) []byte {
	body, err := json.Marshal(map[string]any{"op": op, "d": d})
	if err != nil {
		panic(err)
	}
	return body
}

func (c *conn) write() {
	var packed bytes.Buffer
	zw := zlib.NewWriter(&packed)
	for {
		select {
		case <-c.wake:
		case <-c.over:
			return
		}
		for {
			c.s.mu.Lock()
			mute := c.s.gateway.mute
			var body []byte
			if len(c.out) > 0 && !mute {
				body, c.out = c.out[0], c.out[1:]
			}
			code, cutting := c.code, c.cutting
			c.s.mu.Unlock()
			if body == nil {
				switch {
				case mute:
				case cutting:
					c.cut()
				case code != 0:
					_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
					c.cut()
				}
				break
			}
			kind := websocket.TextMessage
			if c.zip {
				packed.Reset()
				_, _ = zw.Write(body)
				_ = zw.Flush()
				kind, body = websocket.BinaryMessage, packed.Bytes()
			}
			if err := c.ws.WriteMessage(kind, body); err != nil {
				return
			}
		}
	}
}

func (c *conn) read() {
	for {
		_, body, err := c.ws.ReadMessage()
		if err != nil {
			if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
				c.endSession() // the client said that it is done
			}
			return
		}
		var f struct {
			Op   int             `json:"op"`
			Data json.RawMessage `json:"d"`
		}
		c.s.mu.Lock()
		if len(body) > maxPayload || json.Unmarshal(body, &f) != nil {
			c.close(4002)
		} else if !c.admit() {
			c.close(4008)
		} else {
			c.take(f.Op, f.Data)
		}
		c.s.note()
		c.s.mu.Unlock()
	}
}

// Limits of what a client may send.
const (
	maxPayload    = 4096 // bytes
	sendsAMinute  = 120
	heartbeatWait = 2 // intervals without a heartbeat after which a connection is closed
)

// admit counts a payload of the client. s.mu is held.
func (c *conn) admit() bool {
	now := time.Now()
	c.sends = slices.DeleteFunc(append(c.sends, now), func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	return len(c.sends) <= sendsAMinute
}

// listen closes the connection when the client does not beat.
func (c *conn) listen(interval time.Duration) {
	for heard := 0; ; {
		t := time.NewTimer(heartbeatWait * interval)
		select {
		case <-t.C:
		case <-c.over:
			t.Stop()
			return
		}
		c.s.mu.Lock()
		if c.beats == heard {
			c.close(4009)
		}
		heard = c.beats
		c.s.mu.Unlock()
	}
}

func (c *conn) endSession() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.session != nil {
		delete(c.s.gateway.sessions, c.session.id)
	}
}

// take answers one frame of the client. s.mu is held.
func (c *conn) take(op int, data json.RawMessage) {
	g := &c.s.gateway
	switch op {
	case 1:
		c.beats++
		var seq int64 // null before the first event
		if json.Unmarshal(data, &seq) != nil {
			c.close(4002)
			return
		}
		g.beatSeq = max(g.beatSeq, seq)
		if !g.withholdAcks {
			c.queue([]byte(`{"op":11}`))
		}
	case 2, 6:
		if c.session != nil {
			c.close(4005)
			return
		}
		if g.ignoreHello > 0 {
			g.ignoreHello--
			return
		}
		if op == 2 {
			c.identify(data)
		} else {
			c.resume(data)
		}
	case 3, 4, 8:
	default:
		c.close(4001)
	}
}

func (c *conn) identify(data json.RawMessage) {
	s, g := c.s, &c.s.gateway
	var d struct {
		Token      string  `json:"token"`
		Intents    *int    `json:"intents"`
		Shard      *[2]int `json:"shard"`
		Properties any     `json:"properties"`
	}
	if json.Unmarshal(data, &d) != nil || d.Intents == nil || d.Properties == nil {
		c.close(4002)
		return
	}
	shard := [2]int{0, 1}
	if d.Shard != nil {
		shard = *d.Shard
	}
	now := time.Now()
	g.identifies = append(g.identifies, now)
	g.refill()
	g.remaining--
	recent := 0
	for _, at := range g.identifies {
		if now.Sub(at) < 5*time.Second {
			recent++
		}
	}
	switch {
	case len(g.refuse) > 0:
		var code int
		code, g.refuse = g.refuse[0], g.refuse[1:]
		c.close(code)
		return
	case d.Token != Token || g.remaining < 0:
		c.close(4004)
		return
	case shard[0] < 0 || shard[0] >= shard[1]:
		c.close(4010)
		return
	case *d.Intents&^knownIntents != 0:
		c.close(4013)
		return
	case *d.Intents&privileged&^s.intents != 0:
		c.close(4014)
		return
	case recent > g.concurrency:
		c.queue(encode(9, false))
		return
	}
	x := &session{id: "session-" + s.snowflake(), intents: *d.Intents, shard: shard, conn: c}
	g.sessions[x.id], c.session = x, x
	guilds := []any{}
	for id := range s.guilds {
		if shardOf(id, shard[1]) == shard[0] {
			guilds = append(guilds, map[string]any{"id": id, "unavailable": true})
		}
	}
	ready, err := json.Marshal(map[string]any{
		"v": g.version, "user": s.bot, "guilds": guilds, "session_id": x.id, "shard": shard,
		"resume_gateway_url": s.gatewayURL() + "/resume", "application": map[string]any{"id": s.app, "flags": 0},
	})
	if err != nil {
		panic(err)
	}
	s.push(x, "READY", ready)
	for _, guild := range s.guilds {
		s.tellGuild(guild, x)
	}
}

func (c *conn) resume(data json.RawMessage) {
	s, g := c.s, &c.s.gateway
	var d struct {
		Token     string `json:"token"`
		SessionID string `json:"session_id"`
		Seq       *int64 `json:"seq"`
	}
	if json.Unmarshal(data, &d) != nil || d.Seq == nil {
		c.close(4002)
		return
	}
	g.resumes++
	x := g.sessions[d.SessionID]
	switch {
	case d.Token != Token:
		c.close(4004)
		return
	case x == nil:
		c.queue(encode(9, false))
		return
	case !x.canReplay(*d.Seq):
		delete(g.sessions, x.id)
		c.close(4007)
		return
	}
	if x.conn != nil {
		x.conn.queueCut() // a session has one connection
	}
	x.conn, c.session = c, x
	s.replay(x, *d.Seq)
	s.push(x, "RESUMED", json.RawMessage(`{}`))
}
