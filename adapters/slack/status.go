package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"mimikit/adapters"
	"mimikit/core/chat"
)

const (
	readingStatus = "is reading…"
	beatEvery     = 75 * time.Second // Slack takes a status away after two minutes
	lookEvery     = 5 * time.Second
	atOnce        = 16 // conversations that are told at the same time
	maxShown      = 20_000
	refusedFor    = time.Hour
	clearFor      = 2 * time.Minute // how long clearing a status is tried
)

// A StatusLine shows that the bot works, before there is a reply: with Slack's
// status line and its Stop button where the app is an agent, and else with a
// reaction to each message, 👀 at first and ✅ or ⚠️ in the end.
//
// Nothing here waits for Slack: what is to be shown is noted, and shown beside
// while the [Listener] runs, the newest state of a conversation only. It lasts no
// longer than it is renewed.
type StatusLine struct {
	api *api

	mu      sync.Mutex
	shown   map[chat.Conversation]*showing
	refused map[string]time.Time // :: method, or method and place → until when it is not tried
	wake    chan struct{}
}

var _ adapters.Feedback = (*StatusLine)(nil)

// A showing is what a conversation shows and is to show.
type showing struct {
	want, have string
	ours       bool      // this node works for it, and so keeps it alive and clears it
	until      time.Time // when it lapses
	beat       time.Time // when it must be shown again
	session    bool      // Slack was told that we work
	eyes       []string  // messages that are to get the reaction
	done       *outcome
	busy       bool
}

// An outcome is how the work on messages ended.
type outcome struct {
	upTo string
	ok   bool
}

func newStatusLine(a *api) *StatusLine {
	return &StatusLine{
		api: a, shown: map[chat.Conversation]*showing{}, refused: map[string]time.Time{}, wake: make(chan struct{}, 1),
	}
}

// Working notes that this node works for a conversation, and on what; with an
// empty what, that it does no more. It returns at once. Call it again while the
// work goes on: a status that is not renewed within Options.StatusLasts ends.
func (s *StatusLine) Working(_ context.Context, c chat.Conversation, what string) error {
	s.change(c, func(e *showing) {
		e.want, e.ours, e.until = what, true, s.api.o.Now().Add(s.api.o.StatusLasts)
	})
	return nil
}

// heard notes that a message was taken. Which node will work on it is not known
// here, so this status is shown once and left to itself.
func (s *StatusLine) heard(c chat.Conversation, ts string) {
	s.change(c, func(e *showing) {
		e.eyes = append(e.eyes, ts)
		if e.want == "" {
			e.want, e.ours, e.until = readingStatus, false, s.api.o.Now().Add(s.api.o.StatusLasts)
		}
	})
}

// posted notes that we posted something, upon which Slack takes the status away.
func (s *StatusLine) posted(c chat.Conversation) {
	s.mu.Lock()
	e := s.shown[c]
	if e != nil && !e.busy {
		e.have = ""
	}
	s.mu.Unlock()
	if e != nil {
		s.nudge()
	}
}

// ended notes that everything up to a message has been answered, or was given up.
func (s *StatusLine) ended(c chat.Conversation, upTo string, ok bool) {
	s.change(c, func(e *showing) {
		e.want, e.done = "", &outcome{upTo: upTo, ok: ok}
		e.until = s.api.o.Now().Add(clearFor)
	})
}

// over notes that nothing is done for a conversation any more, whose messages keep
// their marks. It had our post, upon which Slack takes the status away, but not
// the Stop button.
func (s *StatusLine) over(c chat.Conversation) {
	s.mu.Lock()
	e := s.shown[c]
	if e != nil {
		e.want, e.until = "", s.api.o.Now().Add(clearFor)
	}
	s.mu.Unlock()
	if e != nil {
		s.nudge()
	}
}

func (s *StatusLine) change(c chat.Conversation, f func(*showing)) {
	s.mu.Lock()
	e := s.shown[c]
	if e == nil {
		if len(s.shown) >= maxShown {
			s.mu.Unlock()
			return
		}
		e = &showing{}
		s.shown[c] = e
	}
	f(e)
	s.mu.Unlock()
	s.nudge()
}

func (s *StatusLine) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run shows what is noted, until ctx ends, and then clears what is ours.
func (s *StatusLine) run(ctx context.Context) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var all sync.WaitGroup
	for {
		select {
		case <-s.wake:
		case <-t.C:
		case <-ctx.Done():
			grace := time.AfterFunc(s.api.o.StopGrace, cancel)
			defer grace.Stop()
			s.leave()
			all.Wait()
			s.look(work, &all)
			all.Wait()
			return
		}
		s.look(work, &all)
	}
}

// look tells Slack about the conversations that show something else than they
// are to.
func (s *StatusLine) look(ctx context.Context, all *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.api.o.Now()
	busy := 0
	for _, e := range s.shown {
		if e.busy {
			busy++
		}
	}
	for c, e := range s.shown {
		if e.busy {
			continue
		}
		if !now.Before(e.until) {
			if e.want == "" || !e.ours {
				delete(s.shown, c)
				continue
			}
			e.want, e.until = "", now.Add(clearFor)
		}
		if !e.due(now) {
			if e.want == e.have && (e.want == "" || !e.ours) {
				delete(s.shown, c)
			}
			continue
		}
		if busy == atOnce {
			break
		}
		busy++
		e.busy = true
		all.Go(func() { s.show(ctx, c, e) })
	}
}

