package discordfake

import (
	"time"
)

// SetHeartbeat is the interval that new connections are told.
func (s *Server) SetHeartbeat(d time.Duration) { s.with(func(g *gatewayState) { g.heartbeat = d }) }

// SetShards is how many shards are recommended, and how many may start at once.
func (s *Server) SetShards(n, concurrency int) {
	s.with(func(g *gatewayState) { g.shards, g.concurrency = n, concurrency })
}

// SetStartLimit is how many sessions may still begin, and when more may.
func (s *Server) SetStartLimit(remaining int, resetAfter time.Duration) {
	s.with(func(g *gatewayState) { g.remaining, g.resetAt = remaining, time.Now().Add(resetAfter) })
}

// AllowIntents sets which privileged intents are enabled in the portal.
func (s *Server) AllowIntents(intents int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intents = intents
}

// DropConnections cuts all gateway connections at once and without a word; what
// was not sent yet is lost with them.
func (s *Server) DropConnections() {
	s.with(func(g *gatewayState) {
		for _, c := range g.conns {
			c.cut()
		}
	})
}

// DropAfter cuts a gateway connection without a word once n more events were sent.
func (s *Server) DropAfter(n int) { s.with(func(g *gatewayState) { g.dropAfter = n }) }

// CloseConnections closes all gateway connections with a code.
func (s *Server) CloseConnections(code int) {
	s.with(func(g *gatewayState) {
		for _, c := range g.conns {
			c.close(code)
		}
	})
}

// AskReconnect sends op 7 on all gateway connections.
func (s *Server) AskReconnect() { s.SendRaw(encode(7, nil)) }

// AskReconnectFirst sends op 7 right after Hello on the next n connections.
func (s *Server) AskReconnectFirst(n int) { s.with(func(g *gatewayState) { g.earlyOp7 = n }) }

// IgnoreHello leaves the next n identifies and resumes without an answer.
func (s *Server) IgnoreHello(n int) { s.with(func(g *gatewayState) { g.ignoreHello = n }) }

// RefuseIdentify closes the next connections that identify, each with a code.
func (s *Server) RefuseIdentify(codes ...int) { s.with(func(g *gatewayState) { g.refuse = codes }) }

// InvalidateSessions sends op 9 on all connections. Sessions that may not be
// resumed are gone.
func (s *Server) InvalidateSessions(resumable bool) {
	s.with(func(g *gatewayState) {
		for _, c := range g.conns {
			c.queue(encode(9, resumable))
			if c.session != nil && !resumable {
				delete(g.sessions, c.session.id)
			}
		}
	})
}

// ForgetSessions makes every resume fail.
func (s *Server) ForgetSessions() { s.with(func(g *gatewayState) { clear(g.sessions) }) }

// WithholdAcks leaves heartbeats without an answer.
func (s *Server) WithholdAcks(yes bool) { s.with(func(g *gatewayState) { g.withholdAcks = yes }) }

// Mute keeps everything that the gateway would send, as a dead line does.
func (s *Server) Mute(yes bool) {
	s.with(func(g *gatewayState) {
		g.mute = yes
		for _, c := range g.conns {
			c.poke()
		}
	})
}

// SendTwice makes each event come a second time, under a sequence of its own.
func (s *Server) SendTwice(yes bool) { s.with(func(g *gatewayState) { g.twice = yes }) }

// SendRaw sends one frame on all connections as it is.
func (s *Server) SendRaw(body []byte) {
	s.with(func(g *gatewayState) {
		for _, c := range g.conns {
			c.queue(body)
		}
	})
}

// SendEvent dispatches an event with any data, which must be JSON.
func (s *Server) SendEvent(event, guildID string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.gateway.sessions {
		s.dispatchTo(x, event, guildID, data)
	}
}

// refill gives new starts when it is time.
func (g *gatewayState) refill() (resetAfter time.Duration) {
	now := time.Now()
	if !now.Before(g.resetAt) {
		if !g.resetAt.IsZero() {
			g.remaining = 1000
		}
		g.resetAt = now.Add(24 * time.Hour)
	}
	return g.resetAt.Sub(now)
}

func (s *Server) with(f func(*gatewayState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.gateway)
	s.note()
}

// Stats are what the gateway has seen.
type Stats struct {
	Dials, Resumes int
	Identifies     []time.Time
	Connected      int   // that have a session
	Beats          int   // heartbeats of the connections that are open
	BeatSeq        int64 // the greatest sequence that a heartbeat told
	Sessions       int
}

// Stats tells what the gateway has seen.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.gateway
	out := Stats{Dials: g.dials, Resumes: g.resumes, Identifies: append([]time.Time(nil), g.identifies...), Sessions: len(g.sessions), BeatSeq: g.beatSeq}
	for _, c := range g.conns {
		out.Beats += c.beats
		if c.session != nil {
			out.Connected++
		}
	}
	return out
}
