package discord

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// errIgnored is matched by the reasons not to take a message.
var errIgnored = errors.New("not for the bot")

func ignored(format string, a ...any) error {
	return fmt.Errorf("%w: %s", errIgnored, fmt.Sprintf(format, a...))
}

// A scene is a message and what is found out about it.
type scene struct {
	m    *message
	edit bool
	bot  string // the bot's user id
	app  string

	talk    chat.Conversation
	person  Person
	joins   bool // it makes the bot take part in a thread or a chain
	unread  bool // the bot does not know what was said in this thread before
	chain   bool // it is told apart by its own id: see talks
	mention bool
}

// guards are the reasons not to take a message, the cheap ones first.
var guards = []func(ctx context.Context, d *Bot, s *scene) error{
	notOwn,
	notSystem,
	notWebhook,
	notBot,
	notTouched,
	notEmpty,
	forUs,
	notRefused,
}

func notOwn(ctx context.Context, d *Bot, s *scene) error {
	if string(s.m.Author.ID) == s.bot {
		if !s.edit {
			d.noteDown(ctx, string(s.m.ID), s.m.nonce())
		}
		d.typing.stop(string(s.m.ChannelID), false) // whichever node has answered
		return ignored("it is the bot's own")
	}
	return nil
}

func notSystem(_ context.Context, _ *Bot, s *scene) error {
	switch {
	case s.m.Author.System:
		return ignored("Discord itself says it")
	case !spoken(s.m.Type):
		return ignored("it tells of something that happened (type %d)", s.m.Type)
	}
	return nil
}

func notWebhook(_ context.Context, _ *Bot, s *scene) error {
	if s.m.WebhookID != "" {
		return ignored("a webhook says it")
	}
	return nil
}

func notBot(_ context.Context, d *Bot, s *scene) error {
	switch {
	case s.m.Author.ID == "":
		return ignored("nobody says it")
	case s.m.Author.Bot && !d.o.AllowBot(string(s.m.Author.ID)):
		return ignored("another bot says it")
	}
	return nil
}

// notTouched leaves out updates that are no edits: a link's preview, a thread that
// was opened, a pin.
func notTouched(_ context.Context, _ *Bot, s *scene) error {
	if s.edit && s.m.editedAt() == "" {
		return ignored("its text was not changed")
	}
	return nil
}

func notEmpty(_ context.Context, _ *Bot, s *scene) error {
	if s.m.Content == "" && len(s.m.Attachments) == 0 && len(s.m.Snapshots) == 0 {
		return ignored("it has no text that the bot may see")
	}
	return nil
}

// forUs finds the conversation of a message that is for the bot.
func forUs(ctx context.Context, d *Bot, s *scene) error {
	m := s.m
	s.person = Person{ID: string(m.Author.ID), Name: m.Author.name(m.nick()), Bot: m.Author.Bot, Guild: string(m.GuildID)}
	if m.Member != nil {
		s.person.Roles = m.Member.roles()
	}
	s.mention = m.mentions(s.bot)
	if m.GuildID == "" {
		s.talk = chat.Conversation{Platform: Platform, Place: string(m.ChannelID)}
		return nil
	}
	if m.ChannelType == nil || isThread(*m.ChannelType) {
		talk, read, taking, err := d.talks.find(ctx, string(m.ChannelID))
		if err != nil {
			return err
		}
		if taking {
			s.talk, s.unread = talk, !read
			return nil
		}
	}
	replied := m.Referenced != nil && string(m.Referenced.Author.ID) == s.bot && m.Reference != nil && m.Reference.Type == 0
	known, ok := d.places.get(string(m.ChannelID))
	own := ok && known.thread() && string(known.OwnerID) == s.bot
	if !s.mention && !replied && !own {
		return ignored("it neither mentions the bot nor answers it, and the bot takes no part in it")
	}
	info, err := d.placeOf(ctx, m)
	var refused *apiError
	switch {
	case errors.As(err, &refused) && refused.Status != 429 && refused.Status < 500:
		return ignored("its channel is closed to the bot: %v", err)
	case err != nil:
		return fmt.Errorf("look up channel %s: %w", m.ChannelID, err)
	case info.thread():
		s.talk = chat.Conversation{Platform: Platform, Workspace: string(m.GuildID), Place: string(info.ParentID), Thread: string(m.ChannelID)}
		s.joins, s.unread = true, true
		return nil
	}
	return d.inPlace(ctx, s, info)
}

// inPlace finds the conversation of a mention, or of an answer to the bot, that
// stands in a place and not in a thread.
func (d *Bot) inPlace(ctx context.Context, s *scene, info channelInfo) error {
	m := s.m
	before := []string{string(m.ID)}
	if m.Reference != nil && m.Reference.Type == 0 {
		before = append(before, string(m.Reference.MessageID))
		if m.Referenced != nil && m.Referenced.Reference != nil {
			before = append(before, string(m.Referenced.Reference.MessageID))
		}
	}
	for i, id := range before {
		if id == "" {
			continue
		}
		talk, _, ok, err := d.talks.find(ctx, id)
		switch {
		case err != nil:
			return err
		case ok && talk.Place == string(m.ChannelID):
			s.talk, s.chain = talk, i > 0
			return nil
		}
	}
	switch {
	case d.o.Mode == Off:
		return ignored("mentions in places are switched off")
	case d.o.Mode == OpenThread && info.canOpen():
		s.talk = chat.Conversation{Platform: Platform, Workspace: string(m.GuildID), Place: string(m.ChannelID), Thread: string(m.ID)}
	default:
		s.talk = chat.Conversation{Platform: Platform, Workspace: string(m.GuildID), Place: string(m.ChannelID), Thread: chainMark + string(m.ID)}
	}
	s.chain, s.joins = true, true
	return nil
}

