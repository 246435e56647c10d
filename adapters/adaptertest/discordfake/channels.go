package discordfake

import (
	"maps"
	"slices"
	"time"
)

func (s *Server) listGuilds(request) (any, error) {
	out := []any{}
	for _, id := range slices.Sorted(maps.Keys(s.guilds)) {
		g := s.guilds[id]
		out = append(out, map[string]any{"id": g.id, "name": g.name, "permissions": g.permissions(s.bot.ID), "owner": false})
	}
	return out, nil
}

func (s *Server) getGuild(r request) (any, error) {
	g := s.guilds[r.PathValue("guild")]
	if g == nil {
		return nil, refuse(404, 10004, "Unknown Guild")
	}
	return g.json(), nil
}

func (s *Server) getChannel(r request) (any, error) {
	c, err := s.place(r)
	if err != nil {
		return nil, err
	}
	return c.json(), nil
}

func (s *Server) patchChannel(r request) (any, error) {
	c, err := s.place(r)
	if err != nil {
		return nil, err
	}
	var p struct {
		Archived *bool `json:"archived"`
		Locked   *bool `json:"locked"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if c.Locked || p.Locked != nil || p.Archived != nil && *p.Archived && c.OwnerID != s.bot.ID {
		return nil, refuse(403, 50013, "Missing Permissions")
	}
	if p.Archived != nil {
		c.Archived = *p.Archived
	}
	s.dispatch("THREAD_UPDATE", c.GuildID, c.json())
	return c.json(), nil
}

func (s *Server) showTyping(r request) (any, error) {
	c, err := s.place(r, "send")
	if err != nil {
		return nil, err
	}
	s.typing[c.ID] = append(s.typing[c.ID], time.Now())
	return nothing{}, nil
}

func (s *Server) openDirect(r request) (any, error) {
	var p struct {
		Recipient string `json:"recipient_id"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if s.users[p.Recipient] == nil {
		return nil, refuse(400, 50033, "Invalid Recipient(s)")
	}
	return s.channels[s.direct(p.Recipient)].json(), nil
}

func (s *Server) threadFromMessage(r request) (any, error) {
	c, err := s.place(r, "threads")
	if err != nil {
		return nil, err
	}
	m, err := s.message(r, c)
	if err != nil {
		return nil, err
	}
	var p struct {
		Name    string `json:"name"`
		Archive int    `json:"auto_archive_duration"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	switch {
	case c.Type != Text && c.Type != Announcement:
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	case s.channels[m.ID] != nil:
		return nil, refuse(400, 160004, "A thread has already been created for this message")
	case m.Type != 0 && m.Type != 19 && m.Type != 20 && m.Type != 23:
		return nil, refuse(400, 50021, "Cannot execute action on a system message")
	case units(p.Name) < 1 || units(p.Name) > 100:
		return nil, badForm("name: Must be between 1 and 100 in length.")
	case !slices.Contains([]int{0, 60, 1440, 4320, 10080}, p.Archive):
		return nil, badForm("auto_archive_duration: Value must be one of (60, 1440, 4320, 10080).")
	}
	kind := PublicThread
	if c.Type == Announcement {
		kind = NewsThread
	}
	t := s.startThread(&Channel{ID: m.ID, GuildID: c.GuildID, ParentID: c.ID, Name: p.Name, OwnerID: s.bot.ID, Type: kind})
	m.Flags |= 1 << 5
	s.tell("MESSAGE_UPDATE", m)
	return t.json(), nil
}

func (s *Server) joinThread(r request) (any, error) {
	c, err := s.place(r)
	if err != nil {
		return nil, err
	}
	if c.Archived {
		return nil, refuse(400, 50083, "Thread is archived")
	}
	return nothing{}, nil
}

func (s *Server) react(r request) (any, error) { return s.reacting(r, true) }

func (s *Server) unreact(r request) (any, error) { return s.reacting(r, false) }

func (s *Server) reacting(r request, add bool) (any, error) {
	c, err := s.place(r, "react", "history")
	if err != nil {
		return nil, err
	}
	m, err := s.message(r, c)
	if err != nil {
		return nil, err
	}
	if c.Archived {
		return nil, refuse(400, 50083, "Thread is archived")
	}
	emoji := r.PathValue("emoji")
	by := slices.DeleteFunc(slices.Clone(m.Reactions[emoji]), func(id string) bool { return id == s.bot.ID })
	if add {
		by = append(by, s.bot.ID)
	}
	if m.Reactions == nil {
		m.Reactions = map[string][]string{}
	}
	if m.Reactions[emoji] = by; len(by) == 0 {
		delete(m.Reactions, emoji)
	}
	return nothing{}, nil
}
