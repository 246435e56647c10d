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
