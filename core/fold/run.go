package fold

import (
	"context"
	"errors"
	"sync"
	"time"

	"mimikit/core/history"
)

// Run folds what is offered until ctx ends; then it returns nil. A fold that is
// under way is given up, which changes nothing.
func (f *Folder) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range f.o.Workers {
		workers.Go(func() {
			for f.next(ctx) {
			}
		})
	}
	workers.Wait()
	return nil
}

// next waits until a conversation is due and looks at it. It reports false when
// ctx is done.
func (f *Folder) next(ctx context.Context) bool {
	it, wait := f.queue.take(f.o.Now())
	if it.conversation != "" {
		f.look(ctx, it)
		return ctx.Err() == nil
	}
	var due <-chan time.Time
	if wait >= 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-f.queue.wake:
	}
	return true
}

// look looks at a conversation that was taken and gives it back with the time
// when that is to be done again.
func (f *Folder) look(ctx context.Context, it item) {
	more, err := f.fold(ctx, it)
	now := f.o.Now()
	offered := now.Add(f.o.Pause)
	switch {
	case ctx.Err() != nil:
		f.queue.done(it.conversation, false, offered, offered)
	case errors.Is(err, history.ErrChanged), errors.Is(err, errClaimed):
		// Nothing is wrong, but what is done right away may meet the same again.
		f.o.Logger.Debug("fold_put_off", "conversation", it.conversation, "error", err)
		f.queue.done(it.conversation, false, offered, offered)
	case err != nil:
		wait := f.backoff(it.fails)
		f.o.Logger.Warn("fold_failed", "conversation", it.conversation, "failures", it.fails+1, "retry_in", wait, "error", err)
		f.o.Failed(it.conversation, err)
		f.queue.done(it.conversation, true, now.Add(wait), offered)
	case more:
		f.queue.done(it.conversation, false, now, offered)
	default:
		f.queue.done(it.conversation, false, time.Time{}, offered)
	}
}

// backoff is the wait after so many failures before this one: doubling, and
// anything from half of that on, so that not all conversations that failed
// together are tried together.
func (f *Folder) backoff(fails int) time.Duration {
	wait := f.o.MaxBackoff
	if fails < 30 && f.o.Backoff<<fails>>fails == f.o.Backoff {
		wait = min(wait, f.o.Backoff<<fails)
	}
	return wait - time.Duration(f.o.Rand()%uint64(wait/2))
}
