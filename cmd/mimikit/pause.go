package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/chat"
	pauses "mimikit/core/pause"
	"mimikit/core/store"
	"mimikit/core/task"
)

// newPauses is where it is kept what is paused.
func newPauses(st *store.Store, cfg config.Config, log *slog.Logger) (*pauses.Store, error) {
	return pauses.New(pauses.Options{Client: st.Client, Key: cfg.Redis.Prefix + ":pause", Logger: log})
}

// paused gives the pause that holds in a conversation, by its key.
func (a *App) paused(conversation string) (pauses.Pause, bool) {
	if a.pauses.None() { // nearly always
		return pauses.Pause{}, false
	}
	c, err := chat.ParseConversation(conversation)
	if err != nil {
		return pauses.Pause{}, false // a damaged one is given up, which tells of it
	}
	return a.pauses.Of(c)
}

// heldLook is how often it is looked whether what a pause holds back may go on.
const heldLook = 500 * time.Millisecond

// pausing makes a loop take nothing where the bot is paused. What waits stays where
// it is, unsettled, so that it outlives every node; whoever wrote it is told.
func (a *App) pausing(l channel.Loop) channel.Loop {
	ready := l.Ready
	l.Ready = func(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
		take, wait := ready(b)
		if len(take) == 0 {
			return take, wait
		}
		p, held := a.paused(b.Conversation)
		if !held {
			return take, wait
		}
		a.sayPaused.offer(p, b)
		return nil, heldLook
	}
	return l
}

// A pauseNotice tells people, once in each conversation and pause, that what they
// write is kept. The node that would answer tells, so that it is told whatever became
// of the one that heard the message.
type pauseNotice struct {
	app  *App
	list chan heldTalk

	mu   sync.Mutex
	told map[string]bool // :: pause and conversation → it was told, or is about to be
}

type heldTalk struct {
	pause        pauses.Pause
	conversation string
	replyTo      string // the message that is kept
}

// mostTold bounds what a node remembers of whom it told; what it has forgotten it
// finds noted.
const mostTold = 10_000

func newPauseNotice(a *App) *pauseNotice {
	return &pauseNotice{app: a, list: make(chan heldTalk, 1000), told: map[string]bool{}}
}

// offer has a conversation told if there is anybody to tell. It never waits.
func (n *pauseNotice) offer(p pauses.Pause, b *channel.Buffer) {
	name := p.ID + " " + b.Conversation
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told[name] {
		return
	}
	for _, e := range b.Entries(channel.UserInput) {
		in, _ := e.Value.(*chat.UserInput)
		if in == nil || !in.Addressed || in.Kind == chat.KindStop || in.Kind == chat.KindDelete {
			continue
		}
		if len(n.told) >= mostTold {
			clear(n.told)
		}
		select {
		case n.list <- heldTalk{p, b.Conversation, in.Message}:
			n.told[name] = true
		default: // there is another look soon
		}
		return
	}
}

func (n *pauseNotice) forget(h heldTalk) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.told, h.pause.ID+" "+h.conversation)
}

// run tells until ctx ends.
func (n *pauseNotice) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case h := <-n.list:
			if err := n.tell(ctx, h); err != nil && ctx.Err() == nil {
				n.app.log.Warn("pause_not_told", "conversation", h.conversation, "error", err)
				n.forget(h) // it is offered again at the next look
			}
		}
	}
}

const pauseKnown = 60 * 24 * time.Hour // how long it is known who was told of a pause

// tell says in a conversation that it is paused, once: the commit id sees to that for
// a day, and the note beyond.
func (n *pauseNotice) tell(ctx context.Context, h heldTalk) error {
	c, err := chat.ParseConversation(h.conversation)
	if err != nil {
		return err
	}
	if p, held := n.app.pauses.Of(c); !held || p.ID != h.pause.ID {
		return nil // it was lifted while this waited to be told, and would not be so any more
	}
	name := "paused/" + h.pause.ID + "/" + h.conversation
	if was, err := n.app.cluster.Note(ctx, name); err != nil || was != "" {
		return err
	}
	at := h.pause.At
	err = n.app.node.Publish(ctx, name, at, h.conversation, channel.Publish{
		To: channel.TellerReply, Kind: string(chat.ReplyNotice),
		Value: &chat.Reply{
			ID: channel.InputID(name), Conversation: c, Kind: chat.ReplyNotice, Text: pauseWords(h.pause), ReplyTo: h.replyTo, CreatedAt: time.Now().UTC(),
		},
	})
	if err != nil {
		return err
	}
	return n.app.cluster.SetNote(ctx, name, "told", pauseKnown)
}

