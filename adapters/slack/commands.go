package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// Commands are what people can tell the bot to do without a model: with a slash
// command, in a message, or with a button.
type Commands interface {
	// Parse reports whether a message is a command, and gives its words. direct says
	// that the message is meant for the bot beyond doubt: it mentions it, or is a DM.
	Parse(text string, direct bool) (words []string, ok bool)
	// Run does what the words say, for a caller.
	Run(ctx context.Context, c Caller, words []string) (Answer, error)
	// Press does what a button of ours stands for, for whoever pressed it.
	Press(ctx context.Context, c Caller, value string) (Answer, error)
}

// A Caller is who wants something, and where. Its author is verified.
type Caller struct {
	Author       chat.Author
	Conversation chat.Conversation // without a Place in App Home
	Message      string            // the message that the button stands below, or that has the command
}

// An Answer is what a command comes to. All of it may be empty.
type Answer struct {
	Text    string // Markdown, shown to the caller alone
	Buttons []chat.Button
	// Note is put in the place of the buttons below the message, for all to see: who
	// has answered what.
	Note string
}

const (
	// answerIn is how long a command may take so that its answer goes out with the
	// acknowledgement; Slack waits three seconds.
	answerIn = 2 * time.Second
	// commandIn bounds a command; Slack takes answers for half an hour.
	commandIn = 5 * time.Minute
	claimed   = 26 * time.Hour // at least as long as Slack or a look back may bring a thing again
	askAbout  = "ask_about"    // the shortcut of messages
	sorry     = "Something went wrong on my side. Please try again in a moment."
)

// reply is what an interaction is answered with, at once or through its URL.
type reply struct {
	Type     string        `json:"response_type,omitempty"`
	Text     string        `json:"text"`
	Blocks   []slack.Block `json:"blocks,omitempty"`
	Replace  bool          `json:"replace_original"`
	ThreadTS string        `json:"thread_ts,omitempty"`
}

// whispered renders an answer for the caller's eyes.
func whispered(a Answer) *reply {
	if strings.TrimSpace(a.Text) == "" && len(a.Buttons) == 0 {
		return nil
	}
	text := guarded(a.Text)
	if pieces := split(text, maxPart); len(pieces) > 1 {
		text = pieces[0] + "\n\n_… and more, which does not fit here._"
	}
	return &reply{Type: "ephemeral", Text: fallback(text), Blocks: blocks(text, a.Buttons)}
}

// interact handles a frame that carries an interaction or a slash command.
func (l *Listener) interact(s *socket, inbox adapters.Inbox, e envelope) {
	if e.Type == "slash_commands" {
		var c slash
		if json.Unmarshal(e.Payload, &c) != nil || c.UserID == "" {
			l.told(e.Type, Unreadable)
			l.confirm(s, e.ID)
			return
		}
		r := l.slash(c)
		l.told(e.Type, Handled)
		switch {
		case r == nil:
			l.confirm(s, e.ID)
		case !e.TakesPayload:
			l.confirm(s, e.ID)
			l.respond(c.Response, r)
		default:
			if err := s.acknowledge(e.ID, r); err != nil { // too large for this way
				l.confirm(s, e.ID)
				l.respond(c.Response, r)
			}
		}
		return
	}
	kind, o := l.interaction(inbox, e.Payload)
	l.told(kind, o)
	if o != Unstored {
		l.confirm(s, e.ID)
	}
}

// slash runs a slash command. What takes longer than Slack waits is answered
// through the response URL, and nil is returned.
func (l *Listener) slash(c slash) *reply {
	words := strings.Fields(unescaped(c.Text))
	l.b.kinds.named(c.ChannelID, c.Channel)
	return l.inTime(c.Response, "slash/"+c.TriggerID, func(ctx context.Context) (Answer, error) {
		who, err := l.caller(ctx, c.UserID, c.ChannelID, "")
		if err != nil {
			return Answer{}, err
		}
		return l.b.o.Commands.Run(ctx, who, words)
	})
}

// inTime runs a command that is to be run once. It returns the answer if that
// comes in time for the acknowledgement.
func (l *Listener) inTime(url, key string, run func(context.Context) (Answer, error)) *reply {
	answer := make(chan *reply, 1)
	var mu sync.Mutex
	waited := true // for the answer
	sent := l.front.send(func() {
		ctx, cancel := context.WithTimeout(l.work, commandIn)
		defer cancel()
		r := l.once(ctx, key, run)
		mu.Lock()
		inTime := waited
		answer <- r
		mu.Unlock()
		if !inTime {
			l.respond(url, r)
		}
	})
	if !sent {
		return whispered(Answer{Text: sorry})
	}
	t := time.NewTimer(answerIn)
	defer t.Stop()
	select {
	case r := <-answer:
		return r
	case <-t.C:
	}
	mu.Lock()
	defer mu.Unlock()
	waited = false
	select {
	case r := <-answer: // by a moment
		return r
	default:
		return nil
	}
}

