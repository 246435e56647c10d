package discordfake

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Limits of interactions.
const (
	answerWithin = 3 * time.Second
	tokenKept    = 15 * time.Minute
)

// A Command is one application command, as it was registered.
type Command map[string]any

// An Interaction is something that a person did with a command or a component.
type Interaction struct {
	ID, Token string
	Channel   string
	At        time.Time

	Type      int       // of the first response; 0 while there is none
	Answered  time.Time // when the first response came
	Ephemeral bool
	Choices   []string // values offered by an autocomplete
	Content   string   // of the answer, as it was edited last
	Rows      json.RawMessage
	FollowUps []string
	Deleted   bool
	body      []byte
	message   string // whose component was used
}

// Done reports whether the person sees more than "thinking…".
func (i Interaction) Done() bool {
	return i.Type != 0 && i.Type != 5 && i.Type != 6 || i.Content != "" || len(i.FollowUps) > 0 || i.Deleted
}

// Interaction gives one as it is now.
func (s *Server) Interaction(token string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := *s.acts[token]
	i.FollowUps = slices.Clone(i.FollowUps)
	return i
}

// Repeat tells of an interaction once more.
func (s *Server) Repeat(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.acts[token]
	s.dispatch("INTERACTION_CREATE", s.channels[i.Channel].GuildID, json.RawMessage(i.body))
}

// Commands are those registered, globally or of a guild.
func (s *Server) Commands(guild string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands[guild])
}

// Synced is how often commands were written.
func (s *Server) Synced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Slash has a person use a command, and gives the interaction's token. options
// nest as Discord has them: see [Sub] and [Opt].
func (s *Server) Slash(channel string, by User, name string, options ...map[string]any) string {
	return s.interact(channel, by, 2, map[string]any{"id": "1", "name": name, "type": 1, "options": options})
}

// Complete has a person type in an option that has autocomplete.
func (s *Server) Complete(channel string, by User, name string, options ...map[string]any) string {
	return s.interact(channel, by, 4, map[string]any{"id": "1", "name": name, "type": 1, "options": options})
}

// Sub is a subcommand with its options.
func Sub(name string, options ...map[string]any) map[string]any {
	return map[string]any{"name": name, "type": 1, "options": options}
}

// Opt is an option that was filled in.
func Opt(name string, value any) map[string]any {
	return map[string]any{"name": name, "type": 3, "value": value}
}

// Typing is an option that is being filled in.
func Typing(name, value string) map[string]any {
	return map[string]any{"name": name, "type": 3, "value": value, "focused": true}
}

// Press has a person press a button, or choose values in a select, below a
// message.
func (s *Server) Press(message string, by User, customID string, values ...string) string {
	s.mu.Lock()
	m := s.messages[message]
	d := map[string]any{"custom_id": customID, "component_type": 2}
	if len(values) > 0 {
		d["component_type"], d["values"] = 3, values
	}
	shown := s.json(m, allIntents, false)
	s.mu.Unlock()
	return s.interact(m.ChannelID, by, 3, d, func(i map[string]any) { i["message"] = shown })
}

// Apps has a person use a command of a message's Apps menu.
func (s *Server) Apps(message string, by User, name string) string {
	s.mu.Lock()
	m := s.messages[message]
	shown := s.json(m, allIntents, false)
	s.mu.Unlock()
	return s.interact(m.ChannelID, by, 2, map[string]any{
		"id": "2", "name": name, "type": 3, "target_id": message,
		"resolved": map[string]any{"messages": map[string]any{message: shown}},
	})
}

func (s *Server) interact(channel string, by User, kind int, data map[string]any, more ...func(map[string]any)) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	i := &Interaction{ID: s.snowflake(), Channel: channel, At: time.Now()}
	i.Token = "act-" + i.ID
	d := map[string]any{
		"id": i.ID, "application_id": s.app, "type": kind, "token": i.Token, "version": 1, "data": data,
		"channel_id": channel, "channel": c.json(), "locale": "en-US", "entitlements": []any{},
	}
	if c.GuildID == "" {
		d["user"], d["context"] = by, 1
	} else {
		who := s.guilds[c.GuildID].members[by.ID]
		d["guild_id"], d["context"] = c.GuildID, 0
		d["member"] = map[string]any{"user": by, "nick": nilIfEmpty(who.Nick), "roles": orEmpty(who.Roles), "permissions": s.guilds[c.GuildID].permissions(by.ID)}
	}
	for _, f := range more {
		f(d)
	}
	if m, ok := d["message"].(map[string]any); ok {
		i.message, _ = m["id"].(string)
	}
	i.body = mustJSON(d)
	s.acts[i.Token] = i
	s.dispatch("INTERACTION_CREATE", c.GuildID, json.RawMessage(i.body))
	s.note()
	return i.Token
}

