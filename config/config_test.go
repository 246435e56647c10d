package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var home = []string{"HOME=/home/ada", "PATH=/bin"}

func write(t *testing.T, yaml string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mimikit.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, yaml string, env ...string) Config {
	t.Helper()
	c, err := Load(write(t, yaml), append(env, home...))
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func TestExampleIsDefault(t *testing.T) {
	t.Parallel()
	got, err := layered(write(t, Example), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if where := got.Origin(k.Name); !k.Secret && !strings.Contains(where, "mimikit.yaml:") {
			t.Errorf("%s is missing from example.yaml (origin %q)", k.Name, where)
		}
	}
	want := Default()
	for _, k := range keys {
		if g, w := k.format(k.get(&got)), k.format(k.get(&want)); g != w {
			t.Errorf("example.yaml has %s: %s, Default() has %s", k.Name, g, w)
		}
	}
}

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	c := Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryKeyHasOneVariable(t *testing.T) {
	t.Parallel()
	if len(byEnv) != len(keys) || len(byName) != len(keys) {
		t.Fatalf("%d keys, %d names, %d variables: two keys share one", len(keys), len(byName), len(byEnv))
	}
	for name, env := range map[string]string{
		"llm.key":              "MIMIKIT_LLM_KEY",
		"llm.keyFile":          "MIMIKIT_LLM_KEY_FILE",
		"llm.baseURL":          "MIMIKIT_LLM_BASE_URL",
		"teller.maxInputWait":  "MIMIKIT_TELLER_MAX_INPUT_WAIT",
		"dataDir":              "MIMIKIT_DATA_DIR",
		"thinker.tasks.min":    "MIMIKIT_THINKER_TASKS_MIN",
		"llm.models.thinker":   "MIMIKIT_LLM_MODELS_THINKER",
		"redis.db":             "MIMIKIT_REDIS_DB",
		"llm.second.key":       "MIMIKIT_LLM_SECOND_KEY",
		"llm.second.keyFile":   "MIMIKIT_LLM_SECOND_KEY_FILE",
		"llm.second.baseURL":   "MIMIKIT_LLM_SECOND_BASE_URL",
		"budgets.user.money":   "MIMIKIT_BUDGETS_USER_MONEY",
		"fetch.allowHosts":     "MIMIKIT_FETCH_ALLOW_HOSTS",
		"channel.lease":        "MIMIKIT_CHANNEL_LEASE",
		"worker.maxConcurrent": "MIMIKIT_WORKER_MAX_CONCURRENT",
	} {
		if k := byName[name]; k == nil || k.Env != env {
			t.Errorf("%s: got %+v, want variable %s", name, k, env)
		}
	}
}

// Every bound is written in a tag; one that does not parse would allow nothing.
func TestBoundsParse(t *testing.T) {
	t.Parallel()
	for i := range keys {
		k := &keys[i]
		if low, high, ok := strings.Cut(k.allow, ".."); ok {
			for _, s := range []string{low, high} {
				if _, err := k.parse(s); err != nil {
					t.Errorf("%s: bound %q: %v", k.Name, s, err)
				}
			}
		}
		if k.Allowed == "" {
			t.Errorf("%s does not say what it allows", k.Name)
		}
		if f, ok := forms[k.Name]; k.typ.Kind() == reflect.Slice && !ok {
			t.Errorf("%s is a list whose items have no rule", k.Name)
		} else if ok && k.Allowed != f.words {
			t.Errorf("%s has a rule, and says %q", k.Name, k.Allowed)
		}
	}
	for name := range forms {
		if byName[name] == nil {
			t.Errorf("there is a rule for %s, which is no key", name)
		}
	}
}

// Each layer overrides the one before it, key by key.
func TestLayers(t *testing.T) {
	t.Parallel()
	c := load(t, "pace: relaxed\nteller:\n  debounce: 3s\n  historyMessages: {max: 50}\nredis:\n  mode: single\n  addrs: [a:1]\n",
		"MIMIKIT_TELLER_MAX_INPUT_WAIT=20s", "MIMIKIT_REDIS_ADDRS=b:2", "MIMIKIT_NAME=", "MIMIKIT_THINKER_HISTORY_BYTES=64KiB",
		"MIMIKIT_LLM_HEADERS=X-A=1, X-B=2=3", "MIMIKIT_LLM_MODELS_FALLBACK=gpt-5.2, o3", "MIMIKIT_LLM_PRICES=gpt-5.2*=1.25/0.125/10,o3=2/8",
		"MIMIKIT_BUDGETS_USER_MONEY=2.50", "MIMIKIT_SANDBOX_NETWORK=true", "MIMIKIT_HISTORY_FOLD=false")
	want := Default()
	want.preset(Relaxed)
	want.Pace = Relaxed
	want.Teller.Debounce, want.Teller.MaxInputWait = 3*time.Second, 20*time.Second
	want.Teller.HistoryMessages.Max = 50
	want.Thinker.HistoryBytes = 64 * KiB
	want.Redis.Mode, want.Redis.Addrs = Single, []string{"b:2"}
	want.LLM.Headers = map[string]string{"X-A": "1", "X-B": "2=3"}
	want.LLM.Models.Fallback = []string{"gpt-5.2", "o3"}
	want.LLM.Prices = Prices{"gpt-5.2*": {1_250_000, 125_000, 10_000_000}, "o3": {2_000_000, 2_000_000, 8_000_000}}
	want.Budgets.User.Money = 2_500_000
	want.Sandbox.Network, want.History.Fold = true, false
	want.DataDir, want.Node, want.origin = "/home/ada/.local/state/mimikit", c.Node, c.origin
	want.Workspaces.Dir = "/home/ada/.local/state/mimikit/workspaces"
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	for key, origin := range map[string]string{
		"name": "default", "thinker.poll": "preset relaxed", "teller.maxInputWait": "env MIMIKIT_TELLER_MAX_INPUT_WAIT",
		"node": "made at start",
	} {
		if got := c.Origin(key); got != origin {
			t.Errorf("origin of %s: %q, want %q", key, got, origin)
		}
	}
	if got := c.Origin("teller.debounce"); !strings.HasSuffix(got, "mimikit.yaml:3") {
		t.Errorf("origin of teller.debounce: %q, want line 3 of the file", got)
	}
}

func TestPaces(t *testing.T) {
	t.Parallel()
	chat, relaxed := load(t, ""), load(t, "", "MIMIKIT_PACE=relaxed")
	type row struct {
		tellerPoll, thinkerPoll, debounce, wait, interval, results time.Duration
		digest, format                                             Mode
		model                                                      string
	}
	of := func(c Config) row {
		return row{c.Teller.Poll, c.Thinker.Poll, c.Teller.Debounce, c.Teller.MaxInputWait, c.Thinker.MinInterval,
			c.Thinker.MaxResultWait, c.Teller.Digest, c.Teller.Format, c.LLM.Model}
	}
	s := time.Second
	if got, want := of(chat), (row{s, s, 1200 * time.Millisecond, 5 * s, 0, s / 2, Auto, Auto, ""}); got != want {
		t.Errorf("chat: got %+v, want %+v", got, want)
	}
	if got, want := of(relaxed), (row{s, 2 * s, 10 * s, 60 * s, 15 * s, 20 * s, Always, Always, "gpt-5.2-high"}); got != want {
		t.Errorf("relaxed: got %+v, want %+v", got, want)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	path := write(t, "dataDir: state\nprompts: {dir: ~/prompts}\n")
	c, err := Load("", append(home, EnvFile+"="+path, "XDG_STATE_HOME=/xdg"))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(path), "state"); c.DataDir != want {
		t.Errorf("dataDir %q, want it beside the file: %q", c.DataDir, want)
	}
	if c.Prompts.Dir != "/home/ada/prompts" {
		t.Errorf("prompts.dir %q", c.Prompts.Dir)
	}
	c, err = Load("", append(home, "XDG_STATE_HOME=/xdg"))
	if err != nil || c.DataDir != "/xdg/mimikit" {
		t.Errorf("dataDir %q, %v; want it below XDG_STATE_HOME", c.DataDir, err)
	}
	other, _ := Load("", home)
	if c.Node == "" || c.Node == other.Node {
		t.Errorf("nodes %q and %q: want two different ones", c.Node, other.Node)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := "llm: {model: m, keyFile: " + file + "}\n"
	if c := load(t, yaml); c.LLM.Key.Reveal() != "from-file" || !c.LLM.Configured() {
		t.Errorf("key %q, want the file's without its newline", c.LLM.Key.Reveal())
	}
	if c := load(t, yaml, "MIMIKIT_LLM_KEY=from-env"); c.LLM.Key.Reveal() != "from-env" {
		t.Errorf("key %q, want the environment's", c.LLM.Key.Reveal())
	}
	c := load(t, "", "MIMIKIT_LLM_MODEL=m", "MIMIKIT_LLM_KEY_FILE="+file, "MIMIKIT_REDIS_MODE=single",
		"MIMIKIT_REDIS_ADDRS=h:1", "MIMIKIT_REDIS_PASSWORD=hunter2", "MIMIKIT_LLM_HEADERS=api-key=hunter2")
	var out bytes.Buffer
	if err := Print(&out, c); err != nil {
		t.Fatal(err)
	}
	c.LLM.Second = Endpoint{Key: "hunter2", Headers: Headers{"X": "hunter2"}}
	fmt.Fprintf(&out, "%v %+v %#v", c, c, c)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "headers", c.LLM.Headers, "key", c.LLM.Key)
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"from-file", "hunter2"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("Print shows the secret %q:\n%s", leak, out.String())
		}
	}
}

