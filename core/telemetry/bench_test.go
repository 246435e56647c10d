package telemetry_test

import (
	"log/slog"
	"testing"
	"time"

	"mimikit/core/telemetry"
	"mimikit/core/telemetry/telemetrytest"
)

// What a step of a loop pays for its trace: its own span, one for the wait, one for the
// commit. Without a tracer it pays nothing.
func BenchmarkStep(b *testing.B) {
	c := telemetrytest.NewCollector(b)
	full, err := telemetry.NewTracer(telemetry.TraceOptions{Endpoint: c.URL(), Sample: 1})
	if err != nil {
		b.Fatal(err)
	}
	none, err := telemetry.NewTracer(telemetry.TraceOptions{Endpoint: c.URL()})
	if err != nil {
		b.Fatal(err)
	}
	for name, t := range map[string]*telemetry.Tracer{"recorded": full, "not sampled": none, "off": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			parent := ""
			for b.Loop() {
				ctx, step := t.Start(b.Context(), telemetry.Start{Name: "step", Parent: parent, TraceID: "t", Attrs: []slog.Attr{slog.Int("a", 1)}})
				parent = step.Traceparent()
				_, wait := t.Start(ctx, telemetry.Start{Name: "wait", Parent: parent, At: time.Now()})
				wait.End()
				telemetry.Record(ctx, time.Millisecond, telemetry.Start{Name: "commit"})
				step.End()
			}
		})
	}
}
