package slackfake

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf16"
)

// methods are the methods of the Web API that are there. They are called with mu
// held.
var methods map[string]func(s *Server, c call) (answer, *refused)

func init() {
	methods = map[string]func(s *Server, c call) (answer, *refused){
		"auth.test":                    (*Server).authTest,
		"apps.connections.open":        (*Server).connectionsOpen,
		"chat.postMessage":             (*Server).postMessage,
		"chat.update":                  (*Server).update,
		"chat.delete":                  (*Server).remove,
		"chat.postEphemeral":           (*Server).postEphemeral,
		"chat.startStream":             (*Server).startStream,
		"chat.appendStream":            (*Server).appendStream,
		"chat.stopStream":              (*Server).stopStream,
		"conversations.history":        (*Server).history,
		"conversations.replies":        (*Server).threadReplies,
		"conversations.info":           (*Server).conversationInfo,
		"users.info":                   (*Server).userInfo,
		"reactions.add":                (*Server).reactionAdd,
		"reactions.remove":             (*Server).reactionRemove,
		"files.getUploadURLExternal":   (*Server).uploadURL,
		"files.completeUploadExternal": (*Server).completeUpload,
		"files.info":                   (*Server).fileInfo,
		"views.publish":                (*Server).publish,
		"assistant.threads.setStatus":  (*Server).setStatus,
		"agents.sessions.setStatus":    (*Server).setSession,
	}
}

// place finds where the bot wants to write.
func (s *Server) place(c call, name string) (*Channel, *refused) {
	ch := s.channels[c.get(name)]
	switch {
	case ch == nil:
		return nil, no("channel_not_found")
	case !ch.has(BotUser):
		return nil, no("not_in_channel")
	case ch.Archived:
		return nil, no("is_archived")
	}
	return ch, nil
}

func length(s string) int { return len(utf16.Encode([]rune(s))) }

// checked reads the blocks of a call and refuses what Slack refuses.
func checked(c call) (json.RawMessage, *refused) {
	raw := c.get("blocks")
	if raw == "" || raw == "null" {
		return nil, nil
	}
	var blocks []map[string]any
	if json.Unmarshal([]byte(raw), &blocks) != nil {
		return nil, no("invalid_blocks_format")
	}
	if len(blocks) > 50 {
		return nil, no("invalid_blocks")
	}
	total := 0
	for _, b := range blocks {
		switch b["type"] {
		case "markdown":
			text, _ := b["text"].(string)
			if n := length(text); n == 0 || n > 12_000 {
				return nil, no("invalid_blocks")
			}
			total += length(text)
		case "section":
			t, _ := b["text"].(map[string]any)
			text, _ := t["text"].(string)
			if n := length(text); n == 0 || n > 3000 {
				return nil, no("invalid_blocks")
			}
			total += length(text)
		case "actions":
			if !goodActions(b) {
				return nil, no("invalid_blocks")
			}
		case "context", "divider", "header", "rich_text":
		default:
			return nil, no("invalid_blocks")
		}
	}
	if total > 13_200 {
		return nil, no("msg_blocks_too_long")
	}
	return json.RawMessage(raw), nil
}

func goodActions(b map[string]any) bool {
	elements, _ := b["elements"].([]any)
	if len(elements) == 0 || len(elements) > 25 {
		return false
	}
	ids := map[any]bool{}
	for _, x := range elements {
		e, _ := x.(map[string]any)
		if id := e["action_id"]; id == nil || id == "" || ids[id] {
			return false
		}
		ids[e["action_id"]] = true
		switch e["type"] {
		case "button":
			value, _ := e["value"].(string)
			if !goodLabel(e["text"]) || length(value) > 2000 {
				return false
			}
		case "static_select":
			options, _ := e["options"].([]any)
			if len(options) == 0 || len(options) > 100 {
				return false
			}
			for _, o := range options {
				m, _ := o.(map[string]any)
				value, _ := m["value"].(string)
				if !goodLabel(m["text"]) || value == "" || length(value) > 150 {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

func goodLabel(x any) bool {
	t, _ := x.(map[string]any)
	text, _ := t["text"].(string)
	return t["type"] == "plain_text" && text != "" && length(text) <= 75
}

func goodMetadata(raw string) bool {
	if raw == "" {
		return true
	}
	var m struct {
		Type    string         `json:"event_type"`
		Payload map[string]any `json:"event_payload"`
	}
	return len(raw) < 16_000 && json.Unmarshal([]byte(raw), &m) == nil && m.Type != "" && m.Payload != nil
}

func (s *Server) postMessage(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, ref
	}
	blocks, ref := checked(c)
	if ref != nil {
		return nil, ref
	}
	text := c.get("text")
	switch {
	case text == "" && blocks == nil:
		return nil, no("no_text")
	case !goodMetadata(c.get("metadata")):
		return nil, no("invalid_metadata_format")
	case c.get("thread_ts") != "" && !strings.Contains(c.get("thread_ts"), "."):
		return nil, no("invalid_thread_ts")
	}
	if u := []rune(text); len(u) > 40_000 {
		text = string(u[:40_000])
	}
	m := &message{
		ts: s.stamp(), thread: c.get("thread_ts"), user: BotUser, botID: BotID, text: text, blocks: blocks,
		metadata: json.RawMessage(c.get("metadata")),
	}
	ch.messages = append(ch.messages, m)
	s.clearStatus(ch, m.thread)
	s.emit(ch, "message", s.event(ch, m))
	return answer{"channel": ch.ID, "ts": m.ts, "message": s.wire(ch, m, true)}, nil
}

// clearStatus takes the status line away, as any post of the app does.
func (s *Server) clearStatus(ch *Channel, thread string) {
	key := ch.ID + "/" + thread
	if list := s.statuses[key]; len(list) > 0 && list[len(list)-1] != "" {
		s.statuses[key] = append(list, "")
	}
}

func (s *Server) update(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, ref
	}
	m := ch.find(c.get("ts"))
	switch {
	case m == nil || m.gone:
		return nil, no("message_not_found")
	case m.user != BotUser:
		return nil, no("cant_update_message")
	case s.streams(m):
		return nil, no("streaming_state_conflict")
	case length(c.get("text")) > 4000:
		return nil, no("msg_too_long")
	}
	blocks, ref := checked(c)
	if ref != nil {
		return nil, ref
	}
	before := s.wire(ch, m, false)
	m.text, m.blocks, m.edited, m.editor, m.streaming = c.get("text"), blocks, s.stamp(), BotUser, time.Time{}
	s.emitChange(ch, "message_changed", s.wire(ch, m, false), before, m.ts)
	return answer{"channel": ch.ID, "ts": m.ts, "text": m.text}, nil
}

func (s *Server) remove(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, ref
	}
	m := ch.find(c.get("ts"))
	switch {
	case m == nil || m.gone:
		return nil, no("message_not_found")
	case m.user != BotUser, s.streams(m):
		return nil, no("cant_delete_message")
	}
	s.drop(ch, m)
	return answer{"channel": ch.ID, "ts": m.ts}, nil
}

func (s *Server) postEphemeral(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, ref
	}
	blocks, ref := checked(c)
	switch {
	case ref != nil:
		return nil, ref
	case !ch.has(c.get("user")):
		return nil, no("user_not_in_channel")
	case c.get("text") == "" && blocks == nil:
		return nil, no("no_text")
	}
	s.whispers = append(s.whispers, Whisper{Channel: ch.ID, Thread: c.get("thread_ts"), User: c.get("user"), Text: c.get("text"), Blocks: string(blocks)})
	return answer{"message_ts": s.stamp()}, nil
}
