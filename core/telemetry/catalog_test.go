package telemetry

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// table is the catalog as docs/metrics.md has it.
func table() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it tells |\n|---|---|---|---|\n")
	for _, k := range Catalog() {
		labels := strings.Join(k.Labels, "`, `")
		if labels != "" {
			labels = "`" + labels + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Type, labels, k.Help)
	}
	return b.String()
}

// What is documented is what there is.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), table()) {
		t.Errorf("docs/metrics.md lacks this table:\n%s", table())
	}
}

// Every series that a scrape shows is in the catalog, with its labels.
func TestCatalog(t *testing.T) {
	t.Parallel()
	m := New()
	use(m)
	known := map[string]Known{}
	for _, k := range Catalog() {
		if _, twice := known[k.Name]; twice || k.Help == "" || !strings.HasPrefix(k.Name, "mimikit_") {
			t.Errorf("%+v (twice: %v)", k, twice)
		}
		known[k.Name] = k
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "mimikit_") {
			continue
		}
		ours++
		k := known[f.GetName()]
		if k.Type != strings.ToLower(f.GetType().String()) || k.Help != f.GetHelp() || len(f.GetMetric()[0].GetLabel()) != len(k.Labels) {
			t.Errorf("%s is %+v in the catalog", f.GetName(), k)
		}
		for i, l := range f.GetMetric()[0].GetLabel() {
			if k.Labels[i] != l.GetName() {
				t.Errorf("%s has the labels %v, and in the catalog %v", f.GetName(), f.GetMetric()[0].GetLabel(), k.Labels)
			}
		}
	}
	if ours < 40 {
		t.Errorf("only %d metrics were moved by the verbs", ours)
	}
}
