package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

const (
	showEvery = 2 * time.Second
	showAfter = 3 * time.Second // a task that ends sooner needs no message of its own
	showIn    = 10 * time.Second
	lastIn    = 10 * time.Second // for the last words, which a stop waits for
	lastTried = time.Minute      // the longest pause between tries to say them
)

// A show tells the platforms what the tasks of this node are doing, while they do
// it: that it works at all, and how far each has come as one message that is
// edited. It is never a promise: what cannot be shown is left out.
type show struct {
	app *App

	mu      sync.Mutex
	runs    map[string]*shownRun // :: task id → its run on this node
	watches map[chat.Conversation]*admin.Watch
	last    *aside // words that are being said
	stopped chan struct{}
}

type shownRun struct {
	task  task.Task
	since time.Time
	seen  bool          // it has, or may have, a message
	turn  chan struct{} // held by who shows it, so that its last words come last
	over  bool          // they are said; guarded by turn
}

func newShow(a *App) *show {
	return &show{app: a, runs: map[string]*shownRun{}, watches: map[chat.Conversation]*admin.Watch{}, last: newAside(), stopped: make(chan struct{})}
}

// platform gives where a conversation is shown; nil where nothing is.
func (s *show) platform(c chat.Conversation) *platform {
	for _, p := range s.app.platforms {
		if p.name == c.Platform {
			return p
		}
	}
	return nil
}

func (s *show) started(t task.Task) {
	if t.Internal || s.platform(t.Conversation) == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again := !t.StartedAt.IsZero() && time.Since(t.StartedAt) >= showAfter // a run before this one was shown
	s.runs[t.ID] = &shownRun{task: t, since: time.Now(), seen: again, turn: make(chan struct{}, 1)}
	if s.watches[t.Conversation] == nil {
		s.watches[t.Conversation] = admin.NewWatch(s.app.queue, t.Conversation)
	}
}

// drop forgets a run, nil where it is not known, and tells whether others of its
// conversation are left.
func (s *show) drop(t task.Task) (run *shownRun, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run = s.runs[t.ID]
	delete(s.runs, t.ID)
	for _, r := range s.runs {
		others = others || r.task.Conversation == t.Conversation
	}
	if !others {
		delete(s.watches, t.Conversation)
	}
	return run, others
}

// lost forgets a run that this node lost. Whoever has the task now shows it.
func (s *show) lost(t task.Task) { s.drop(t) }

// ended tells how a run ended. It does not wait for the platform.
func (s *show) ended(t task.Task, to task.Status, took time.Duration) {
	run, others := s.drop(t)
	if run == nil {
		return
	}
	p := s.platform(t.Conversation)
	s.last.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastIn)
		defer cancel()
		select {
		case run.turn <- struct{}{}:
			defer func() { <-run.turn }()
		case <-ctx.Done():
			return
		}
		run.over = true
		if !others {
			s.told(p, p.feedback.Working(ctx, t.Conversation, ""))
		}
		if run.seen {
			err := p.progress(ctx, t.Conversation, progress{task: t.ID, text: lastWords(t, to, took), done: true})
			s.told(p, err)
			if err == nil && task.Over(to) {
				s.noted(ctx, t.ID, "")
			}
		}
	})
}

// shownKnown is how long it is known that a task has a message.
const shownKnown = 7 * 24 * time.Hour

// noted remembers for all nodes that a task has a message whose last words are to
// come; "" that they are said.
func (s *show) noted(ctx context.Context, id, text string) {
	if s.app.cluster == nil { // there is but this process
		return
	}
	if err := s.app.cluster.SetNote(ctx, "shown/"+id, text, shownKnown); err != nil {
		s.app.log.Debug("progress_not_noted", "task", id, "error", err)
	}
}

// results says the last words of tasks that ended while no node ran them, such as one
// that was canceled while it waited for its next run: whoever takes their results up
// says them.
func (s *show) results(l channel.Loop) channel.Loop {
	step := l.Step
	l.Step = func(ctx context.Context, w *channel.Work) (channel.Effects, error) {
		fx, err := step(ctx, w)
		if err == nil {
			for _, e := range w.Entries {
				if r, ok := e.Value.(*chat.TaskResult); ok {
					s.over(*r)
				}
			}
		}
		return fx, err
	}
	return l
}

