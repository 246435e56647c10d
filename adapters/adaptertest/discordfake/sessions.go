package discordfake

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// A session is what outlives a gateway connection.
type session struct {
	id      string
	intents int
	shard   [2]int
	seq     int64
	log     []sent
	conn    *conn // nil while nobody is connected
}

type sent struct {
	seq  int64
	body []byte
}

// keepLog bounds what a session can replay.
const keepLog = 20_000

type gatewayState struct {
	sessions    map[string]*session
	conns       []*conn
	heartbeat   time.Duration
	shards      int
	concurrency int
	remaining   int
	resetAt     time.Time
	version     int
	identifies  []time.Time
	resumes     int
	dials       int
	beatSeq     int64

	// Faults.
	mute         bool // sends nothing at all
	withholdAcks bool
	twice        bool // each event comes again under a new sequence
	earlyOp7     int  // connections that get op 7 right after Hello
	ignoreHello  int  // identifies and resumes that get no answer
	refuse       []int
	dropAfter    int // events until the connection is cut; 0 is never
}

func (g *gatewayState) all() []*conn { return slices.Clone(g.conns) }

// Intents of the gateway that decide who is told of what.
const (
	intentGuilds         = 1 << 0
	intentGuildMessages  = 1 << 9
	intentDirectMessages = 1 << 12
	knownIntents         = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12 | 1<<13 | 1<<14 | 1<<15 | 1<<16 | 1<<20 | 1<<21 | 1<<24 | 1<<25
	privileged           = 1<<1 | 1<<8 | messageContent
	allIntents           = 1<<26 - 1
)

// needs are the intents of which an event takes one; 0 is none.
func needs(event, guildID string) int {
	switch event {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		if guildID == "" {
			return intentDirectMessages
		}
		return intentGuildMessages
	case "INTERACTION_CREATE":
		return 0
	}
	return intentGuilds
}

// shardOf is where a guild's events go.
func shardOf(guildID string, of int) int {
	n, _ := strconv.ParseUint(guildID, 10, 64)
	return int((n >> 22) % uint64(max(of, 1)))
}

// tell sends an event about a message, to each session as it may see it. s.mu is
// held.
func (s *Server) tell(event string, m *Message) {
	for _, id := range slices.Sorted(maps.Keys(s.gateway.sessions)) {
		x := s.gateway.sessions[id]
		d := s.event(m, x.intents)
		if event == "MESSAGE_CREATE" && m.Nonce != "" {
			d["nonce"] = m.Nonce
		}
		s.dispatchTo(x, event, m.GuildID, mustJSON(d))
	}
}

// tellGuild tells of a guild, to one session or, with nil, to all.
func (s *Server) tellGuild(g *guild, to *session) {
	channels, threads := []any{}, []any{}
	for _, id := range slices.Sorted(maps.Keys(s.channels)) {
		switch c := s.channels[id]; {
		case c.GuildID != g.id:
		case c.thread():
			threads = append(threads, c.json())
		default:
			channels = append(channels, c.json())
		}
	}
	d := g.json()
	d["channels"], d["threads"], d["unavailable"], d["member_count"] = channels, threads, false, len(g.members)
	if to == nil {
		s.dispatch("GUILD_CREATE", g.id, d)
		return
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	s.dispatchTo(to, "GUILD_CREATE", g.id, data)
}

// dispatch sends an event to all sessions that it is for. s.mu is held.
func (s *Server) dispatch(event, guildID string, d any) {
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // it is made of maps and texts
	}
	for _, id := range slices.Sorted(maps.Keys(s.gateway.sessions)) {
		s.dispatchTo(s.gateway.sessions[id], event, guildID, data)
	}
}

func (s *Server) dispatchTo(to *session, event, guildID string, data json.RawMessage) {
	if need := needs(event, guildID); need != 0 && to.intents&need == 0 {
		return
	}
	if shardOf(guildID, to.shard[1]) != to.shard[0] {
		return
	}
	times := 1
	if s.gateway.twice && event != "READY" {
		times = 2
	}
	for range times {
		s.push(to, event, data)
	}
}

// push gives a session its next event. s.mu is held.
func (s *Server) push(to *session, event string, data json.RawMessage) {
	to.seq++
	body, err := json.Marshal(map[string]any{"op": 0, "t": event, "s": to.seq, "d": data})
	if err != nil {
		panic(err)
	}
	to.log = append(to.log, sent{to.seq, body})
	if len(to.log) > keepLog {
		to.log = to.log[len(to.log)-keepLog:]
	}
	if to.conn != nil {
		to.conn.queue(body)
		s.countDown(to.conn)
	}
}

// countDown cuts a connection once as many events were sent as DropAfter says.
func (s *Server) countDown(c *conn) {
	if s.gateway.dropAfter == 0 {
		return
	}
	if s.gateway.dropAfter--; s.gateway.dropAfter == 0 {
		c.queueCut()
	}
}

// replay sends what a session has missed since a sequence. s.mu is held.
func (s *Server) replay(to *session, after int64) {
	for _, x := range to.log {
		if x.seq > after {
			to.conn.queue(x.body)
			s.countDown(to.conn)
		}
	}
}

// canReplay reports whether a sequence is one that the session can go on from.
func (x *session) canReplay(after int64) bool {
	return after >= 0 && after <= x.seq && (len(x.log) == 0 || after >= x.log[0].seq-1)
}
