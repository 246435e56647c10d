package worker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"mimikit/core/llm"
)

// A ledger counts what was booked.
type ledger struct {
	refuse bool
	booked []llm.Charge
}

func (l *ledger) Reserve(context.Context, llm.Charge) (llm.Hold, error) {
	if l.refuse {
		return nil, &llm.BudgetError{Budget: llm.Budget{Subject: llm.Subject{Kind: llm.TaskSubject, ID: "t1"}}}
	}
	return l, nil
}

func (l *ledger) Settle(_ context.Context, c llm.Charge) ([]llm.BudgetWarning, error) {
	l.booked = append(l.booked, c)
	return nil, nil
}

func TestExpertIsBooked(t *testing.T) {
	t.Parallel()
	prices, err := llm.NewPrices(llm.Price{Model: "gpt-test", Prompt: 1, Cached: 0.1, Completion: 10})
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{}
	b := newExpertBench(t, "works", func(o *ExpertOptions) { o.Ledger, o.Prices = l, prices })
	out, err := b.do(t.Context())
	if err != nil || len(l.booked) != 1 {
		t.Fatalf("%+v, %v", l.booked, err)
	}
	c := l.booked[0]
	if c.Usage.Prompt != 100 || c.Cost != 155 || out.Usage.Cost != 155 || c.User != "slack/T1/U1" || c.Task != "t1" || c.Failed {
		t.Errorf("booked %+v, told %+v", c, out.Usage)
	}
}

// What is kept for people holds no secret.
func TestExpertScrubs(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := newExpertBench(t, "odd", func(o *ExpertOptions) {
		o.Talks.Scrubber = llm.NewScrubber(o.Endpoint.Key)
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	_, _ = b.do(t.Context())
	if strings.Contains(b.talkFile(), "sk-secret") || strings.Contains(log.String(), "sk-secret") {
		t.Errorf("the key is kept:\n%s\n%s", b.talkFile(), log.String())
	}
}