// chainMark begins the thread of a conversation that is a chain of replies in a
// place, named after its first message.
const chainMark = "re-"

func notRefused(ctx context.Context, d *Bot, s *scene) error {
	s.person.Admin = d.runs(ctx, s.person)
	if why := d.o.Refuse(s.person, s.talk); why != "" {
		return ignored("%s", why)
	}
	return nil
}

// hear makes of a message what the inbox takes, or says why not.
func (d *Bot) hear(ctx context.Context, m *message, edit bool) (*scene, adapters.Message, error) {
	id, app, err := d.who(ctx)
	if err != nil {
		return nil, adapters.Message{}, err
	}
	s := &scene{m: m, edit: edit, bot: id, app: app}
	for _, g := range guards {
		if err := g(ctx, d, s); err != nil {
			return nil, adapters.Message{}, err
		}
	}
	if s.chain {
		if err := d.talks.keep(ctx, string(m.ID), s.talk, true); err != nil {
			return nil, adapters.Message{}, err
		}
	}
	out := adapters.Message{
		Conversation: s.talk, Kind: chat.KindMessage, Message: string(m.ID),
		Author:    chat.Author{ID: s.person.ID, Name: s.person.Name, Role: d.o.Role(s.person), Bot: s.person.Bot},
		Text:      plainText(m, s.bot),
		Addressed: !edit || s.joins,
		At:        TimeOf(string(m.ID)),
	}
	if m.Reference != nil && m.Reference.Type == 0 {
		out.ReplyTo = string(m.Reference.MessageID)
	}
	if edit {
		out.Kind, out.Edit = chat.KindEdit, m.editedAt()
		if at, err := time.Parse(time.RFC3339Nano, *m.Edited); err == nil {
			out.At = at.UTC()
		}
	} else if isStop(out.Text) {
		out.Kind = chat.KindStop
	}
	out.Attachments = d.attachments(ctx, s)
	if s.joins && !s.chain {
		if err := d.talks.keep(ctx, string(m.ChannelID), s.talk, false); err != nil {
			return nil, adapters.Message{}, err
		}
	}
	return s, out, nil
}

// gone makes of a removed message what the inbox takes. Only its id is known, so
// whether it was ever heard is for whoever has its history to know.
func (d *Bot) gone(ctx context.Context, r removal, id string) (adapters.Message, error) {
	out := adapters.Message{Kind: chat.KindDelete, Message: id, At: TimeOf(id)}
	if r.GuildID == "" {
		out.Conversation = chat.Conversation{Platform: Platform, Place: string(r.ChannelID)}
		return out, nil
	}
	for _, key := range []string{string(r.ChannelID), id} {
		talk, _, ok, err := d.talks.find(ctx, key)
		if err != nil {
			return out, err
		}
		if ok {
			out.Conversation = talk
			return out, nil
		}
	}
	return out, ignored("it was in no conversation of the bot")
}

var stops = map[string]bool{"stop": true, "!stop": true, "/stop": true, "stop it": true}

// isStop reports whether a text asks for nothing but to stop.
func isStop(text string) bool {
	return stops[strings.ToLower(strings.TrimRight(strings.TrimSpace(text), "!. "))]
}

// marks are what Discord writes for people, channels, emoji, times and commands.
var marks = regexp.MustCompile(`<(@!?|#|@&|a?:[A-Za-z0-9_~]{1,64}:|/[^:<>\n]{1,100}:|t:)(-?[0-9]{1,20})(:[tTdDfFR])?>`)

// plainText is a message's text with names where Discord has ids. The mention of
// the bot is taken out where it only says to whom the message goes.
func plainText(m *message, bot string) string {
	names := map[string]string{}
	for _, u := range m.Mentions {
		names[string(u.ID)] = u.name("")
	}
	text := m.Content
	for _, form := range []string{"<@" + bot + ">", "<@!" + bot + ">"} {
		text = strings.TrimSpace(text)
		if rest, ok := strings.CutPrefix(text, form); ok {
			text = strings.TrimLeft(rest, ",: ")
		}
		text = strings.TrimSuffix(text, form)
	}
	text = marks.ReplaceAllStringFunc(text, func(s string) string {
		p := marks.FindStringSubmatch(s)
		kind, id := p[1], p[2]
		switch {
		case kind == "@" || kind == "@!":
			if name := names[id]; name != "" {
				return "@" + name
			}
		case kind == "t:":
			if sec, err := strconv.ParseInt(id, 10, 64); err == nil && sec > -62135596800 && sec < 253402300800 {
				return time.Unix(sec, 0).UTC().Format("2006-01-02 15:04 UTC")
			}
		case strings.HasPrefix(kind, "/"):
			return strings.TrimSuffix(kind, ":")
		case strings.HasSuffix(kind, ":"):
			return strings.TrimPrefix(kind, "a")
		}
		return s
	})
	text = strings.TrimSpace(text)
	if text == "" && m.mentions(bot) && len(m.Attachments)+len(m.Snapshots) == 0 {
		// Only the mention. With a message that it answers that is a question about
		// it; alone it still wants an answer.
		return "(mentioned you without a word)"
	}
	return text
}
