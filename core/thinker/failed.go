package thinker

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
)

// failed tells the people of a digest that was given up, and keeps what they
// said in the history where it can be read. An entry without a readable digest
// counts by the input ids that it carries outside its payload.
func (t *Thinker) failed(w *channel.Work, reason string) channel.Effects {
	var fx channel.Effects
	r := &chat.Reply{Kind: chat.ReplyNotice, CreatedAt: t.now(w)}
	h := sha256.New()
	fmt.Fprintln(h, w.Conversation)
	for _, e := range w.Entries {
		fmt.Fprintln(h, e.ID)
		d, ok := e.Value.(*chat.TellerDigest)
		if !ok || d == nil {
			r.InputIDs = append(r.InputIDs, e.InputIDs...)
			continue
		}
		r.InputIDs = append(r.InputIDs, inputIDs(e, d)...)
		r.ResultIDs = append(r.ResultIDs, resultIDs(d)...)
		fx.History = append(fx.History, heard(d, nil)...)
		for _, in := range d.Inputs {
			if in.Message != "" {
				r.ReplyTo = in.Message
			}
		}
	}
	var err error
	if r.Conversation, err = chat.ParseConversation(w.Conversation); err != nil {
		return fx // nowhere to say it; the dead letter tells
	}
	// The same work, given up again, is told once.
	r.ID = "r-" + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:10]))
	what := "your message"
	switch {
	case len(r.InputIDs) > 1:
		what = "your messages"
	case len(r.InputIDs) == 0 && len(r.ResultIDs) > 0:
		what = "the result of a task"
	}
	r.Text = notice(what, reason)
	fx.Publish = []channel.Publish{{To: channel.TellerReply, Value: r, InputIDs: r.InputIDs, Stage: "reply", Kind: string(r.Kind)}}
	fx.History = append(fx.History, history.Encode(chat.Line{
		ID: r.ID, Role: chat.LineAssistant, Author: chat.Author{Name: t.o.Bot, Bot: true}, Text: r.Text, At: r.CreatedAt,
	}))
	return fx
}

// notice says what happened, that nothing is lost, and what to do. Of the reason
// it gives what stands before the first cause: causes name addresses and keys,
// and are for the dead letter.
func notice(what, reason string) string {
	reason, _, _ = strings.Cut(reason, ": ")
	s := "Something went wrong on my side while I was thinking about " + what
	if reason = strings.Trim(strings.Join(strings.Fields(reason), " "), "."); reason != "" {
		s += " (" + reason + ")"
	}
	return s + ". Nothing is lost: it is kept where an admin can see it and have it run again. " +
		"You can also just ask me once more."
}