func (e *showing) due(now time.Time) bool {
	return e.want != e.have || len(e.eyes) > 0 || e.done != nil || e.want != "" && e.ours && !now.Before(e.beat)
}

// leave takes back what this node has shown.
func (s *StatusLine) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.shown {
		if e.ours || e.have == "" {
			e.want = ""
		}
		e.eyes = nil
	}
}

// show tells Slack about one conversation.
func (s *StatusLine) show(ctx context.Context, c chat.Conversation, e *showing) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s.mu.Lock()
	want, done, seen, session := e.want, e.done, e.eyes, e.session
	stale := e.want != e.have || done != nil || e.want != ""
	e.eyes, e.done = nil, nil
	s.mu.Unlock()

	if done != nil {
		s.unmark(ctx, c, done)
		seen = slices.DeleteFunc(seen, func(ts string) bool { return done.upTo == "" || !after(ts, done.upTo) })
	}
	have, shown := want, false
	if stale && s.agent(c) {
		var err error
		if shown, err = s.status(ctx, c, want); err != nil {
			have = "\x00" // neither: it is tried again
		}
		if shown {
			session = s.session(ctx, c, want, session || done != nil)
		}
	}
	if !shown && have == want {
		for _, ts := range seen {
			s.mark(ctx, c, ts)
		}
		seen = nil
	}

	s.mu.Lock()
	e.busy, e.have, e.session, e.beat = false, have, session, s.api.o.Now().Add(beatEvery)
	if !shown {
		e.eyes = append(seen, e.eyes...)
	}
	again := e.due(s.api.o.Now()) && have == want
	s.mu.Unlock()
	if again {
		s.nudge()
	}
}

// agent reports whether a conversation can have a status line, as far as we know.
func (s *StatusLine) agent(c chat.Conversation) bool {
	return s.api.o.Agent != AgentOff && c.Thread != "" && !s.isRefused(statusMethod) && !s.isRefused(statusMethod+" "+c.Place)
}

const (
	statusMethod  = "assistant.threads.setStatus"
	sessionMethod = "agents.sessions.setStatus"
)

// status sets the status line. shown is false where Slack has none for us.
func (s *StatusLine) status(ctx context.Context, c chat.Conversation, what string) (shown bool, err error) {
	err = s.api.call(ctx, Draw{Method: statusMethod, Place: c.Place, Priority: s.priority(what)}, 0, func(ctx context.Context) error {
		return s.api.sdk.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
			ChannelID: c.Place, ThreadTS: c.Thread, Status: phrase(what),
		})
	})
	if err == nil {
		return true, nil
	}
	var pe *adapters.PostError
	if errors.As(err, &pe) {
		switch pe.Kind {
		case adapters.Misconfig:
			s.refuse(statusMethod, err)
			return false, nil
		case adapters.PlaceGone, adapters.BadContent:
			s.refuse(statusMethod+" "+c.Place, err)
			return false, nil
		}
	}
	return false, err
}

// phrase makes of what is done what Slack shows behind the bot's name.
func phrase(what string) string {
	what = strings.Join(strings.Fields(what), " ")
	if what == "" || strings.HasPrefix(what, "is ") {
		return shorten(what, 100)
	}
	return "is " + shorten(strings.TrimRight(what, ".… "), 90) + "…"
}

// priority: a status may be left out, but taking one away may not.
func (s *StatusLine) priority(what string) Priority {
	if what == "" {
		return Final
	}
	return Status
}

// session tells Slack that we work or do no more, which shows or hides the Stop
// button. It returns what Slack believes now.
func (s *StatusLine) session(ctx context.Context, c chat.Conversation, what string, told bool) bool {
	if s.isRefused(sessionMethod) || (what != "") == told {
		return told
	}
	state := slack.AgentSessionStatusActive
	if what != "" {
		state = slack.AgentSessionStatusProcessing
	}
	err := s.api.call(ctx, Draw{Method: sessionMethod, Place: c.Place, Priority: s.priority(what)}, 0, func(ctx context.Context) error {
		_, err := s.api.sdk.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{
			Status: state, ChannelID: c.Place, ThreadTS: c.Thread,
		})
		return err
	})
	var pe *adapters.PostError
	if errors.As(err, &pe) && (pe.Kind == adapters.Misconfig || pe.Kind == adapters.BadContent) {
		s.refuse(sessionMethod, err)
	}
	if err != nil {
		return told
	}
	return what != ""
}

func (s *StatusLine) isRefused(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.api.o.Now().Before(s.refused[what])
}

func (s *StatusLine) refuse(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) > 1000 {
		clear(s.refused)
	}
	s.refused[what] = s.api.o.Now().Add(refusedFor)
	s.api.o.Logger.Info("slack_status_refused", "what", what, "error", err)
}
