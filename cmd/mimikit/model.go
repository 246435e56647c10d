package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"mimikit/config"
	"mimikit/core/llm"
	"mimikit/core/telemetry"
	"mimikit/core/tokens"
	"mimikit/core/usage"
)

// A chosenModel is the model that answers, and how to speak of it.
type chosenModel struct {
	// links are the bare endpoints, asked in this order; one that names no model
	// asks for the one that the request names.
	links    []llm.Link
	describe string
	demo     bool
	alone    bool   // measured by itself: nothing is retried, booked or kept
	def      string // name for roles that have none of their own
}

func (m *chosenModel) name(role string) string {
	if m.demo || role == "" {
		return m.def
	}
	return role
}

// onlyModel is a model that stands for itself, for bench and chaos.
func onlyModel(m llm.Model, describe string) *chosenModel {
	return &chosenModel{links: []llm.Link{{Name: "model", Model: m}}, describe: describe, demo: true, alone: true}
}

// chooseModel takes the endpoints that are configured; without one an Ollama on
// this machine, if it answers; else the demo model.
func chooseModel(ctx context.Context, cfg config.Config) (*chosenModel, error) {
	c := cfg.LLM
	if c.Configured() {
		first, at, err := endpoint(c.BaseURL, c.Key, c.Model, c.API, c.Headers, c)
		if err != nil {
			return nil, err
		}
		m := &chosenModel{describe: fmt.Sprintf("%s at %s", c.Model, at), def: c.Model, links: []llm.Link{{Name: at, Model: first}}}
		for _, name := range c.Models.Fallback {
			m.links = append(m.links, llm.Link{Name: at, Model: first, Ask: name})
		}
		if s := c.Second; s.Configured() {
			second, at, err := endpoint(s.BaseURL, s.Key, s.Model, s.API, s.Headers, c)
			if err != nil {
				return nil, fmt.Errorf("second endpoint: %w", err)
			}
			m.links = append(m.links, llm.Link{Name: at, Model: second, Ask: s.Model})
			m.describe += fmt.Sprintf(", else %s at %s", cmp.Or(s.Model, "the same"), at)
		}
		return m, nil
	}
	if name, ok := llm.FindOllama(ctx, llm.DefaultOllama, nil); ok {
		m, at, err := endpoint(llm.DefaultOllama+"/v1", "", name, "", nil, c)
		if err != nil {
			return nil, err
		}
		return &chosenModel{links: []llm.Link{{Name: at, Model: m}}, describe: name + " of the Ollama on this machine", def: name}, nil
	}
	return &chosenModel{
		links:    []llm.Link{{Name: "demo", Model: llm.NewDemo(llm.DemoOptions{})}},
		describe: "the built-in demo model (no AI; set MIMIKIT_LLM_KEY and MIMIKIT_LLM_MODEL for a real one)",
		demo:     true,
	}, nil
}

// endpoint is the bare client of one endpoint, and where that is.
func endpoint(baseURL string, key config.Secret, model, api string, headers config.Headers, c config.LLM) (llm.Model, string, error) {
	m, err := llm.NewOpenAI(llm.Options{
		BaseURL: baseURL, Key: key.Reveal(), Model: model, API: llm.API(api), Headers: headers, Idle: c.Idle, Timeout: c.Timeout,
	})
	return m, cmp.Or(baseURL, llm.DefaultBaseURL), err
}

