// Package chat holds the nouns that every other package speaks: conversations,
// what people say, and what passes between the loops.
//
// It imports the standard library only. The JSON shapes here are stored in
// Redis Streams and read back by other nodes that may run an older or a newer
// build, so they are add-only: fields may be added, never renamed or reused.
package chat

import (
	"fmt"
	"net/url"
	"strings"
)

// A Conversation is one thread of talk: where it was asked is where it is
// answered. It is the unit of order (one turn at a time) and of privacy
// (history, tasks and memory never cross to another conversation).
//
// A Slack or Discord "channel" is a Place here; the word channel is kept for
// the durable road between two loops.
type Conversation struct {
	Platform  string `json:"platform"`            // "slack", "discord" or "console"
	Workspace string `json:"workspace,omitempty"` // Slack team or Discord guild; empty in a Discord DM
	Place     string `json:"place"`               // Slack or Discord channel, or the terminal's name
	Thread    string `json:"thread,omitempty"`    // root of the thread; empty when the place itself is the thread
}

// Key is the one spelling of a conversation in Redis keys, streams and logs:
// platform/workspace/place/thread with each part path-escaped, so that two
// different conversations never share a key.
func (c Conversation) Key() string {
	return url.PathEscape(c.Platform) + "/" + url.PathEscape(c.Workspace) + "/" +
		url.PathEscape(c.Place) + "/" + url.PathEscape(c.Thread)
}

// Direct reports whether only one person and the bot are in the place: a direct
// message, or a terminal. Slack's ids of direct messages begin with D (groups' do
// not); Discord's have no guild, nor do its group messages, in which bots are not.
func (c Conversation) Direct() bool {
	switch c.Platform {
	case "slack":
		return strings.HasPrefix(c.Place, "D")
	case "discord":
		return c.Workspace == ""
	}
	return c.Platform == "console"
}

// WorkspaceKey spells the workspace or guild across platforms; "" where there is
// none, as in a Discord DM.
func (c Conversation) WorkspaceKey() string {
	if c.Workspace == "" {
		return ""
	}
	return url.PathEscape(c.Platform) + "/" + url.PathEscape(c.Workspace)
}

// PlaceKey spells the place across platforms.
func (c Conversation) PlaceKey() string {
	return url.PathEscape(c.Platform) + "/" + url.PathEscape(c.Workspace) + "/" + url.PathEscape(c.Place)
}

// UserKey spells a person of the conversation's workspace across platforms; ""
// for nobody.
func (c Conversation) UserKey(id string) string {
	if id == "" {
		return ""
	}
	return url.PathEscape(c.Platform) + "/" + url.PathEscape(c.Workspace) + "/" + url.PathEscape(id)
}

// String is Key, so that a conversation logs as the words one can search for.
func (c Conversation) String() string { return c.Key() }

// ParseConversation reads a Key. It fails on anything Key cannot have written.
func ParseConversation(key string) (Conversation, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 {
		return Conversation{}, fmt.Errorf("parse conversation %q: want platform/workspace/place/thread, got %d parts", key, len(parts))
	}
	for i, p := range parts {
		s, err := url.PathUnescape(p)
		if err != nil {
			return Conversation{}, fmt.Errorf("parse conversation %q: part %d: %w", key, i+1, err)
		}
		parts[i] = s
	}
	if parts[0] == "" || parts[2] == "" {
		return Conversation{}, fmt.Errorf("parse conversation %q: platform and place must not be empty", key)
	}
	return Conversation{Platform: parts[0], Workspace: parts[1], Place: parts[2], Thread: parts[3]}, nil
}
