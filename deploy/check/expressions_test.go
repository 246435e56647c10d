package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"mimikit/core/telemetry"
)

// usual are labels that Prometheus itself adds.
var usual = []string{"instance", "job"}

// foreign are metrics that are not ours, with their labels.
var foreign = map[string][]string{
	"up": nil, "go_goroutines": nil, "go_memstats_heap_inuse_bytes": nil, "process_resident_memory_bytes": nil,
	"process_cpu_seconds_total": nil, "process_open_fds": nil, "process_max_fds": nil, "process_start_time_seconds": nil,
}

// catalog is every series there is :: name -> labels.
var catalog = func() map[string][]string {
	all := map[string][]string{}
	for name, l := range foreign {
		all[name] = l
	}
	for _, k := range telemetry.Catalog() {
		if k.Type != "histogram" {
			all[k.Name] = k.Labels
			continue
		}
		all[k.Name+"_sum"], all[k.Name+"_count"] = k.Labels, k.Labels
		all[k.Name+"_bucket"] = append(slices.Clone(k.Labels), "le")
	}
	return all
}()

// judge checks that an expression can be read, and that every metric and label in it
// is one that there is. It gives the metrics.
func judge(t *testing.T, what, expr string) (metrics []string) {
	t.Helper()
	e, err := grammar.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %s: %v", what, expr, err)
		return nil
	}
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			known, is := catalog[n.Name]
			if !is {
				t.Errorf("%s asks for %q, which there is not", what, n.Name)
			}
			metrics = append(metrics, n.Name)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(known, m.Name) && !slices.Contains(usual, m.Name) {
					t.Errorf("%s asks %s for the label %q, which it has not", what, n.Name, m.Name)
				}
			}
			if strings.HasSuffix(n.Name, "_total") || strings.HasSuffix(n.Name, "_count") || strings.HasSuffix(n.Name, "_bucket") || strings.HasSuffix(n.Name, "_sum") {
				if !slices.ContainsFunc(path, func(p parser.Node) bool { _, ranged := p.(*parser.MatrixSelector); return ranged }) {
					t.Errorf("%s reads %s, which only ever grows, without rate or increase", what, n.Name)
				}
			}
		case *parser.AggregateExpr:
			var below []string
			parser.Inspect(n.Expr, func(n parser.Node, _ []parser.Node) error {
				if s, is := n.(*parser.VectorSelector); is {
					below = append(below, catalog[s.Name]...)
				}
				return nil
			})
			for _, g := range n.Grouping {
				if !slices.Contains(below, g) && !slices.Contains(usual, g) {
					t.Errorf("%s groups by %q, which nothing below has: %s", what, g, n)
				}
			}
		}
		return nil
	})
	return metrics
}
