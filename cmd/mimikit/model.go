package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mimikit/config"
	"mimikit/core/llm"
	"mimikit/core/telemetry"
)

// A chosenModel is the model that answers, and how to speak of it.
type chosenModel struct {
	llm.Model
	describe string
	demo     bool
	def      string // name for roles that have none of their own
}

func (m *chosenModel) name(role string) string {
	if m.demo || role == "" {
		return m.def
	}
	return role
}

// chooseModel takes the endpoint that is configured; without one an Ollama on
// this machine, if it answers; else the demo model.
func chooseModel(ctx context.Context, cfg config.Config) (*chosenModel, error) {
	if cfg.LLM.Configured() {
		m, err := llm.NewOpenAI(llm.Options{
			BaseURL: cfg.LLM.BaseURL, Key: cfg.LLM.Key.Reveal(), Model: cfg.LLM.Model,
			Headers: cfg.LLM.Headers, Idle: cfg.LLM.Idle, Timeout: cfg.LLM.Timeout,
		})
		if err != nil {
			return nil, err
		}
		at := cfg.LLM.BaseURL
		if at == "" {
			at = llm.DefaultBaseURL
		}
		return &chosenModel{Model: m, describe: fmt.Sprintf("%s at %s", cfg.LLM.Model, at), def: cfg.LLM.Model}, nil
	}
	if name, ok := llm.FindOllama(ctx, llm.DefaultOllama, nil); ok {
		m, err := llm.NewOpenAI(llm.Options{
			BaseURL: llm.DefaultOllama + "/v1", Model: name, Idle: cfg.LLM.Idle, Timeout: cfg.LLM.Timeout,
		})
		if err != nil {
			return nil, err
		}
		return &chosenModel{Model: m, describe: name + " of the Ollama on this machine", def: name}, nil
	}
	return &chosenModel{
		Model:    llm.NewDemo(llm.DemoOptions{}),
		describe: "the built-in demo model (no AI; set MIMIKIT_LLM_KEY and MIMIKIT_LLM_MODEL for a real one)",
		demo:     true,
	}, nil
}

// A measuredModel counts calls, tokens and failures.
type measuredModel struct {
	model   llm.Model
	metrics *telemetry.Metrics
}

// Complete calls the model and counts the call.
func (m *measuredModel) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	start := time.Now()
	r, err := m.model.Complete(ctx, req)
	kind := ""
	if err != nil {
		kind = "other"
		var e *llm.Error
		if errors.As(err, &e) {
			kind = e.Kind.String()
		}
	}
	m.metrics.ModelCall(req.Agent, kind, time.Since(start), r.Usage.Prompt, r.Usage.Completion, r.Usage.Cached)
	return r, err
}
