package slack

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// understand makes a message of a sighting, with all that must be looked up for
// it. Looking up is bounded: what is not there in time is left out, and rights
// that could not be verified are not had.
func (l *Listener) understand(ctx context.Context, s *sighting, event string) adapters.Message {
	ctx, cancel := context.WithTimeout(ctx, l.b.o.Reading)
	defer cancel()
	if event == "app_mention" && len(s.said.RawFiles) == 0 {
		l.whole(ctx, s) // Slack leaves the files out of a mention
	}
	at, _ := stampTime(s.said.TS)
	m := adapters.Message{
		Conversation: s.conversation(), Kind: chat.KindMessage, Message: s.said.TS, At: at, Addressed: true,
		Author: l.authorOf(ctx, s),
		Text:   words(s.said.Text, s.me.UserID, l.b.people.namer(ctx)),
	}
	switch s.change {
	case isDelete:
		m.Kind, m.Addressed, m.Text = chat.KindDelete, false, ""
		if t, ok := stampTime(s.said.EventTS); ok {
			m.At = t
		}
		return m
	case isEdit:
		m.Kind, m.Edit = chat.KindEdit, s.said.Edited.TS
		if t, ok := stampTime(m.Edit); ok {
			m.At = t
		}
		m.Addressed = s.newly && !s.direct() && !s.joined
	}
	m.Attachments = l.b.Files.attachments(ctx, s.said)
	m.Attachments = append(m.Attachments, quoted(s.said, func(t string) string { return words(t, "", l.b.people.namer(ctx)) })...)
	if s.inThread() && !s.read && (s.change == isNew || m.Addressed) {
		a, ok := l.earlier(ctx, s)
		s.read = ok
		if a.Text != "" {
			m.Attachments = append(m.Attachments, a)
		}
	}
	return m
}

func (l *Listener) authorOf(ctx context.Context, s *sighting) chat.Author {
	if s.said.BotID != "" {
		return chat.Author{ID: s.said.BotID, Name: s.said.Username, Role: chat.RoleUser, Bot: true}
	}
	return l.b.people.author(ctx, s.said.User)
}

// whole replaces what a mention tells by the message itself, if it is there in
// time.
func (l *Listener) whole(ctx context.Context, s *sighting) {
	x := extract{place: s.said.Channel, oldest: s.said.TS, latest: s.said.TS, limit: 1}
	if s.inThread() {
		x.thread, x.limit = s.said.ThreadTS, 2 // the root comes first
	}
	list, _, err := l.b.api.messages(ctx, x, "", Final)
	if err != nil {
		l.b.o.Logger.Debug("slack_message_not_read", "place", x.place, "message", s.said.TS, "error", err)
		return
	}
	for _, p := range list {
		if p.TS == s.said.TS {
			s.said.RawFiles, s.said.RawAttachments = p.RawFiles, p.RawAttachments
		}
	}
}

// Bounds of what is read of a thread when we are first mentioned in it.
const (
	earlierPages = 3        // of 200 messages
	earlierLines = 60       // the newest ones; the root is always kept
	earlierBytes = 12 << 10 // of them
	earlierLine  = 2 << 10  // of one
)

// earlier reads what was said in a thread before a message, each line with who
// said it. It goes along as an attachment: what bystanders said is no request.
func (l *Listener) earlier(ctx context.Context, s *sighting) (chat.Attachment, bool) {
	var lines []string
	var cursor string
	left := false
	name := l.b.people.namer(ctx)
	for range earlierPages {
		list, next, err := l.b.api.messages(ctx, extract{place: s.said.Channel, thread: s.said.ThreadTS, latest: s.said.TS, limit: 200}, cursor, Final)
		if err != nil {
			l.b.o.Logger.Debug("slack_thread_not_read", "place", s.said.Channel, "thread", s.said.ThreadTS, "error", err)
			return chat.Attachment{}, false
		}
		for _, p := range list {
			if p.TS == s.said.TS || !talk[p.Subtype] || !after(s.said.TS, p.TS) {
				continue
			}
			if line := l.line(p, s.me, name); line != "" {
				lines = append(lines, line)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
		left = true
	}
	if cursor == "" {
		left = false
	}
	if len(lines) == 0 {
		return chat.Attachment{}, true // nothing was said before
	}
	text := newest(lines, left)
	return chat.Attachment{
		ID: s.said.ThreadTS + "/earlier", Name: "earlier messages of this thread", MediaType: "text/plain", Size: int64(len(text)), Text: text,
	}, true
}

func (l *Listener) line(p post, me Identity, name func(string) string) string {
	at, ok := stampTime(p.TS)
	if !ok {
		return ""
	}
	who := name(p.User)
	switch {
	case p.User == me.UserID || p.BotID == me.BotID && p.BotID != "":
		who = l.b.o.Name + " (you)"
	case who == "" && p.Username != "":
		who = p.Username
	case who == "":
		who = p.User + p.BotID
	}
	text := words(p.Text, "", name)
	for _, f := range p.files() {
		text += " [file " + f.Name + "]"
	}
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	text = strings.ReplaceAll(shorten(text, earlierLine), "\n", "\n    ")
	return fmt.Sprintf("[%s] %s: %s", at.Format("2006-01-02 15:04"), strings.Join(strings.Fields(who), " "), text)
}

// newest keeps the first line and as many of the last ones as there is room for.
// more tells that there were later ones which were not read.
func newest(lines []string, more bool) string {
	room := earlierBytes - len(lines[0])
	from := len(lines)
	for from > 1 && len(lines)-from < earlierLines && room-len(lines[from-1]) > 0 {
		from--
		room -= len(lines[from]) + 1
	}
	kept := append([]string{lines[0]}, lines[from:]...)
	if from > 1 {
		kept = append([]string{lines[0], fmt.Sprintf("[… %d messages left out …]", from-1)}, lines[from:]...)
	}
	if more {
		kept = append(kept, "[… later messages left out …]")
	}
	return strings.Join(kept, "\n")
}

// stops are the messages that only want the running turn to end.
var stops = map[string]bool{
	"stop": true, "!stop": true, "/stop": true, "stop!": true, "stop.": true, "stop it": true, "please stop": true, "stop please": true,
}

// freshStop is how old a wish to stop may be: a later one, read after an outage,
// would end something else than what it meant.
const freshStop = time.Minute

func (l *Listener) wantsStop(m adapters.Message) bool {
	return m.Kind == chat.KindMessage && m.Addressed && !m.Author.Bot && stops[strings.ToLower(m.Text)] && len(m.Attachments) == 0 &&
		l.b.o.Now().Sub(m.At) < freshStop
}
