package discordfake

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Bot is the bot's own user.
func (s *Server) Bot() User { return s.bot }

// Mention is the text that mentions the bot.
func (s *Server) Mention() string { return "<@" + s.bot.ID + ">" }

// NewUser adds a person.
func (s *Server) NewUser(name string) User { return s.newUser(User{Username: name}) }

// NewBot adds another application's bot.
func (s *Server) NewBot(name string) User { return s.newUser(User{Username: name, Bot: true}) }

func (s *Server) newUser(u User) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.ID = s.snowflake()
	s.users[u.ID] = &u
	return u
}

// NewGuild adds a guild with the bot and some people in it.
func (s *Server) NewGuild(name string, people ...User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &guild{id: s.snowflake(), name: name, members: map[string]member{s.bot.ID: {}}, roles: map[string]int64{}}
	g.roles[g.id] = 0
	for _, p := range people {
		g.members[p.ID] = member{}
	}
	s.guilds[g.id] = g
	s.tellGuild(g, nil)
	return g.id
}

// Permit gives a member a role of its own with permissions, in place of those that
// they had, and gives its id.
func (s *Server) Permit(guildID string, u User, permissions int64) (role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.guilds[guildID]
	role = s.snowflake()
	g.roles[role] = permissions
	g.members[u.ID] = member{Roles: []string{role}}
	s.dispatch("GUILD_ROLE_CREATE", guildID, map[string]any{
		"guild_id": guildID, "role": map[string]any{"id": role, "permissions": strconv.FormatInt(permissions, 10)},
	})
	return role
}

// Own makes somebody the owner of a guild.
func (s *Server) Own(guildID string, u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.guilds[guildID]
	g.owner = u.ID
	s.dispatch("GUILD_UPDATE", guildID, g.json())
}

// NewChannel adds a channel of some type to a guild.
func (s *Server) NewChannel(guildID, name string, kind int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Channel{ID: s.snowflake(), GuildID: guildID, Name: name, Type: kind}
	s.channels[c.ID] = c
	s.dispatch("CHANNEL_CREATE", guildID, c.json())
	return c.ID
}

// NewThread adds a thread that a person has started in a channel.
func (s *Server) NewThread(parent, name string, by User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.channels[parent]
	return s.startThread(&Channel{ID: s.snowflake(), GuildID: p.GuildID, ParentID: parent, Name: name, OwnerID: by.ID, Type: PublicThread}).ID
}

// ThreadFrom has a person start a thread from a message, which has the same id.
func (s *Server) ThreadFrom(message, name string, by User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messages[message]
	s.startThread(&Channel{ID: m.ID, GuildID: m.GuildID, ParentID: m.ChannelID, Name: name, OwnerID: by.ID, Type: PublicThread})
	m.Flags |= 1 << 5
	s.tell("MESSAGE_UPDATE", m)
}

// startThread adds a thread and tells of it. s.mu is held.
func (s *Server) startThread(c *Channel) *Channel {
	s.channels[c.ID] = c
	d := c.json()
	d["newly_created"] = true
	s.dispatch("THREAD_CREATE", c.GuildID, d)
	s.note()
	return c
}

// DirectChannel is where a person and the bot talk alone.
func (s *Server) DirectChannel(u User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.direct(u.ID)
}

func (s *Server) direct(user string) string {
	if id := s.dms[user]; id != "" {
		return id
	}
	c := &Channel{ID: s.snowflake(), Type: DM, User: user}
	s.channels[c.ID] = c
	s.dms[user] = c.ID
	return c.ID
}

// Say has somebody write into a channel, and gives the message. more may change
// it before it is told of.
func (s *Server) Say(channel string, by User, text string, more ...func(*Message)) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil {
		panic(fmt.Sprintf("discordfake: there is no channel %q", channel))
	}
	c.Archived = c.Archived && c.Locked
	m := &Message{ID: s.snowflake(), ChannelID: channel, GuildID: c.GuildID, Author: by, Content: text, Mentions: s.mentioned(text)}
	m.At = TimeOf(m.ID)
	for _, f := range more {
		f(m)
	}
	if m.Reference != nil && m.Type == 0 && m.Reference.Type == 0 {
		m.Type = 19
	}
	s.add(m)
	return m.clone()
}

