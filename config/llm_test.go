package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestMoney(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Money{
		"0": 0, "2": 2_000_000, "2.5": 2_500_000, "2.50": 2_500_000, "0.125": 125_000, "0.000001": 1, "007.10": 7_100_000,
		"999999999999.999999": 999_999_999_999_999_999,
	} {
		if got, err := parseMoney(s); err != nil || got != want {
			t.Errorf("parse %q: got %d, %v; want %d", s, int64(got), err, int64(want))
		}
	}
	for _, s := range []string{"", ".", "1.", ".5", "-1", "+1", "1,5", "1.2.3", "1e3", "0x1", "1_000", "$2", "2 USD", "0.0000001", "1000000000000"} {
		if got, err := parseMoney(s); err == nil {
			t.Errorf("parse %q: got %d, want an error", s, int64(got))
		}
	}
	for m, want := range map[Money]string{
		0: "0", 1: "0.000001", 500_000: "0.50", 125_000: "0.125", 2_000_000: "2", 2_500_000: "2.50", 2_050_000: "2.05", -500_000: "-0.50", -3_000_000: "-3",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(m), got, want)
		}
	}
	if got := Money(1_250_000).Float(); got != 1.25 {
		t.Errorf("1.25 is the float %v", got)
	}
}

// What is written is read back as the same amount.
func FuzzMoney(f *testing.F) {
	f.Add("2.50")
	f.Add("0.000001")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := parseMoney(s)
		if err != nil {
			return
		}
		if again, err := parseMoney(m.String()); err != nil || again != m {
			t.Errorf("%q is %d, written %s, read back %d, %v", s, int64(m), m, int64(again), err)
		}
	})
}

// The line that example.yaml shows, in YAML and as the environment spells it.
func TestPrices(t *testing.T) {
	t.Parallel()
	const shown = `{"gpt-5*": 1.25/0.125/10, llama3: 0/0}`
	if !strings.Contains(Example, shown) {
		t.Errorf("example.yaml does not show %s", shown)
	}
	want := Prices{"gpt-5*": {1_250_000, 125_000, 10_000_000}, "llama3": {}}
	if c := load(t, "llm:\n  prices: "+shown+"\n"); !reflect.DeepEqual(c.LLM.Prices, want) {
		t.Errorf("from YAML: got %v, want %v", c.LLM.Prices, want)
	}
	c := load(t, "llm: {prices: {other: 1/1}}\n", "MIMIKIT_LLM_PRICES="+byName["llm.prices"].format(want))
	if !reflect.DeepEqual(c.LLM.Prices, want) {
		t.Errorf("from the environment: got %v, want %v and nothing of the file's", c.LLM.Prices, want)
	}
	var out bytes.Buffer
	if err := Print(&out, c); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"# env MIMIKIT_LLM_PRICES\n", "    gpt-5*: 1.25/0.125/10\n", "    llama3: 0/0\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("prices are no secret; want %q in:\n%s", line, out.String())
		}
	}
	if got := (Price{2_000_000, 2_000_000, 8_000_000}).String(); got != "2/8" {
		t.Errorf("got %s, want 2/8", got)
	}
	for _, bad := range []Prices{{"a,b": {}}, {"a": {Prompt: -1}}, {"a": {Completion: maxPrice + 1}}} {
		c := Default()
		c.LLM.Prices = bad
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "llm.prices") {
			t.Errorf("%v: Validate says %v", bad, err)
		}
	}
}

// A second endpoint has secrets of its own, which come the same ways.
func TestSecond(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("second-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(t, "llm: {model: m, second: {baseURL: 'http://b/v1', keyFile: "+file+", api: chat}}\n", "MIMIKIT_LLM_KEY=first-key")
	want := Endpoint{BaseURL: "http://b/v1", Key: "second-key", KeyFile: file, API: "chat"}
	if !reflect.DeepEqual(c.LLM.Second, want) || c.LLM.Key != "first-key" || !c.LLM.Second.Configured() {
		t.Errorf("got key %q and second %+v, key %q", c.LLM.Key.Reveal(), c.LLM.Second, c.LLM.Second.Key.Reveal())
	}
	if got := c.Origin("llm.second.key"); got != "file "+file {
		t.Errorf("origin of llm.second.key: %q", got)
	}
	// One mistake, one problem: what depends on the file's key is not blamed.
	_, err := Load(write(t, "llm: {model: m, second: {keyFile: nowhere, model: n}}\n"), append(home, "MIMIKIT_LLM_KEY=k"))
	if err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), "llm.second.keyFile: cannot be read") {
		t.Errorf("got %v", err)
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string][]string{
		"[a, b]": {"a", "b"}, "a": {"a"}, "a, b": {"a", "b"}, `""`: nil, "[]": nil,
	} {
		if got := load(t, "llm:\n  models:\n    fallback: "+yaml+"\n").LLM.Models.Fallback; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", yaml, got, want)
		}
	}
}

func TestAllowHosts(t *testing.T) {
	t.Parallel()
	holds := forms["fetch.allowHosts"].holds
	for _, s := range []string{"localhost", "wiki.example.org", "a_b.c", "xn--bcher-kva.example", "3com.com", "192.168.1.7", "10.0.0.0/8", "::1", "fd00::/8"} {
		if !holds(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{
		"", " ", "a b", "-a.b", "a-.b", "a..b", "a.b.", ".a", "*.example.org", "http://a", "a:80", "a@b", "1.2.3", "1.2.3.256", "10.0.0.1/8", "10.0.0.0/33",
		"[::1]", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "fe80::1%eth0", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "ab",
	} {
		if holds(s) {
			t.Errorf("%q is taken", s)
		}
	}
}

// The workspaces lie in the data directory, wherever that came from.
func TestWorkspacesDir(t *testing.T) {
	t.Parallel()
	c := load(t, "", "MIMIKIT_DATA_DIR=/data")
	if want := "/data/workspaces"; c.Workspaces.Dir != want || c.Origin("workspaces.dir") != "default" {
		t.Errorf("got %q from %q, want %q", c.Workspaces.Dir, c.Origin("workspaces.dir"), want)
	}
	if c := load(t, "", "MIMIKIT_DATA_DIR=/data", "MIMIKIT_WORKSPACES_DIR=/w"); c.Workspaces.Dir != "/w" {
		t.Errorf("got %q, want what was set", c.Workspaces.Dir)
	}
}
