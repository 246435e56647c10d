package teller

import (
	"strings"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
)

// failed tells the people of a turn that was given up. Its entries are in the
// dead letters by then; what they said goes into the history where it can be
// read, so that the next turn knows of it. Work that nobody waits for, remarks
// overheard and messages taken back, is given up in silence.
func (t *Teller) failed(w *channel.Work, reason string) channel.Effects {
	var fx channel.Effects
	x := pending(w.Entries)
	for _, l := range x.lines {
		l.Text = history.Cut(l.Text, maxStopped/len(x.lines))
		fx.History = append(fx.History, history.Encode(l))
	}
	conv, err := chat.ParseConversation(w.Conversation)
	if x.silent || err != nil {
		return fx
	}
	what := "your message"
	switch {
	case x.messages > 1 || len(x.ids) > 1:
		what = "your messages"
	case len(x.ids) == 0 && len(x.resultIDs) > 0:
		what = "the result of a task"
	}
	r := &chat.Reply{
		ID: name("r-", w), Conversation: conv, Kind: chat.ReplyNotice, Text: notice(what, reason),
		InputIDs: x.ids, ResultIDs: x.resultIDs, ReplyTo: x.replyTo, CreatedAt: t.now(w),
	}
	fx.Publish = []channel.Publish{post(r)}
	fx.History = append(fx.History, t.said(r, ""))
	return fx
}

// notice says what happened, that nothing is lost, and what to do. Of the reason
// it gives what stands before the first cause: causes name addresses and keys,
// and are for the dead letter.
func notice(what, reason string) string {
	reason, _, _ = strings.Cut(reason, ": ")
	s := "Something went wrong on my side, and I could not deal with " + what
	if reason = strings.Trim(strings.Join(strings.Fields(reason), " "), "."); reason != "" {
		s += " (" + reason + ")"
	}
	return s + ". Nothing is lost: it is kept where an admin can see it and have it run again. " +
		"You can also just ask me once more."
}
