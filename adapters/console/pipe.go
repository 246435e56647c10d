package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mimikit/core/feed"
)

// inFlight is how many messages of a pipe may wait for their answers before the
// next is sent. It is as many as one turn takes, and far below where a
// conversation is full.
const inFlight = 100

// pipe sends what comes from an input that no person types.
func (t *Terminal) pipe(ctx context.Context) error {
	lines, stop := t.input(ctx)
	defer stop()
	return t.converse(ctx, lines)
}

// converse sends each line, waits for all answers, and says what went wrong.
func (t *Terminal) converse(ctx context.Context, lines <-chan string) error {
	ctx, cancel := context.WithCancel(ctx)
	s := t.newSession(t.newLineScreen(false), false)
	missed, err := s.missed(ctx, 1)
	if err != nil {
		cancel()
		return err
	}
	var following sync.WaitGroup
	following.Go(func() { s.follow(ctx, missed.At) })
	defer following.Wait()
	defer cancel()

	failed, err := s.sendAll(ctx, lines)
	if err == nil {
		err = s.await(ctx, 0)
	}
	if len(missed.Entries) == 0 {
		s.keepCursor(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return err
	case s.refused > 0:
		return fmt.Errorf("%d of the messages were refused; the reasons are above", s.refused)
	case failed > 0:
		return fmt.Errorf("%d of the commands failed; the reasons are above", failed)
	}
	return nil
}

// missed reads what was said since a terminal last showed something, however
// long the store is away, until the wait for an answer would be over.
func (s *session) missed(ctx context.Context, most int) (m feed.Missed, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.t.o.Wait, fmt.Errorf("%w: the store was away for %v", ErrNoAnswer, s.t.o.Wait))
	defer cancel()
	err = s.insist(ctx, func(ctx context.Context) (err error) {
		m, err = s.t.o.Feed.Missed(ctx, s.t.talk.Key(), reader, most)
		return err
	})
	return m, err
}

// sendAll sends lines until there are no more or one says /quit, and counts the
// commands that failed.
func (s *session) sendAll(ctx context.Context, lines <-chan string) (failed int, err error) {
	for {
		var line string
		var more bool
		select {
		case line, more = <-lines:
		case <-ctx.Done():
			return failed, s.interrupted(context.Cause(ctx))
		}
		if !more {
			return failed, nil
		}
		switch command, message := parse(line); {
		case command == "/quit":
			return failed, nil
		case command != "":
			if !s.command(ctx, command, message) {
				failed++
			}
		default:
			if err := s.await(ctx, inFlight-1); err != nil {
				return failed, err
			}
			if err := s.sendInTime(ctx, message); err != nil {
				return failed, err
			}
		}
	}
}

func (s *session) sendInTime(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.t.o.Wait, fmt.Errorf("%w: the message could not be stored within %v", ErrNoAnswer, s.t.o.Wait))
	defer cancel()
	s.queue()
	return s.send(ctx, s.message(text))
}

// await waits until at most some messages are not answered. It gives up when
// none was answered for as long as the options say.
func (s *session) await(ctx context.Context, most int) error {
	patience := time.NewTimer(s.t.o.Wait)
	defer patience.Stop()
	for {
		n := s.open()
		if n <= most {
			return nil
		}
		select {
		case <-s.news:
			if s.open() < n {
				patience.Reset(s.t.o.Wait)
			}
		case <-patience.C:
			return fmt.Errorf("%w: %d of the messages are without one after %v; they are stored, and the answers are shown when a terminal is next started", ErrNoAnswer, n, s.t.o.Wait)
		case <-ctx.Done():
			return s.interrupted(context.Cause(ctx))
		}
	}
}

// interrupted says what an end before the end leaves open. To be asked to end is
// no failure of itself; that answers are missing is one.
func (s *session) interrupted(cause error) error {
	n := s.open()
	if n == 0 {
		return cause
	}
	err := fmt.Errorf("%w: interrupted while %d of the messages had none; they are stored, and the answers are shown when a terminal is next started", ErrNoAnswer, n)
	if errors.Is(cause, context.Canceled) {
		return err
	}
	return errors.Join(cause, err)
}

// keepCursor records how much of what was said was shown without a gap: what
// others were told meanwhile is still missed.
func (s *session) keepCursor(ctx context.Context) {
	s.mu.Lock()
	last := ""
	for _, e := range s.said {
		if !e.shown {
			break
		}
		last = e.StreamID
	}
	s.mu.Unlock()
	if last != "" {
		s.setCursor(ctx, last)
	}
}
