package telemetry

// An Expected says what a deployment has, so that what may be alarming is told of
// from the beginning, as 0: to Prometheus a series that appears with its first event
// has not grown.
type Expected struct {
	Platforms []string // on which people meet the bot
	Agents    []string // that ask models
	Kinds     []string // of failed model calls
	Profiles  []string // of tasks
	Subjects  []string // whose budgets there are
}

// Expect makes the series of what is expected. It may be called again with more.
func (m *Metrics) Expect(e Expected) {
	if m == nil {
		return
	}
	for _, p := range e.Platforms {
		for _, o := range []InputOutcome{Accepted, Duplicate, Full, Refused, Failed} {
			m.inputs.WithLabelValues(p, string(o))
		}
		for _, o := range []PostOutcome{Posted, PostRetry, PostUnknown, PostGivenUp} {
			m.posts.WithLabelValues(p, string(o))
		}
		m.postTime.WithLabelValues(p)
		m.platforms.rateWait.WithLabelValues(p)
	}
	for _, a := range e.Agents {
		m.modelTime.WithLabelValues(a)
		for _, k := range e.Kinds {
			m.modelErrors.WithLabelValues(a, k)
		}
	}
	for _, p := range e.Profiles {
		m.taskTime.WithLabelValues(p)
		m.later.taskWait.WithLabelValues(p)
		for _, s := range []string{"succeeded", "failed", "canceled"} {
			m.tasksEnded.WithLabelValues(p, s)
		}
	}
	for _, s := range e.Subjects {
		m.budgetRefused.WithLabelValues(s)
		m.later.warned.WithLabelValues(s)
	}
	m.redisErrors.WithLabelValues("retry")
	for _, o := range []SpanOutcome{SpansSent, SpansFailed, SpansDropped} {
		m.later.spans.WithLabelValues(string(o))
	}
}
