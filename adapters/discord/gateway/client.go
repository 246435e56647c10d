package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	saveEvery    = time.Second      // while events come
	touchEvery   = 30 * time.Second // while none do
	sessionLimit = 5 * time.Minute  // from a Hello to a READY or RESUMED
	longestWait  = time.Minute      // between attempts
	saveTimeout  = 5 * time.Second
	badFrames    = 3 // at the same place, before the session is given up
)

// A Client keeps one shard connected.
type Client struct {
	o Options

	mu     sync.Mutex // guards the two below against filled
	state  State
	filled int // of the gap that was told last: counts up with each

	saved time.Time // when the state was kept last
	dirty bool      // it has changed since
}

// New makes a Client. It does nothing until Run.
func New(o Options) *Client {
	o.Lookback = cmp.Or(o.Lookback, 12*time.Hour)
	o.Shard.Of = max(o.Shard.Of, 1)
	if o.Gate == nil {
		o.Gate = NewGate()
	}
	if o.Lost == nil {
		o.Lost = func(time.Time, func()) {}
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(string) {}
	}
	return &Client{o: o}
}

// An outcome is how a connection ended.
type outcome struct {
	next     after
	fatal    *Fatal
	err      error
	progress bool          // something new was stored, so the next attempt is a first one
	wait     time.Duration // at least, before the next
	bad      bool          // a frame could not be read
}

