package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// A Progress is what a task is doing.
type Progress struct {
	ID      string // of the task; it has one message
	Text    string // Markdown; about 1,800 characters are shown
	Buttons []chat.Button
	Done    bool // it is the last word: shown whatever the rate; with an empty Text the message is removed
}

// How often a progress is edited at most, and for how long its message is known.
const (
	editEvery     = time.Second
	progressKnown = 7 * 24 * time.Hour
	progressMax   = 1800 // units
)

// progressing is one task's message.
type progressing struct {
	mu      sync.Mutex
	message string
	text    string
	buttons []chat.Button
	at      time.Time // of the last change
	used    time.Time
}

// progresses are the messages that this node has shown.
type progresses struct {
	mu  sync.Mutex
	all map[string]*progressing // :: key of the note → what is shown
}

func newProgresses() *progresses { return &progresses{all: map[string]*progressing{}} }

// Progress shows what a task is doing as one message that is edited, at most once
// a second and only when something changed. What comes too soon, or finds no room
// in the rate limit, is left out: call it again with the newest. Any node may call
// it for a task. A message that somebody removed is not made anew.
func (p *Poster) Progress(ctx context.Context, c chat.Conversation, pr Progress) error {
	d := p.d
	key := "discord/progress/" + c.Key() + "/" + pr.ID
	e := d.shown.of(key, d.o.Now())
	e.mu.Lock()
	defer e.mu.Unlock()
	now := d.o.Now()
	switch {
	case e.message != "" && e.text == pr.Text && slices.Equal(e.buttons, pr.Buttons) && !pr.Done:
		return nil
	case !pr.Done && now.Sub(e.at) < editEvery:
		return nil
	}
	err := d.progress(ctx, c, key, e, pr)
	if errors.As(err, new(*busyError)) && !pr.Done {
		return nil
	}
	if err != nil {
		return fmt.Errorf("show the progress of %s: %w", pr.ID, editError(err))
	}
	e.text, e.buttons, e.at = pr.Text, slices.Clone(pr.Buttons), now
	if pr.Done {
		d.shown.drop(key)
	}
	return nil
}

func (d *Bot) progress(ctx context.Context, c chat.Conversation, key string, e *progressing, pr Progress) error {
	if e.message == "" {
		id, err := d.o.Notes.Note(ctx, key)
		if err != nil {
			return fmt.Errorf("find its message: %w", err)
		}
		e.message = id
	}
	p := Edit
	if pr.Done {
		p = Final
	}
	switch {
	case e.message == "" && pr.Text == "":
		return nil
	case e.message == "":
		return d.beginProgress(ctx, c, key, e, pr)
	case pr.Text == "":
		return gone(d.inChannel(c, func(channel string) error {
			path := "/channels/" + channel + "/messages/"
			return d.api.do(ctx, request{method: "DELETE", path: path + e.message, route: "DELETE " + path + "{message}", priority: p}, nil)
		}))
	}
	return gone(d.edit(ctx, c, e.message, cutLines(render(pr.Text), progressMax), pr.Buttons, p))
}

// beginProgress posts the message. Its nonce keeps two nodes from posting two.
func (d *Bot) beginProgress(ctx context.Context, c chat.Conversation, key string, e *progressing, pr Progress) error {
	p := Status
	if pr.Done {
		p = Final
	}
	channel, _ := target(c)
	m := outMessage{Content: cutLines(render(pr.Text), progressMax), Nonce: nonceOf(key, 0), Enforce: true}
	if rows, shown := components(pr.Buttons); shown && len(rows) > 0 {
		m.Components = &rows
	}
	id, err := d.send(ctx, channel, m, nil, p)
	if codeOf(err) == discordgo.ErrCodeUnknownChannel && isID(c.Thread) {
		id, err = d.postFirst(ctx, c, m, nil, p)
	}
	if err != nil {
		return err
	}
	e.message = id
	return wrap(d.o.Notes.SetNote(ctx, key, id, progressKnown), "note its message")
}

// Edit changes a message of ours, such as a question that has been answered. What
// is too long for one message is cut. Its errors are [adapters.PostError]; an edit
// may be done again.
func (p *Poster) Edit(ctx context.Context, c chat.Conversation, messageID, text string, buttons []chat.Button) error {
	if messageID == removed {
		return nil
	}
	if err := p.d.edit(ctx, c, messageID, cutLines(render(text), maxUnits), buttons, Question); err != nil {
		return fmt.Errorf("edit message %s: %w", messageID, editError(err))
	}
	return nil
}

func (d *Bot) edit(ctx context.Context, c chat.Conversation, id, text string, buttons []chat.Button, p Priority) error {
	if id == removed {
		return nil
	}
	if !isID(id) || !isID(c.Place) {
		return &adapters.PostError{Kind: adapters.PlaceGone, Err: fmt.Errorf("message %q of channel %q is none of Discord", id, c.Place)}
	}
	rows, shown := components(buttons)
	if !shown {
		text = cutLines(text+numbered(buttons), maxUnits)
	}
	if rows == nil {
		rows = []discordgo.MessageComponent{} // takes those away that were there
	}
	return d.inChannel(c, func(channel string) error {
		path := "/channels/" + channel + "/messages/"
		change := func() error {
			return d.api.do(ctx, request{
				method: "PATCH", path: path + id, route: "PATCH " + path + "{message}", priority: p, draws: Draw{Method: DrawEdit, Place: channel},
				body: outMessage{Content: text, Components: &rows, Allowed: noMentions()},
			}, nil)
		}
		err := change()
		if codeOf(err) == discordgo.ErrCodePerformedOperationOnArchivedThread {
			// A post would bring the thread back, an edit does not.
			if err = d.wakeThread(ctx, channel); err == nil {
				err = change()
			}
		}
		return err
	})
}

// inChannel does something with a message of a conversation, which stands in the
// place itself where no thread could be opened.
func (d *Bot) inChannel(c chat.Conversation, do func(channel string) error) error {
	channel, _ := target(c)
	err := do(channel)
	switch codeOf(err) {
	case discordgo.ErrCodeUnknownMessage, discordgo.ErrCodeUnknownChannel:
		if channel != c.Place {
			return do(c.Place)
		}
	}
	return err
}

// gone takes a message that somebody removed for an answer, too.
func gone(err error) error {
	switch codeOf(err) {
	case discordgo.ErrCodeUnknownMessage, discordgo.ErrCodeUnknownChannel:
		return nil
	}
	return err
}

// editError is postError of an edit, which may be done again.
func editError(err error) error {
	var p *adapters.PostError
	if !errors.As(err, &p) {
		err = postError(err)
	}
	if errors.As(err, &p) && p.Kind == adapters.UnknownPost {
		return &adapters.PostError{Kind: adapters.RetryPost, RetryAfter: p.RetryAfter, Err: p.Err}
	}
	return err
}

// of gives a task's entry, and forgets those that were not used for long.
func (s *progresses) of(key string, now time.Time) *progressing {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[key]
	if e == nil {
		if len(s.all) >= 1000 {
			for k, old := range s.all {
				if now.Sub(old.used) > time.Hour {
					delete(s.all, k)
				}
			}
		}
		e = &progressing{}
		s.all[key] = e
	}
	e.used = now
	return e
}

func (s *progresses) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}
