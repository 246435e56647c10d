package inbox

import (
	"context"
	"log/slog"

	"mimikit/adapters"
	"mimikit/core/channel"
	"mimikit/core/telemetry"
)

// ingestAttrs say which road an input takes.
var ingestAttrs = []slog.Attr{slog.String("messaging.system", "redis"), slog.String("messaging.destination.name", string(channel.UserInput))}

// traceID names the trace of an input, so that whoever knows the input's id knows it.
func traceID(dedupe string) string { return telemetry.TraceID(channel.InputID(dedupe)) }

// received begins the trace of a message when the platform's event came in. The
// trace is named by what happened there, so that a second delivery, to this node or
// another, is a part of it. What else the caller says that it follows from is linked:
// it may be somebody outside, who does not decide what is recorded here.
func (b *Inbox) received(ctx context.Context, m adapters.Message) (context.Context, *telemetry.Span) {
	if b.o.Tracer == nil {
		return ctx, nil
	}
	in, _, refusal := input(m)
	id := ""
	if refusal == nil {
		id = dedupeKey(in)
	}
	s := telemetry.Start{
		Name: "receive " + m.Conversation.Platform, Kind: telemetry.Serves, At: m.Received, Links: []string{m.Traceparent},
		Attrs: []slog.Attr{slog.String("mimikit.platform", m.Conversation.Platform), slog.String("mimikit.kind", string(m.Kind))},
	}
	if id != "" {
		s.TraceID = traceID(id)
	}
	return b.o.Tracer.Start(ctx, s)
}

// ended ends that span with what became of the message.
func ended(span *telemetry.Span, r adapters.Receipt, o Outcome) {
	span.Set(slog.String("mimikit.outcome", string(o)), slog.String("mimikit.input_ids", r.InputID))
	if o == Failed {
		span.Fail(string(o))
	}
	span.End()
}
