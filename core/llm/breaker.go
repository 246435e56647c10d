package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrOpen is matched by errors of calls that a [Breaker] did not let through.
var ErrOpen = errors.New("the model's breaker is open")

// A BreakerState says what a breaker lets through.
type BreakerState int

// The states of a breaker. The zero state is invalid.
const (
	Closed   BreakerState = 1 // everything
	Open     BreakerState = 2 // nothing, until it is time to probe
	HalfOpen BreakerState = 3 // one call at a time, the probe
)

// String names the state as status and metrics spell it.
func (s BreakerState) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	}
	return "unknown"
}

// BreakerOptions tune a Breaker. The zero value works.
type BreakerOptions struct {
	Failures int           // failures in a row that open it; default 5
	OpenFor  time.Duration // how long it stays open the first time; twice as long after each failed probe; default 15 s
	Longest  time.Duration // the longest it stays open; default 5 min
	// Slow is how long a call must have run for its caller's deadline to count
	// against the endpoint and not against the caller's haste; default 10 s.
	Slow time.Duration
	Now  func() time.Time // default time.Now
	// OnChange hears of each change of a model's state. It is called with the
	// breaker locked and must not call it.
	OnChange func(Health)
}

// A Health is the state of one model at one endpoint.
type Health struct {
	Endpoint, Model string
	State           BreakerState
	Failures        int       // in a row
	Since           time.Time // of the state
	Until           time.Time // when the next probe may go, while Open
	LastError       string    // of the newest failure; "" after a success
}

// A Breaker keeps calls from an endpoint that has failed several times in a
// row, one model apart from the other: it opens, answers at once as Transient
// with the time left, and after that lets one call through at a time until one
// succeeds.
//
// A failure is a Transient or RateLimited error. Any other answer shows that
// the endpoint works. A call that its caller gave up, or that was stopped
// before it reached the endpoint, shows nothing. There is an entry for each
// model name that is asked for; these come from configuration.
type Breaker struct {
	endpoint string
	o        BreakerOptions

	mu     sync.Mutex
	models map[string]*circuit // :: model name -> its state
}

type circuit struct {
	health  Health
	openFor time.Duration
	probing bool
}

// NewBreaker makes a breaker for an endpoint; the label names it in Health.
func NewBreaker(endpoint string, opts BreakerOptions) *Breaker {
	opts.Failures = max(cmp.Or(opts.Failures, 5), 1)
	opts.OpenFor = cmp.Or(opts.OpenFor, 15*time.Second)
	opts.Longest = max(cmp.Or(opts.Longest, 5*time.Minute), opts.OpenFor)
	opts.Slow = cmp.Or(opts.Slow, 10*time.Second)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Breaker{endpoint: endpoint, o: opts, models: map[string]*circuit{}}
}

// Health gives the state of every model asked for so far, by name.
func (b *Breaker) Health() []Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Health, 0, len(b.models))
	for _, c := range b.models {
		out = append(out, c.health)
	}
	slices.SortFunc(out, func(x, y Health) int { return strings.Compare(x.Model, y.Model) })
	return out
}

// Model wraps a model of the breaker's endpoint.
func (b *Breaker) Model(next Model) Model { return guarded{b, next} }

// Gate wraps a model so that calls which the breaker would turn away are
// answered before they wait for anything. It lets a probe pass but does not
// begin one: that is done where the call is made, by [Breaker.Model] further in.
func (b *Breaker) Gate(next Model) Model { return gated{b, next} }

type gated struct {
	b    *Breaker
	next Model
}

// Complete implements [Model].
func (g gated) Complete(ctx context.Context, req Request) (Response, error) {
	if _, err := g.b.enter(req.Model, false); err != nil {
		return Response{}, err
	}
	return g.next.Complete(ctx, req)
}

type guarded struct {
	b    *Breaker
	next Model
}

// Complete implements [Model].
func (g guarded) Complete(ctx context.Context, req Request) (Response, error) {
	probe, err := g.b.enter(req.Model, true)
	if err != nil {
		return Response{}, err
	}
	start := g.b.o.Now()
	told := false
	defer func() {
		if !told { // the model panicked: the probe must not stay taken
			g.b.leave(req.Model, probe, silent, nil)
		}
	}()
	res, err := g.next.Complete(ctx, req)
	told = true
	g.b.leave(req.Model, probe, g.b.judge(ctx, start, err), err)
	return res, err
}

// A verdict is what a call showed of its endpoint.
type verdict int

const (
	works  verdict = 1
	fails  verdict = 2
	silent verdict = 3 // nothing
)

func (b *Breaker) judge(ctx context.Context, start time.Time, err error) verdict {
	var e *Error
	switch {
	case err == nil:
		return works
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && b.o.Now().Sub(start) >= b.o.Slow:
		return fails
	case ctx.Err() != nil, !errors.As(err, &e), errors.Is(err, errUnsent), e.Kind == OverBudget:
		return silent
	case e.Kind.passing():
		return fails
	}
	return works
}

// enter asks for one call. With begin, a call that is due as a probe is it.
func (b *Breaker) enter(model string, begin bool) (probe bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.o.Now()
	c := b.models[model]
	if c == nil {
		c = &circuit{health: Health{Endpoint: b.endpoint, Model: model, State: Closed, Since: now}}
		b.models[model] = c
	}
	left := c.health.Until.Sub(now)
	switch {
	case c.health.State == Closed:
		return false, nil
	case c.health.State == HalfOpen && !c.probing || c.health.State == Open && left <= 0:
		if begin {
			c.probing = true
			b.change(c, HalfOpen)
		}
		return begin, nil
	case c.health.State == HalfOpen:
		left = time.Second // the probe tells soon
	}
	return false, &Error{Kind: Transient, RetryAfter: left, Err: fmt.Errorf("%s at %s after %d failures in a row, the last: %s: %w",
		cmp.Or(model, "the default model"), b.endpoint, c.health.Failures, c.health.LastError, ErrOpen)}
}

// leave records what a call showed.
func (b *Breaker) leave(model string, probe bool, v verdict, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.models[model]
	if probe {
		c.probing = false
	} else if c.health.State != Closed {
		return // it began before the breaker opened, so it tells nothing new
	}
	switch v {
	case works:
		c.health.Failures, c.health.LastError, c.openFor = 0, "", 0
		b.change(c, Closed)
	case fails:
		c.health.Failures++
		c.health.LastError = clip(err.Error(), maxFaultText)
		if !probe && c.health.Failures < b.o.Failures {
			return
		}
		c.openFor = min(max(2*c.openFor, b.o.OpenFor), b.o.Longest)
		stay := c.openFor
		var e *Error
		if errors.As(err, &e) {
			stay = min(max(stay, e.RetryAfter), b.o.Longest)
		}
		c.health.Until = b.o.Now().Add(stay)
		b.change(c, Open)
	case silent: // a probe that told nothing leaves its place to the next
	}
}

// change tells of a new state; telling the same again is no news.
func (b *Breaker) change(c *circuit, to BreakerState) {
	if c.health.State == to {
		return
	}
	c.health.State, c.health.Since = to, b.o.Now()
	if to != Open {
		c.health.Until = time.Time{}
	}
	if b.o.OnChange != nil {
		b.o.OnChange(c.health)
	}
}