// over says the last words of a task, where nobody has, and tries it for a while. It
// does not wait.
func (s *show) over(r chat.TaskResult) {
	p := s.platform(r.Conversation)
	if p == nil || p.progress == nil || s.app.cluster == nil || !task.Over(r.Status) {
		return
	}
	s.last.Go(func() {
		for wait := time.Second; s.lastSaid(p, r) != nil && wait < lastTried; wait *= 2 {
			select {
			case <-time.After(wait):
			case <-s.stopped:
				return
			}
		}
	})
}

// lastSaid says the last words of a task that has a message and of which they are not
// said.
func (s *show) lastSaid(p *platform, r chat.TaskResult) error {
	ctx, cancel := context.WithTimeout(context.Background(), lastIn)
	defer cancel()
	shown, err := s.app.cluster.Note(ctx, "shown/"+r.ID)
	if err == nil && shown == "" {
		return nil
	}
	if err == nil {
		t := task.Task{ID: r.ID, Title: r.Title, Conversation: r.Conversation}
		err = p.progress(ctx, r.Conversation, progress{
			task: r.ID, text: lastWords(t, r.Status, time.Duration(r.DurationMs)*time.Millisecond), done: true,
		})
	}
	if err != nil {
		s.told(p, err)
		return err
	}
	s.noted(ctx, r.ID, "")
	return nil
}

func (s *show) told(p *platform, err error) {
	if err != nil {
		s.app.metrics.FeedbackError(p.name)
		s.app.log.Debug("progress_not_shown", "platform", p.name, "error", err)
	}
}

// run shows what runs, until ctx ends.
func (s *show) run(ctx context.Context) error {
	defer close(s.stopped)
	for pauseFor(ctx, showEvery) == nil {
		s.look(ctx)
	}
	return nil
}

func (s *show) look(ctx context.Context) {
	s.mu.Lock()
	watches := make(map[chat.Conversation]*admin.Watch, len(s.watches))
	for c, w := range s.watches {
		watches[c] = w
	}
	s.mu.Unlock()
	for c, w := range watches {
		short, cancel := context.WithTimeout(ctx, showIn)
		s.lookAt(short, c, w)
		cancel()
	}
}

// lookAt shows what runs in one conversation on this node.
func (s *show) lookAt(ctx context.Context, c chat.Conversation, w *admin.Watch) {
	p := s.platform(c)
	list, err := w.Look(ctx)
	if err != nil {
		s.app.log.Debug("progress_not_read", "conversation", c.Key(), "error", err)
		return
	}
	for _, r := range list {
		s.mu.Lock()
		run := s.runs[r.ID]
		late := run != nil && time.Since(run.since) >= showAfter
		first := late && !run.seen
		if late {
			run.seen = true
		}
		s.mu.Unlock()
		if first {
			s.noted(ctx, r.ID, "shown")
		}
		if run == nil {
			continue
		}
		select {
		case run.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !run.over {
			s.told(p, p.feedback.Working(ctx, c, "working on "+run.task.Title))
			if late {
				s.told(p, p.progress(ctx, c, progress{task: r.ID, text: progressWords(r), buttons: progressButtons(r)}))
			}
		}
		<-run.turn
	}
}

// progressWords tell what a task is doing. They hold nothing that changes by
// itself, such as a time, since each change is a call to the platform.
func progressWords(r admin.Running) string {
	words := "⏳ **" + admin.Escape(r.Title) + "**"
	if r.Percent != nil {
		words += fmt.Sprintf(" (%d%%)", *r.Percent)
	}
	switch {
	case r.Ending:
		words += "\nis being canceled"
	case r.Last != "":
		words += "\n" + admin.Escape(r.Last)
	}
	return words
}

func progressButtons(r admin.Running) []chat.Button {
	if r.Ending {
		return nil
	}
	return []chat.Button{admin.Press("Cancel", "danger", "cancel", r.ID)}
}

// lastWords stand where the progress stood.
func lastWords(t task.Task, to task.Status, took time.Duration) string {
	title := "**" + admin.Escape(t.Title) + "**"
	switch to {
	case task.Succeeded:
		return "✅ " + title + ": done in " + short(took)
	case task.Failed:
		return "⚠️ " + title + ": failed after " + short(took)
	case task.Canceled:
		return "🛑 " + title + ": canceled"
	case task.Waiting:
		return "❓ " + title + ": waits for an answer"
	}
	return "🔁 " + title + ": goes on later"
}
