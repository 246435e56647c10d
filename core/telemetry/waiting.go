package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Waiting is what one channel holds, over all partitions: every node tells the
// same of it, so it is to be read with max, not with sum.
type Waiting struct {
	Channel string
	Group   string
	Entries int           // not yet settled
	Pending int           // of them delivered to an owner; the rest is the group's lag
	Oldest  time.Duration // age of the oldest of them; 0 when there is none
}

// askTimeout bounds the question put to the func of [Metrics.Watch], so that a
// Redis that hangs does not hang /metrics.
const askTimeout = 2 * time.Second

// Watch has ask called whenever metrics are collected. When it fails the
// series are left out of that collection, rather than told wrongly, and
// waiting_up is 0. It may be called once for each Metrics; a second call fails.
func (m *Metrics) Watch(ask func(ctx context.Context) ([]Waiting, error)) error {
	if m == nil {
		return nil
	}
	if ask == nil {
		return errors.New("watch waiting entries: no func to ask")
	}
	return m.registry.Register(newWaiting(ask))
}

func newWaiting(ask func(ctx context.Context) ([]Waiting, error)) *waiting {
	return &waiting{
		ask:     ask,
		entries: desc("waiting_entries", "Entries not yet settled, in all partitions: every node tells the same number.", "channel", "group"),
		pending: desc("waiting_pending_entries", "Entries delivered to an owner and not yet settled, in all partitions: every node tells the same number.", "channel", "group"),
		lag:     desc("waiting_lag_entries", "Entries that no owner was given yet, in all partitions: every node tells the same number.", "channel", "group"),
		oldest:  desc("waiting_oldest_seconds", "Age of the oldest entry not yet settled, in all partitions: every node tells the same.", "channel", "group"),
		up:      desc("waiting_up", "1 when the channels could be asked, else 0."),
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

type waiting struct {
	ask                               func(ctx context.Context) ([]Waiting, error)
	entries, pending, lag, oldest, up *prometheus.Desc
}

// Describe is for the registry.
func (w *waiting) Describe(ch chan<- *prometheus.Desc) {
	ch <- w.entries
	ch <- w.pending
	ch <- w.lag
	ch <- w.oldest
	ch <- w.up
}

// Collect is for the registry.
func (w *waiting) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), askTimeout, errors.New("collecting metrics takes too long"))
	defer cancel()
	rows, err := w.ask(ctx)
	up := 1.0
	if err != nil {
		rows, up = nil, 0
	}
	ch <- prometheus.MustNewConstMetric(w.up, prometheus.GaugeValue, up)
	// Two rows of one name would spoil the whole collection; they are one.
	type name struct{ channel, group string }
	sum := map[name]Waiting{}
	for _, r := range rows {
		n := name{r.Channel, r.Group}
		sum[n] = Waiting{Entries: sum[n].Entries + r.Entries, Pending: sum[n].Pending + r.Pending, Oldest: max(sum[n].Oldest, r.Oldest)}
	}
	for n, r := range sum {
		ch <- prometheus.MustNewConstMetric(w.entries, prometheus.GaugeValue, float64(r.Entries), n.channel, n.group)
		ch <- prometheus.MustNewConstMetric(w.pending, prometheus.GaugeValue, float64(r.Pending), n.channel, n.group)
		ch <- prometheus.MustNewConstMetric(w.lag, prometheus.GaugeValue, float64(max(r.Entries-r.Pending, 0)), n.channel, n.group)
		ch <- prometheus.MustNewConstMetric(w.oldest, prometheus.GaugeValue, r.Oldest.Seconds(), n.channel, n.group)
	}
}
