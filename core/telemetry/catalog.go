package telemetry

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// A Known is a metric that this program tells of, as its documents list it. A
// histogram's series end in _bucket (with the label le), _sum and _count.
type Known struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// Catalog lists every metric of our own, by name. Those of the Go runtime (go_…) and
// of the process (process_…) are Prometheus' own.
func Catalog() []Known {
	var list []Known
	for _, c := range append(New().own(),
		newWaiting(func(context.Context) ([]Waiting, error) { return nil, nil }),
		newStanding(func(context.Context) (State, error) { return State{}, nil })) {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			c.Describe(descs)
		}()
		for d := range descs {
			list = append(list, known(typeOf(c), d))
		}
	}
	slices.SortFunc(list, func(a, b Known) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// typeOf tells what kind a collector is of; those that ask when they are asked tell
// gauges.
func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	if _, gauge := c.(prometheus.Gauge); gauge { // before counters, whose methods it has
		return "gauge"
	}
	if _, counts := c.(prometheus.Counter); counts {
		return "counter"
	}
	if _, observes := c.(prometheus.Observer); observes {
		return "histogram"
	}
	return "gauge"
}

// descForm is how a Desc prints itself, which is the only way to read one.
var descForm = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

func known(kind string, d *prometheus.Desc) Known {
	m := descForm.FindStringSubmatch(d.String())
	if m == nil {
		panic(fmt.Sprintf("a metric is described as %s", d)) // found by the first test that lists them
	}
	k := Known{Name: m[1], Type: kind, Help: strings.ReplaceAll(m[2], `\"`, `"`)}
	if m[3] != "" {
		k.Labels = strings.Split(m[3], ",")
	}
	slices.Sort(k.Labels)
	return k
}
