package llm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func prices(t *testing.T, list ...llm.Price) llm.Prices {
	t.Helper()
	p, err := llm.NewPrices(list...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPrices(t *testing.T) {
	t.Parallel()
	p := prices(t,
		llm.Price{Model: "gpt-5", Prompt: 1.25, Cached: 0.125, Completion: 10},
		llm.Price{Model: "gpt-5*", Prompt: 2, Completion: 20},
		llm.Price{Model: "gpt-5-mini*", Prompt: 0.000001, Completion: 0.4},
		llm.Price{Model: "*/free-*-x", Prompt: 0},
	)
	for _, c := range []struct {
		asked, answered string
		u               llm.Usage
		want            int64
		ok              bool
	}{
		{"gpt-5", "gpt-5", llm.Usage{Prompt: 1_000_000, Completion: 1_000_000}, 11_250_000, true},
		{"gpt-5", "gpt-5-2026-01-01", llm.Usage{Prompt: 1000, Cached: 400, Completion: 10}, 900, true}, // 600*1.25 + 400*0.125 + 10*10
		{"gpt-5.2", "", llm.Usage{Prompt: 1000, Cached: 1000}, 2000, true},                             // no price for cached: as prompt
		{"gpt-5-mini", "gpt-5-mini-x", llm.Usage{Prompt: 10, Completion: 3}, 1, true},                  // 0.00001 + 1.2
		{"gpt-5-mini", "", llm.Usage{Prompt: 1_500_000}, 2, true},                                      // 1.5 millionths
		{"openai/free-5-x", "", llm.Usage{Prompt: 10}, 0, true},
		{"openai/free-5-y", "", llm.Usage{Prompt: 10}, 0, false},
		{"claude", "claude", llm.Usage{Prompt: 10}, 0, false},
		{"auto", "gpt-5", llm.Usage{Prompt: 1_000_000}, 1_250_000, true},
		{"", "", llm.Usage{Prompt: 10}, 0, false},
		{"", "gpt-5", llm.Usage{Prompt: 1000}, 1250, true},
	} {
		if got, ok := p.Cost(c.asked, c.answered, c.u); got != c.want || ok != c.ok {
			t.Errorf("%s answered as %s, %+v: %d, %v; want %d, %v", c.asked, c.answered, c.u, got, ok, c.want, c.ok)
		}
	}
	if got, ok := prices(t, llm.Price{Model: "*", Prompt: 3}).Cost("", "", llm.Usage{Prompt: 10}); got != 30 || !ok {
		t.Errorf("a price for everything gives %d, %v", got, ok)
	}
	for _, bad := range [][]llm.Price{
		{{Model: ""}}, {{Model: "a"}, {Model: "a"}}, {{Model: "a", Prompt: -1}}, {{Model: "a", Completion: math.NaN()}}, {{Model: "a", Cached: math.Inf(1)}}, {{Model: "a", Prompt: 1e6}},
	} {
		if _, err := llm.NewPrices(bad...); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func words(_, text string) int { return len(strings.Fields(text)) }

func TestMeter(t *testing.T) {
	t.Parallel()
	calls := []llm.ToolCall{{Name: "f", Arguments: "a b c"}}
	began := &llm.Error{Kind: llm.Transient, Began: true, Err: errors.New("cut")}
	for name, c := range map[string]struct {
		res  llm.Response
		err  error
		want llm.Usage
		cost int64
	}{
		"reported":           {llm.Response{Text: "a b", Usage: llm.Usage{Prompt: 7, Completion: 2}}, nil, llm.Usage{Prompt: 7, Completion: 2}, 9},
		"reported, failed":   {llm.Response{Usage: llm.Usage{Prompt: 7, Completion: 2}}, began, llm.Usage{Prompt: 7, Completion: 2}, 9},
		"silent":             {llm.Response{Text: "a b"}, nil, llm.Usage{Prompt: 22, Completion: 2, Estimated: true}, 24}, // 2×4 + 3 words; 4+1+2+2 of the tool; 2 of the schema
		"silent, with calls": {llm.Response{ToolCalls: calls}, nil, llm.Usage{Prompt: 22, Completion: 8, Estimated: true}, 30},
		"cut":                {llm.Response{Text: "a"}, began, llm.Usage{Prompt: 22, Completion: 1, Estimated: true}, 23},
		"not begun":          {llm.Response{}, &llm.Error{Kind: llm.RateLimited, Err: errors.New("429")}, llm.Usage{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := llm.Meter(llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) { return c.res, c.err }),
				llm.MeterOptions{Count: words, Prices: prices(t, llm.Price{Model: "m", Prompt: 1, Completion: 1})})
			req := ask("hi")
			req.Model = "m"
			req.Tools = []llm.Tool{{Name: "f", Description: "does f", Schema: []byte(`{ }`)}}
			req.Schema = &llm.Schema{Name: "s", Schema: []byte(`{"a": 1}`)}
			got, err := m.Complete(t.Context(), req)
			if !errors.Is(err, c.err) || got.Usage != c.want || got.Cost != c.cost || got.Text != c.res.Text {
				t.Errorf("got %+v, %v; want %+v for %d", got, err, c.want, c.cost)
			}
		})
	}
}

// A model without a price is told of, once; without any prices nobody is.
func TestMeterUnpriced(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := llm.MeterOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), Prices: prices(t, llm.Price{Model: "m"})}
	m := llm.Meter(llmtest.Instant{}, o)
	for _, model := range []string{"x", "x", "m", "y"} {
		req := ask("hi")
		req.Model = model
		if res, err := m.Complete(t.Context(), req); err != nil || !res.Usage.Estimated || res.Usage.Prompt == 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if n := strings.Count(log.String(), "llm_model_unpriced"); n != 2 || !strings.Contains(log.String(), "model=y") {
		t.Errorf("told %d times, want of x and y:\n%s", n, log.String())
	}
	log.Reset()
	o.Prices = llm.Prices{}
	if _, err := llm.Meter(llmtest.Instant{}, o).Complete(t.Context(), ask("hi")); err != nil || log.Len() > 0 {
		t.Errorf("%v, log %q", err, log.String())
	}
}

// A book is a ledger that keeps what it is told.
type book struct {
	refuse, lost error
	warn         []llm.BudgetWarning
	reserved     []llm.Charge
	settled      []llm.Charge
}

func (b *book) Reserve(_ context.Context, c llm.Charge) (llm.Hold, error) {
	b.reserved = append(b.reserved, c)
	return b, b.refuse
}

func (b *book) Settle(ctx context.Context, c llm.Charge) ([]llm.BudgetWarning, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	b.settled = append(b.settled, c)
	return b.warn, b.lost
}

func TestAccount(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := at
	b := &book{warn: []llm.BudgetWarning{{Budget: llm.Budget{Limit: 5}}}}
	meter := llm.MeterOptions{Count: words, Prices: prices(t, llm.Price{Model: "m", Prompt: 1, Completion: 2})}
	var fails error
	m := llm.Account(llm.Meter(llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
		clock = clock.Add(3 * time.Second)
		return llm.Response{Text: "x", Model: "m-2026", Usage: llm.Usage{Prompt: 50, Completion: 10}}, fails
	}), meter), llm.AccountOptions{Ledger: b, Meter: meter, Answer: 100, Now: func() time.Time { return clock }})

	req := ask("hi")
	req.Model, req.User, req.Place, req.Workspace, req.Task, req.Conversation, req.TraceID = "m", "u", "p", "w", "t", "c", "tr"
	got, err := m.Complete(t.Context(), req)
	if err != nil || got.Cost != 70 || len(got.Warnings) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	who := llm.Charge{Time: at, Agent: "thinker", Model: "m", Conversation: "c", User: "u", Place: "p", Workspace: "w", Task: "t", TraceID: "tr"}
	estimate := who
	estimate.Usage, estimate.Cost = llm.Usage{Prompt: 11, Completion: 100, Estimated: true}, 211
	spent := who
	spent.Usage, spent.Cost, spent.Took = llm.Usage{Prompt: 50, Completion: 10}, 70, 3*time.Second
	if d := cmp.Diff([]llm.Charge{estimate}, b.reserved); d != "" {
		t.Errorf("reserved (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]llm.Charge{spent}, b.settled); d != "" {
		t.Errorf("settled (-want +got):\n%s", d)
	}

	// A call that failed or that nobody waits for any more is booked too.
	fails = &llm.Error{Kind: llm.Transient, Err: errors.New("cut")}
	req.MaxTokens = 7
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err = m.Complete(ctx, req); !errors.Is(err, fails) || got.Cost != 70 {
		t.Errorf("got %+v, %v", got, err)
	}
	if last := b.settled[1]; !last.Failed || last.Usage != spent.Usage || b.reserved[1].Usage.Completion != 7 {
		t.Errorf("settled %+v after reserving %+v", last, b.reserved[1])
	}
}

func TestAccountStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse error
		kind   llm.Kind
	}{
		"over budget": {&llm.BudgetError{Budget: llm.Budget{Subject: llm.Subject{Kind: llm.UserSubject, ID: "ann"}, Unit: llm.Money, Limit: 2_000_000, Spent: 2_500_000}}, llm.OverBudget},
		"cannot tell": {errors.New("redis is away"), llm.Transient},
	} {
		b := &book{refuse: c.refuse}
		inner := llmtest.NewScripted(llmtest.Say("never"))
		_, err := llm.Account(inner, llm.AccountOptions{Ledger: b}).Complete(t.Context(), ask("hi"))
		if e := kindOf(t, err); e.Kind != c.kind || !errors.Is(err, c.refuse) || len(inner.Requests()) != 0 || len(b.settled) != 0 {
			t.Errorf("%s: %v with %d calls and %d bookings", name, err, len(inner.Requests()), len(b.settled))
		}
		var over *llm.BudgetError
		if errors.As(err, &over) != (c.kind == llm.OverBudget) {
			t.Errorf("%s: %v as a *BudgetError: %v", name, err, over)
		} else if over != nil && !strings.Contains(err.Error(), "user ann: 2.50 of 2.00 spent") {
			t.Errorf("the error says %v", err)
		}
	}
}

// A booking that is lost is told of; the answer is not withheld for it.
func TestAccountLost(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := &book{lost: errors.New("too many wait")}
	m := llm.Account(llmtest.Instant{}, llm.AccountOptions{Ledger: b, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if got, err := m.Complete(t.Context(), ask("hi")); err != nil || got.Text != "ok" || !strings.Contains(log.String(), "llm_booking_lost") {
		t.Errorf("got %+v, %v; log %s", got, err, log.String())
	}
}

func TestBudgetText(t *testing.T) {
	t.Parallel()
	b := llm.Budget{Subject: llm.Subject{Kind: llm.TaskSubject, ID: "t1"}, Unit: llm.Tokens, Limit: 100, Spent: 90}
	if got := b.String(); got != "budget of task t1: 90 of 100 tokens spent" {
		t.Errorf("%q", got)
	}
	b.Resets = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	if got := b.String(); !strings.HasSuffix(got, "until 2026-11-22T00:00:00Z") {
		t.Errorf("%q", got)
	}
}
