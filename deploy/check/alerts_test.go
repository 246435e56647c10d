package check

import (
	"context"
	"log/slog"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"go.yaml.in/yaml/v3"
)

// A rule is an alert as it stands in the file.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	data, err := os.ReadFile("../prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	// What Prometheus itself finds wrong, templates included.
	if _, errs := rulefmt.Parse(data, false, model.UTF8Validation, grammar, slog.New(slog.DiscardHandler)); len(errs) > 0 {
		t.Errorf("Prometheus refuses the rules: %v", errs)
	}
	var list []rule
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// anchors are the headings of docs/operations.md, as a link names them.
func anchors(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	odd := regexp.MustCompile(`[^a-z0-9 _-]`)
	all := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && strings.HasPrefix(line, "#") {
			all[strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")] = true
		}
	}
	return all
}

// Each alert says what it is, what to do, how urgent it is, and where more is said of
// it; and asks for nothing that there is not.
func TestAlerts(t *testing.T) {
	t.Parallel()
	there := anchors(t)
	seen := map[string]bool{}
	const book = "https://github.com/mimikit/mimikit/blob/main/docs/operations.md#"
	for _, r := range rules(t) {
		if seen[r.Alert] || !regexp.MustCompile(`^Mimikit[A-Z][A-Za-z]+$`).MatchString(r.Alert) {
			t.Errorf("%q is no good name, or there twice", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) || len(r.Labels) != 1 {
			t.Errorf("%s has the labels %v", r.Alert, r.Labels)
		}
		if len(r.Annotations) != 3 || len(r.Annotations["summary"]) < 10 || len(r.Annotations["description"]) < 40 {
			t.Errorf("%s says %q", r.Alert, r.Annotations)
		}
		if anchor, is := strings.CutPrefix(r.Annotations["runbook_url"], book); !is || !there[anchor] {
			t.Errorf("%s links to %s, which is no heading of docs/operations.md", r.Alert, r.Annotations["runbook_url"])
		}
		if _, err := waits(r); err != nil {
			t.Errorf("%s: for: %v", r.Alert, err)
		}
		judge(t, r.Alert, r.Expr)
		if _, cased := cases[r.Alert]; !cased {
			t.Errorf("nothing is tested of %s", r.Alert)
		}
	}
	for name := range cases {
		if !seen[name] {
			t.Errorf("%s is tested, and there is no such alert", name)
		}
	}
}

func waits(r rule) (time.Duration, error) {
	if r.For == "" {
		return 0, nil
	}
	return time.ParseDuration(r.For)
}

// A series is a name with its labels, and its value at each minute.
type series struct {
	name  string
	value func(minute int) float64
}

func at(name string, v float64) series { return series{name, func(int) float64 { return v }} }

// grows is a counter that has grown by so much each minute.
func grows(name string, each float64) series {
	return series{name, func(minute int) float64 { return each * float64(minute) }}
}

// once is a counter that is there from the beginning and grows once, near the end.
func once(name string, by float64) series {
	return series{name, func(minute int) float64 {
		if minute > length-4 {
			return by
		}
		return 0
	}}
}

// until is a series that is not there after a minute.
func until(last int, s series) series {
	return series{s.name, func(minute int) float64 {
		if minute > last {
			return math.NaN()
		}
		return s.value(minute)
	}}
}

// took is a histogram of which so many observations come each minute, all of so many
// seconds. labels are others than le.
func took(name, labels string, each, seconds float64) []series {
	var list []series
	for _, le := range []string{"0.01", "1", "10", "40", "100", "400", "1600", "6400", "+Inf"} {
		var bound float64
		if err := yaml.Unmarshal([]byte(strings.Replace(le, "+Inf", ".inf", 1)), &bound); err != nil {
			panic(err)
		}
		n := 0.0
		if seconds <= bound {
			n = each
		}
		list = append(list, grows(name+`_bucket{`+labels+`le="`+le+`"}`, n))
	}
	return append(list, grows(name+"_count{"+strings.TrimSuffix(labels, ",")+"}", each))
}

// length is how many minutes the synthetic past has. An alert fires at its end when its
// expression has held for as long as the alert waits.
const length = 120

// A sample is a value at a time.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                    { return s.t }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.f }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

var grammar = parser.NewParser(parser.Options{})

var engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, Parser: grammar})

// past makes a storage of series.
func past(t *testing.T, list []series) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for _, s := range list {
		m, err := grammar.ParseMetric(s.name)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		var samples []chunks.Sample
		for minute := range length + 1 {
			if v := s.value(minute); !math.IsNaN(v) {
				samples = append(samples, sample{int64(minute) * 60_000, v})
			}
		}
		all = append(all, storage.NewListSeries(m, samples))
	}
	return storage.QueryableFunc(func(int64, int64) (storage.Querier, error) {
		return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, want ...*labels.Matcher) storage.SeriesSet {
			var found []storage.Series
			for _, s := range all {
				if !slices.ContainsFunc(want, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
					found = append(found, s)
				}
			}
			return setOf(found)
		}}, nil
	})
}

// fires tells whether an alert fires at the end.
func fires(t *testing.T, r rule, list []series) bool {
	t.Helper()
	db := past(t, list)
	wait, err := waits(r)
	if err != nil {
		t.Fatal(err)
	}
	for minute := length - int(wait.Minutes()); minute <= length; minute++ {
		q, err := engine.NewInstantQuery(context.Background(), db, nil, r.Expr, time.Unix(int64(minute)*60, 0))
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		result := q.Exec(context.Background())
		if result.Err != nil {
			t.Fatalf("%s: %v", r.Alert, result.Err)
		}
		v, err := result.Vector()
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		n := len(v)
		q.Close()
		if n == 0 {
			return false
		}
	}
	return true
}

func TestAlertsFire(t *testing.T) {
	t.Parallel()
	for _, r := range rules(t) {
		c, ok := cases[r.Alert]
		if !ok {
			continue // told by TestAlerts
		}
		for name, list := range c.loud {
			if !fires(t, r, list) {
				t.Errorf("%s does not fire: %s", r.Alert, name)
			}
		}
		for name, list := range c.quiet {
			if fires(t, r, list) {
				t.Errorf("%s fires: %s", r.Alert, name)
			}
		}
		if len(c.loud) == 0 || len(c.quiet) == 0 {
			t.Errorf("%s is not tested both ways", r.Alert)
		}
		if r.Alert != "MimikitAway" && fires(t, r, nil) {
			t.Errorf("%s fires where nothing is known", r.Alert)
		}
	}
}

// A set is series one after another.
type set struct {
	list []storage.Series
	at   int
}

func setOf(list []storage.Series) storage.SeriesSet { return &set{list, -1} }

func (s *set) Next() bool                        { s.at++; return s.at < len(s.list) }
func (s *set) At() storage.Series                { return s.list[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }
