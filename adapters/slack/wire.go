package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The shapes of what Slack sends, reduced to what we use. The SDK's are not used
// here, because they refuse a whole event for one block of a kind they do not
// know, and an event that we cannot read is one that nobody hears.

// An envelope is one frame of a socket.
type envelope struct {
	Type         string          `json:"type"`
	ID           string          `json:"envelope_id"`
	Payload      json.RawMessage `json:"payload"`
	TakesPayload bool            `json:"accepts_response_payload"`
	RetryAttempt int             `json:"retry_attempt"`
	RetryReason  string          `json:"retry_reason"`

	Reason      string `json:"reason"`          // of a disconnect
	Connections int    `json:"num_connections"` // in a hello
}

// A callback is the outside of what the Events API sends.
type callback struct {
	Type      string          `json:"type"` // event_callback, url_verification or app_rate_limited
	TeamID    string          `json:"team_id"`
	EventID   string          `json:"event_id"`
	Challenge string          `json:"challenge"`
	Event     json.RawMessage `json:"event"`
}

// A post is a message, and at the same time any event around one, since Slack
// gives them the same fields.
type post struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	User        string `json:"user"`
	BotID       string `json:"bot_id"`
	Username    string `json:"username"`
	Text        string `json:"text"`
	TS          string `json:"ts"`
	ThreadTS    string `json:"thread_ts"`
	EventTS     string `json:"event_ts"`
	DeletedTS   string `json:"deleted_ts"`
	ParentUser  string `json:"parent_user_id"`
	Hidden      bool   `json:"hidden"`
	Tab         string `json:"tab"` // of app_home_opened
	LatestReply string `json:"latest_reply"`

	Edited *struct {
		User string `json:"user"`
		TS   string `json:"ts"`
	} `json:"edited"`

	Message  json.RawMessage `json:"message"`          // of message_changed
	Previous json.RawMessage `json:"previous_message"` // of message_changed and message_deleted

	RawFiles       json.RawMessage `json:"files"`
	RawAttachments json.RawMessage `json:"attachments"`
	RawMetadata    json.RawMessage `json:"metadata"`
	RawBlocks      json.RawMessage `json:"blocks"`
}

// decodePost reads a message or an event around one.
func decodePost(raw []byte) (post, error) {
	var p post
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("decode event: %w", err)
	}
	if p.Type == "" {
		return p, errors.New("decode event: it has no type")
	}
	return p, nil
}

// A file is something that came with a message.
type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Mimetype string `json:"mimetype"`
	Size     int64  `json:"size"`
	URL      string `json:"url_private"`
	Download string `json:"url_private_download"`
	Mode     string `json:"mode"`        // tombstone and hidden_by_limit have no content
	Access   string `json:"file_access"` // check_file_info: ask for the rest
	User     string `json:"user"`
}

// files reads what came with a message, one by one.
func (p post) files() []file {
	var raw []json.RawMessage
	if json.Unmarshal(p.RawFiles, &raw) != nil {
		return nil
	}
	var list []file
	for _, r := range raw {
		var f file
		if json.Unmarshal(r, &f) == nil && f.ID != "" {
			list = append(list, f)
		}
	}
	return list
}

// A quote is a message that was shared into another.
type quote struct {
	Author   string `json:"author_name"`
	Text     string `json:"text"`
	Fallback string `json:"fallback"`
	TS       string `json:"ts"`
	Share    bool   `json:"is_share"`
	Unfurl   bool   `json:"is_msg_unfurl"`
}

// quotes reads the messages that were shared with one. Previews of web pages are
// left out: the link itself stands in the text.
func (p post) quotes() []quote {
	var raw []json.RawMessage
	if json.Unmarshal(p.RawAttachments, &raw) != nil {
		return nil
	}
	var list []quote
	for _, r := range raw {
		var q quote
		if json.Unmarshal(r, &q) == nil && (q.Share || q.Unfurl) {
			list = append(list, q)
		}
	}
	return list
}

// stampOf reads which reply and part a message of ours shows.
func (p post) stampOf() (replyID string, part int, ok bool) {
	var m struct {
		Type    string `json:"event_type"`
		Payload struct {
			Reply string `json:"reply_id"`
			Part  *int   `json:"part"`
		} `json:"event_payload"`
	}
	if json.Unmarshal(p.RawMetadata, &m) != nil || m.Type != replyEvent || m.Payload.Part == nil {
		return "", 0, false
	}
	return m.Payload.Reply, *m.Payload.Part, true
}

// empty reports whether a message shows nothing.
func (p post) empty() bool {
	return strings.TrimSpace(p.Text) == "" && !something(p.RawFiles) && !something(p.RawAttachments) && !something(p.RawMetadata) && !something(p.RawBlocks)
}

// something reports whether a raw value is more than nothing.
func something(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "[]", "{}":
		return false
	}
	return true
}

// stampedTask reads of which task a message of ours shows the progress.
func (p post) stampedTask() string {
	var m struct {
		Type    string `json:"event_type"`
		Payload struct {
			Task string `json:"task"`
		} `json:"event_payload"`
	}
	if json.Unmarshal(p.RawMetadata, &m) != nil || m.Type != progressEvent {
		return ""
	}
	return m.Payload.Task
}

// An interaction is a press of a button, a choice, or a shortcut.
type interaction struct {
	Type       string `json:"type"`
	CallbackID string `json:"callback_id"`
	TriggerID  string `json:"trigger_id"`
	ActionTS   string `json:"action_ts"`
	Response   string `json:"response_url"`
	User       struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
	Channel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"channel"`
	Container struct {
		Type      string `json:"type"`
		MessageTS string `json:"message_ts"`
		ChannelID string `json:"channel_id"`
		ThreadTS  string `json:"thread_ts"`
	} `json:"container"`
	RawMessage json.RawMessage `json:"message"`
	Actions    []action        `json:"actions"`
}

// An action is what was pressed or chosen.
type action struct {
	ActionID string `json:"action_id"`
	Value    string `json:"value"`
	ActionTS string `json:"action_ts"`
	Selected struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

func (a action) value() string {
	if a.Value != "" {
		return a.Value
	}
	return a.Selected.Value
}

// A slash is a slash command.
type slash struct {
	Command   string `json:"command"`
	Text      string `json:"text"`
	UserID    string `json:"user_id"`
	UserName  string `json:"user_name"`
	ChannelID string `json:"channel_id"`
	Channel   string `json:"channel_name"`
	TriggerID string `json:"trigger_id"`
	Response  string `json:"response_url"`
}
