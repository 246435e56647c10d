package telemetry

import (
	"context"
	"log/slog"
	"time"
)

// A Watch takes the time of one action of a model after another, and records each as
// a span. The zero value is ready; it is for one goroutine.
type Watch struct{ began time.Time }

// Begin notes that an action is about to be done.
func (w *Watch) Begin() { w.began = time.Now() }

// Acted records an action that was dealt with; one that was not begun took no time.
// The name of one that is not known is the model's invention, and left out.
func (w *Watch) Acted(ctx context.Context, name string, known bool, verdict string) {
	if !known {
		name = "unknown"
	}
	var took time.Duration
	if !w.began.IsZero() {
		took = time.Since(w.began)
	}
	w.began = time.Time{}
	Record(ctx, took, Start{Name: "action " + name, Attrs: []slog.Attr{
		slog.String("gen_ai.tool.name", name), slog.String("mimikit.verdict", verdict),
	}})
}
