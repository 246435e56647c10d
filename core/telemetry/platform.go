package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// platformMetrics are of what passes between a platform and its adapter.
type platformMetrics struct {
	events   *prometheus.CounterVec
	sockets  *prometheus.GaugeVec
	changes  *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	rateWait *prometheus.HistogramVec
}

func newPlatformMetrics() platformMetrics {
	return platformMetrics{
		events:   counter("platform_events_total", "Events that a platform sent, by what became of them.", "platform", "event", "outcome"),
		sockets:  prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("platform_sockets", "Connections of this node over which events come.")), []string{"platform"}),
		changes:  counter("platform_socket_changes_total", "Connections opened, replaced, dropped and found deaf.", "platform", "change"),
		calls:    histogram("platform_call_duration_seconds", "Time of one call to a platform, by how it ended.", slow, "platform", "method", "outcome"),
		rateWait: histogram("rate_limit_wait_seconds", "Time a call had to wait, or would have had to, for a platform's rate limit.", slow, "platform"),
	}
}

func (p platformMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{p.events, p.sockets, p.changes, p.calls, p.rateWait}
}

// Event counts one event of a platform. Its name and outcome are of a fixed list:
// what a platform may invent is counted under one name.
func (m *Metrics) Event(platform, event, outcome string) {
	if m != nil {
		m.platforms.events.WithLabelValues(platform, event, outcome).Inc()
	}
}

// Sockets shows how many connections of this node events come over.
func (m *Metrics) Sockets(platform string, open int) {
	if m != nil {
		m.platforms.sockets.WithLabelValues(platform).Set(float64(open))
	}
}

// SocketChange counts what happened to a connection.
func (m *Metrics) SocketChange(platform, change string) {
	if m != nil {
		m.platforms.changes.WithLabelValues(platform, change).Inc()
	}
}

// Call records one call to a platform. Its outcome is "ok" or a short code of the
// platform's.
func (m *Metrics) Call(platform, method, outcome string, took time.Duration) {
	if m != nil {
		m.platforms.calls.WithLabelValues(platform, method, outcome).Observe(took.Seconds())
	}
}

// RateWait records how long a call had to wait for a rate limit.
func (m *Metrics) RateWait(platform string, wait time.Duration) {
	if m != nil {
		m.platforms.rateWait.WithLabelValues(platform).Observe(wait.Seconds())
	}
}
