package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// A Progress is what a task is doing.
type Progress struct {
	ID      string // of the task; it has one message
	Text    string // Markdown, at most about 3,500 characters are shown
	Buttons []chat.Button
	Done    bool // it is the last word: shown whatever the rate; with an empty Text the message is removed
}

// How often a progress is edited at most, for how long its message is known, how
// long only one node may post it, and how often the last word is tried.
const (
	editEvery     = time.Second
	progressKnown = 7 * 24 * time.Hour
	beginIn       = 20 * time.Second
	lastTries     = 20
)

// begun is the note of a message that somebody was about to post. What became of
// it can be looked up.
const begun = "begun"

// progressing is one task's message.
type progressing struct {
	mu      sync.Mutex
	ts      string
	text    string
	buttons []chat.Button
	at      time.Time // of the last change
	used    time.Time
}

// Progress shows what a task is doing as one message that is edited, at most once
// a second and only when something changed. What comes too soon, or finds the rate
// budget kept for what matters more, is left out: call it again with the newest.
// The last word is tried for as long as ctx allows. Any node may call it for a
// task, also after the one that did before has died.
func (p *Poster) Progress(ctx context.Context, c chat.Conversation, pr Progress) error {
	key := "progress/" + c.Key() + "/" + pr.ID
	e := p.progressOf(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := p.api.o.Now()
	switch {
	case e.ts != "" && e.text == pr.Text && slices.Equal(e.buttons, pr.Buttons) && !pr.Done:
		return nil
	case !pr.Done && now.Sub(e.at) < editEvery:
		return nil
	}
	err := p.change(ctx, c, key, e, pr)
	for n := 1; pr.Done && n < lastTries && passes(err); n++ {
		// An edit and a removal may be repeated whatever became of them, and what
		// else may have been posted is looked up.
		var pe *adapters.PostError
		_ = errors.As(err, &pe) // it does, or it would not pass
		if pause(ctx, max(pe.RetryAfter, time.Second)) != nil {
			break
		}
		err = p.change(ctx, c, key, e, pr)
	}
	switch {
	case errors.Is(err, errDropped) && !pr.Done:
		return nil
	case err != nil:
		return fmt.Errorf("show the progress of %s: %w", pr.ID, err)
	}
	e.text, e.buttons, e.at = pr.Text, pr.Buttons, now
	if pr.Done {
		p.mu.Lock()
		delete(p.progress, key)
		p.mu.Unlock()
	}
	return nil
}

// passes reports whether a failure is one that time mends.
func passes(err error) bool {
	var pe *adapters.PostError
	return errors.As(err, &pe) && (pe.Kind == adapters.RetryPost || pe.Kind == adapters.UnknownPost)
}

func (p *Poster) change(ctx context.Context, c chat.Conversation, key string, e *progressing, pr Progress) error {
	if e.ts == "" {
		if err := p.recall(ctx, c, key, e, pr.ID); err != nil {
			return err
		}
	}
	d := Draw{Method: "chat.update", Place: c.Place, Priority: Edit}
	if pr.Done {
		d.Priority = Final
	}
	switch {
	case e.ts == "" && pr.Text == "":
		return nil
	case e.ts == "":
		return p.begin(ctx, c, key, e, pr)
	case pr.Text == "":
		d.Method = "chat.delete"
		return p.remove(ctx, d, c, e.ts)
	}
	err := p.edit(ctx, d, c, e.ts, pr.Text, pr.Buttons)
	if code(err) == "message_not_found" {
		return nil // somebody removed it, which is an answer too
	}
	return err
}

// remove deletes a message of ours. One that is not there is removed.
func (p *Poster) remove(ctx context.Context, d Draw, c chat.Conversation, ts string) error {
	err := p.api.call(ctx, d, postPatience, func(ctx context.Context) error {
		_, _, err := p.api.sdk.DeleteMessageContext(ctx, c.Place, ts)
		return err
	})
	if code(err) == "message_not_found" {
		return nil
	}
	return err
}

// recall finds the message that another node, or a process before this one, has
// posted for a task.
func (p *Poster) recall(ctx context.Context, c chat.Conversation, key string, e *progressing, task string) error {
	ts, err := p.api.o.Notes.Note(ctx, key)
	if err != nil || ts != begun {
		e.ts = ts
		return err
	}
	since := p.api.o.Now().Add(-progressKnown)
	if ts, err = p.find(ctx, c, since, func(m post) bool { return m.stampedTask() == task }); err != nil || ts == "" {
		return err
	}
	e.ts = ts
	return p.api.o.Notes.SetNote(ctx, key, ts, progressKnown)
}

// begin posts the message. Only who has the claim does, so that two nodes do not
// post two. That it will be posted is noted first: whoever finds such a note looks
// for it.
func (p *Poster) begin(ctx context.Context, c chat.Conversation, key string, e *progressing, pr Progress) error {
	first, err := p.api.o.Claims.Claim(ctx, key, beginIn)
	if err != nil || !first {
		return err
	}
	if err := p.api.o.Notes.SetNote(ctx, key, begun, progressKnown); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, beginIn/2)
	defer cancel()
	about := slack.MsgOptionMetadata(slack.SlackMetadata{EventType: progressEvent, EventPayload: map[string]any{"task": pr.ID}})
	text := split(guarded(pr.Text), maxEdit)[0]
	e.ts, err = p.message(ctx, Draw{Method: "chat.postMessage", Place: c.Place, Priority: Status}, c, about,
		slack.MsgOptionBlocks(blocks(text, pr.Buttons)...), slack.MsgOptionText(fallback(text), false))
	if err != nil {
		return err
	}
	p.status.posted(c)
	return p.api.o.Notes.SetNote(ctx, key, e.ts, progressKnown)
}

// progressOf gives a task's entry, and forgets those that were not used for long.
func (p *Poster) progressOf(key string) *progressing {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.api.o.Now()
	if p.progress == nil {
		p.progress = map[string]*progressing{}
	}
	e := p.progress[key]
	if e == nil {
		for k, old := range p.progress {
			if len(p.progress) > 1000 && now.Sub(old.used) > time.Hour {
				delete(p.progress, k)
			}
		}
		e = &progressing{}
		p.progress[key] = e
	}
	e.used = now
	return e
}