// What must be kept out of logs and archives, and what would only take words out of
// them.
func TestSecretsAreListed(t *testing.T) {
	t.Parallel()
	c := load(t, "llm: {model: m, headers: {X-Title: a-title-that-is-long-enough}}\n", "MIMIKIT_LLM_KEY=the-key", "MIMIKIT_PAGE_TOKEN=a-token-of-the-page",
		"MIMIKIT_LLM_SECOND_BASE_URL=http://b", "MIMIKIT_LLM_SECOND_HEADERS=Authorization=Bearer abc,X-Gateway=0123456789abcdef,X-Title=Mimikit,Referer=https://example.org/bot")
	got := c.Secrets()
	slices.Sort(got)
	if want := []string{"0123456789abcdef", "a-token-of-the-page", "abc", "the-key"}; !slices.Equal(got, want) {
		t.Errorf("secrets %q, want %q", got, want)
	}
}

// What Print writes is read back as the same configuration.
func TestPrintRoundTrip(t *testing.T) {
	t.Parallel()
	first := load(t, "name: 'A: \"b\" # c'\nnode: n1\npace: relaxed\nredis: {mode: cluster, addrs: ['[::1]:7000', 'b:1'], tls: true}\n"+
		"llm: {headers: {X-Title: 'yes'}, models: {fallback: [a, 'b: c', '*']}, prices: {'*': 1/2, gpt-5.2: 0.5/0.05/4, 'a:b/c*': 0/0}, second: {baseURL: 'http://b', api: chat, headers: {X-T: '1.5'}}}\n"+
		"budgets: {currency: €, task: {money: 0.000001}, unknown: refuse}\nfetch: {allowHosts: [a.b, '::1', 10.0.0.0/8]}\nworkspaces: {dir: w}\n",
		"MIMIKIT_LLM_MODEL=true", "MIMIKIT_LLM_BASE_URL=http://localhost:1/v1")
	var out bytes.Buffer
	if err := Print(&out, first); err != nil {
		t.Fatal(err)
	}
	second := load(t, out.String())
	first.origin, second.origin = nil, nil
	if !reflect.DeepEqual(first, second) {
		t.Errorf("printed:\n%s\ngot  %+v\nwant %+v", out.String(), second, first)
	}
}

func TestPrintNamesOrigins(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Print(&out, load(t, "name: Ada", "MIMIKIT_LOG_LEVEL=warn")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"mimikit.yaml:1\n", "  debounce: 1.2s                            # preset chat\n",
		"  level: warn                               # env MIMIKIT_LOG_LEVEL\n", "  # key: not set", "    min: 5 ", "giveUpAfter: 1h  ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listen, want string }{{"", "127.0.0.1:8080"}, {Off, ""}, {":9", ":9"}} {
		if got := (HTTP{c.listen}).Address("127.0.0.1:8080"); got != c.want {
			t.Errorf("listen %q: got %q, want %q", c.listen, got, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, k := range Keys() {
		if k.Name == "teller.debounce" {
			if k.Default != "1.2s" || k.Allowed != "0s to 10m" || k.Env != "MIMIKIT_TELLER_DEBOUNCE" || k.Secret {
				t.Errorf("got %+v", k)
			}
			return
		}
	}
	t.Error("teller.debounce is not among Keys()")
}