// once runs a command if nobody has run it before.
func (l *Listener) once(ctx context.Context, key string, run func(context.Context) (Answer, error)) *reply {
	if l.b.o.Commands == nil {
		return whispered(Answer{Text: "I know no commands here."})
	}
	first, err := l.b.o.Claims.Claim(ctx, "slack/"+key, claimed)
	if err == nil && !first {
		return nil
	}
	var a Answer
	if err == nil {
		a, err = run(ctx)
	}
	return l.outcome(key, a, err)
}

func (l *Listener) outcome(key string, a Answer, err error) *reply {
	if err != nil {
		l.b.o.Logger.Error("slack_command_failed", "key", key, "error", err)
		return whispered(Answer{Text: sorry})
	}
	return whispered(a)
}

// caller verifies who somebody is.
func (l *Listener) caller(ctx context.Context, user, place, thread string) (Caller, error) {
	me, err := l.b.api.identity(ctx)
	if err != nil {
		return Caller{}, err
	}
	reading, cancel := context.WithTimeout(ctx, l.b.o.Reading)
	defer cancel()
	return Caller{
		Author:       l.b.people.author(reading, user),
		Conversation: chat.Conversation{Platform: platform, Workspace: me.TeamID, Place: place, Thread: thread},
	}, nil
}

// command runs a message that is a command. done is false where it is none.
func (l *Listener) command(ctx context.Context, s *sighting, m adapters.Message) (o Outcome, done bool, err error) {
	if l.b.o.Commands == nil || m.Kind != chat.KindMessage || m.Author.Bot {
		return "", false, nil
	}
	words, ok := l.b.o.Commands.Parse(m.Text, s.mentioned || s.kind == direct)
	if !ok {
		return "", false, nil
	}
	key := "command/" + m.Conversation.Place + "/" + m.Message
	first, err := l.b.o.Claims.Claim(ctx, "slack/"+key, claimed)
	if err != nil {
		return Unstored, true, errors.Join(errNotStored, err)
	}
	l.heard(s, false)
	if !first {
		return Known, true, nil
	}
	run := func() {
		ctx, cancel := context.WithTimeout(l.work, commandIn)
		defer cancel()
		a, err := l.b.o.Commands.Run(ctx, Caller{Author: m.Author, Conversation: m.Conversation, Message: m.Message}, words)
		l.say(ctx, m, l.outcome(key, a, err))
	}
	if !l.front.send(run) {
		run()
	}
	return Handled, true, nil
}

// whisperOnce is whisper of what is to be told once of a wording of a message, however
// often it comes: as a mention, as a message, or again.
func (l *Listener) whisperOnce(ctx context.Context, m adapters.Message, text string) {
	if text == "" {
		return // they were told of one before, which stands for all
	}
	first, err := l.b.o.Claims.Claim(ctx, "slack/refused/"+m.Conversation.Place+"/"+m.Message+"/"+m.Edit, claimed)
	if first || err != nil {
		l.whisper(m, text)
	}
}

// whisper tells the author of a message something that nobody else sees.
func (l *Listener) whisper(m adapters.Message, text string) {
	l.later(func(ctx context.Context) { l.say(ctx, m, whispered(Answer{Text: text})) })
}

// say shows the author of a message an answer: in a DM for good, elsewhere until
// they look away.
func (l *Listener) say(ctx context.Context, m adapters.Message, r *reply) {
	if r == nil || m.Author.Bot {
		return
	}
	place := m.Conversation.Place
	options := []slack.MsgOption{slack.MsgOptionText(r.Text, false), slack.MsgOptionBlocks(r.Blocks...)}
	if t := m.Conversation.Thread; t != "" && t != m.Message {
		options = append(options, slack.MsgOptionTS(t)) // where it was asked
	}
	d := Draw{Method: "chat.postEphemeral", Place: place, Priority: Question}
	if strings.HasPrefix(place, "D") {
		d.Method = "chat.postMessage"
	}
	err := l.b.api.call(ctx, d, 5*time.Second, func(ctx context.Context) (err error) {
		if d.Method == "chat.postMessage" {
			_, _, err = l.b.api.sdk.PostMessageContext(ctx, place, options...)
		} else {
			_, err = l.b.api.sdk.PostEphemeralContext(ctx, place, m.Author.ID, options...)
		}
		return err
	})
	if err != nil {
		l.b.o.Logger.Warn("slack_answer_not_shown", "place", place, "error", err)
	}
}
