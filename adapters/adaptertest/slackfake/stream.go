package slackfake

import (
	"encoding/json"
	"time"
)

// streamLasts is how long a streaming message can be written to. Slack does not
// document it; whoever streams for longer finds out.
const streamLasts = 5 * time.Minute

func (s *Server) startStream(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel")
	text := c.get("markdown_text")
	switch {
	case ref != nil:
		return nil, ref
	case c.get("thread_ts") == "" || ch.find(c.get("thread_ts")) == nil:
		return nil, no("invalid_thread_ts")
	case ch.Kind != "im" && (c.get("recipient_user_id") == "" || c.get("recipient_team_id") == ""):
		return nil, no("invalid_arguments")
	case length(text) > 12_000:
		return nil, no("msg_too_long")
	}
	m := &message{ts: s.stamp(), thread: c.get("thread_ts"), user: BotUser, botID: BotID, text: text, streaming: s.o.Now()}
	ch.messages = append(ch.messages, m)
	s.clearStatus(ch, m.thread)
	s.emit(ch, "message", s.event(ch, m))
	return answer{"channel": ch.ID, "ts": m.ts}, nil
}

// streams reports whether a message is open to more text. Until it is not any more,
// it can neither be changed nor removed.
func (s *Server) streams(m *message) bool {
	return !m.streaming.IsZero() && s.o.Now().Sub(m.streaming) < streamLasts
}

// EndStreams ends all streams, as Slack does without a word after some minutes, or
// when nothing comes for a while.
func (s *Server) EndStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range s.channels {
		for _, m := range ch.messages {
			if s.streams(m) {
				m.streaming = s.o.Now().Add(-streamLasts)
			}
		}
	}
}

// stream finds a message that is being streamed.
func (s *Server) stream(c call) (*Channel, *message, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, nil, ref
	}
	m := ch.find(c.get("ts"))
	switch {
	case m == nil || m.gone:
		return nil, nil, no("message_not_found")
	case m.user != BotUser:
		return nil, nil, no("message_not_owned_by_app")
	case !s.streams(m):
		return nil, nil, no("message_not_in_streaming_state")
	case length(c.get("markdown_text")) > 12_000:
		return nil, nil, no("msg_too_long")
	}
	return ch, m, nil
}

func (s *Server) appendStream(c call) (answer, *refused) {
	ch, m, ref := s.stream(c)
	if ref != nil {
		return nil, ref
	}
	if c.get("markdown_text") == "" {
		return nil, no("no_text")
	}
	m.text += c.get("markdown_text")
	return answer{"channel": ch.ID, "ts": m.ts}, nil
}

func (s *Server) stopStream(c call) (answer, *refused) {
	ch, m, ref := s.stream(c)
	if ref != nil {
		return nil, ref
	}
	blocks, ref := checked(c)
	if ref != nil {
		return nil, ref
	}
	if !goodMetadata(c.get("metadata")) {
		return nil, no("invalid_metadata_format")
	}
	before := s.wire(ch, m, false)
	m.text, m.streaming = m.text+c.get("markdown_text"), time.Time{}
	if blocks != nil {
		m.blocks = blocks
	}
	if raw := c.get("metadata"); raw != "" {
		m.metadata = json.RawMessage(raw)
	}
	s.emitChange(ch, "message_changed", s.wire(ch, m, false), before, m.ts)
	return answer{"channel": ch.ID, "ts": m.ts, "message": s.wire(ch, m, true)}, nil
}