// thinking is the chosen model with everything around it that makes it last, and
// the ledger of what it costs.
func (a *App) thinking(m *chosenModel) (llm.Model, error) {
	c := a.cfg.LLM
	limiter := llm.NewLimiter(c.MaxConcurrent, func(_ llm.Request, waited time.Duration) { a.metrics.ModelWait(waited) })
	if m.alone {
		return &measuredModel{model: limiter.Model(m.links[0].Model), metrics: a.metrics}, nil
	}
	links := slices.Clone(m.links)
	for i := range links {
		links[i].Model = tracedCall{links[i].Model, links[i].Name}
	}
	prices, err := priceList(c.Prices)
	if err != nil {
		return nil, err
	}
	a.ledger = usage.New(usage.Options{
		Client: a.store.Client, Prefix: a.cfg.Redis.Prefix, Budgets: budgets(a.cfg),
		Strict: a.cfg.Budgets.Unknown == config.RefuseUnknown, Logger: a.log,
		OnRefuse: func(e *llm.BudgetError) { a.metrics.BudgetRefused(string(e.Subject.Kind)) },
		OnWarn: func(w llm.BudgetWarning) {
			a.metrics.BudgetWarned(string(w.Subject.Kind))
			a.noteBudget(w)
		},
	})
	opts := llm.StackOptions{
		Links: links, Limiter: limiter, Ledger: a.ledger, Logger: a.log,
		Meter:   llm.MeterOptions{Count: tokens.Count, Prices: prices},
		Breaker: llm.BreakerOptions{Failures: c.Breaker.Failures, OpenFor: c.Breaker.Pause, OnChange: a.breakerChanged},
		Retry: llm.RetryOptions{
			// A patience of 0 would be the default one.
			Attempts: c.Attempts, Patience: max(c.MaxWait, time.Nanosecond),
			OnRetry: func(req llm.Request, attempt int, pause time.Duration, err error) {
				a.metrics.ModelRetry(req.Agent)
				a.log.Warn("model_retry", "agent", req.Agent, "model", req.Model, "attempt", attempt, "pause_ms", pause.Milliseconds(), "trace_id", req.TraceID, "error", err)
			},
		},
		Fallback: llm.FallbackOptions{OnFallback: func(req llm.Request, from, to llm.Link, err error) {
			a.metrics.ModelFallback(req.Agent)
			a.log.Warn("model_fallback", "agent", req.Agent, "from", from.String(), "to", to.String(), "trace_id", req.TraceID, "error", err)
		}},
	}
	if a.cfg.Archive.Calls {
		opts.Archive = &llm.ArchiveOptions{
			Dir: a.callArchive(), Max: int(a.cfg.Archive.MaxBytes),
			Scrubber: llm.NewScrubber(a.cfg.Secrets()...),
			OnError:  func(err error) { a.log.Warn("model_call_not_archived", "error", err) },
		}
	}
	stack, err := llm.NewStack(opts)
	if err != nil {
		return nil, err
	}
	a.health = stack.Health
	return &measuredModel{model: stack, metrics: a.metrics, maxTokens: c.MaxTokens}, nil
}

// callArchive is the folder of the archived calls.
func (a *App) callArchive() string { return filepath.Join(a.cfg.DataDir, "llm") }

func (a *App) breakerChanged(h llm.Health) {
	a.metrics.Breaker(h.Endpoint, h.Model, h.State == llm.Open)
	a.log.Warn("model_breaker", "endpoint", h.Endpoint, "model", h.Model, "state", h.State.String(), "failures", h.Failures, "error", h.LastError)
}

// free is a price that rounds to nothing. A cached price of 0 would be read as
// missing, and then the prompt's counts.
const free = 1e-9

func priceList(all config.Prices) (llm.Prices, error) {
	var list []llm.Price
	for model, p := range all {
		list = append(list, llm.Price{
			Model: model, Prompt: p.Prompt.Float(), Cached: cmp.Or(p.Cached.Float(), free), Completion: p.Completion.Float(),
		})
	}
	return llm.NewPrices(list...)
}

func budgets(c config.Config) usage.Budgets {
	b := c.Budgets
	limit := func(b config.Budget) usage.Limit { return usage.Limit{Tokens: int64(b.Tokens), Money: int64(b.Money)} }
	return usage.Budgets{
		User: limit(b.User), Place: limit(b.Place), Workspace: limit(b.Workspace), Task: limit(b.Task),
		Warn: float64(b.Warn) / 100,
		Of:   map[llm.Subject]usage.Limit{{Kind: llm.UserSubject, ID: reviewAccount}: {Tokens: int64(c.Review.Tokens)}},
	}
}

// A measuredModel counts requests, tokens and failures.
type measuredModel struct {
	model     llm.Model
	metrics   *telemetry.Metrics
	maxTokens int // of an answer where the request does not say; 0 leaves it to the endpoint
}

// Complete calls the model and counts the call.
func (m *measuredModel) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	start := time.Now()
	req.MaxTokens = cmp.Or(req.MaxTokens, m.maxTokens)
	ctx, span := askSpan(ctx, req)
	r, err := m.model.Complete(ctx, req)
	answered(span, r, err)
	m.metrics.ModelCall(req.Agent, failure(err), time.Since(start), r.Usage.Prompt, r.Usage.Completion, r.Usage.Cached)
	m.metrics.ModelCost(req.Agent, r.Cost)
	return r, err
}

// failure sorts a failed call in a word; "" for one that did not fail.
func failure(err error) string {
	var e *llm.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Kind.String()
	}
	return "other"
}
