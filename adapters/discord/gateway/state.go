package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func (c *Client) load(ctx context.Context) error {
	st, err := c.o.Sessions.Load(ctx, c.o.Shard)
	if err != nil {
		return fmt.Errorf("load the session of shard %s: %w", c.o.Shard, err)
	}
	c.mu.Lock()
	c.state = st
	c.mu.Unlock()
	return nil
}

// now is a copy of the state.
func (c *Client) now() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// ready takes over the session that a READY names. What came between the last
// session and this one may be missing.
func (c *Client) ready(ctx context.Context, f frame) error {
	id, resumeURL, err := f.ready()
	if err != nil {
		return fmt.Errorf("%w: %w", errBadFrame, err)
	}
	now := time.Now().UTC()
	c.mu.Lock()
	lost := c.state.Lost
	if lost.IsZero() {
		lost = c.state.At
	}
	if oldest := now.Add(-c.o.Lookback); lost.Before(oldest) {
		lost = oldest
	}
	c.state = State{SessionID: id, ResumeURL: resumeURL, At: now, Lost: lost}
	c.mu.Unlock()
	c.o.Observe("ready")
	c.dirty = true
	if err := c.save(ctx, true); errors.Is(err, ErrFenced) {
		return err
	}
	c.tellLost()
	return nil
}

// tellLost tells of events that may be missing, if any are.
func (c *Client) tellLost() {
	c.mu.Lock()
	since := c.state.Lost
	c.filled++
	mine := c.filled
	c.mu.Unlock()
	if since.IsZero() {
		return
	}
	c.o.Lost(since, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.filled == mine { // else there is a newer gap, which reaches as far back
			c.state.Lost = time.Time{}
		}
	})
}

// stored counts an event as stored.
func (c *Client) stored(f frame) {
	c.mu.Lock()
	c.state.Seq = max(c.state.Seq, f.Seq)
	c.mu.Unlock()
	c.dirty = true
	c.reached(f.at)
}

// reached notes until when all is stored.
func (c *Client) reached(at time.Time) {
	c.mu.Lock()
	if at = at.UTC(); at.After(c.state.At) {
		c.state.At = at
	}
	c.mu.Unlock()
}

// forget ends the session; the next connection begins a new one. When it ended
// stays known.
func (c *Client) forget() {
	c.mu.Lock()
	c.state.SessionID, c.state.ResumeURL, c.state.Seq = "", "", 0
	c.mu.Unlock()
	c.dirty = false // what is kept is no worse: a resume of it fails, and leads here again
}

// save keeps the state, when it is time or at once. That it fails is no loss by
// itself: what is kept is then only older.
func (c *Client) save(ctx context.Context, now bool) error {
	every := touchEvery
	if c.dirty {
		every = saveEvery
	}
	st := c.now()
	if st.SessionID == "" || now && !c.dirty || !now && time.Since(c.saved) < every {
		return nil
	}
	// A stop must not keep the last state from being kept.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if err := c.o.Sessions.Save(ctx, c.o.Shard, c.o.Fence, st); err != nil {
		if !errors.Is(err, ErrFenced) {
			c.o.Logger.Warn("discord_session_not_saved", "shard", c.o.Shard.String(), "error", err)
		}
		return fmt.Errorf("save the session of shard %s: %w", c.o.Shard, err)
	}
	c.saved, c.dirty = time.Now(), false
	return nil
}
