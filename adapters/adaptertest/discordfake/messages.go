package discordfake

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// nonceKept is the time for which a nonce names a message. Discord says "a few
// minutes".
const nonceKept = 3 * time.Minute

// place gives the channel of a request, if the bot may do something in it. s.mu
// is held.
func (s *Server) place(r request, what ...string) (*Channel, error) {
	c := s.channels[r.PathValue("channel")]
	if c == nil {
		return nil, errUnknownChannel
	}
	parent := s.channels[c.ParentID]
	for _, what := range append([]string{"view"}, what...) {
		code := c.Forbid[what]
		if code == 0 && parent != nil {
			code = parent.Forbid[what]
		}
		if code != 0 {
			return nil, refuse(403, code, "Missing "+what)
		}
	}
	return c, nil
}

type messageParams struct {
	Content   *string `json:"content"`
	Nonce     any     `json:"nonce"`
	Enforce   bool    `json:"enforce_nonce"`
	Flags     int     `json:"flags"`
	Reference *struct {
		MessageID string `json:"message_id"`
		ChannelID string `json:"channel_id"`
		Fail      *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Allowed     json.RawMessage `json:"allowed_mentions"`
	Components  json.RawMessage `json:"components"`
	Embeds      json.RawMessage `json:"embeds"`
	Attachments []struct {
		ID       any    `json:"id"`
		Filename string `json:"filename"`
	} `json:"attachments"`
}

func units(text string) int { return len(utf16.Encode([]rune(text))) }

// check refuses what Discord refuses of a message.
func (p messageParams) check() error {
	if p.Content != nil && units(*p.Content) > 2000 {
		return badForm("content: Must be 2000 or fewer in length.")
	}
	return checkComponents(p.Components)
}

func checkComponents(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var rows []struct {
		Type       int `json:"type"`
		Components []struct {
			Type     int    `json:"type"`
			Label    string `json:"label"`
			CustomID string `json:"custom_id"`
			URL      string `json:"url"`
			Style    int    `json:"style"`
			Options  []struct {
				Label, Value string
			} `json:"options"`
		} `json:"components"`
	}
	if json.Unmarshal(raw, &rows) != nil || len(rows) > 5 {
		return badForm("components: at most 5 action rows")
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if row.Type != 1 || len(row.Components) == 0 || len(row.Components) > 5 {
			return badForm("components: an action row has 1 to 5 components")
		}
		for _, c := range row.Components {
			switch {
			case c.Type == 3 && (len(row.Components) != 1 || len(c.Options) == 0 || len(c.Options) > 25):
				return badForm("components: a select stands alone and has 1 to 25 options")
			case c.Type == 2 && (c.Label == "" || units(c.Label) > 80 || c.Style < 1 || c.Style > 6):
				return badForm("components: label must be between 1 and 80 in length")
			case c.Style != 5 && (c.CustomID == "" || units(c.CustomID) > 100 || seen[c.CustomID]):
				return badForm("components: custom_id must be unique and between 1 and 100 in length")
			}
			seen[c.CustomID] = true
			for _, o := range c.Options {
				if o.Label == "" || units(o.Label) > 100 || o.Value == "" || units(o.Value) > 100 || seen["="+o.Value] {
					return badForm("components: option label and value must be between 1 and 100 in length, values unique")
				}
				seen["="+o.Value] = true
			}
		}
	}
	return nil
}

// created answers with a message as its creation does: with the nonce.
func (s *Server) created(m *Message) map[string]any {
	out := s.json(m, allIntents, true)
	if m.Nonce != "" {
		out["nonce"] = m.Nonce
	}
	return out
}

func (s *Server) createMessage(r request) (any, error) {
	c, err := s.place(r, "send")
	if err != nil {
		return nil, err
	}
	var p messageParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	nonce := ""
	if p.Nonce != nil {
		nonce = strings.Trim(string(mustJSON(p.Nonce)), `"`)
	}
	switch {
	case c.Type == Forum:
		return nil, refuse(400, 50008, "Cannot send messages in a non-text channel")
	case c.Type == DM && c.Forbid["send"] != 0:
		return nil, refuse(403, 50007, "Cannot send messages to this user")
	case c.Locked:
		return nil, refuse(403, 160005, "Thread is locked")
	case len(nonce) > 25:
		return nil, badForm("nonce: Must be 25 or fewer in length.")
	case p.Content == nil && len(r.files) == 0 && len(p.Embeds) == 0 || p.Content != nil && strings.TrimSpace(*p.Content) == "" && len(r.files) == 0 && len(p.Components) == 0:
		return nil, refuse(400, 50006, "Cannot send an empty message")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	key := c.ID + "/" + nonce
	if id := s.nonces[key]; p.Enforce && nonce != "" && id != "" && time.Since(TimeOf(id)) < nonceKept {
		if m := s.messages[id]; m != nil {
			return s.created(m), nil
		}
		return nil, errUnknownMessage // it was made, and removed since
	}
	m := &Message{ID: s.snowflake(), ChannelID: c.ID, GuildID: c.GuildID, Author: s.bot, Flags: p.Flags, Allowed: p.Allowed, Nonce: nonce}
	m.At = TimeOf(m.ID)
	if p.Content != nil {
		m.Content = strings.TrimSpace(*p.Content) // as Discord does
	}
	if len(p.Components) > 2 {
		m.Components = p.Components
	}
	if ref := p.Reference; ref != nil {
		if err := s.refer(c, m, ref.MessageID, ref.Fail); err != nil {
			return nil, err
		}
	}
	if m.Rang, err = rings(m.Content, p.Allowed, m.Reference != nil); err != nil {
		return nil, err
	}
	if len(r.files) > 0 && c.Forbid["files"] != 0 {
		return nil, refuse(403, c.Forbid["files"], "Missing Permissions")
	}
	for i, a := range p.Attachments {
		field := "files[" + strings.Trim(string(mustJSON(a.ID)), `"`) + "]"
		content, ok := r.files[field]
		if !ok {
			return nil, badForm("attachments[" + strconv.Itoa(i) + "]: no such file")
		}
		if len(content) > 10<<20 {
			return nil, refuse(413, 40005, "Request entity too large")
		}
		m.Attachments = append(m.Attachments, s.keepFile(c.ID, a.Filename, "", content))
	}
	c.Archived = false
	if nonce != "" {
		s.nonces[key] = m.ID
	}
	s.add(m)
	return s.created(m), nil
}

// pings are what a text may ring people with.
var pings = []struct {
	kind string
	form *regexp.Regexp
}{
	{"everyone", regexp.MustCompile(`@everyone|@here`)}, {"users", regexp.MustCompile(`<@!?([0-9]+)>`)}, {"roles", regexp.MustCompile(`<@&([0-9]+)>`)},
}

// rings tells whether a message pings anybody: without allowed mentions all that
// its text mentions, and the author of what it answers.
func rings(text string, allowed json.RawMessage, reply bool) (bool, error) {
	var a *struct {
		Parse       []string `json:"parse"`
		Users       []string `json:"users"`
		Roles       []string `json:"roles"`
		RepliedUser bool     `json:"replied_user"`
	}
	if len(allowed) > 0 && json.Unmarshal(allowed, &a) != nil {
		return false, badForm("allowed_mentions")
	}
	if a != nil && (slices.Contains(a.Parse, "users") && len(a.Users) > 0 || slices.Contains(a.Parse, "roles") && len(a.Roles) > 0) {
		return false, badForm("allowed_mentions: parse and a list exclude each other")
	}
	if reply && (a == nil || a.RepliedUser) {
		return true, nil
	}
	for _, p := range pings {
		for _, found := range p.form.FindAllStringSubmatch(text, -1) {
			switch {
			case a == nil, slices.Contains(a.Parse, p.kind),
				p.kind == "users" && slices.Contains(a.Users, found[1]), p.kind == "roles" && slices.Contains(a.Roles, found[1]):
				return true, nil
			}
		}
	}
	return false, nil
}

// refer makes a message a reply.
func (s *Server) refer(c *Channel, m *Message, to string, fail *bool) error {
	if c.Forbid["history"] != 0 {
		return refuse(400, 160002, "Cannot reply without permission to read message history")
	}
	if r := s.messages[to]; r == nil || r.ChannelID != c.ID {
		if fail == nil || *fail {
			return badForm("message_reference: Unknown message")
		}
		return nil
	}
	m.Type, m.Reference = 19, &Reference{MessageID: to, ChannelID: c.ID, GuildID: c.GuildID}
	return nil
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (s *Server) listMessages(r request) (any, error) {
	c, err := s.place(r)
	if err != nil {
		return nil, err
	}
	if c.Forbid["history"] != 0 {
		return []any{}, nil // as Discord answers without READ_MESSAGE_HISTORY
	}
	q := r.URL.Query()
	limit := 50
	if v := q.Get("limit"); v != "" {
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > 100 {
			return nil, badForm("limit: int value should be between 1 and 100")
		}
	}
	ids := s.order[c.ID]
	at := func(name string) (int, bool) {
		v := q.Get(name)
		n, found := slices.BinarySearchFunc(ids, v, compareIDs)
		if name == "after" && found {
			n++
		}
		return n, v != ""
	}
	from, to := max(len(ids)-limit, 0), len(ids)
	if n, ok := at("before"); ok {
		from, to = max(n-limit, 0), n
	} else if n, ok := at("after"); ok {
		from, to = n, min(n+limit, len(ids))
	} else if n, ok := at("around"); ok {
		from, to = max(n-limit/2, 0), min(n+limit/2+1, len(ids))
	}
	out := []any{}
	for _, id := range slices.Backward(ids[from:to]) { // the newest first, always
		m := s.messages[id]
		out = append(out, s.json(m, allIntents, true))
	}
	return out, nil
}

func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func (s *Server) message(r request, c *Channel) (*Message, error) {
	m := s.messages[r.PathValue("message")]
	if m == nil || m.ChannelID != c.ID {
		return nil, errUnknownMessage
	}
	return m, nil
}

func (s *Server) getMessage(r request) (any, error) {
	c, err := s.place(r, "history")
	if err != nil {
		return nil, err
	}
	m, err := s.message(r, c)
	if err != nil {
		return nil, err
	}
	return s.json(m, allIntents, true), nil
}

func (s *Server) patchMessage(r request) (any, error) {
	c, err := s.place(r)
	if err != nil {
		return nil, err
	}
	m, err := s.message(r, c)
	if err != nil {
		return nil, err
	}
	if m.Author.ID != s.bot.ID {
		return nil, refuse(403, 50005, "Cannot edit a message authored by another user")
	}
	if c.Archived {
		return nil, refuse(400, 50083, "Thread is archived")
	}
	return s.change(r, m)
}

// change applies an edit to a message of the bot.
func (s *Server) change(r request, m *Message) (any, error) {
	var p messageParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Content != nil {
		m.Content = strings.TrimSpace(*p.Content)
	}
	if p.Components != nil {
		if m.Components = p.Components; len(p.Components) <= 2 {
			m.Components = nil
		}
	}
	m.Edited = time.Now().UTC()
	s.tell("MESSAGE_UPDATE", m)
	return s.json(m, allIntents, true), nil
}

func (s *Server) deleteMessage(r request) (any, error) {
	c, err := s.place(r)
	if err != nil {
		return nil, err
	}
	m, err := s.message(r, c)
	if err != nil {
		return nil, err
	}
	if m.Author.ID != s.bot.ID {
		return nil, refuse(403, 50013, "Missing Permissions")
	}
	s.remove(m.ID)
	s.dispatch("MESSAGE_DELETE", m.GuildID, map[string]any{"id": m.ID, "channel_id": m.ChannelID, "guild_id": m.GuildID})
	return nothing{}, nil
}
