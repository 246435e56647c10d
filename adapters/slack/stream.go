package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"mimikit/adapters"
	"mimikit/core/chat"
)

const (
	streamEvery = time.Second     // between two additions
	streamFor   = 4 * time.Minute // Slack ends a stream after about five
	streamKnown = 24 * time.Hour
	streamCall  = 5 * time.Second
)

// A Stream shows a reply while it is being worded. It is a view and no more: the
// committed text is the record. When the reply is posted, [Poster.Post] finishes
// the message if what it shows is how the committed text begins, and this process
// showed it; else it removes the message and posts the text anew. So does any
// other node, since which message it is has been noted before anything is written
// to it.
type Stream struct {
	p         *Poster
	c         chat.Conversation
	key       string
	recipient string

	mu   sync.Mutex
	text string // all that was written so far
	over bool   // nothing more is shown

	more chan struct{}
	end  chan struct{}
	once sync.Once
	done chan struct{} // closed when nothing is under way any more

	ts    string // of the message; read it after done
	shown string // what the message has
	dead  bool   // what the message has is not known
}

// Stream begins to show a reply that is being worded, for the person to whom it
// answers. replyID must be the id under which it will be committed. Nothing is
// shown before there is a text; nothing at all where Options.Streaming is off and
// outside of threads. ctx ends it as Close does. A stream of the same reply that was
// there before is removed.
func (p *Poster) Stream(ctx context.Context, c chat.Conversation, replyID, recipient string) *Stream {
	s := &Stream{
		p: p, c: c, key: streamKey(c, replyID), recipient: recipient,
		more: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{}),
	}
	if !p.api.o.Streaming || c.Thread == "" {
		s.over = true
		close(s.done)
		return s
	}
	p.mu.Lock()
	if p.streams == nil {
		p.streams = map[string]*Stream{}
	}
	before := p.streams[s.key]
	p.forgetStreams()
	p.streams[s.key] = s
	p.mu.Unlock()
	go s.run(ctx, before)
	return s
}

func streamKey(c chat.Conversation, replyID string) string {
	return "stream/" + c.Key() + "/" + replyID
}

// forgetStreams forgets what nobody came to finish, when there is much of it. It is
// called with mu held.
func (p *Poster) forgetStreams() {
	if len(p.streams) < 1000 {
		return
	}
	for key, s := range p.streams {
		select {
		case <-s.done:
			delete(p.streams, key)
		default:
		}
	}
}

// Write adds to the text. It waits for nothing and fails never.
func (s *Stream) Write(text string) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.text += text
	}
	s.mu.Unlock()
	if !over {
		s.nudge()
	}
}

// Close ends the stream and waits until nothing is under way any more. The message
// stays as it is, for Post to finish or [Poster.Unstream] to remove.
func (s *Stream) Close() {
	s.once.Do(func() { close(s.end) })
	<-s.done
}

