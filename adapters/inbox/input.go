package inbox

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// MaxMessage bounds the bytes of a text that is taken (512 KiB). What is longer
// belongs into a file.
const MaxMessage = 512 << 10

// Bounds on what comes with a text, in bytes and numbers. No platform that we
// know reaches them; they keep an entry bounded whatever comes.
const (
	maxAttachments = 25
	maxName        = 255
	maxURL         = 1024
)

// deleted is the edit stamp of a removed message.
const deleted = "deleted"

// input makes an input of a message, without its id. whole is the text in full
// when it had to be cut, else "".
func input(m adapters.Message) (in chat.UserInput, whole string, refusal *Refusal) {
	if m.Kind == chat.KindDelete && m.Edit == "" {
		m.Edit = deleted
	}
	if missing := incomplete(m); missing != "" {
		return in, "", refuse(Invalid, fmt.Errorf("%w: it has no %s", ErrInvalid, missing),
			"I could not make sense of this message, so I did not take it. This is a fault of mine, not yours.")
	}
	if len(m.Text) > MaxMessage {
		return in, "", refuse(TooLong, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrTooLong, len(m.Text), MaxMessage),
			"This message has %d KiB; I can take at most %d. Please send it in pieces or as a file.", (len(m.Text)+1023)>>10, MaxMessage>>10)
	}
	in = chat.UserInput{
		Conversation: m.Conversation,
		Kind:         m.Kind,
		Message:      m.Message,
		Edit:         m.Edit,
		ReplyTo:      m.ReplyTo,
		Author:       m.Author,
		Text:         clean(m.Text),
		Addressed:    m.Addressed,
		Question:     m.Question,
		Option:       cut(clean(m.Option), maxName),
		At:           m.At.UTC(),
	}
	if in.Kind == "" {
		in.Kind = chat.KindMessage
	}
	in.Author.Name = oneLine(m.Author.Name)
	if saysNothing(in, m) {
		return in, "", refuse(Empty, ErrEmpty, "This message has no text that I can read, so I did not take it.")
	}
	if len(in.Text) > chat.MaxText {
		whole = in.Text
		in.Text, in.TextSize = cut(whole, chat.MaxText), len(whole)
	}
	in.Attachments = attachments(m.Attachments, chat.MaxText-len(in.Text))
	return in, whole, nil
}

// incomplete names what a message lacks of what makes it one; "" is nothing.
func incomplete(m adapters.Message) string {
	switch {
	case m.Conversation.Platform == "":
		return "platform"
	case m.Conversation.Place == "":
		return "place"
	case m.Message == "":
		return "message id"
	case m.At.IsZero():
		return "time"
	case m.Kind == chat.KindEdit && m.Edit == "":
		return "edit stamp" // without one it would be taken for the message that it changes
	}
	return ""
}

// saysNothing reports whether an input has nothing to answer. A removal and a
// stop need no text, an answer may be a button, and a file may come alone.
func saysNothing(in chat.UserInput, m adapters.Message) bool {
	switch in.Kind {
	case chat.KindDelete, chat.KindStop:
		return false
	case chat.KindAnswer:
		if in.Option != "" {
			return false
		}
	}
	return strings.TrimSpace(in.Text) == "" && len(m.Attachments) == 0
}

// attachments makes what came with a message safe and short. Their texts share
// the room that the message's text leaves.
func attachments(all []chat.Attachment, room int) []chat.Attachment {
	var out []chat.Attachment
	for _, a := range all[:min(len(all), maxAttachments)] {
		a.ID, a.Name, a.MediaType = cut(clean(a.ID), maxName), oneLine(a.Name), oneLine(a.MediaType)
		if a.URL = clean(a.URL); len(a.URL) > maxURL {
			a.URL = "" // half a link leads nowhere
		}
		a.Text = cut(clean(a.Text), room)
		room -= len(a.Text)
		out = append(out, a)
	}
	return out
}

// clean makes a text valid UTF-8, each run of bytes that is not becoming one
// U+FFFD; makes every line end a \n; and removes all other control characters
// but the tab, since they are never what was said and may move a cursor, end a
// string or hide a line wherever the text is shown. Marks of direction stay:
// some languages need them, and prompts fence what people write anyhow.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u0085':
			return '\n'
		case r < ' ' || r >= 0x7F && r < 0xA0:
			return -1
		}
		return r
	}, s)
}

// oneLine is clean for a name.
func oneLine(s string) string {
	return cut(strings.Join(strings.Fields(clean(s)), " "), maxName)
}

// cut takes at most most bytes of a text and never half a rune.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
