package main

import (
	"context"
	"errors"

	"mimikit/core/admin"
	"mimikit/core/chat"
)

// A door lets people of one platform give commands.
type door struct {
	app    *App
	name   string
	prefix string // of a command in a message: what a person types there
	// operators is the prefix of commands that are not for everybody, where it is
	// another.
	operators string
}

// answer is what a command came to, for any platform.
type answer struct {
	text    string // Markdown
	buttons []chat.Button
	note    string // for all who see the buttons that were pressed, in their place
}

// run carries out a command. Its error means that it could not be done now;
// what the caller may not, or got wrong, is in the answer. private says that
// nobody else reads it.
func (d *door) run(ctx context.Context, who chat.Author, in chat.Conversation, private bool, prefix string, words []string) (answer, error) {
	if why, err := d.app.access.turnsAway(ctx, in, who.ID, d.app.groups); why != "" || err != nil {
		return answer{text: why}, err
	}
	if why := d.app.rate().command(ctx, in.Platform, who.ID, words); why != "" {
		return answer{text: why}, nil
	}
	c := admin.Caller{Author: who, Conversation: in, Door: d.name, Prefix: prefix, Private: private}
	if prefix == d.prefix {
		c.Operators = d.operators
	}
	a, err := d.app.set.Run(ctx, c, words)
	var r *admin.Refusal
	if errors.As(err, &r) {
		return answer{text: admin.Say(err)}, nil
	}
	return answer{text: a.Markdown(), buttons: a.Buttons}, err
}

// parse takes the words of a command out of what was said. direct says that it
// was said to the bot by name, or in a direct message.
func (d *door) parse(text string, direct bool) (words []string, ok bool) {
	if words, ok = d.app.set.IsCommand(text); ok || !direct {
		return words, ok
	}
	return d.app.set.IsAddressed(text)
}

// staleButton is said when a button is pressed that this build does not know.
const staleButton = "This button is of no use any more."

// press does what a button stands for.
func (d *door) press(ctx context.Context, who chat.Author, in chat.Conversation, value string) (answer, error) {
	if why, err := d.app.access.turnsAway(ctx, in, who.ID, d.app.groups); why != "" || err != nil {
		return answer{text: why}, err
	}
	if said, note, known, err := d.app.pressed(ctx, who, in, value); known || err != nil {
		return answer{text: said, note: note}, err
	}
	words, ok := admin.ButtonWords(value)
	if !ok {
		return answer{text: staleButton}, nil
	}
	return d.run(ctx, who, in, true, d.prefix, words)
}
