package check

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"mimikit/core/telemetry"
)

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  source `json:"datasource"`
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct {
		RefID      string `json:"refId"`
		Datasource source `json:"datasource"`
		Expr       string `json:"expr"`
		Legend     string `json:"legendFormat"`
	} `json:"targets"`
}

type source struct{ Type, UID string }

// The dashboard can be imported anywhere: its data source is a variable. It has a row
// for each concern, nothing overlaps, every panel says what it shows, each expression
// asks for what there is, and nothing of ours is left out.
func TestDashboard(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../grafana/mimikit.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []panel
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID != "mimikit" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("the dashboard is %q, %q, version %d", d.UID, d.Title, d.SchemaVersion)
	}
	if v := d.Templating.List; len(v) != 2 || v[0].Name != "datasource" || v[0].Type != "datasource" || v[1].Name != "node" {
		t.Errorf("its variables are %+v", v)
	}
	var rows []string
	ids, spots := map[int]bool{}, map[[2]int]string{}
	shown := map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d %q has no id of its own, or no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := spots[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q or beyond the edge", p.Title, other)
				}
				spots[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 || p.Datasource != (source{"prometheus", "${datasource}"}) {
			t.Errorf("panel %q says nothing, shows nothing, or has a data source of its own: %+v", p.Title, p)
		}
		for _, q := range p.Targets {
			if q.Datasource != p.Datasource {
				t.Errorf("panel %q asks %+v", p.Title, q.Datasource)
			}
			expr := strings.NewReplacer("$__rate_interval", "5m", "$node", ".*").Replace(q.Expr)
			for _, m := range judge(t, p.Title, expr) {
				shown[m] = true
				for _, label := range strings.Split(q.Legend, "{{")[1:] {
					label, _, _ = strings.Cut(label, "}}")
					if !slices.Contains(catalog[m], label) && !slices.Contains(usual, label) {
						t.Errorf("panel %q names the label %q, which %s has not", p.Title, label, m)
					}
				}
			}
		}
	}
	want := []string{"What people see", "Pipeline", "Models and cost", "Tasks and triggers", "Platforms", "Redis and leases", "Process"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	for _, k := range telemetry.Catalog() {
		if !shown[k.Name] && !shown[k.Name+"_bucket"] && !shown[k.Name+"_count"] {
			t.Errorf("nothing shows %s", k.Name)
		}
	}
}

// What is scraped has the name that the alerts go by.
func TestScrape(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"job_name: mimikit\n", "- alerts.yml\n", ":8080\n"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("prometheus.yml lacks %q", want)
		}
	}
}
