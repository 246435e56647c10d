package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/config"
	"mimikit/core/action"
	"mimikit/core/llm"
	"mimikit/core/tokens"
)

// TestEvals plays the scenarios with a real model and prints how it did, by
// kind. It costs money and its outcome is the model's, so it is asked for:
//
//	EVALS=1 MIMIKIT_LLM_KEY=… MIMIKIT_LLM_MODEL=… go test -run TestEvals -v -timeout 30m ./cmd/mimikit
//
// EVALS says how often each scenario is played, EVALS_ONLY is a regexp of names
// and kinds, EVALS_LEAST the percentage below which the test fails. All settings
// of MIMIKIT_LLM_ count, prices among them.
func TestEvals(t *testing.T) {
	asked := os.Getenv("EVALS")
	if asked == "" {
		t.Skip("EVALS is not set")
	}
	if os.Getenv("CI") != "" {
		t.Skip("a real model is not for CI")
	}
	times, err := strconv.Atoi(asked)
	if err != nil || times < 1 {
		t.Fatalf("EVALS: %q; want how often each scenario is played, from 1", asked)
	}
	least, err := strconv.Atoi(cmp.Or(os.Getenv("EVALS_LEAST"), "0"))
	if err != nil {
		t.Fatalf("EVALS_LEAST: %v", err)
	}
	only, err := regexp.Compile(os.Getenv("EVALS_ONLY"))
	if err != nil {
		t.Fatalf("EVALS_ONLY: %v", err)
	}
	cfg, err := config.Load("", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	e := &evaluation{stage: newStage(t), Times: times, Workers: 4, Scenarios: slices.DeleteFunc(readScenarios(t), func(s *scenario) bool {
		return !only.MatchString(s.name) && !only.MatchString(s.Kind)
	})}
	score, err := e.run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := score.print(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if passed, all := score.total(); all == 0 || passed*100 < least*all {
		t.Errorf("%d of %d passed; want %d %%", passed, all, least)
	}
}

// An evaluation plays scenarios with a model of an endpoint.
type evaluation struct {
	*stage
	Scenarios []*scenario
	Times     int // each is played
	Workers   int // conversations at the same time

	Begins func(*scenario) // told of each play; nil means nobody is
}

// A play is one scenario's run.
type play struct {
	s     *scenario
	o     *outcome
	wrong []string
}

// A score is what came of an evaluation.
type score struct {
	model    string
	currency string
	plays    []play // by kind and name
}

var errNoEndpoint = errors.New("no endpoint is configured; set MIMIKIT_LLM_KEY or MIMIKIT_LLM_BASE_URL, and MIMIKIT_LLM_MODEL")

// run plays all. An error is of the wiring; what the model does wrong is in the
// score.
func (e *evaluation) run(ctx context.Context, cfg config.Config) (*score, error) {
	if !cfg.LLM.Configured() {
		return nil, errNoEndpoint
	}
	m, err := chooseModel(ctx, cfg)
	if err != nil {
		return nil, err
	}
	prices, err := priceList(cfg.LLM.Prices)
	if err != nil {
		return nil, err
	}
	stack, err := llm.NewStack(llm.StackOptions{
		Links: m.links, Meter: llm.MeterOptions{Count: tokens.Count, Prices: prices},
		Retry: llm.RetryOptions{Attempts: cfg.LLM.Attempts, Patience: max(cfg.LLM.MaxWait, time.Nanosecond)},
	})
	if err != nil {
		return nil, err
	}
	w := way{Model: stack, Style: action.Native, Names: config.Models{Teller: m.name(cfg.LLM.Models.Teller), Thinker: m.name(cfg.LLM.Models.Thinker)}}
	if cfg.LLM.Actions == config.BlockActions {
		w.Style = action.Block
	}
	out := &score{model: m.describe, currency: cfg.Budgets.Currency}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(e.Workers, 1))
	for n := range e.Times {
		for _, s := range e.Scenarios {
			g.Go(func() error {
				if e.Begins != nil {
					e.Begins(s)
				}
				w := w
				w.Prefix = fmt.Sprintf("run%d-", n)
				o, err := e.play(ctx, s, w)
				if err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				out.plays = append(out.plays, play{s, o, s.judge(o)})
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.plays, func(a, b play) int {
		return cmp.Or(cmp.Compare(slices.Index(scenarioKinds, a.s.Kind), slices.Index(scenarioKinds, b.s.Kind)), cmp.Compare(a.s.name, b.s.name))
	})
	return out, nil
}

func (sc *score) total() (passed, all int) {
	for _, p := range sc.plays {
		if len(p.wrong) == 0 {
			passed++
		}
	}
	return passed, len(sc.plays)
}

// print writes what failed and why, and then the table.
func (sc *score) print(out io.Writer) error {
	for _, p := range sc.plays {
		if len(p.wrong) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(out, "FAILED %s (%s)\n  - %s\n  reply: %s\n  done: %v\n", p.s.name, p.s.About,
			strings.Join(p.wrong, "\n  - "), strings.ReplaceAll(p.o.Reply, "\n", "\n         "), p.o.Done); err != nil {
			return err
		}
	}
	passed, all := sc.total()
	if _, err := fmt.Fprintf(out, "\n%s: %d of %d passed\n\n", sc.model, passed, all); err != nil {
		return err
	}
	t := newTable("KIND", "PASSED", "CALLS", "MISTAKES", "PROMPT", "CACHED", "ANSWER", "COST "+sc.currency, "SECONDS")
	for _, kind := range append(slices.Clone(scenarioKinds), "") {
		var right, n, calls, mistakes int
		var u llm.Usage
		var cost int64
		var took time.Duration
		for _, p := range sc.plays {
			if kind != "" && p.s.Kind != kind {
				continue
			}
			if n++; len(p.wrong) == 0 {
				right++
			}
			calls, mistakes = calls+len(p.o.Requests), mistakes+len(p.o.Mistakes)
			u.Prompt, u.Cached, u.Completion = u.Prompt+p.o.Usage.Prompt, u.Cached+p.o.Usage.Cached, u.Completion+p.o.Usage.Completion
			cost, took = cost+p.o.Cost, took+p.o.Took
		}
		if n > 0 {
			t.row(cmp.Or(kind, "all"), fmt.Sprintf("%d/%d", right, n), calls, mistakes, u.Prompt, u.Cached, u.Completion,
				fmt.Sprintf("%.6f", float64(cost)/1e6), fmt.Sprintf("%.1f", took.Seconds()))
		}
	}
	return t.print(out)
}
