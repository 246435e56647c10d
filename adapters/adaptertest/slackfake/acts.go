package slackfake

import (
	"encoding/json"
	"strings"
)

// Say is what somebody says.
type Say struct {
	Channel string // default C0TOWN
	User    string // default U0ANN
	Text    string // "@bot" mentions the bot
	Thread  string // root, in a thread
	Files   []File
	Quote   string // text of a message that is shared with this one
	Bot     string // id of another bot that says it, instead of a user
	Subtype string
	Quiet   bool // no event comes of it
	Order   int  // 1: app_mention comes before message
}

// Say makes somebody say something, and gives its time stamp. A mention comes
// twice, as Slack tells it: as a message, and as an app_mention without files.
func (s *Server) Say(x Say) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.Channel == "" {
		x.Channel = "C0TOWN"
	}
	if x.User == "" && x.Bot == "" {
		x.User = "U0ANN"
	}
	ch := s.channels[x.Channel]
	m := &message{ts: s.stamp(), thread: x.Thread, user: x.User, botID: x.Bot, subtype: x.Subtype, text: Mentions(x.Text)}
	for _, f := range x.Files {
		f.ID, f.User, f.shared = s.id("F"), x.User, true
		s.files[f.ID] = &f
		m.files = append(m.files, f.ID)
		m.subtype = "file_share"
	}
	if x.Quote != "" {
		m.attachments = frame([]any{map[string]any{"is_share": true, "is_msg_unfurl": true, "author_name": "Bob", "text": x.Quote, "fallback": x.Quote}})
	}
	ch.messages = append(ch.messages, m)
	s.touch()
	if x.Quiet {
		return m.ts
	}
	e := s.event(ch, m)
	mentioned := strings.Contains(m.text, "<@"+BotUser+">") && ch.Kind != "im" && x.Bot == "" && (m.subtype == "" || m.subtype == "file_share")
	if mentioned && x.Order == 1 {
		s.mention(ch, e)
	}
	s.emit(ch, "message", e)
	if mentioned && x.Order != 1 {
		s.mention(ch, e)
	}
	return m.ts
}

func (s *Server) mention(ch *Channel, of map[string]any) {
	e := map[string]any{}
	for k, v := range of {
		if k != "files" && k != "channel_type" && k != "subtype" && k != "parent_user_id" {
			e[k] = v
		}
	}
	s.emit(ch, "app_mention", e)
}

// Change makes somebody change what they said. It gives the edit's time stamp.
func (s *Server) Change(channel, ts, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	m := ch.find(ts)
	before := s.wire(ch, m, false)
	m.text, m.edited, m.editor = Mentions(text), s.stamp(), m.user
	s.emitChange(ch, "message_changed", s.wire(ch, m, false), before, ts)
	return m.edited
}

// Unfurl makes Slack add a preview to a message, which it reports like a change.
func (s *Server) Unfurl(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	m := ch.find(ts)
	before := s.wire(ch, m, false)
	m.attachments = json.RawMessage(`[{"from_url":"https://example.org","title":"a page","text":"a preview"}]`)
	s.emitChange(ch, "message_changed", s.wire(ch, m, false), before, ts)
}

// Remove makes somebody remove what they said.
func (s *Server) Remove(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	s.drop(ch, ch.find(ts))
}

// drop removes a message. One with replies stays as a tombstone.
func (s *Server) drop(ch *Channel, m *message) {
	before := s.wire(ch, m, false)
	if len(ch.replies(m.ts)) > 0 {
		m.gone = true
		s.emitChange(ch, "message_changed", s.wire(ch, m, false), before, m.ts)
		return
	}
	for i, x := range ch.messages {
		if x == m {
			ch.messages = append(ch.messages[:i:i], ch.messages[i+1:]...)
			break
		}
	}
	s.emitChange(ch, "message_deleted", nil, before, m.ts)
}

// Event delivers an event of any kind.
func (s *Server) Event(event map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, _ := event["type"].(string)
	s.emit(nil, kind, event)
}

// Callback delivers what is no event of a place, such as app_rate_limited.
func (s *Server) Callback(payload map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post("events_api", payload, false, "")
}

// StopSession presses Slack's own Stop button.
func (s *Server) StopSession(channel, thread, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(s.channels[channel], "agent_session_stopped", map[string]any{
		"channel": channel, "thread_ts": thread, "user": user, "streaming_message_ts": []any{}, "event_ts": s.stamp(),
	})
}