// run shows what is written, until the stream is closed or too old.
func (s *Stream) run(ctx context.Context, before *Stream) {
	defer func() {
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		close(s.done)
	}()
	if before != nil {
		before.Close()
	}
	age := time.NewTimer(streamFor)
	defer age.Stop()
	pace := time.NewTicker(streamEvery)
	defer pace.Stop()
	for {
		select {
		case <-s.more:
			if err := s.show(ctx); err != nil {
				s.p.api.o.Logger.Debug("slack_stream_ended", "conversation", s.c.Key(), "error", err)
				return
			}
		case <-age.C:
			return
		case <-s.end:
			return
		case <-ctx.Done():
			return
		}
		select { // what comes sooner is added to what is shown next
		case <-pace.C:
		case <-age.C:
			return
		case <-s.end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// show adds what is new. An error ends the stream.
func (s *Stream) show(ctx context.Context) error {
	s.mu.Lock()
	text := steady(guarded(s.text))
	s.mu.Unlock()
	if text = strings.TrimLeft(text, "\n"); units(text) > maxPart || !strings.HasPrefix(text, s.shown) {
		return errors.New("the text is longer than one message")
	}
	fresh := text[len(s.shown):]
	if strings.TrimSpace(fresh) == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, streamCall)
	defer cancel()
	if s.ts == "" {
		err := s.start(ctx)
		if refusedForNow(err) && s.p.api.o.Notes.SetNote(ctx, s.key, "", streamKnown) == nil {
			s.nudge()
			return nil
		}
		if err != nil {
			return err
		}
	}
	err := s.p.api.call(ctx, Draw{Method: "chat.appendStream", Place: s.c.Place, Priority: Edit}, 0, func(ctx context.Context) error {
		_, _, err := s.p.api.sdk.AppendStreamContext(ctx, s.c.Place, s.ts, slack.MsgOptionMarkdownText(fresh))
		return err
	})
	switch {
	case err == nil:
		s.shown = text
	case refusedForNow(err):
		s.nudge() // certainly not added; it goes along with what is next
		return nil
	default:
		s.dead = true
	}
	return err
}

// refusedForNow reports whether a call certainly did nothing and may do it later.
func refusedForNow(err error) bool {
	var pe *adapters.PostError
	return errors.As(err, &pe) && pe.Kind == adapters.RetryPost
}

func (s *Stream) nudge() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// start makes the message, and notes which it is before it gets a text. That one is
// about to be made is noted before: whoever finds only that looks for an empty
// message.
func (s *Stream) start(ctx context.Context) error {
	me, err := s.p.api.identity(ctx)
	if err != nil {
		return err
	}
	notes := s.p.api.o.Notes
	if err := s.p.clear(ctx, s.c, s.key); err != nil {
		return err
	}
	if err := notes.SetNote(ctx, s.key, begun+" "+stamp(s.p.api.o.Now().Add(-clocksDiffer)), streamKnown); err != nil {
		return err
	}
	ts := ""
	err = s.p.api.call(ctx, Draw{Method: "chat.startStream", Place: s.c.Place, Priority: Edit}, 0, func(ctx context.Context) (err error) {
		_, ts, err = s.p.api.sdk.StartStreamContext(ctx, s.c.Place,
			slack.MsgOptionTS(s.c.Thread), slack.MsgOptionRecipientUserID(s.recipient), slack.MsgOptionRecipientTeamID(me.TeamID))
		return err
	})
	if err != nil {
		return err
	}
	s.ts = ts
	return notes.SetNote(ctx, s.key, ts, streamKnown)
}

// steady is the part of a text that stays as it is whatever follows: no rune and
// no mark that rings somebody is cut in two.
func steady(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(text[len(text)-n:]) {
				text = text[:len(text)-n]
			}
			break
		}
	}
	const longest = len("<!subteam^")
	if i := strings.LastIndexByte(text, '<'); i >= 0 && len(text)-i < longest {
		return text[:i]
	}
	return text
}

// settle makes of a streamed message what was committed. It returns the message
// when that is now shown, and "" when nothing is, so that it is to be posted.
func (p *Poster) settle(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	key := streamKey(c, part.ReplyID)
	if s := p.closeStream(key); s != nil {
		note, err := p.api.o.Notes.Note(ctx, key)
		if err == nil && s.ts != "" && note == s.ts && !s.dead && strings.HasPrefix(part.Text, s.shown) {
			id, err := p.stop(ctx, c, s, part)
			if err == nil {
				// Nothing is removed any more. If this fails, the part is recorded all the same.
				_ = p.api.o.Notes.SetNote(ctx, key, "", streamKnown)
				return id, nil
			}
			var pe *adapters.PostError
			if !errors.As(err, &pe) || pe.Kind == adapters.UnknownPost {
				return "", err
			}
		}
	}
	return "", p.uncover(ctx, c, part.ReplyID, key)
}

