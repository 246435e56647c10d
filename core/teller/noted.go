package teller

import (
	"errors"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
)

// maxNoted bounds the text of one piece of feedback, in bytes.
const maxNoted = 4 << 10

// noted files that the teller made do without a model's answer, for whoever runs
// the bot; nothing when failed is nil. People hear of a spent budget from the
// thinker, which files it too.
func (t *Teller) noted(w *channel.Work, what string, failed error) []channel.Publish {
	var spent *llm.BudgetError
	if failed == nil || errors.As(failed, &spent) {
		return nil
	}
	conv, err := chat.ParseConversation(w.Conversation)
	if err != nil {
		return nil
	}
	return []channel.Publish{{To: channel.Feedback, Kind: string(chat.FeedbackTellerError), Value: &chat.Feedback{
		Kind: chat.FeedbackTellerError, Conversation: conv, Category: "bug", Severity: "low",
		Message: history.Cut(what+": "+failed.Error(), maxNoted), TraceID: trace(w), At: t.now(w),
	}}}
}
