package main

import (
	"strings"
	"testing"

	"mimikit/adapters/discord"
	"mimikit/core/admin"
	"mimikit/core/chat"
)

// Discord registers the commands of operators under a name of their own, by which
// answers name them; in a message all begin alike.
func TestDiscordNamesCommandsAsTheyAre(t *testing.T) {
	t.Parallel()
	a := &App{}
	var err error
	if a.set, err = admin.New(admin.Options{Tasks: shelf{}, Channels: struct{ admin.Channels }{}, Audit: struct{ admin.Audit }{}}); err != nil {
		t.Fatal(err)
	}
	p, err := discordDoorOf(a).Run(t.Context(), discord.Caller{Author: chat.Author{ID: "1", Role: chat.RoleAdmin}}, []string{"help"})
	if err != nil || !strings.Contains(p.Text, "`/mimikit tasks") || !strings.Contains(p.Text, "`/mimikit-admin audit") {
		t.Errorf("help says %q, %v", p.Text, err)
	}
	p, err = discordDoorOf(a).Run(t.Context(), discord.Caller{Author: chat.Author{ID: "1", Role: chat.RoleAdmin}, Message: "2"}, []string{"help"})
	if err != nil || !strings.Contains(p.Text, "`!audit") {
		t.Errorf("help in a message says %q, %v", p.Text, err)
	}
}
