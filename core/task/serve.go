package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// begin starts the run that a claim has begun.
func (p *Pool) begin(rest context.Context, got *taken) {
	t := got.task
	r := p.q.newRun(rest, got.p, got.token, t)
	if p.late(rest, r, got.at) {
		return
	}
	p.mu.Lock()
	p.runs[got.token] = r
	p.busy[t.Profile]++
	p.mu.Unlock()
	runner := p.o.Runners[t.Profile]
	if got.err != nil {
		runner = func(context.Context, *Run) (Outcome, error) { return Outcome{}, Final(got.err) }
	} else if p.o.Held != nil {
		if wait := p.o.Held(t); wait > 0 {
			p.serving.Go(func() {
				p.serve(rest, r, func(context.Context, *Run) (Outcome, error) { return Outcome{}, &putOff{wait} })
			})
			return
		}
	}
	p.log.Info("worker_start", "node", p.o.Node, "task_id", t.ID, "profile", t.Profile, "attempt", t.Attempts,
		"prompt_chars", max(len(t.Prompt), t.PromptSize), "conversation", t.Conversation, "trace_id", t.TraceID)
	if p.o.Hooks.Started != nil {
		p.o.Hooks.Started(t)
	}
	p.serving.Go(func() { p.serve(rest, r, runner) })
}

// late sees to a run whose claim took so long that it may count as silent by now:
// it is shown first, and not begun when that fails.
func (p *Pool) late(ctx context.Context, r *Run, at time.Time) bool {
	lease := p.q.o.Lease
	if time.Since(at) >= lease/4 {
		at = time.Now()
		status, err := p.q.shows(ctx, r.p, lease/4, []*Run{r})
		if err != nil || status[0] == "lost" {
			p.log.Warn("task_claimed_too_late", "node", p.o.Node, "task_id", r.Task.ID, "error", err)
			r.cancel(ErrLapsed)
			return true
		}
	}
	r.begun = at
	r.alarm = time.AfterFunc(lease*2/3-time.Since(at), func() { r.cancel(ErrLapsed) })
	return false
}

// serve runs a run to its end and settles it.
func (p *Pool) serve(rest context.Context, r *Run, runner Runner) {
	type end struct {
		outcome Outcome
		err     error
	}
	began := time.Now()
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if r.Task.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, r.Task.Timeout, ErrTimedOut)
		r.ctx = ctx
	}
	defer cancel()
	ended := make(chan end, 1)
	go func() {
		o, err := p.safely(ctx, r, runner)
		ended <- end{o, err}
	}()
	var e end
	select {
	case e = <-ended:
	case <-ctx.Done():
		patience := time.NewTimer(p.o.Grace)
		select {
		case e = <-ended:
		case <-patience.C:
			e.err = fmt.Errorf("the worker did not end within %s: %w", p.o.Grace, context.Cause(ctx))
			p.log.Error("worker_deaf", "node", p.o.Node, "task_id", r.Task.ID, "profile", r.Task.Profile, "cause", context.Cause(ctx))
		}
		patience.Stop()
	}
	if e.outcome.Ask != nil && e.outcome.Ask.ID == "" {
		ask := *e.outcome.Ask
		ask.ID = "q" + DeriveID(p.q.is.now(), r.p, r.Task.ID, r.token)[1:]
		e.outcome.Ask = &ask
	}
	var held *putOff
	to, err := r.settle(rest, judge(e.outcome, e.err, context.Cause(ctx), r.Task.Timeout))
	p.end(r)
	took := time.Since(began)
	attrs := []any{"node", p.o.Node, "task_id", r.Task.ID, "profile", r.Task.Profile, "attempt", r.Task.Attempts,
		"status", to, "took", took.Round(time.Millisecond), "conversation", r.Task.Conversation, "trace_id", r.Task.TraceID}
	switch {
	case errors.Is(err, errNotOurs):
		p.log.Warn("worker_lost", append(attrs, "cause", context.Cause(ctx))...)
	case err != nil:
		p.log.Error("worker_unsettled", append(attrs, "error", err)...) // it lapses, and is run again
	case errors.As(e.err, &held): // it was never begun
		p.log.Debug("task_put_off", append(attrs, "for", held.wait)...)
		return
	case to == Deferred:
		p.log.Warn("worker_retry", append(attrs, "error", e.err)...)
	default:
		p.log.Info("worker_end", append(attrs, "error", e.err)...)
	}
	switch h := p.o.Hooks; {
	case errors.As(e.err, &held): // nor was anybody told that it began
	case err == nil && h.Ended != nil:
		h.Ended(r.Task, to, took)
	case err != nil && h.Lost != nil:
		h.Lost(r.Task)
	}
}

// end makes room.
func (p *Pool) end(r *Run) {
	r.alarm.Stop()
	r.cancel(nil)
	p.mu.Lock()
	delete(p.runs, r.token)
	bound, bounded := p.o.MaxByProfile[r.Task.Profile]
	full := bounded && p.busy[r.Task.Profile] >= bound
	p.busy[r.Task.Profile]--
	p.mu.Unlock()
	if full {
		p.board.hearAll() // what was passed over for its profile may go now
	}
	nudge(p.poke)
}

// safely turns a panic of a runner into an error, so that one task cannot take the
// node down.
func (p *Pool) safely(ctx context.Context, r *Run, runner Runner) (o Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("worker_panicked", "node", p.o.Node, "task_id", r.Task.ID, "profile", r.Task.Profile, "panic", v, "stack", string(debug.Stack()))
			o, err = Outcome{}, fmt.Errorf("the worker panicked: %v", v)
		}
	}()
	return runner(ctx, r)
}