// OpenHome opens App Home.
func (s *Server) OpenHome(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(nil, "app_home_opened", map[string]any{"user": user, "tab": "home", "channel": "D" + user, "event_ts": s.stamp()})
}

// interaction gives the id and the response URL of something that may be
// answered. It is called with mu held.
func (s *Server) interaction() (id, address string) {
	id = s.id("I")
	s.urls[id] = 0
	return id, s.base + "/respond/" + id
}

// Slash makes somebody use a slash command. It gives the interaction's id, under
// which its answers are listed.
func (s *Server) Slash(user, channel, command, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, address := s.interaction()
	s.post("slash_commands", map[string]any{
		"token": "verification", "team_id": TeamID, "team_domain": "fake", "channel_id": channel, "channel_name": s.channels[channel].called(), "user_id": user,
		"user_name": "someone", "command": command, "text": text, "api_app_id": AppID, "response_url": address, "trigger_id": id + ".trigger",
	}, true, id)
	return id
}

// Press makes somebody press a button, or choose an option, with this value below
// a message of the bot. It gives the interaction's id, or "" where there is no
// such button.
func (s *Server) Press(user, channel, ts, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	m := ch.find(ts)
	if m == nil {
		return ""
	}
	action := find(m.blocks, value)
	if action == nil {
		return ""
	}
	id, address := s.interaction()
	action["action_ts"] = s.stamp()
	container := map[string]any{"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": false}
	if m.thread != "" {
		container["thread_ts"] = m.thread
	}
	s.post("interactive", map[string]any{
		"type": "block_actions", "user": s.actor(user), "api_app_id": AppID, "container": container, "trigger_id": id + ".trigger",
		"team": map[string]any{"id": TeamID}, "channel": map[string]any{"id": channel}, "message": s.wire(ch, m, false),
		"response_url": address, "actions": []any{action},
	}, false, id)
	return id
}

// PressHome makes somebody press a button in their App Home.
func (s *Server) PressHome(user, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var v struct {
		Blocks json.RawMessage `json:"blocks"`
	}
	_ = json.Unmarshal(s.homes[user], &v)
	action := find(v.Blocks, value)
	if action == nil {
		return ""
	}
	id, _ := s.interaction()
	action["action_ts"] = s.stamp()
	s.post("interactive", map[string]any{
		"type": "block_actions", "user": s.actor(user), "api_app_id": AppID, "container": map[string]any{"type": "view", "view_id": "V1"},
		"trigger_id": id + ".trigger", "team": map[string]any{"id": TeamID}, "view": map[string]any{"type": "home"}, "actions": []any{action},
	}, false, id)
	return id
}

func (s *Server) actor(user string) map[string]any {
	a := map[string]any{"id": user, "team_id": TeamID}
	if u := s.users[user]; u != nil {
		a["name"], a["username"] = strings.ToLower(u.Name), strings.ToLower(u.Name)
	}
	return a
}

// find gives the button or the choice with a value, as Slack reports a press of it.
func find(blocks json.RawMessage, value string) map[string]any {
	var list []struct {
		Type     string           `json:"type"`
		Elements []map[string]any `json:"elements"`
	}
	if json.Unmarshal(blocks, &list) != nil {
		return nil
	}
	for _, b := range list {
		if b.Type != "actions" {
			continue
		}
		for _, e := range b.Elements {
			if e["value"] == value {
				return map[string]any{"type": "button", "action_id": e["action_id"], "block_id": "b", "value": value, "text": e["text"]}
			}
			options, _ := e["options"].([]any)
			for _, o := range options {
				if m, _ := o.(map[string]any); m["value"] == value {
					return map[string]any{"type": "static_select", "action_id": e["action_id"], "block_id": "b", "selected_option": m}
				}
			}
		}
	}
	return nil
}

// Shortcut makes somebody use a shortcut of a message.
func (s *Server) Shortcut(user, channel, ts, callbackID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	id, address := s.interaction()
	s.post("interactive", map[string]any{
		"type": "message_action", "callback_id": callbackID, "user": s.actor(user), "team": map[string]any{"id": TeamID}, "action_ts": s.stamp(),
		"channel": map[string]any{"id": channel, "name": ch.called()}, "message": s.wire(ch, ch.find(ts), false), "message_ts": ts,
		"response_url": address, "trigger_id": id + ".trigger",
	}, false, id)
	return id
}
