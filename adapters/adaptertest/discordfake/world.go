package discordfake

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Channel types.
const (
	Text          = 0
	DM            = 1
	Voice         = 2
	Announcement  = 5
	NewsThread    = 10
	PublicThread  = 11
	PrivateThread = 12
	Forum         = 15
)

// A User is a person or a bot.
type User struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name,omitempty"`
	Bot        bool   `json:"bot,omitempty"`
}

type guild struct {
	id, name, owner string
	members         map[string]member
	roles           map[string]int64 // :: id → permissions; that of everybody has the guild's id
}

type member struct {
	Nick  string
	Roles []string
}

// permissions are a member's in the guild, as interactions and the list of the
// bot's guilds tell them.
func (g *guild) permissions(user string) string {
	bits := g.roles[g.id]
	for _, role := range g.members[user].Roles {
		bits |= g.roles[role]
	}
	if user == g.owner {
		bits |= 1<<53 - 1
	}
	return strconv.FormatInt(bits, 10)
}

func (g *guild) json() map[string]any {
	roles := []any{}
	for _, id := range slices.Sorted(maps.Keys(g.roles)) {
		roles = append(roles, map[string]any{"id": id, "name": "role " + id, "permissions": strconv.FormatInt(g.roles[id], 10)})
	}
	return map[string]any{"id": g.id, "name": g.name, "owner_id": g.owner, "roles": roles}
}

// A Channel is a place, a thread or a direct message.
type Channel struct {
	ID       string
	GuildID  string
	ParentID string
	OwnerID  string
	Name     string
	Type     int
	Archived bool
	Locked   bool
	User     string         // the other side of a direct message
	Forbid   map[string]int // :: what (view, send, threads, react, history, files) → error code
}

func (c *Channel) thread() bool { return c.Type >= NewsThread && c.Type <= PrivateThread }

func (c *Channel) json() map[string]any {
	m := map[string]any{"id": c.ID, "type": c.Type}
	if c.GuildID != "" {
		m["guild_id"], m["name"] = c.GuildID, c.Name
	}
	if c.ParentID != "" {
		m["parent_id"] = c.ParentID
	}
	if c.thread() {
		m["owner_id"] = c.OwnerID
		m["thread_metadata"] = map[string]any{"archived": c.Archived, "locked": c.Locked, "auto_archive_duration": 1440}
	}
	return m
}

// A Reference names the message that another one answers or forwards.
type Reference struct {
	Type      int    `json:"type"`
	MessageID string `json:"message_id"`
	ChannelID string `json:"channel_id,omitempty"`
	GuildID   string `json:"guild_id,omitempty"`
}

// An Attachment is a file of a message.
type Attachment struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type,omitempty"`
	Size        int    `json:"size"`
	URL         string `json:"url"` // without the signature that it is told with, see Link
}

// A Message is what stands in a channel.
type Message struct {
	ID, ChannelID, GuildID string
	Author                 User
	Content                string
	At                     time.Time
	Edited                 time.Time
	Mentions               []string // user ids
	Attachments            []Attachment
	Components             json.RawMessage
	Embeds                 json.RawMessage
	Flags                  int
	Type                   int
	Reference              *Reference
	Snapshots              []string // texts of forwarded messages
	WebhookID              string
	Reactions              map[string][]string // :: emoji → user ids
	Allowed                json.RawMessage     // allowed_mentions it was made with
	Nonce                  string              // it was made with
	Rang                   bool                // it pinged somebody, when it was made
}

func (m *Message) clone() Message {
	c := *m
	c.Mentions, c.Attachments = slices.Clone(m.Mentions), slices.Clone(m.Attachments)
	c.Reactions = maps.Clone(m.Reactions)
	return c
}

const iso = "2006-01-02T15:04:05.000000-07:00"

