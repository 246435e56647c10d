package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// together checks what values mean for one another.
func (c *Config) together() []error {
	return slices.Concat(c.loopsTogether(), c.modelsTogether(), c.redisTogether(), c.platformsTogether(), c.telemetryTogether())
}

// loopsTogether checks times and windows against one another.
func (c *Config) loopsTogether() []error {
	var out []error
	bad := func(ok bool, key, value, want string, args ...any) {
		if !ok {
			out = append(out, c.problem(key, value, fmt.Sprintf(want, args...)))
		}
	}
	for _, r := range []struct {
		key string
		Range
	}{
		{"teller.historyMessages", c.Teller.HistoryMessages},
		{"thinker.historyMessages", c.Thinker.HistoryMessages},
		{"thinker.tasks", c.Thinker.Tasks},
	} {
		bad(r.Min <= r.Max, r.key+".min", strconv.Itoa(r.Min), "must not be more than %s.max, which is %d", r.key, r.Max)
	}
	bad(c.Teller.Debounce <= c.Teller.MaxInputWait, "teller.debounce", formatDuration(c.Teller.Debounce),
		"must not be more than teller.maxInputWait, which is %s", formatDuration(c.Teller.MaxInputWait))
	bad(c.Outbox.LookupAfter > c.Outbox.PostTimeout, "outbox.lookupAfter", formatDuration(c.Outbox.LookupAfter),
		"must be more than outbox.postTimeout, which is %s: a post still under way cannot be looked up", formatDuration(c.Outbox.PostTimeout))
	bad(c.History.Keep < c.History.FoldLines, "history.keep", strconv.Itoa(c.History.Keep),
		"must be less than history.foldLines, which is %d, or there is nothing to fold", c.History.FoldLines)
	bad(3*c.Worker.Heartbeat <= c.Worker.Lease, "worker.heartbeat", formatDuration(c.Worker.Heartbeat),
		"must be at most a third of worker.lease, which is %s, so that one that is late costs no task", formatDuration(c.Worker.Lease))
	return out
}

// modelsTogether checks that what is set has an endpoint that it is for, and
// that what bounds money can count it.
func (c *Config) modelsTogether() []error {
	var out []error
	bad := func(ok bool, key, value, want string) {
		if !ok {
			out = append(out, c.problem(key, value, want))
		}
	}
	bad(!c.LLM.Configured() || c.LLM.Model != "" || c.LLM.Models.complete(), "llm.model", "",
		"is not set; name the model to use at "+cmp.Or(c.LLM.BaseURL, "the endpoint that llm.key opens"))
	// A key file that cannot be read is told already, and is meant all the same.
	first, second := c.LLM, c.LLM.Second
	switch {
	case second.Configured() || second.KeyFile != "":
		key, value := "llm.second.baseURL", strconv.Quote(second.BaseURL)
		if second.BaseURL == "" {
			key, value = "llm.second.key", ""
		}
		bad(first.Configured() || first.KeyFile != "", key, value, "there is no first endpoint that this could be the second of; set llm.baseURL or llm.key")
	default:
		const none = "is set, but llm.second names no endpoint; set llm.second.baseURL or llm.second.key"
		bad(second.Model == "", "llm.second.model", strconv.Quote(second.Model), none+"; another model of the first endpoint belongs in llm.models.fallback")
		bad(len(second.Headers) == 0, "llm.second.headers", "", none)
	}
	for _, b := range []struct {
		key string
		Budget
	}{
		{"budgets.user", c.Budgets.User},
		{"budgets.place", c.Budgets.Place},
		{"budgets.workspace", c.Budgets.Workspace},
		{"budgets.task", c.Budgets.Task},
	} {
		bad(b.Money == 0 || len(c.LLM.Prices) > 0, b.key+".money", b.Money.String(),
			"bounds nothing while llm.prices is empty: what a model costs is not known; name prices, or set "+b.key+".tokens")
	}
	return out
}

func (m Models) complete() bool {
	return !slices.Contains([]string{m.Teller, m.Thinker, m.Planner, m.Standard, m.Expert}, "")
}

// redisTogether checks that what is set fits the mode.
func (c *Config) redisTogether() []error {
	var out []error
	r := c.Redis
	bad := func(ok bool, key, value, want string) {
		if !ok {
			out = append(out, c.problem(key, value, want))
		}
	}
	addrs := byName["redis.addrs"].shown(strings.Join(r.Addrs, ","))
	switch r.Mode {
	case Embedded, Memory:
		const own = "has no meaning for a Redis of our own; set redis.mode to single, sentinel or cluster, or unset it"
		bad(len(r.Addrs) == 0, "redis.addrs", addrs, own)
		bad(r.Username == "", "redis.username", strconv.Quote(r.Username), own)
		bad(r.Password == "", "redis.password", "", own)
		bad(!r.TLS, "redis.tls", "true", own)
		bad(r.DB == 0, "redis.db", strconv.Itoa(r.DB), own)
		bad(r.Wait == 0, "redis.wait", strconv.Itoa(r.Wait), own+": it has no replicas")
	case Single:
		bad(len(r.Addrs) == 1, "redis.addrs", addrs, "redis.mode single wants one address, like localhost:6379")
	case Sentinel:
		bad(len(r.Addrs) > 0, "redis.addrs", addrs, "redis.mode sentinel wants the addresses of the Sentinels, like sentinel-1:26379")
		bad(r.MasterName != "", "redis.masterName", "", "redis.mode sentinel wants the name that the Sentinels give the master")
	case Cluster:
		bad(len(r.Addrs) > 0, "redis.addrs", addrs, "redis.mode cluster wants the address of at least one node, like redis-1:6379")
		bad(r.DB == 0, "redis.db", strconv.Itoa(r.DB), "a Redis Cluster has database 0 only")
	}
	bad(r.Mode == Sentinel || r.MasterName == "", "redis.masterName", strconv.Quote(r.MasterName), "has a meaning for redis.mode sentinel only")
	bad(r.Mode == Single || !slices.ContainsFunc(r.Addrs, func(a string) bool { return strings.HasPrefix(a, "/") }),
		"redis.addrs", addrs, "a unix socket has a meaning for redis.mode single only")
	return out
}
