package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// errUnsent is matched by errors of calls that were stopped before any endpoint
// heard of them.
var errUnsent = errors.New("the call was not made")

// AccountOptions say where calls are booked. Ledger is needed.
type AccountOptions struct {
	Ledger Ledger
	Meter  MeterOptions // estimates and prices, as the meter further in has them
	// Answer is the length of an answer, in tokens, that is set aside where a
	// request sets no MaxTokens; default 1,024.
	Answer  int
	Timeout time.Duration    // for the booking after a call, whose context may have ended; default 5 s
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger     // told of bookings that are lost; default: none
}

// Account books every call, finished, failed or given up, and does not make one
// whose budget is spent. It stands around a [Meter], whose figures it books.
func Account(model Model, opts AccountOptions) Model {
	opts.Meter = opts.Meter.withDefaults()
	opts.Answer = cmp.Or(opts.Answer, 1024)
	opts.Timeout = cmp.Or(opts.Timeout, 5*time.Second)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &account{model, opts}
}

type account struct {
	model Model
	o     AccountOptions
}

// Complete implements [Model].
func (a *account) Complete(ctx context.Context, req Request) (Response, error) {
	start := a.o.Now()
	charge := Charge{
		Time: start, Agent: req.Agent, Model: req.Model, Conversation: req.Conversation,
		User: req.User, Place: req.Place, Workspace: req.Workspace, Task: req.Task, TraceID: req.TraceID,
		Usage: Usage{Prompt: a.o.Meter.prompt(req), Completion: cmp.Or(req.MaxTokens, a.o.Answer), Estimated: true},
	}
	charge.Cost, _ = a.o.Meter.Prices.Cost(req.Model, "", charge.Usage)
	hold, err := a.o.Ledger.Reserve(ctx, charge)
	if err != nil {
		var over *BudgetError
		if errors.As(err, &over) {
			return Response{}, &Error{Kind: OverBudget, Err: err}
		}
		return Response{}, &Error{Kind: Transient, Err: fmt.Errorf("%w: reserve its budget: %w", errUnsent, err)}
	}

	res, err := a.model.Complete(ctx, req)
	charge.Usage, charge.Cost, charge.Failed = res.Usage, res.Cost, err != nil
	charge.Took = a.o.Now().Sub(start)
	charge.Model = cmp.Or(req.Model, res.Model)
	// What was used was used, also when nobody waits for the answer any more.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.o.Timeout)
	defer cancel()
	warnings, lost := hold.Settle(after, charge)
	if lost != nil {
		// The answer is there; to withhold it would not bring the booking back.
		a.o.Logger.Error("llm_booking_lost", "error", lost, "model", charge.Model, "conversation", req.Conversation, "trace_id", req.TraceID,
			"prompt_tokens", charge.Usage.Prompt, "completion_tokens", charge.Usage.Completion, "cost_micros", charge.Cost)
	}
	res.Warnings = append(res.Warnings, warnings...)
	return res, err
}
