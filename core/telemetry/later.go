package telemetry

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// laterMetrics are of what runs later than it was asked for, and of this process.
type laterMetrics struct {
	stepWait *prometheus.HistogramVec
	taskWait *prometheus.HistogramVec
	fired    *prometheus.HistogramVec
	warned   *prometheus.CounterVec
	spans    *prometheus.CounterVec
	build    *prometheus.GaugeVec
}

// patient fits what waits for a free worker or an hour of the day: 10 ms to 11 h.
var patient = prometheus.ExponentialBuckets(0.01, 4, 12)

func newLaterMetrics() laterMetrics {
	return laterMetrics{
		stepWait: histogram("step_wait_seconds", "Time that the oldest entry of a step had waited in its channel when the step began.", slow, "loop"),
		taskWait: histogram("task_wait_seconds", "Time from when a task might have begun to the beginning of its first run.", patient, "profile"),
		fired:    histogram("trigger_late_seconds", "Time by which triggers fired later than they were due.", patient, "type"),
		warned:   counter("budget_warnings_total", "Budgets that came near their end, once each day, by whose.", "subject"),
		spans:    counter("trace_spans_total", "Spans of traces, by what became of them.", "outcome"),
		build:    prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("build_info", "1, with what this process was built from.")), []string{"version", "go_version"}),
	}
}

func (l laterMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{l.stepWait, l.taskWait, l.fired, l.warned, l.spans, l.build}
}

// StepWaited records how long the oldest entry of a step had waited for it.
func (m *Metrics) StepWaited(loop string, wait time.Duration) {
	if m != nil {
		m.later.stepWait.WithLabelValues(loop).Observe(max(0, wait).Seconds())
	}
}

// TaskWaited records how long a task had waited for its first run.
func (m *Metrics) TaskWaited(profile string, wait time.Duration) {
	if m != nil {
		m.later.taskWait.WithLabelValues(profile).Observe(max(0, wait).Seconds())
	}
}

// TriggerFired counts one firing, and how late it was.
func (m *Metrics) TriggerFired(kind string, late time.Duration) {
	if m != nil {
		m.later.fired.WithLabelValues(kind).Observe(max(0, late).Seconds())
	}
}

// BudgetWarned counts a budget that is nearly spent.
func (m *Metrics) BudgetWarned(subject string) {
	if m != nil {
		m.later.warned.WithLabelValues(subject).Inc()
	}
}

// A SpanOutcome is what became of a span.
type SpanOutcome string

// The outcomes of spans.
const (
	SpansSent    SpanOutcome = "sent"
	SpansFailed  SpanOutcome = "failed"  // the collector did not take them
	SpansDropped SpanOutcome = "dropped" // too many waited, or nothing is sent at that time
)

// Spans counts spans that are over.
func (m *Metrics) Spans(o SpanOutcome, n int) {
	if m != nil && n > 0 {
		m.later.spans.WithLabelValues(string(o)).Add(float64(n))
	}
}

// Built tells which build runs.
func (m *Metrics) Built(version string) {
	if m != nil {
		m.later.build.WithLabelValues(version, runtime.Version()).Set(1)
	}
}
