package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func info(lines ...string) string { return "# Server\r\n" + strings.Join(lines, "\r\n") + "\r\n" }

func TestFactsOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		info string
		want facts
	}{
		"redis": {
			info("redis_version:7.0.15", "role:master", "maxmemory_policy:noeviction", "aof_enabled:1", "cluster_enabled:0"),
			facts{product: "redis", version: "7.0.15", compatible: "7.0.15", role: "master", policy: "noeviction", aof: true},
		},
		"valkey": {
			info("redis_version:7.2.4", "server_name:valkey", "valkey_version:8.1.0", "role:slave", "aof_enabled:0", "cluster_enabled:1"),
			facts{product: "valkey", version: "8.1.0", compatible: "7.2.4", role: "slave", cluster: true},
		},
		"nothing": {"", facts{product: "redis"}},
	} {
		if d := cmp.Diff(tt.want, factsOf(tt.info), cmp.AllowUnexported(facts{})); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	sound := facts{addr: "r:1", product: "redis", version: "7.0.15", compatible: "7.0.15", role: "master", policy: "noeviction"}
	for name, tt := range map[string]struct {
		change func(*facts)
		mode   Mode
		want   string // part of the error; empty: none
	}{
		"sound":         {func(*facts) {}, Single, ""},
		"oldest":        {func(f *facts) { f.compatible = "6.2.0" }, Single, ""},
		"newest":        {func(f *facts) { f.compatible = "10.0.1" }, Single, ""},
		"valkey":        {func(f *facts) { f.product, f.version, f.compatible = "valkey", "8.1.0", "7.2.4" }, Single, ""},
		"release":       {func(f *facts) { f.compatible = "8.4-rc1" }, Single, "8.4-rc1"},
		"too old":       {func(f *facts) { f.version, f.compatible = "6.0.16", "6.0.16" }, Single, "redis 6.0.16 is too old; Redis 6.2 or newer, or Valkey, is needed"},
		"no version":    {func(f *facts) { f.compatible = "" }, Single, `version "" is not of the form 7.0.15`},
		"evicting":      {func(f *facts) { f.policy = "allkeys-lru" }, Single, `maxmemory-policy is "allkeys-lru"`},
		"the mend":      {func(f *facts) { f.policy = "volatile-ttl" }, Single, "CONFIG SET maxmemory-policy noeviction"},
		"replica":       {func(f *facts) { f.role = "slave" }, Single, "is a replica"},
		"cluster":       {func(f *facts) { f.cluster = true }, Cluster, ""},
		"node of a one": {func(f *facts) { f.cluster = true }, Single, `use mode "cluster", not "single"`},
	} {
		f := sound
		tt.change(&f)
		err := f.refuse(tt.mode)
		if got := text(err); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q in it", name, got, tt.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "r:1: ") {
			t.Errorf("%s: error does not start with the server's address: %v", name, err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWarning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f       facts
		want    string // part of the warning; empty: none
		durable string
	}{
		{facts{aof: true, fsync: "always"}, "", "AOF always"},
		{facts{aof: true, fsync: "everysec"}, "last one or two seconds", "AOF everysec"},
		{facts{aof: true, fsync: "no"}, "half a minute", "AOF no"},
		{facts{aof: true}, "does not say", "AOF on"},
		{facts{fsync: "always"}, "no append-only file", "AOF off"},
	} {
		if got := tt.f.warning(); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("warning of %s: %q, want %q in it", tt.durable, got, tt.want)
		}
		if got := tt.f.durability(); got != tt.durable {
			t.Errorf("durability = %q, want %q", got, tt.durable)
		}
	}
}

func TestResolveNamesWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		opts Options
		want string
	}{
		{Options{}, `mode "" is unknown; allowed are embedded, single, sentinel, cluster, memory`},
		{Options{Mode: Single}, "takes one address, 0 given"},
		{Options{Mode: Single, Addrs: []string{"a:1", "b:1"}}, `["a:1" "b:1"]`},
		{Options{Mode: Sentinel, Addrs: []string{"a:1"}}, "the master's name"},
		{Options{Mode: Cluster}, "at least one node"},
		{Options{Mode: Cluster, Addrs: []string{"a:1"}, DB: 3}, "database 3"},
	} {
		_, err := tt.opts.resolve()
		if !strings.Contains(text(err), tt.want) {
			t.Errorf("%+v: %v, want %q in it", tt.opts, err, tt.want)
		}
	}
	got, err := Options{Mode: Single, Addrs: []string{"unix:///run/redis.sock"}}.resolve()
	if err != nil || got.Addrs[0] != "/run/redis.sock" {
		t.Errorf("unix address became %q, %v", got.Addrs, err)
	}
}

func TestGenerationOfAClusterCountsEachMasterOnce(t *testing.T) {
	t.Parallel()
	g := newGeneration(true)
	for _, id := range []string{"a", "b", "c"} {
		g.observe(id) // Open meets them
	}
	g.settle()
	for i, tt := range []struct {
		id   string
		want uint64
	}{{"b", 1}, {"d", 2}, {"a", 2}, {"d", 2}, {"e", 3}} {
		if g.observe(tt.id); g.number != tt.want {
			t.Errorf("step %d: after %q the number is %d, want %d", i, tt.id, g.number, tt.want)
		}
	}
}
