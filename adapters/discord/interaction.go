package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// An interaction is what somebody did with a command or a component.
type interaction struct {
	ID        snowflake    `json:"id"`
	Type      int          `json:"type"`
	Token     string       `json:"token"`
	GuildID   snowflake    `json:"guild_id"`
	ChannelID snowflake    `json:"channel_id"`
	Channel   *channelInfo `json:"channel"`
	Member    *memberInfo  `json:"member"`
	User      *user        `json:"user"`
	Message   *message     `json:"message"`
	Data      struct {
		Name     string    `json:"name"`
		Type     int       `json:"type"`
		Options  []option  `json:"options"`
		TargetID snowflake `json:"target_id"`
		CustomID string    `json:"custom_id"`
		Values   []string  `json:"values"`
		Resolved struct {
			Messages map[string]*message `json:"messages"`
		} `json:"resolved"`
	} `json:"data"`
}

type option struct {
	Name    string   `json:"name"`
	Type    int      `json:"type"`
	Value   any      `json:"value"`
	Focused bool     `json:"focused"`
	Options []option `json:"options"`
}

func (o option) text() string {
	switch v := o.Value.(type) {
	case string:
		return v
	case float64:
		return fmt.Sprintf("%.0f", v)
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

// words are a slash command as if it had been written, each option one word or
// several, in the order in which the commands have them: people fill them in as they
// like.
func (i *interaction) words(commands []Command) []string {
	var out []string
	for options := i.Data.Options; len(options) > 0 && len(out) < 50; {
		var next []option
		for _, o := range options {
			if o.Type == int(discordgo.ApplicationCommandOptionSubCommand) || o.Type == int(discordgo.ApplicationCommandOptionSubCommandGroup) {
				out, next = append(out, o.Name), slices.Clone(o.Options)
				at := slices.IndexFunc(commands, func(c Command) bool { return c.Name == o.Name })
				if at >= 0 {
					place := func(o option) int {
						return slices.IndexFunc(commands[at].Args, func(a Arg) bool { return a.Name == o.Name })
					}
					slices.SortStableFunc(next, func(a, b option) int { return place(a) - place(b) })
				}
				break
			}
			out = append(out, strings.Fields(o.text())...)
		}
		options = next
	}
	return out
}

// focused is the option that is being typed, and the subcommand that it is of.
func (i *interaction) focused() (command string, o option, ok bool) {
	options := i.Data.Options
	for range 4 {
		var next []option
		for _, o := range options {
			switch {
			case o.Focused:
				return command, o, true
			case len(o.Options) > 0:
				command, next = o.Name, o.Options
			}
		}
		options = next
	}
	return "", option{}, false
}

func (i *interaction) person() Person {
	p := Person{Guild: string(i.GuildID)}
	var u user
	nick := ""
	switch {
	case i.Member != nil:
		u, nick = i.Member.User, i.Member.Nick
		p.Roles, p.Admin = i.Member.roles(), permissions(i.Member.Permissions)&admins != 0
	case i.User != nil:
		u = *i.User
	}
	p.ID, p.Name, p.Bot = string(u.ID), u.name(nick), u.Bot
	return p
}

// talk is the conversation in which an interaction was made. about is the message
// that it is about, if any.
func (d *Bot) talk(ctx context.Context, i *interaction, about *message) (chat.Conversation, error) {
	c := chat.Conversation{Platform: Platform, Workspace: string(i.GuildID), Place: string(i.ChannelID)}
	if i.GuildID == "" {
		return c, nil
	}
	keys := []string{string(i.ChannelID)}
	if about != nil {
		keys = append(keys, string(about.ID))
		if about.Reference != nil {
			keys = append(keys, string(about.Reference.MessageID))
		}
	}
	for _, key := range keys {
		if key == "" {
			continue
		}
		found, _, ok, err := d.talks.find(ctx, key)
		if err != nil {
			return c, err
		}
		if ok {
			return found, nil
		}
	}
	if i.Channel != nil && i.Channel.thread() && i.Channel.ParentID != "" {
		c.Place, c.Thread = string(i.Channel.ParentID), string(i.ChannelID)
	}
	return c, nil
}

// interact takes up an interaction. What must not be lost is stored before it
// returns; the rest goes on beside.
func (d *Bot) interact(ctx context.Context, inbox adapters.Inbox, data []byte) (Outcome, error) {
	var i interaction
	if err := json.Unmarshal(data, &i); err != nil {
		return Unreadable, fmt.Errorf("%w: an interaction: %w", errUndecodable, err)
	}
	if i.ID == "" || i.Token == "" || strings.ContainsAny(i.Token, "/?#%\\ ") || i.ChannelID == "" || i.person().ID == "" {
		return Unreadable, fmt.Errorf("%w: an interaction without an id, a token, a channel or a person", errUndecodable)
	}
	if !d.acts.first(string(i.ID)) {
		return Known, nil
	}
	switch discordgo.InteractionType(i.Type) {
	case discordgo.InteractionApplicationCommand:
		if i.Data.Type == int(discordgo.MessageApplicationCommand) {
			o, err := d.ask(ctx, inbox, &i)
			if err != nil {
				d.acts.forget(string(i.ID))
			}
			return o, err
		}
		return d.beside(&i, d.slash), nil
	case discordgo.InteractionMessageComponent:
		return d.beside(&i, d.press), nil
	case discordgo.InteractionApplicationCommandAutocomplete:
		return d.beside(&i, d.complete), nil
	}
	return Ignored, ignored("an interaction of type %d", i.Type)
}

func (d *Bot) caller(ctx context.Context, i *interaction) (Caller, error) {
	p := i.person()
	c, err := d.talk(ctx, i, i.Message)
	who := Caller{
		ID: string(i.ID), Conversation: c, At: TimeOf(string(i.ID)),
		Author: chat.Author{ID: p.ID, Name: p.Name, Role: d.o.Role(p), Bot: p.Bot},
	}
	if i.Message != nil {
		who.Message = string(i.Message.ID)
	}
	return who, err
}

// slash carries out a slash command.
func (d *Bot) slash(ctx context.Context, i *interaction) {
	if !d.acknowledge(ctx, i, deferred(discordgo.InteractionResponseDeferredChannelMessageWithSource)) {
		return
	}
	who, err := d.caller(ctx, i)
	var a Answer
	if err == nil {
		a, err = d.perform(i.person(), who, func() (Answer, error) { return d.o.Commands.Run(ctx, who, i.words(d.o.Commands.List())) })
	}
	d.tell(ctx, i, d.outcome(string(i.ID), a, err), true)
}

// perform does what a person asks for, unless they may not be answered.
func (d *Bot) perform(p Person, who Caller, do func() (Answer, error)) (Answer, error) {
	if d.o.Commands == nil {
		return Answer{Text: "I know no commands here."}, nil
	}
	if why := d.o.Refuse(p, who.Conversation); why != "" {
		return Answer{Text: "⚠️ " + why}, nil
	}
	return do()
}

// press acts on a button, or on the choice in a select.
func (d *Bot) press(ctx context.Context, i *interaction) {
	if !d.acknowledge(ctx, i, deferred(discordgo.InteractionResponseDeferredMessageUpdate)) {
		return
	}
	value, ours := i.pressed()
	who, err := d.caller(ctx, i)
	var a Answer
	switch {
	case err != nil:
	case !ours:
		a.Text = "⚠️ This button is none of mine."
	default:
		a, err = d.perform(i.person(), who, func() (Answer, error) { return d.o.Commands.Press(ctx, who, value) })
	}
	if err == nil && a.Note != "" && i.Message != nil {
		d.settle(ctx, i, a.Note)
	}
	if err != nil || strings.TrimSpace(a.Text) != "" || len(a.Buttons) > 0 {
		d.tell(ctx, i, d.outcome(string(i.ID), a, err), false)
	}
}

// pressed is the value of a button, or of the choice in a select.
func (i *interaction) pressed() (value string, ours bool) {
	if i.Data.CustomID != selectID {
		return strings.CutPrefix(i.Data.CustomID, customMark)
	}
	if len(i.Data.Values) != 1 {
		return "", false
	}
	return i.Data.Values[0], true
}

// settle writes below the message whose button was pressed what was done, and
// takes the buttons away.
func (d *Bot) settle(ctx context.Context, i *interaction, what string) {
	note := cutUnits(strings.Join(renderParts(what), " "), 400)
	text := cutUnits(i.Message.Content, maxUnits-units(note)-2) + "\n\n" + note
	d.answer(ctx, i, "PATCH", "/messages/@original", outMessage{Content: text, Components: &[]discordgo.MessageComponent{}})
}
