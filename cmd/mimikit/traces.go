package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/telemetry"
	"mimikit/core/trigger"
)

// newTracer sends traces where the settings say; nil where they name no collector.
func newTracer(cfg config.Config, m *telemetry.Metrics, log *slog.Logger) (*telemetry.Tracer, error) {
	t := cfg.Telemetry
	if t.OTLP.Endpoint == "" {
		return nil, nil
	}
	return telemetry.NewTracer(telemetry.TraceOptions{
		Endpoint: t.OTLP.Endpoint, Headers: t.OTLP.Sent(), Timeout: t.OTLP.Timeout, Sample: float64(t.Sample) / 100, Queue: t.Queue, Flush: max(t.Flush, time.Millisecond),
		Service: t.Service, Instance: cfg.Node, Version: version, Metrics: m, Logger: log,
	})
}

// sendTraces sends spans until the func it gives is called, which waits for the last
// of them within a bound.
func (a *App) sendTraces(ctx context.Context) (stop func() error) {
	if a.trace == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan error, 1)
	go func() { over <- a.trace.Run(ctx) }()
	return func() error {
		cancel()
		return <-over
	}
}

// stepBegins makes a span of each step of a loop. It follows the hop before: what put
// the oldest entry into its channel. The other entries are linked, and of each it is
// recorded, in its own trace, how long it waited.
func (a *App) stepBegins(ctx context.Context, loop string, w *channel.Work) (context.Context, func(outcome string)) {
	now, oldest := time.Now(), time.Duration(0)
	for _, e := range w.Entries {
		oldest = max(oldest, w.Now.Sub(e.At()))
	}
	a.metrics.StepWaited(loop, oldest)
	first := w.Entries[0]
	if a.trace == nil {
		return ctx, func(outcome string) { a.countDead(w, outcome) }
	}
	s := telemetry.Start{
		Name: "step " + loop, Kind: telemetry.Consumes, At: now, Parent: hopBefore(first), TraceID: first.TraceID,
		Attrs: []slog.Attr{
			slog.String("messaging.system", "redis"), slog.String("messaging.destination.name", string(first.Channel)),
			slog.Int("messaging.batch.message_count", len(w.Entries)), slog.Int("mimikit.partition", w.Partition),
			slog.Int("mimikit.attempt", w.Attempt), slog.String("mimikit.input_ids", strings.Join(first.InputIDs[:min(len(first.InputIDs), 8)], ",")),
		},
	}
	if len(w.Entries) > 1 {
		for _, e := range w.Entries {
			s.Links = append(s.Links, hopBefore(e))
		}
	}
	step, span := a.trace.Start(ctx, s)
	w.Traceparent = span.Traceparent()
	for _, e := range w.Entries {
		_, wait := a.trace.Start(ctx, telemetry.Start{
			Name: "wait " + string(e.Channel), At: now.Add(-max(w.Now.Sub(e.At()), 0)), Parent: hopBefore(e), TraceID: e.TraceID,
			Links: []string{w.Traceparent},
		})
		wait.EndAt(now)
	}
	done := &stepDone{}
	return context.WithValue(step, stepDoneKey{}, done), func(outcome string) {
		if outcome == "ok" && !done.at.IsZero() {
			telemetry.Record(step, time.Since(done.at), telemetry.Start{Name: "commit", Kind: telemetry.Produces})
		}
		a.countDead(w, outcome)
		span.Set(slog.String("mimikit.outcome", outcome))
		if outcome == "retry" || outcome == "dead" || outcome == "lost" {
			span.Fail(outcome)
		}
		span.End()
	}
}

// countDead counts the entries of a step that was given up.
func (a *App) countDead(w *channel.Work, outcome string) {
	if outcome != "dead" {
		return
	}
	for _, e := range w.Entries {
		for _, r := range slices.Concat(roads, results) {
			if r.name == e.Channel {
				a.metrics.DeadLetter(string(r.name), r.group)
			}
		}
	}
}

// stepDone is when a loop was done with a step, whose commit follows. It is written
// before the step's effects are handed over, and read only when they are committed.
type stepDone struct{ at time.Time }

type stepDoneKey struct{}

// noteDone notes that the loop is done.
func noteDone(ctx context.Context) {
	if done, ok := ctx.Value(stepDoneKey{}).(*stepDone); ok {
		done.at = time.Now()
	}
}

// hopBefore is the span that an entry follows from: whatever published it, and of a
// task's result the run that came to it.
func hopBefore(e *channel.Entry) string {
	if r, ok := e.Value.(*chat.TaskResult); ok && r.Attempts > 0 {
		return telemetry.Follow(e.Traceparent, runKey(r.ID, r.Attempts))
	}
	return e.Traceparent
}

// runKey names the span of a run, so that the result of the run can follow from it
// though it was another node that ran it.
func runKey(taskID string, attempt int) string { return "task/" + taskID + "/" + strconv.Itoa(attempt) }

