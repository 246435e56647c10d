package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// RetryOptions bound the attempts at one answer. The zero value works.
type RetryOptions struct {
	Attempts int           // calls at most, the first included; default 4
	Base     time.Duration // about the first pause; each further one is twice as long; default 500 ms
	Longest  time.Duration // the longest pause of our own choice; default 8 s
	Patience time.Duration // the longest wait that an endpoint may ask for; default 20 s

	Rand  func() float64                                   // in [0, 1); default math/rand
	Now   func() time.Time                                 // default time.Now
	Sleep func(ctx context.Context, d time.Duration) error // returns the context's error if that ends first; default a timer

	// OnRetry hears of each pause before it begins; attempt is the one that failed.
	OnRetry func(req Request, attempt int, pause time.Duration, err error)
}

// Retry asks again when a call failed in a way that passes, Transient or
// RateLimited, after a pause.
//
// The pause is never shorter than the endpoint asked for. An error is returned
// at once, so that a fallback can be asked, when the endpoint asks for more than
// Patience, when the caller's deadline comes before the pause would end, and
// when a [Breaker] is open: whoever opened it has waited already.
func Retry(model Model, opts RetryOptions) Model {
	opts.Attempts = max(cmp.Or(opts.Attempts, 4), 1)
	opts.Base = cmp.Or(opts.Base, 500*time.Millisecond)
	opts.Longest = cmp.Or(opts.Longest, 8*time.Second)
	opts.Patience = cmp.Or(opts.Patience, 20*time.Second)
	if opts.Rand == nil {
		opts.Rand = rand.Float64
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Sleep == nil {
		opts.Sleep = sleep
	}
	return &retry{model, opts}
}

type retry struct {
	model Model
	o     RetryOptions
}

// Complete implements [Model].
func (r *retry) Complete(ctx context.Context, req Request) (Response, error) {
	heard := listen(&req)
	var spent Response
	for attempt := 1; ; attempt++ {
		res, err := r.model.Complete(ctx, req)
		res = res.after(spent)
		if err == nil {
			return res, nil
		}
		spent = res.spent()
		var failed *Error
		if !errors.As(err, &failed) || !failed.Kind.passing() || errors.Is(err, ErrOpen) || ctx.Err() != nil {
			return spent, err
		}
		pause := r.pause(attempt, failed.RetryAfter)
		deadline, bounded := ctx.Deadline()
		if attempt == r.o.Attempts || failed.RetryAfter > r.o.Patience || bounded && r.o.Now().Add(pause).After(deadline) {
			return spent, counted(failed, attempt)
		}
		if r.o.OnRetry != nil {
			r.o.OnRetry(req, attempt, pause, err)
		}
		if r.o.Sleep(ctx, pause) != nil {
			return spent, &Error{Kind: Transient, Err: fmt.Errorf("%w while waiting to ask again: %w", stopped(ctx), failed.Err)}
		}
		heard.void()
	}
}

// pause is how long to wait after a failed attempt. Chance keeps those that
// failed together from coming back together.
func (r *retry) pause(attempt int, asked time.Duration) time.Duration {
	own := r.o.Longest
	if shift := attempt - 1; shift < 32 && r.o.Base<<shift < own {
		own = r.o.Base << shift
	}
	own = own/2 + time.Duration(r.o.Rand()*float64(own/2))
	if asked <= 0 {
		return own
	}
	// What was asked for is the least, and a tenth of it more is chance.
	return asked + time.Duration(r.o.Rand()*float64(min(asked/10, time.Second)))
}

// counted says how often a call was tried.
func counted(e *Error, attempts int) error {
	if attempts == 1 {
		return e
	}
	c := *e
	c.Err = fmt.Errorf("after %d attempts: %w", attempts, e.Err)
	return &c
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