// Replying makes a message a reply to another; ping mentions its author, which is
// what Discord's client does unless it is switched off.
func (s *Server) Replying(to string, ping bool) func(*Message) {
	return func(m *Message) {
		m.Reference = &Reference{MessageID: to, ChannelID: m.ChannelID, GuildID: m.GuildID}
		if r := s.messages[to]; r != nil && ping && !slices.Contains(m.Mentions, r.Author.ID) {
			m.Mentions = append(m.Mentions, r.Author.ID)
		}
	}
}

// Attaching adds a file to a message.
func (s *Server) Attaching(name, contentType string, content []byte) func(*Message) {
	return func(m *Message) {
		m.Attachments = append(m.Attachments, s.keepFile(m.ChannelID, name, contentType, content))
	}
}

// Redeliver tells of a message once more, as it is now.
func (s *Server) Redeliver(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("MESSAGE_CREATE", s.messages[id])
	s.note()
}

// Edit changes a message's text.
func (s *Server) Edit(id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messages[id]
	m.Content, m.Edited = text, time.Now().UTC()
	m.Mentions = s.mentioned(text)
	s.tell("MESSAGE_UPDATE", m)
	s.note()
}

// Unfurl is an update of a message that nobody edited.
func (s *Server) Unfurl(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("MESSAGE_UPDATE", s.messages[id])
}

// Delete removes messages of one channel; several at once are told in one event.
func (s *Server) Delete(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messages[ids[0]]
	d := map[string]any{"channel_id": m.ChannelID}
	if m.GuildID != "" {
		d["guild_id"] = m.GuildID
	}
	for _, id := range ids {
		s.remove(id)
	}
	name := "MESSAGE_DELETE_BULK"
	if d["ids"] = ids; len(ids) == 1 {
		delete(d, "ids")
		name, d["id"] = "MESSAGE_DELETE", ids[0]
	}
	s.dispatch(name, m.GuildID, d)
	s.note()
}

func (s *Server) remove(id string) {
	m := s.messages[id]
	delete(s.messages, id)
	s.order[m.ChannelID] = slices.DeleteFunc(s.order[m.ChannelID], func(o string) bool { return o == id })
}

// SetThread changes whether a thread is archived and locked.
func (s *Server) SetThread(id string, archived, locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	c.Archived, c.Locked = archived, locked
	s.dispatch("THREAD_UPDATE", c.GuildID, c.json())
}

// DeleteChannel removes a channel or a thread.
func (s *Server) DeleteChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	delete(s.channels, id)
	name := "CHANNEL_DELETE"
	if c.thread() {
		name = "THREAD_DELETE"
	}
	s.dispatch(name, c.GuildID, c.json())
}

// Forbid makes Discord refuse the bot something in a channel, which is view,
// send, threads, react, history or files, with an error code as 50001 or 50013.
// Code 0 allows it again.
func (s *Server) Forbid(channel, what string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c.Forbid == nil {
		c.Forbid = map[string]int{}
	}
	c.Forbid[what] = code
}

// Messages are those of a channel, the oldest first.
func (s *Server) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, id := range s.order[channel] {
		out = append(out, s.messages[id].clone())
	}
	return out
}

// Said are the bot's own messages of a channel, the oldest first.
func (s *Server) Said(channel string) []Message {
	return slices.DeleteFunc(s.Messages(channel), func(m Message) bool { return m.Author.ID != s.bot.ID })
}

// Message gives one message; ok is false when it is not there.
func (s *Server) Message(id string) (m Message, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.messages[id]; found != nil {
		return found.clone(), true
	}
	return Message{}, false
}

// Thread gives a channel or a thread; ok is false when it is not there.
func (s *Server) Thread(id string) (c Channel, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.channels[id]; found != nil {
		return *found, true
	}
	return Channel{}, false
}

// Typed are the times at which the bot showed that it types in a channel.
func (s *Server) Typed(channel string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.typing[channel])
}
