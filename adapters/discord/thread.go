package discord

import (
	"context"
	"strings"
	"unicode"

	"github.com/bwmarrin/discordgo"

	"mimikit/core/chat"
)

// archiveAfter is when Discord puts a thread away in which nothing is said, in
// minutes. A post brings it back.
const archiveAfter = 1440

// openThread makes the thread of a conversation, which is that of the message with
// the thread's id. about is what the message says, if it is known.
func (d *Bot) openThread(ctx context.Context, c chat.Conversation, about string) error {
	if about == "" {
		var m message
		path := "/channels/" + c.Place + "/messages/"
		if err := d.api.do(ctx, request{method: "GET", path: path + c.Thread, route: "GET " + path + "{message}"}, &m); err == nil {
			about = m.Content
		}
	}
	path := "/channels/" + c.Place + "/messages/" + c.Thread + "/threads"
	body := map[string]any{"name": threadName(about), "auto_archive_duration": archiveAfter}
	var made channelInfo
	err := d.api.do(ctx, request{method: "POST", path: path, route: "POST /channels/" + c.Place + "/messages/threads", body: body}, &made)
	if err == nil {
		d.places.put(made)
	}
	return err
}

// wakeThread brings a thread back that Discord has put away.
func (d *Bot) wakeThread(ctx context.Context, id string) error {
	return d.api.do(ctx, request{method: "PATCH", path: "/channels/" + id, route: "PATCH /channels/" + id, body: map[string]any{"archived": false}}, nil)
}

// openIfMissing is openThread for whoever only wants it to be there.
func (d *Bot) openIfMissing(ctx context.Context, c chat.Conversation, about string) {
	err := d.openThread(ctx, c, about)
	if err != nil && codeOf(err) != discordgo.ErrCodeThreadAlreadyCreatedForThisMessage {
		d.o.Logger.Info("discord_thread_not_opened", "conversation", c.Key(), "error", explain(err))
	}
}

// threadName is a short name for a thread about something.
func threadName(about string) string {
	about = marks.ReplaceAllString(about, " ")
	about = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune("*_`~|>#", r) {
			return ' '
		}
		return r
	}, about)
	if about = strings.Join(strings.Fields(about), " "); about == "" {
		return "Conversation"
	}
	return cutUnits(about, 80)
}
