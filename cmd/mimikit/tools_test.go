package main

import (
	"strings"
	"testing"

	"mimikit/core/store/storetest"
)

// A small chaos run, as a person would start one.
func TestChaos(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, nil).with("MIMIKIT_LLM_BASE_URL", "MIMIKIT_LLM_KEY", "MIMIKIT_LLM_MODEL")
	p := d.start("chaos", "-n", "100", "-C", "10", "--nodes", "2", "--lease", "500ms", "--spread", "3s", "--seed", "7")
	if code := p.within(3 * patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	has(t, p.out.String(), "100 messages in 10 conversations, 2 nodes, lease 500ms", "seed 7", "verdict:  clean")
	if p.err.String() != "" {
		t.Errorf("error output %q, want none", p.err)
	}
}

func TestBench(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	stores := []string{"memory"}
	if d.hasRedis() {
		stores = append(stores, "embedded")
	}
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			out, stderr := d.in(t).run(0, "", "bench", "-n", "200", "-C", "20", "--json", "--store", store)
			if strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") || stderr != "" {
				t.Fatalf("output %q, error output %q; want one line", out, stderr)
			}
			m := decoded[struct {
				Ops   int
				Sec   float64
				P50   int64 `json:"p50_us"`
				P99   int64 `json:"p99_us"`
				Extra map[string]any
			}](t, out)
			if m.Ops != 200 || m.Sec <= 0 || m.P50 <= 0 || m.P99 < m.P50 || m.Extra["msgs_per_sec"] == nil {
				t.Errorf("measured %+v", m)
			}
		})
	}
}

// The queue is measured beside a bare one, on each store, and its idle node.
func TestBenchTasks(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	stores := []string{"memory"}
	if d.hasRedis() {
		stores = append(stores, "embedded")
	}
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			out, stderr := d.in(t).run(0, "", "bench", "tasks", "-n", "150", "-C", "10", "--callers", "4", "--workers", "4", "--picks", "5", "--rate", "20",
				"--compare", "--rounds", "1", "--deferred", "50", "--idle", "300ms", "--json", "--store", store)
			if strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") || stderr != "" {
				t.Fatalf("output %q, error output %q; want one line", out, stderr)
			}
			type ratio struct {
				Rate  float64 `json:"ratio"`
				P50   float64 `json:"pickup_p50_ratio"`
				Tasks float64 `json:"tasks_per_sec"`
			}
			m := decoded[struct {
				Ops   int
				Sec   float64
				P50   int64 `json:"p50_us"`
				P99   int64 `json:"p99_us"`
				Extra struct {
					Rate     float64          `json:"tasks_per_sec"`
					Commands float64          `json:"redis_commands_per_task"`
					Trips    float64          `json:"round_trips_per_task"`
					To       map[string]ratio `json:"to"`
					Deferred int              `json:"deferred"`
				}
			}](t, out)
			if m.Ops != 150 || m.Sec <= 0 || m.P50 <= 0 || m.P99 < m.P50 || m.Extra.Rate <= 0 || m.Extra.Trips <= 0 || m.Extra.Deferred != 50 {
				t.Errorf("measured %+v", m)
			}
			if told := m.Extra.Commands > 10; told != (store == "embedded") {
				t.Errorf("%g commands a task on the store %s", m.Extra.Commands, store)
			}
			for _, name := range []string{"bare", "bare, one by one"} {
				if r := m.Extra.To[name]; r.Rate <= 0 || r.P50 <= 0 || r.Tasks <= 0 {
					t.Errorf("to %s it has %+v", name, r)
				}
			}
		})
	}
}

// Figures that mean nothing are refused with what is allowed.
func TestToolsRefuse(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	for _, c := range []struct{ args, want string }{
		{"bench tasks --tasks 0", "--tasks 0"},
		{"bench tasks --rate 0", "--rate 0"},
		{"bench tasks --rival x", "it needs --compare"},
		{"bench tasks --compare --rival x --store memory -n 1 --picks 1", "it needs one redis-server"},
		{"chaos tasks --workers 0", "--workers 0"},
	} {
		if _, stderr := d.run(1, "", strings.Fields(c.args)...); !strings.Contains(stderr, c.want) {
			t.Errorf("mimikit %s says %q, want %q in it", c.args, stderr, c.want)
		}
	}
}