// traced makes a span of each run of a task, and counts how long the task waited.
func (a *App) traced(runners map[string]task.Runner) map[string]task.Runner {
	out := map[string]task.Runner{}
	for _, profile := range slices.Collect(maps.Keys(runners)) {
		run := runners[profile]
		out[profile] = func(ctx context.Context, r *task.Run) (task.Outcome, error) {
			t, now := r.Task, time.Now()
			since := t.CreatedAt
			if t.DeferUntil.After(since) {
				since = t.DeferUntil
			}
			first := t.Attempts <= 1 && t.Lapses == 0 && t.AnsweredBy.ID == ""
			if first {
				a.metrics.TaskWaited(profile, now.Sub(since))
			}
			if a.trace == nil {
				return run(ctx, r)
			}
			below, span := a.trace.Start(ctx, telemetry.Start{
				Name: "task " + profile, Kind: telemetry.Consumes, At: now, Parent: t.Traceparent, TraceID: t.TraceID, Key: runKey(t.ID, t.Attempts),
				Attrs: []slog.Attr{
					slog.String("mimikit.task_id", t.ID), slog.Int("mimikit.attempt", t.Attempts), slog.String("mimikit.parent_task_id", t.ParentTaskID),
					slog.String("mimikit.trigger_id", t.SourceTriggerID), slog.Int("mimikit.priority", t.Priority),
				},
			})
			if first && now.After(since) {
				_, wait := a.trace.Start(ctx, telemetry.Start{
					Name: "wait task", At: since, Parent: t.Traceparent, TraceID: t.TraceID, Links: []string{span.Traceparent()},
				})
				wait.EndAt(now)
			}
			o, err := run(below, r)
			outcome := runOutcome(ctx, o, err)
			span.Set(slog.String("mimikit.outcome", outcome))
			if outcome != "done" && outcome != "asks" && outcome != "stopping" {
				span.Fail(outcome)
			}
			span.End()
			return o, err
		}
	}
	return out
}

// runOutcome is how a run ended, in a word.
func runOutcome(ctx context.Context, o task.Outcome, err error) string {
	for _, c := range []struct {
		cause error
		word  string
	}{{task.ErrCanceled, "canceled"}, {task.ErrTimedOut, "timeout"}, {task.ErrLapsed, "lapsed"}, {task.ErrStopping, "stopping"}} {
		if errors.Is(context.Cause(ctx), c.cause) {
			return c.word
		}
	}
	switch {
	case err != nil:
		return "failed"
	case o.Ask != nil:
		return "asks"
	}
	return "done"
}

// again reports whether a trigger fires on and on. The parts of a plan do so at most
// with it.
func again(t trigger.Trigger) bool {
	if t.ParentTaskID != "" || t.Type == trigger.Scheduled {
		return false
	}
	return t.Condition == nil || len(t.Condition.Tasks()) == 0
}

// firing makes a span of a firing. What fires again and again begins a trace of its
// own each time, linked to the one in which it was set up, which would have no end
// otherwise. What goes on when tasks end, or at one time, stays in that one.
func (a *App) firing(ctx context.Context, t trigger.Trigger, f trigger.Firing) (trigger.Trigger, func(error)) {
	s := telemetry.Start{
		Name: "trigger fire", Attrs: []slog.Attr{
			slog.String("mimikit.trigger_id", t.ID), slog.String("mimikit.trigger_type", string(t.Type)),
			slog.Float64("mimikit.late_seconds", max(time.Since(f.At), 0).Seconds()),
		},
	}
	if again(t) {
		s.Links = []string{t.Traceparent}
		t.TraceID, t.Traceparent = telemetry.TraceID("trigger/"+t.ID+"/"+f.Slot), ""
	}
	s.Parent, s.TraceID = t.Traceparent, t.TraceID
	_, span := a.trace.Start(ctx, s)
	if own := span.Traceparent(); own != "" {
		t.Traceparent = own
	}
	return t, func(err error) {
		switch {
		case err == nil:
			a.metrics.TriggerFired(string(t.Type), time.Since(f.At))
		case errors.Is(err, trigger.ErrLate), errors.Is(err, trigger.ErrUnknown):
			span.Fail("late") // another node was first, or it has changed
		default:
			span.Fail("failed")
		}
		span.End()
	}
}

// called counts the calls to a platform, and records those that are part of something.
func (a *App) called(platform string) func(ctx context.Context, method, outcome string, took time.Duration) {
	return func(ctx context.Context, method, outcome string, took time.Duration) {
		a.metrics.Call(platform, method, outcome, took)
		telemetry.Record(ctx, took, telemetry.Start{Name: platform + " " + method, Kind: telemetry.Asks, Attrs: []slog.Attr{
			slog.String("mimikit.platform", platform), slog.String("mimikit.outcome", outcome),
		}})
	}
}
