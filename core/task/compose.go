package task

import (
	"mimikit/core/channel"
	"mimikit/core/chat"
)

// Keys are the keys of a partition's tasks, as the first keys of every [channel.Call]
// of an [Issuer]. A script of another package that makes or watches tasks declares
// them, and calls the extension that [Extensions] gives.
func Keys(k channel.Keys, p int) []string { return fixed(k, p) }

// Signals is the pub/sub channel of the tasks, which such a script hands on.
func Signals(k channel.Keys) string { return signals(k) }

// Requester spells who asked, in the words of an index.
func Requester(platform, workspace, author string) string {
	return requesterWord(chat.Conversation{Platform: platform, Workspace: workspace}, author)
}
