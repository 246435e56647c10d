package discord

import (
	"context"

	"github.com/bwmarrin/discordgo"
)

// complete offers what may stand where somebody types.
func (d *Bot) complete(ctx context.Context, i *interaction) {
	short, cancel := context.WithTimeout(ctx, ackTime*4/5)
	var choices []*discordgo.ApplicationCommandOptionChoice
	if command, o, ok := i.focused(); ok && d.o.Commands != nil {
		who, err := d.caller(short, i)
		var all []Choice
		if err == nil && d.o.Refuse(i.person(), who.Conversation) == "" {
			all, err = d.o.Commands.Complete(short, who, command, o.Name, o.text())
		}
		if err != nil {
			d.o.Logger.Info("discord_autocomplete_failed", "error", err)
		}
		for _, c := range all {
			if len(choices) == 25 {
				break
			}
			if c.Value == "" || units(c.Value) > 100 {
				continue // it could not be sent back whole
			}
			label := c.Label
			if label == "" {
				label = c.Value
			}
			choices = append(choices, &discordgo.ApplicationCommandOptionChoice{Name: cutUnits(label, 100), Value: c.Value})
		}
	}
	cancel()
	ctx, cancel = context.WithTimeout(ctx, ackTime)
	defer cancel()
	if err := d.callback(ctx, i, offered(choices)); err != nil {
		d.o.Logger.Info("discord_autocomplete_not_shown", "error", err)
	}
}

// offered is the answer to who types. discordgo's type leaves an empty list out,
// and Discord wants it.
func offered(choices []*discordgo.ApplicationCommandOptionChoice) any {
	if choices == nil {
		choices = []*discordgo.ApplicationCommandOptionChoice{}
	}
	return map[string]any{"type": discordgo.InteractionApplicationCommandAutocompleteResult, "data": map[string]any{"choices": choices}}
}
