package llm

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
)

// MeterOptions say how calls are counted and priced. The zero value works and
// prices nothing.
type MeterOptions struct {
	// Count estimates the tokens of a text for a model, where the endpoint
	// does not say what it used. Default: a third of the bytes, which is too
	// much rather than too little.
	Count  func(model, text string) int
	Prices Prices
	Logger *slog.Logger // told once of each model without a price, when there are prices at all; default: none
}

// perMessage is about what the frame of a message costs, in tokens.
const perMessage = 4

func (o MeterOptions) withDefaults() MeterOptions {
	if o.Count == nil {
		o.Count = func(_, text string) int { return (len(text) + 2) / 3 }
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// prompt estimates the tokens of a request's prompt.
func (o MeterOptions) prompt(req Request) int {
	n := 0
	for _, m := range req.Messages {
		n += perMessage + o.Count(req.Model, m.Content) + o.calls(req.Model, m.ToolCalls)
	}
	for _, t := range req.Tools {
		n += perMessage + o.Count(req.Model, t.Name) + o.Count(req.Model, t.Description) + o.Count(req.Model, string(t.Schema))
	}
	if req.Schema != nil {
		n += o.Count(req.Model, string(req.Schema.Schema))
	}
	return n
}

func (o MeterOptions) calls(model string, calls []ToolCall) int {
	n := 0
	for _, c := range calls {
		n += perMessage + o.Count(model, c.Name) + o.Count(model, c.Arguments)
	}
	return n
}

// Meter fills in what a call used where the endpoint does not say, and what it
// cost. It belongs around one endpoint, so that each real call is priced by
// itself. A call that failed is counted when the endpoint had begun to answer
// ([Error.Began]): what is not known to have been charged is not charged.
func Meter(model Model, opts MeterOptions) Model {
	return &meter{model: model, o: opts.withDefaults()}
}

type meter struct {
	model    Model
	o        MeterOptions
	unpriced sync.Map // :: model names that were told of
}

// Complete implements [Model].
func (m *meter) Complete(ctx context.Context, req Request) (Response, error) {
	res, err := m.model.Complete(ctx, req)
	var failed *Error
	if !res.Usage.known() && (err == nil || errors.As(err, &failed) && failed.Began) {
		res.Usage = Usage{
			Prompt:     m.o.prompt(req),
			Completion: m.o.Count(req.Model, res.Text) + m.o.calls(req.Model, res.ToolCalls),
			Estimated:  true,
		}
	}
	if !res.Usage.known() {
		return res, err
	}
	cost, ok := m.o.Prices.Cost(req.Model, res.Model, res.Usage)
	res.Cost = cost
	if name := cmp.Or(req.Model, res.Model); !ok && len(m.o.Prices.rows) > 0 {
		if _, told := m.unpriced.LoadOrStore(name, true); !told {
			m.o.Logger.Warn("llm_model_unpriced", "model", name, "answered_as", res.Model)
		}
	}
	return res, err
}
