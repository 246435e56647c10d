package main

import (
	"context"
	"log/slog"
	"net/url"

	"mimikit/core/llm"
	"mimikit/core/telemetry"
)

// askSpan begins the span of a request for an answer: its waits, repeats and other
// models are within. The names are those of OpenTelemetry's conventions for models.
// Neither prompt nor answer is in it.
func askSpan(ctx context.Context, req llm.Request) (context.Context, *telemetry.Span) {
	return telemetry.Begin(ctx, telemetry.Start{Name: "model " + req.Agent, Attrs: []slog.Attr{
		slog.String("gen_ai.operation.name", "chat"), slog.String("gen_ai.agent.name", req.Agent), slog.String("gen_ai.request.model", req.Model),
		slog.Int("mimikit.messages", len(req.Messages)), slog.Int("mimikit.tools", len(req.Tools)),
	}})
}

// answered ends a span of a model with what came of it.
func answered(span *telemetry.Span, r llm.Response, err error) {
	span.Set(
		slog.String("gen_ai.response.model", r.Model), slog.Int("gen_ai.usage.input_tokens", r.Usage.Prompt),
		slog.Int("gen_ai.usage.output_tokens", r.Usage.Completion), slog.Int("mimikit.cached_tokens", r.Usage.Cached),
		slog.Int64("mimikit.cost_micros", r.Cost), slog.String("mimikit.finish", r.Finish),
	)
	if err != nil {
		span.Fail(failure(err))
	}
	span.End()
}

// A tracedCall makes a span of each call of an endpoint.
type tracedCall struct {
	llm.Model
	endpoint string
}

// Complete calls the model. Of the endpoint's address only the host is told.
func (m tracedCall) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	host := m.endpoint
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Hostname()
	}
	ctx, span := telemetry.Begin(ctx, telemetry.Start{Name: "model call", Kind: telemetry.Asks, Attrs: []slog.Attr{
		slog.String("gen_ai.request.model", req.Model), slog.String("server.address", host),
	}})
	r, err := m.Model.Complete(ctx, req)
	answered(span, r, err)
	return r, err
}
