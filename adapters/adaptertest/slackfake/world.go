package slackfake

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A User is somebody in the workspace, or of another one that shares a channel.
type User struct {
	ID, Name string
	Team     string // default TeamID
	Admin    bool
	Bot      bool
}

// A Channel is any place.
type Channel struct {
	ID, Name string
	Kind     string // "channel", "group", "im" or "mpim"; default channel
	Members  []string
	Archived bool

	messages []*message
}

// A File is what somebody sent or the bot has uploaded.
type File struct {
	ID, Name, Type, User string
	Content              []byte
	External             bool // its details must be asked for
	shared               bool
}

// message is one message as Slack keeps it.
type message struct {
	ts, thread  string
	user, botID string
	subtype     string
	text        string
	blocks      json.RawMessage
	metadata    json.RawMessage
	attachments json.RawMessage
	files       []string
	edited      string
	editor      string
	reactions   map[string][]string // :: name → users
	gone        bool                // a removed root with replies
	streaming   time.Time           // since when it is streamed; zero when it is not
}

// AddUser adds somebody.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Team == "" {
		u.Team = TeamID
	}
	s.users[u.ID] = &u
}

// AddChannel adds a place.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Kind == "" {
		c.Kind = "channel"
	}
	s.channels[c.ID] = &c
	s.order = append(s.order, c.ID)
}

// called is how slash commands call a place, which says of what kind it is. It is called
// with mu held; c may be nil.
func (c *Channel) called() string {
	switch {
	case c == nil:
		return ""
	case c.Kind == "im":
		return "directmessage"
	case c.Kind == "group":
		return "privategroup"
	case c.Kind == "mpim":
		return "mpdm-" + strings.ToLower(strings.Join(c.Members, "--")) + "-1"
	}
	return c.Name
}

// Invite brings somebody into a place; BotUser brings the bot.
func (s *Server) Invite(channel, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	c.Members = append(c.Members, user)
}

func (c *Channel) has(user string) bool { return slices.Contains(c.Members, user) }

func (c *Channel) find(ts string) *message {
	for _, m := range c.messages {
		if m.ts == ts {
			return m
		}
	}
	return nil
}

func (c *Channel) replies(root string) []*message {
	var list []*message
	for _, m := range c.messages {
		if m.thread == root && m.ts != root {
			list = append(list, m)
		}
	}
	return list
}

// wire gives a message as the Web API and events do.
func (s *Server) wire(c *Channel, m *message, withMetadata bool) map[string]any {
	w := map[string]any{"type": "message", "ts": m.ts, "text": m.text, "team": TeamID}
	set := func(key string, v string) {
		if v != "" {
			w[key] = v
		}
	}
	set("user", m.user)
	set("bot_id", m.botID)
	set("subtype", m.subtype)
	set("thread_ts", m.thread)
	if m.botID != "" {
		w["app_id"] = AppID
	}
	if m.gone {
		w["subtype"], w["text"], w["hidden"] = "tombstone", "This message was deleted.", true
		w["user"] = "USLACKBOT"
	}
	if len(m.blocks) > 0 {
		w["blocks"] = m.blocks
	}
	if len(m.attachments) > 0 {
		w["attachments"] = m.attachments
	}
	if len(m.files) > 0 {
		var list []any
		for _, id := range m.files {
			list = append(list, s.wireFile(s.files[id]))
		}
		w["files"] = list
	}
	if m.edited != "" {
		w["edited"] = map[string]any{"user": m.editor, "ts": m.edited}
	}
	if withMetadata && len(m.metadata) > 0 {
		w["metadata"] = m.metadata
	}
	if m.thread != "" && m.thread != m.ts {
		if root := c.find(m.thread); root != nil {
			set("parent_user_id", root.user)
		}
	}
	if all := c.replies(m.ts); len(all) > 0 {
		w["thread_ts"], w["reply_count"], w["latest_reply"] = m.ts, len(all), all[len(all)-1].ts
	}
	return w
}

func (s *Server) wireFile(f *File) map[string]any {
	if f.External {
		return map[string]any{"id": f.ID, "file_access": "check_file_info", "mode": "file_access"}
	}
	return map[string]any{
		"id": f.ID, "name": f.Name, "title": f.Name, "mimetype": f.Type, "size": len(f.Content), "user": f.User, "mode": "hosted",
		"url_private": s.base + "/files/" + f.ID, "url_private_download": s.base + "/files/" + f.ID + "?download",
	}
}