// Run stays connected and hands events to the handler until ctx ends, and
// returns its cause then; or a [Fatal], or an error that is [ErrFenced]. The
// session is left so that it can be resumed, here or on another node.
func (c *Client) Run(ctx context.Context, handle Handler) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	failures, bad := 0, 0
	var badAt int64
	for {
		out := c.connect(ctx, handle, failures)
		c.o.Observe("ended")
		if err := c.save(ctx, true); errors.Is(err, ErrFenced) {
			return err
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case out.fatal != nil:
			return out.fatal
		case errors.Is(out.err, ErrFenced):
			return out.err
		}
		failures++
		if out.progress {
			failures, bad = 0, 0
		}
		if out.bad {
			c.o.Observe("bad_frame")
			if bad++; c.now().Seq != badAt {
				bad, badAt = 1, c.now().Seq
			}
			if bad >= badFrames {
				// It comes again with each resume, so nothing would come after it.
				out.next, bad = identify, 0
			}
		}
		if out.next == identify {
			c.forget()
		}
		wait := max(c.backoff(failures), out.wait)
		c.o.Logger.Info("discord_gateway_ended", "shard", c.o.Shard.String(), "error", out.err,
			"resume", c.now().SessionID != "", "retry_in", wait)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// backoff is the wait before the next attempt: short after a connection that got
// on, else from about a second to a minute.
func (c *Client) backoff(failures int) time.Duration {
	jitter := 0.5 + c.o.Rand()/2
	if failures == 0 {
		return time.Duration(jitter * float64(250*time.Millisecond))
	}
	return time.Duration(jitter * float64(min(time.Second<<min(failures-1, 10), longestWait)))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect makes one connection and follows it to its end.
func (c *Client) connect(ctx context.Context, handle Handler, failures int) outcome {
	st := c.now()
	resuming, target := st.SessionID != "", st.ResumeURL
	if !resuming || target == "" || failures >= 3 {
		start, err := c.begin(ctx, !resuming)
		if err != nil {
			var fatal *Fatal
			errors.As(err, &fatal)
			return outcome{next: resume, err: err, fatal: fatal}
		}
		target = start.URL
	}
	l, err := c.dial(ctx, target, st.Seq)
	if err != nil {
		out := c.judge(err)
		out.progress = false
		return out
	}
	var running sync.WaitGroup
	running.Go(func() { l.run(c.o.Rand()) })
	defer running.Wait()
	defer l.end(errLeft, true)
	if l.greeted {
		hello := c.o.identify()
		if resuming {
			hello = c.o.resume(st)
		}
		l.send(hello)
	}
	return c.follow(ctx, l, handle)
}

// begin asks how a session may begin and, when a new one is to begin, waits for
// its turn.
func (c *Client) begin(ctx context.Context, fresh bool) (Start, error) {
	start, err := c.o.Start(ctx)
	if err != nil || !fresh {
		return start, err
	}
	if start.Remaining <= 0 {
		// One more, and Discord resets the bot's token.
		c.o.Logger.Warn("discord_identify_limit", "shard", c.o.Shard.String(), "wait", start.ResetAfter)
		if err := sleep(ctx, max(start.ResetAfter, time.Second)); err != nil {
			return Start{}, err
		}
	}
	if err := c.o.Gate.Identify(ctx, c.o.Shard.ID%max(start.MaxConcurrency, 1)); err != nil {
		return Start{}, fmt.Errorf("wait to identify: %w", err)
	}
	return start, nil
}

// follow takes a link's frames in their order until it ends.
func (c *Client) follow(ctx context.Context, l *link, handle Handler) (out outcome) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	deadline := time.Now().Add(sessionLimit)
	ready, worked := time.Time{}, false
	defer func() { out.progress = worked || !ready.IsZero() && time.Since(ready) > 30*time.Second }()
	for {
		select {
		case <-ctx.Done():
			return outcome{next: resume, err: context.Cause(ctx)}
		case <-tick.C:
			if ready.IsZero() {
				if time.Now().After(deadline) {
					return outcome{next: identify, err: errTooSilent}
				}
				continue
			}
			if len(l.frames) == 0 {
				c.reached(time.Unix(0, l.lastRead.Load()))
			}
			if err := c.save(ctx, false); errors.Is(err, ErrFenced) {
				return outcome{next: resume, err: err}
			}
		case f, open := <-l.frames:
			if !open {
				<-l.over
				return c.judge(l.err)
			}
			switch f.Op {
			case opDispatch:
				if f.Type == "READY" || f.Type == "RESUMED" {
					ready = time.Now()
				}
				did, err := c.dispatch(ctx, l, f, handle)
				if err != nil {
					return c.judge(err)
				}
				worked = worked || did
			case opReconnect:
				c.o.Observe("reconnect")
				return outcome{next: resume, err: errors.New("asked to reconnect")}
			case opInvalidSession:
				c.o.Observe("invalid_session")
				out := outcome{next: identify, err: errors.New("the session is invalid"), wait: time.Second + time.Duration(c.o.Rand()*4*float64(time.Second))}
				if f.resumable() {
					out.next = resume
				}
				return out
			}
		}
	}
}

// errHandler marks that an event could not be stored.
var errHandler = errors.New("store an event")

// dispatch has one event stored. It reports whether that got the session on.
func (c *Client) dispatch(ctx context.Context, l *link, f frame, handle Handler) (bool, error) {
	switch {
	case f.Type == "READY":
		if err := c.ready(ctx, f); err != nil {
			return false, err
		}
	case f.Type == "RESUMED":
		c.o.Observe("resumed")
		c.tellLost()
	case f.Seq != 0 && f.Seq <= c.now().Seq:
		return false, nil // it was stored before
	}
	if err := handle(ctx, Event{Type: f.Type, Seq: f.Seq, Data: f.Data, Received: f.at}); err != nil {
		c.o.Observe("handler_failed")
		return false, fmt.Errorf("%w: %s with sequence %d: %w", errHandler, f.Type, f.Seq, err)
	}
	c.stored(f)
	l.stored.Store(c.now().Seq)
	return f.Type != "READY" && f.Type != "RESUMED", nil
}

// judge sorts the end of a connection.
func (c *Client) judge(err error) outcome {
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &closed):
		next, fatal := afterClose(closed.Code, c.o.Intents)
		c.o.Observe("closed")
		return outcome{next: next, fatal: fatal, err: fmt.Errorf("closed by Discord: %w", err)}
	case errors.Is(err, errZombie):
		c.o.Observe("zombie")
	case errors.Is(err, errBadFrame):
		return outcome{next: resume, err: err, bad: true}
	}
	return outcome{next: resume, err: err}
}