// json is how the bot sees a message that it reads with some intents; over REST
// those are all that it has. s.mu is held.
func (s *Server) json(m *Message, intents int, deep bool) map[string]any {
	mentions := []any{}
	for _, id := range m.Mentions {
		if u := s.users[id]; u != nil {
			mentions = append(mentions, *u)
		}
	}
	out := map[string]any{
		"id": m.ID, "channel_id": m.ChannelID, "author": m.Author, "content": m.Content,
		"timestamp": m.At.Format(iso), "edited_timestamp": nil, "tts": false, "mention_everyone": false,
		"mentions": mentions, "mention_roles": []string{}, "attachments": s.linked(m.Attachments), "embeds": []any{},
		"pinned": false, "type": m.Type, "flags": m.Flags,
	}
	if !m.Edited.IsZero() {
		out["edited_timestamp"] = m.Edited.Format(iso)
	}
	if m.Components != nil {
		out["components"] = m.Components
	}
	if m.WebhookID != "" {
		out["webhook_id"] = m.WebhookID
	}
	if m.Reference != nil {
		out["message_reference"] = m.Reference
		if deep && m.Reference.Type == 0 {
			out["referenced_message"] = nil
			if r := s.messages[m.Reference.MessageID]; r != nil {
				out["referenced_message"] = s.json(r, intents, false)
			}
		}
	}
	if len(m.Snapshots) > 0 {
		var all []any
		for _, text := range m.Snapshots {
			all = append(all, map[string]any{"message": map[string]any{"content": text, "attachments": []any{}, "type": 0}})
		}
		out["message_snapshots"] = all
	}
	if len(m.Reactions) > 0 {
		var all []any
		for _, emoji := range slices.Sorted(maps.Keys(m.Reactions)) {
			by := m.Reactions[emoji]
			all = append(all, map[string]any{"emoji": map[string]any{"id": nil, "name": emoji}, "count": len(by), "me": slices.Contains(by, s.bot.ID)})
		}
		out["reactions"] = all
	}
	if s.hidden(m, intents) {
		out["content"], out["attachments"], out["embeds"] = "", []any{}, []any{}
		delete(out, "components")
	}
	return out
}

func orEmpty[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// messageContent is the privileged intent.
const messageContent = 1 << 15

// hidden reports whether a message's text is kept from the bot, at all or from a
// session that did not ask for it.
func (s *Server) hidden(m *Message, intents int) bool {
	return s.intents&intents&messageContent == 0 && m.GuildID != "" && m.Author.ID != s.bot.ID && !slices.Contains(m.Mentions, s.bot.ID)
}

// event is a message as a gateway event has it.
func (s *Server) event(m *Message, intents int) map[string]any {
	out := s.json(m, intents, true)
	if c := s.channels[m.ChannelID]; c != nil {
		out["channel_type"] = c.Type
	}
	if m.GuildID == "" {
		return out
	}
	out["guild_id"] = m.GuildID
	if g := s.guilds[m.GuildID]; g != nil && m.WebhookID == "" {
		who := g.members[m.Author.ID]
		out["member"] = map[string]any{"nick": nilIfEmpty(who.Nick), "roles": orEmpty(who.Roles), "joined_at": "2024-01-01T00:00:00.000000+00:00", "deaf": false, "mute": false}
	}
	return out
}

func nilIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// mentioned gives the users that a text mentions.
func (s *Server) mentioned(text string) []string {
	var out []string
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "<@")
		if !found {
			return out
		}
		id, tail, found := strings.Cut(after, ">")
		if !found {
			return out
		}
		if id = strings.TrimPrefix(id, "!"); s.users[id] != nil && !slices.Contains(out, id) {
			out = append(out, id)
		}
		rest = tail
	}
}

// add puts a message into its channel and tells of it. s.mu is held.
func (s *Server) add(m *Message) {
	s.messages[m.ID] = m
	s.order[m.ChannelID] = append(s.order[m.ChannelID], m.ID)
	s.tell("MESSAGE_CREATE", m)
	s.note()
}
