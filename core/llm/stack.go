package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// StackOptions are the parts of a Stack. Links is needed; everything else may be
// left at its zero value, which leaves the part out or takes its defaults.
type StackOptions struct {
	// Links are asked in order. A link's Model is the bare endpoint; links of
	// one Name are one endpoint, asked by different names.
	Links []Link

	Limiter  *Limiter // shared by all stacks of a node; nil means no limit
	Ledger   Ledger   // nil means nothing is booked and no budget holds
	Answer   int      // see AccountOptions
	Meter    MeterOptions
	Archive  *ArchiveOptions // nil keeps no calls
	Breaker  BreakerOptions
	Retry    RetryOptions
	Fallback FallbackOptions
	Logger   *slog.Logger // default: none
}

// A Stack is a model that survives what single endpoints do. It is safe for
// concurrent use.
type Stack struct {
	model    Model
	breakers []*Breaker
}

// NewStack puts the wrappers around the endpoints. From the outside in:
//
//	Fallback   one chain for the whole request
//	  Shorten  each model has a window of its own, so each link shortens anew
//	    Retry  each prompt gets its own attempts; the pauses hold no place below
//	      Gate    an open breaker answers before anybody stands in line for it
//	        Limit    a place is held for one real call and no longer
//	          Breaker  counts real calls only, by the time they take themselves
//	            Account  books each real call, and stops it when a budget is spent
//	              Archive  keeps each real call with its figures
//	                Meter    makes the figures whole: estimates and prices
//	                  the endpoint
//
// What is inside of Retry sees every HTTP call by itself, so that the books and
// the archive are right to the call; what is outside sees one request. A spent
// budget passes through all of it: it is not retried, shortened or taken to
// another model, and it tells a breaker nothing.
func NewStack(opts StackOptions) (*Stack, error) {
	if len(opts.Links) == 0 {
		return nil, errors.New("model stack: want at least one link")
	}
	if opts.Meter.Logger == nil {
		opts.Meter.Logger = opts.Logger
	}
	s := &Stack{}
	breakers := map[string]*Breaker{}
	endpoints := map[string]Model{}
	var links []Link
	for i, link := range opts.Links {
		switch {
		case link.Name == "":
			return nil, fmt.Errorf("model stack: link %d of %d has no name", i+1, len(opts.Links))
		case link.Model == nil:
			return nil, fmt.Errorf("model stack: link %q has no model", link.Name)
		}
		if endpoints[link.Name] == nil {
			endpoints[link.Name] = opts.metered(link.Model)
			breakers[link.Name] = NewBreaker(link.Name, opts.Breaker)
			s.breakers = append(s.breakers, breakers[link.Name])
		}
		b := breakers[link.Name]
		m := b.Model(endpoints[link.Name])
		if opts.Limiter != nil {
			m = opts.Limiter.Model(m)
		}
		link.Model = Shorten(Retry(b.Gate(m), opts.Retry))
		links = append(links, link)
	}
	s.model = Fallback(opts.Fallback, links...)
	return s, nil
}

// metered is an endpoint with everything that belongs around each real call.
func (o StackOptions) metered(endpoint Model) Model {
	m := Meter(endpoint, o.Meter)
	if o.Archive != nil {
		m = Archive(m, *o.Archive)
	}
	if o.Ledger != nil {
		m = Account(m, AccountOptions{Ledger: o.Ledger, Meter: o.Meter, Answer: o.Answer, Logger: o.Logger})
	}
	return m
}

// Complete implements [Model].
func (s *Stack) Complete(ctx context.Context, req Request) (Response, error) {
	return s.model.Complete(ctx, req)
}

// Health gives the state of every model asked for so far, endpoint by endpoint.
func (s *Stack) Health() []Health {
	var out []Health
	for _, b := range s.breakers {
		out = append(out, b.Health()...)
	}
	return out
}