// A Message is one message, for a test to look at.
type Message struct {
	TS, Thread  string
	User        string
	Text        string
	Blocks      string   // JSON
	Metadata    string   // JSON
	Files       []string // names
	FileIDs     []string
	Edited      bool
	Reactions   []string // names, sorted
	FromBot     bool
	Attachments string
	Rang        bool // somebody, by what stands in it
	Streaming   bool // it is not finished
}

// rings are what Slack takes for a call of somebody in a text that it formats:
// everybody there, a group, or one person.
var rings = regexp.MustCompile(`<(?:!(?:here|channel|everyone)(?:\|[^>]*)?|!subteam\^[^>]*|@[UW][A-Z0-9]+(?:\|[^>]*)?)>`)

// rang reports whether a message calls somebody. Plain "@channel" does not: our
// app does not ask for names to be linked.
func (m *message) rang() bool {
	if rings.MatchString(m.text) {
		return true
	}
	var blocks any
	return json.Unmarshal(m.blocks, &blocks) == nil && rangIn(blocks)
}

// rangIn looks at every text of some blocks, whatever they are.
func rangIn(x any) bool {
	switch x := x.(type) {
	case string:
		return rings.MatchString(x)
	case []any:
		return slices.ContainsFunc(x, rangIn)
	case map[string]any:
		for key, v := range x {
			if key != "value" && rangIn(v) {
				return true
			}
		}
	}
	return false
}

// Messages lists what stands in a place or, with a root, in a thread, oldest
// first, without what was removed.
func (s *Server) Messages(channel, thread string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	c := s.channels[channel]
	for _, m := range c.messages {
		if m.gone || thread == "" && m.thread != "" && m.thread != m.ts || thread != "" && m.ts != thread && m.thread != thread {
			continue
		}
		list = append(list, s.look(m))
	}
	return list
}

// Posted lists what the bot has posted anywhere, oldest first in each place.
func (s *Server) Posted() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	for _, id := range s.order {
		for _, m := range s.channels[id].messages {
			if m.user == BotUser && !m.gone {
				list = append(list, s.look(m))
			}
		}
	}
	return list
}

func (s *Server) look(m *message) Message {
	v := Message{
		TS: m.ts, Thread: m.thread, User: m.user, Text: m.text, Blocks: string(m.blocks), Metadata: string(m.metadata),
		Edited: m.edited != "", FromBot: m.botID != "", Attachments: string(m.attachments), Rang: m.rang(), Streaming: !m.streaming.IsZero(),
	}
	for _, id := range m.files {
		v.Files, v.FileIDs = append(v.Files, s.files[id].Name), append(v.FileIDs, id)
	}
	for name := range m.reactions {
		v.Reactions = append(v.Reactions, name)
	}
	slices.Sort(v.Reactions)
	return v
}

// Content gives what is in a file of this name.
func (s *Server) Content(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.Name == name && f.shared {
			return string(f.Content), true
		}
	}
	return "", false
}

// A Whisper is a message that one person sees.
type Whisper struct {
	Channel, Thread, User, Text, Blocks string
}

// Whispers lists the ephemeral messages.
func (s *Server) Whispers() []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.whispers)
}

// An Answer is what came through a response URL or with the acknowledgement of an
// interaction.
type Answer struct {
	Interaction string // id of the interaction
	Body        string // JSON
	WithAck     bool
}

// Answers lists the answers to interactions.
func (s *Server) Answers() []Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers)
}

// Statuses lists the status lines that a thread has had, "" for one cleared by a
// call.
func (s *Server) Statuses(channel, thread string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statuses[channel+"/"+thread])
}

// statusLasts is how long a status line stays that nobody renews.
const statusLasts = 2 * time.Minute

// Status gives what stands now in the status line of a thread.
func (s *Server) Status(channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := channel + "/" + thread
	list := s.statuses[key]
	if len(list) == 0 || s.o.Now().Sub(s.statusAt[key]) >= statusLasts {
		return ""
	}
	return list[len(list)-1]
}

// Sessions lists the states that the agent session of a thread has had.
func (s *Server) Sessions(channel, thread string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions[channel+"/"+thread])
}

// Home gives App Home as one person sees it, as JSON.
func (s *Server) Home(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.homes[user])
}

// Mentions spells a mention of the bot.
func Mentions(text string) string { return strings.ReplaceAll(text, "@bot", "<@"+BotUser+">") }

// Has reports whether a message is in a place, in a thread or not.
func (s *Server) Has(channel, ts string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[channel].find(ts) != nil
}