// uncover clears the place for a reply. What cannot be removed, now or ever, must
// not keep the reply from being posted.
func (p *Poster) uncover(ctx context.Context, c chat.Conversation, replyID, key string) error {
	err := p.clear(ctx, c, key)
	var pe *adapters.PostError
	switch {
	case err == nil:
		return nil
	case lasting(err):
		p.api.o.Logger.Warn("slack_stream_not_removed", "conversation", c.Key(), "reply", replyID, "error", err)
		return p.api.o.Notes.SetNote(ctx, key, "", streamKnown)
	case errors.As(err, &pe):
		return unseen(err)
	}
	return &adapters.PostError{Kind: adapters.RetryPost, Err: err}
}

// lasting reports whether trying again would not help.
func lasting(err error) bool {
	switch code(err) {
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "":
		return errors.Is(err, errTooMany)
	}
	return !refusedForNow(err)
}

// closeStream ends this process' stream of a reply, if there is one, and forgets it.
func (p *Poster) closeStream(key string) *Stream {
	p.mu.Lock()
	s := p.streams[key]
	delete(p.streams, key)
	p.mu.Unlock()
	if s != nil {
		s.Close()
	}
	return s
}

// stop finishes a message with what is missing of a part.
func (p *Poster) stop(ctx context.Context, c chat.Conversation, s *Stream, part adapters.Part) (string, error) {
	options := []slack.MsgOption{stamped(part)}
	if rest := part.Text[len(s.shown):]; rest != "" {
		options = append(options, slack.MsgOptionMarkdownText(rest))
	}
	if list := rows(part.Buttons); len(list) > 0 {
		options = append(options, slack.MsgOptionBlocks(list...))
	}
	err := p.api.call(ctx, Draw{Method: "chat.stopStream", Place: c.Place, Priority: Final}, postPatience, func(ctx context.Context) error {
		_, _, err := p.api.sdk.StopStreamContext(ctx, c.Place, s.ts, options...)
		return err
	})
	return s.ts, err
}

// Unstream removes what a stream has shown of a reply that will not be posted, or
// not as it was shown. It is harmless where there is nothing.
func (p *Poster) Unstream(ctx context.Context, c chat.Conversation, replyID string) error {
	key := streamKey(c, replyID)
	p.closeStream(key)
	if err := p.clear(ctx, c, key); err != nil {
		return fmt.Errorf("remove what was shown of reply %s: %w", replyID, err)
	}
	return nil
}

// seal ends a stream as it is. Slack removes no message that is being streamed.
func (p *Poster) seal(ctx context.Context, c chat.Conversation, ts string) error {
	err := p.api.call(ctx, Draw{Method: "chat.stopStream", Place: c.Place, Priority: Final}, postPatience, func(ctx context.Context) error {
		_, _, err := p.api.sdk.StopStreamContext(ctx, c.Place, ts)
		return err
	})
	if lasting(err) {
		return nil // it is over already, or its removal will tell
	}
	return err
}

// clear removes the message of a stream, whoever began it.
func (p *Poster) clear(ctx context.Context, c chat.Conversation, key string) error {
	ts, err := p.api.o.Notes.Note(ctx, key)
	if err != nil || ts == "" {
		return err
	}
	if since, ok := strings.CutPrefix(ts, begun+" "); ok {
		at, _ := stampTime(since)
		// One of ours that says nothing is of no use to anybody.
		if ts, err = p.find(ctx, c, at, func(m post) bool { return m.empty() }); err != nil {
			return err
		}
	}
	if ts != "" {
		if err := p.seal(ctx, c, ts); err != nil {
			return err
		}
		if err := p.remove(ctx, Draw{Method: "chat.delete", Place: c.Place, Priority: Final}, c, ts); err != nil {
			return err
		}
	}
	return p.api.o.Notes.SetNote(ctx, key, "", streamKnown)
}
