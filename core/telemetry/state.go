package telemetry

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// A State is how the deployment stands. Every node tells the same of it, so it is to
// be read with max, not with sum.
type State struct {
	Nodes      int            // that live
	Partitions int            // that there are
	Owned      int            // of them, by any node
	Dead       int            // dead letters that wait for somebody
	Tasks      map[string]int // :: status -> tasks that are kept
	Questions  int            // open
	Triggers   int
}

// WatchState has ask called whenever metrics are collected, as [Metrics.Watch] does.
func (m *Metrics) WatchState(ask func(ctx context.Context) (State, error)) error {
	if m == nil {
		return nil
	}
	if ask == nil {
		return errors.New("watch the deployment: no func to ask")
	}
	return m.registry.Register(newStanding(ask))
}

func newStanding(ask func(ctx context.Context) (State, error)) *standing {
	const same = ": every node tells the same number."
	return &standing{
		ask:        ask,
		up:         desc("state_up", "1 when the deployment could be asked how it stands, else 0."),
		nodes:      desc("nodes_live", "Nodes that live"+same),
		partitions: desc("partitions", "Partitions that there are."),
		owned:      desc("partitions_owned", "Partitions that some node holds"+same),
		dead:       desc("dead_letters_waiting", "Dead letters that wait for somebody to replay or drop them"+same),
		tasks:      desc("tasks", "Tasks that are kept, by status"+same, "status"),
		questions:  desc("questions_open", "Questions that wait for an answer"+same),
		triggers:   desc("triggers", "Triggers that there are"+same),
	}
}

type standing struct {
	ask                                                            func(ctx context.Context) (State, error)
	up, nodes, partitions, owned, dead, tasks, questions, triggers *prometheus.Desc
}

// Describe is for the registry.
func (s *standing) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.up, s.nodes, s.partitions, s.owned, s.dead, s.tasks, s.questions, s.triggers} {
		ch <- d
	}
}

// Collect is for the registry.
func (s *standing) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), askTimeout, errors.New("collecting metrics takes too long"))
	defer cancel()
	tell := func(d *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	st, err := s.ask(ctx)
	if err != nil {
		tell(s.up, 0)
		return
	}
	tell(s.up, 1)
	tell(s.nodes, st.Nodes)
	tell(s.partitions, st.Partitions)
	tell(s.owned, st.Owned)
	tell(s.dead, st.Dead)
	tell(s.questions, st.Questions)
	tell(s.triggers, st.Triggers)
	for status, n := range st.Tasks {
		tell(s.tasks, n, status)
	}
}
