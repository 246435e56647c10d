package discord

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bwmarrin/discordgo"
)

// What Discord sends, as far as we look at it. discordgo's own types are not used
// to read: they fail as a whole on a component that is newer than they are.

type user struct {
	ID         snowflake `json:"id"`
	Username   string    `json:"username"`
	GlobalName string    `json:"global_name"`
	Bot        bool      `json:"bot"`
	System     bool      `json:"system"`
}

// name is what a person is called: in the guild, everywhere, or to log in.
func (u user) name(nick string) string { return cmp.Or(nick, u.GlobalName, u.Username) }

type memberInfo struct {
	User        user        `json:"user"` // of interactions only
	Nick        string      `json:"nick"`
	Roles       []snowflake `json:"roles"`
	Permissions string      `json:"permissions"` // of interactions only
}

func (m *memberInfo) roles() []string {
	var out []string
	for _, r := range m.Roles {
		out = append(out, string(r))
	}
	return out
}

type attachment struct {
	ID          snowflake `json:"id"`
	Filename    string    `json:"filename"`
	ContentType string    `json:"content_type"`
	Size        int64     `json:"size"`
	URL         string    `json:"url"`
}

type reference struct {
	Type      int       `json:"type"` // 0 is a reply, 1 forwards
	MessageID snowflake `json:"message_id"`
	ChannelID snowflake `json:"channel_id"`
}

type message struct {
	ID          snowflake                   `json:"id"`
	ChannelID   snowflake                   `json:"channel_id"`
	ChannelType *int                        `json:"channel_type"`
	GuildID     snowflake                   `json:"guild_id"`
	Author      user                        `json:"author"`
	Member      *memberInfo                 `json:"member"`
	Content     string                      `json:"content"`
	Edited      *string                     `json:"edited_timestamp"`
	Type        int                         `json:"type"`
	WebhookID   snowflake                   `json:"webhook_id"`
	AppID       snowflake                   `json:"application_id"`
	Mentions    []user                      `json:"mentions"`
	Attachments []attachment                `json:"attachments"`
	Reference   *reference                  `json:"message_reference"`
	Referenced  *message                    `json:"referenced_message"`
	Snapshots   []struct{ Message message } `json:"message_snapshots"`
	Nonce       json.RawMessage             `json:"nonce"`
	Flags       int                         `json:"flags"`
	Components  json.RawMessage             `json:"components"`
}

// nonce is a message's nonce as a text; "" when Discord does not tell it.
func (m *message) nonce() string {
	var s string
	if json.Unmarshal(m.Nonce, &s) == nil {
		return s
	}
	return string(m.Nonce)
}

// editedAt is the stamp of an edit; "" when the message was never edited.
func (m *message) editedAt() string {
	if m.Edited == nil {
		return ""
	}
	// Discord writes the same moment in more than one way.
	if t, err := time.Parse(time.RFC3339Nano, *m.Edited); err == nil {
		return t.UTC().Format("20060102T150405.000Z")
	}
	return cutRunes(*m.Edited, 40)
}

func (m *message) mentions(id string) bool {
	for _, u := range m.Mentions {
		if string(u.ID) == id {
			return true
		}
	}
	return false
}

func (m *message) nick() string {
	if m.Member == nil {
		return ""
	}
	return m.Member.Nick
}

func decodeMessage(data []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode a message: %w", err)
	}
	if m.ID == "" || m.ChannelID == "" {
		return nil, fmt.Errorf("decode a message: it has no id or no channel")
	}
	return &m, nil
}

// spoken reports whether a message's type is of those that people write.
func spoken(kind int) bool {
	switch discordgo.MessageType(kind) {
	case discordgo.MessageTypeDefault, discordgo.MessageTypeReply:
		return true
	}
	return false
}

type removal struct {
	ID        snowflake   `json:"id"`
	IDs       []snowflake `json:"ids"`
	ChannelID snowflake   `json:"channel_id"`
	GuildID   snowflake   `json:"guild_id"`
}

type channelInfo struct {
	ID       snowflake `json:"id"`
	GuildID  snowflake `json:"guild_id"`
	ParentID snowflake `json:"parent_id"`
	OwnerID  snowflake `json:"owner_id"`
	Type     int       `json:"type"`
	Name     string    `json:"name"`
	Thread   *struct {
		Archived bool `json:"archived"`
		Locked   bool `json:"locked"`
	} `json:"thread_metadata"`
}

func (c channelInfo) thread() bool { return isThread(c.Type) }

func isThread(kind int) bool {
	switch discordgo.ChannelType(kind) {
	case discordgo.ChannelTypeGuildNewsThread, discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread:
		return true
	}
	return false
}

// canOpen reports whether threads can be opened from messages in a channel.
func (c channelInfo) canOpen() bool {
	return c.Type == int(discordgo.ChannelTypeGuildText) || c.Type == int(discordgo.ChannelTypeGuildNews)
}