func (s *Server) callback(r request) (any, error) {
	i := s.acts[r.PathValue("token")]
	var p struct {
		Type int `json:"type"`
		Data struct {
			messageParams
			Choices *[]struct {
				Name  string `json:"name"`
				Value any    `json:"value"`
			} `json:"choices"`
		} `json:"data"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	switch {
	case i == nil || i.ID != r.PathValue("interaction") || i.Type == 0 && time.Since(i.At) > answerWithin:
		return nil, refuse(404, 10062, "Unknown interaction")
	case i.Type != 0:
		return nil, refuse(400, 40060, "Interaction has already been acknowledged.")
	case !slices.Contains([]int{4, 5, 6, 7, 8, 9}, p.Type) || p.Type == 4 && p.Data.Content == nil:
		return nil, badForm("type")
	case p.Data.Choices != nil && len(*p.Data.Choices) > 25:
		return nil, badForm("choices: Must be 25 or fewer in length.")
	}
	if err := p.Data.check(); err != nil {
		return nil, err
	}
	i.Type, i.Answered, i.Ephemeral = p.Type, time.Now(), p.Data.Flags&64 != 0
	if p.Data.Content != nil {
		i.Content = *p.Data.Content
	}
	if p.Data.Choices != nil {
		for _, c := range *p.Data.Choices {
			value, ok := c.Value.(string)
			if !ok || value == "" || units(value) > 100 || c.Name == "" || units(c.Name) > 100 {
				return nil, badForm("choices: name and value must be between 1 and 100 in length")
			}
			i.Choices = append(i.Choices, value)
		}
	}
	i.Rows = p.Data.Components
	return nothing{}, nil
}

// act gives the interaction of a webhook's token.
func (s *Server) act(r request) (*Interaction, error) {
	i := s.acts[r.PathValue("token")]
	if i == nil || r.PathValue("app") != s.app {
		return nil, refuse(404, 10015, "Unknown Webhook")
	}
	if time.Since(i.At) > tokenKept {
		return nil, refuse(401, 50027, "Invalid Webhook Token")
	}
	if i.Type == 0 || i.Deleted {
		return nil, errUnknownMessage
	}
	return i, nil
}

func (s *Server) followUp(r request) (any, error) {
	i, err := s.act(r)
	if err != nil {
		return nil, err
	}
	var p messageParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Content == nil || strings.TrimSpace(*p.Content) == "" {
		return nil, refuse(400, 50006, "Cannot send an empty message")
	}
	i.FollowUps = append(i.FollowUps, *p.Content)
	return map[string]any{"id": s.snowflake(), "content": *p.Content}, nil
}

func (s *Server) patchAnswer(r request) (any, error) {
	i, err := s.act(r)
	if err != nil {
		return nil, err
	}
	if r.PathValue("message") != "@original" {
		return nil, errUnknownMessage
	}
	if i.Type == 6 || i.Type == 7 { // then the original is the message with the component
		m := s.messages[i.message]
		if m == nil {
			return nil, errUnknownMessage
		}
		return s.change(r, m)
	}
	var p messageParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Content != nil {
		i.Content = *p.Content
	}
	if p.Components != nil {
		i.Rows = p.Components
	}
	return map[string]any{"id": i.ID, "content": i.Content}, nil
}

func (s *Server) getAnswer(r request) (any, error) {
	i, err := s.act(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": i.ID, "content": i.Content}, nil
}

func (s *Server) deleteAnswer(r request) (any, error) {
	i, err := s.act(r)
	if err != nil {
		return nil, err
	}
	i.Deleted = true
	return nothing{}, nil
}

func (s *Server) putCommands(r request) (any, error) {
	if r.PathValue("app") != s.app {
		return nil, refuse(404, 10002, "Unknown Application")
	}
	var all []Command
	if err := r.decode(&all); err != nil {
		return nil, err
	}
	if len(all) > 100 {
		return nil, refuse(400, 30032, "Maximum number of application commands reached (100).")
	}
	for _, c := range all {
		if err := checkCommand(c); err != nil {
			return nil, err
		}
	}
	s.commands[r.PathValue("guild")] = all
	s.synced++
	return all, nil
}

func (s *Server) getCommands(r request) (any, error) {
	return orEmpty(s.commands[r.PathValue("guild")]), nil
}

// checkCommand refuses what Discord refuses of a command: see its limits of names
// and descriptions, and that required options come first.
func checkCommand(c map[string]any) error {
	name, _ := c["name"].(string)
	kind, _ := c["type"].(float64)
	description, _ := c["description"].(string)
	menu := kind == 3 || kind == 2
	if units(name) < 1 || units(name) > 32 || !menu && (strings.ToLower(name) != name || strings.ContainsAny(name, " /.")) {
		return badForm("name: " + name)
	}
	if menu != (description == "") || units(description) > 100 {
		return badForm("description of " + name)
	}
	options, _ := c["options"].([]any)
	if len(options) > 25 {
		return badForm("options of " + name)
	}
	optional := false
	for _, o := range options {
		m, ok := o.(map[string]any)
		if !ok {
			return badForm("options of " + name)
		}
		m = maps.Clone(m)
		required, _ := m["required"].(bool)
		t, _ := m["type"].(float64)
		if t > 2 && required && optional {
			return badForm("required options of " + name + " must come first")
		}
		optional = optional || t > 2 && !required
		choices, _ := m["choices"].([]any)
		complete, _ := m["autocomplete"].(bool)
		if len(choices) > 25 || complete && len(choices) > 0 {
			return badForm("choices of " + name)
		}
		m["type"] = 1.0
		if err := checkCommand(m); err != nil {
			return err
		}
	}
	return nil
}