// pauseWords tell somebody who wrote that it is paused. What the admin wrote is in
// their words.
func pauseWords(p pauses.Pause) string {
	words := "I am paused at the moment, so I begin nothing new"
	if p.Reason != "" {
		words += " (" + p.Reason + ")"
	}
	return words + ". Your message is kept, and I answer it when I go on; you need not send it again."
}

// How long a task of a paused workspace is put off, before it is looked at again.
const (
	leastPutOff = 15 * time.Second
	mostPutOff  = time.Minute
)

// putsOff says for how long a task is put off where the bot is paused: the longer the
// pause lasts already, the longer.
func (a *App) putsOff(t task.Task) time.Duration {
	p, held := a.pauses.Of(t.Conversation)
	if !held {
		return 0
	}
	return min(max(leastPutOff, time.Since(p.At)/20), mostPutOff)
}

// triggersHeld reports that the triggers of a conversation do not fire for now.
func (a *App) triggersHeld(c chat.Conversation) bool {
	_, held := a.pauses.Of(c)
	return held
}

// runPauses keeps this node by what is paused.
func (a *App) runPauses(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return a.pauses.Run(ctx) })
	g.Go(func() error { return a.sayPaused.run(ctx) })
	g.Go(func() error { return a.journal.run(ctx) })
}

// pausedNote tells operators in one line what is paused; "" when nothing is.
func pausedNote(list []pauses.Pause) string {
	var words []string
	for _, p := range list {
		where := "everywhere"
		if p.Scope != pauses.Everywhere {
			where = "in " + p.Scope
		}
		w := fmt.Sprintf("paused %s since %s", where, p.At.UTC().Format("2006-01-02 15:04 UTC"))
		if p.By.ID != "" {
			w += " by " + p.By.ID
		}
		if p.Reason != "" {
			w += " (" + p.Reason + ")"
		}
		words = append(words, w)
	}
	return strings.Join(words, "; ")
}

// pausedFound finds out for the doctor whether the bot rests.
func pausedFound(ctx context.Context, st *store.Store, cfg config.Config) []finding {
	kept, err := newPauses(st, cfg, quiet)
	if err != nil {
		return []finding{{What: "paused", Say: err.Error()}}
	}
	list, err := kept.List(ctx)
	if err != nil {
		return []finding{{What: "paused", Say: err.Error()}}
	}
	say := pausedNote(list)
	if say == "" {
		return nil
	}
	return []finding{{What: "paused", Note: true, Say: say, Mend: "'mimikit resume' has it go on; in one workspace, 'mimikit resume --in' and its key"}}
}

// pauseCmd is `mimikit pause`.
type pauseCmd struct {
	Reason []string `arg:"" optional:"" help:"Why, in your words: people who write meanwhile are told."`
	In     string   `placeholder:"WORKSPACE" help:"Only in this workspace, by its key, like slack/T024BE7LH. Default: everywhere."`
	asJSON
}

// Run pauses.
func (c *pauseCmd) Run(ctx context.Context, std *streams, s *settings) error {
	words := []string{"pause"}
	switch {
	case c.In != "":
		words = append(words, "in", c.In)
	case len(c.Reason) > 0 && strings.EqualFold(c.Reason[0], "in"):
		return errors.New("name the workspace with --in, so that a reason may begin with any word")
	}
	return order(ctx, std, s, c.asJSON, append(words, c.Reason...)...)
}

// resumeCmd is `mimikit resume`.
type resumeCmd struct {
	In string `placeholder:"WORKSPACE" help:"In this workspace, by its key. Default: what was paused everywhere."`
	asJSON
}

// Run resumes.
func (c *resumeCmd) Run(ctx context.Context, std *streams, s *settings) error {
	words := []string{"resume"}
	if c.In != "" {
		words = append(words, "in", c.In)
	}
	return order(ctx, std, s, c.asJSON, words...)
}
