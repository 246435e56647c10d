package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// A Link is one place of a chain: a model and the name it is asked by.
type Link struct {
	Name  string // the endpoint's label, for errors, logs and its breaker
	Model Model
	// Ask is the model's name; empty asks for what the request names. Where
	// neither names one, an estimate of the cost knows only prices for all.
	Ask string
}

// String names the link as errors do.
func (l Link) String() string { return strings.Trim(l.Name+"/"+l.Ask, "/") }

// FallbackOptions say when a chain goes on. The zero value works.
type FallbackOptions struct {
	// KeepRefusals makes a refusal final. By default the next model is asked,
	// since filters differ.
	KeepRefusals bool
	// OnFallback hears of each step from a link that failed to the next.
	OnFallback func(req Request, from, to Link, err error)
}

// Fallback asks the links in order until one answers. What ends the chain early
// is the end of the caller's context and a spent budget, which no other model
// changes.
//
// When none answers the error has the kind of the first link's failure, since
// that is the model that was meant to answer, names every link with its cause,
// and asks to wait for the link that may be back soonest. A link that would
// repeat one that was asked already, by the same name at the same endpoint, is
// passed over. [Response.Model] and [Response.Endpoint] say which one answered.
func Fallback(opts FallbackOptions, links ...Link) Model { return &fallback{opts, links} }

type fallback struct {
	o     FallbackOptions
	links []Link
}

// Complete implements [Model].
func (f *fallback) Complete(ctx context.Context, req Request) (Response, error) {
	heard := listen(&req)
	var spent Response
	var failed chainError
	asked := map[string]bool{}
	for _, link := range f.links {
		link.Ask = cmp.Or(link.Ask, req.Model)
		if name := link.String(); link.Name != "" {
			if asked[name] {
				continue
			}
			asked[name] = true
		}
		if n := len(failed); n > 0 {
			if f.o.OnFallback != nil {
				f.o.OnFallback(req, failed[n-1].link, link, failed[n-1].err)
			}
			heard.void()
		}
		call := req
		call.Model = link.Ask
		res, err := link.Model.Complete(ctx, call)
		res = res.after(spent)
		if err == nil {
			return res, nil
		}
		spent = res.spent()
		failed = append(failed, linkError{link, err})
		if ctx.Err() != nil || f.final(err) {
			break
		}
	}
	if len(failed) == 0 {
		return spent, &Error{Kind: Fatal, Err: errors.New("no model is configured")}
	}
	return spent, failed.sorted()
}

// final reports whether no other link could do better.
func (f *fallback) final(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Kind == OverBudget || e.Kind == Refused && f.o.KeepRefusals
}

type linkError struct {
	link Link
	err  error
}

// A chainError is the failures of all links that were asked.
type chainError []linkError

// Error names every link and its cause.
func (c chainError) Error() string {
	parts := make([]string, len(c))
	for i, f := range c {
		parts[i] = fmt.Sprintf("%s: %v", cmp.Or(f.link.String(), fmt.Sprintf("model %d", i+1)), f.err)
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the causes, the first link's first.
func (c chainError) Unwrap() []error {
	errs := make([]error, len(c))
	for i, f := range c {
		errs[i] = f.err
	}
	return errs
}

func (c chainError) sorted() error {
	last := c[len(c)-1].err
	if len(c) == 1 {
		return last
	}
	var over *Error
	if errors.As(last, &over) && over.Kind == OverBudget {
		return &Error{Kind: OverBudget, Err: c}
	}
	out := &Error{Kind: Fatal, Err: c}
	for i, f := range c {
		var e *Error
		if !errors.As(f.err, &e) {
			continue
		}
		if i == 0 {
			out.Kind = e.Kind
		}
		out.Began = out.Began || e.Began
		if e.Kind.passing() && e.RetryAfter > 0 && (out.RetryAfter == 0 || e.RetryAfter < out.RetryAfter) {
			out.RetryAfter = e.RetryAfter
		}
	}
	return out
}
