package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// specialForms are the rules in words of the keys that checkText knows.
var specialForms = map[string]string{
	"name":         "1 to 80 letters without control characters",
	"node":         "1 to 100 letters, digits, dots, dashes and underscores",
	"llm.baseURL":  "an http or https URL without credentials, query or fragment, like https://api.openai.com/v1",
	"llm.headers":  "pairs of header name and value; in the environment Name=value,Name=value",
	"redis.addrs":  "host:port each, with commas between them in the environment",
	"redis.prefix": "1 to 64 letters, digits, dots, dashes, underscores and colons",
	"http.listen":  "host:port, :port, or off",
}

var (
	nodeForm   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	prefixForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`) // no brace: it would begin a hash tag
	headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// Validate checks every value against its bounds and against the others. The
// error joins every [Problem].
func (c *Config) Validate() error {
	var problems []error
	for i := range keys {
		k := &keys[i]
		if ok := c.within(k); !ok {
			problems = append(problems, c.problem(k.Name, k.shown(k.format(k.get(c))), "allowed: "+k.Allowed))
		}
	}
	return errors.Join(append(problems, c.together()...)...)
}

// problem is a Problem with the place the key was read from.
func (c *Config) problem(key, value, want string) error {
	where := c.origin[key]
	switch {
	case strings.HasPrefix(where, "env "):
		return &Problem{"environment", strings.TrimPrefix(where, "env ") + " (" + key + ")", value, want}
	case where == "default" || strings.HasPrefix(where, "preset "):
		where = ""
	}
	return &Problem{where, key, value, want}
}

// within reports whether a value keeps its own bounds.
func (c *Config) within(k *Key) bool {
	switch v := k.get(c).(type) {
	case time.Duration:
		low, high := bounds(k)
		return v >= low.(time.Duration) && v <= high.(time.Duration)
	case Bytes:
		low, high := bounds(k)
		return v >= low.(Bytes) && v <= high.(Bytes)
	case int:
		low, high := bounds(k)
		return v >= low.(int) && v <= high.(int)
	case bool:
		return true
	case Secret:
		return plain(v.Reveal())
	case []string:
		return !slices.ContainsFunc(v, func(s string) bool { return !isAddr(s) })
	case map[string]string:
		for name, value := range v {
			if !headerForm.MatchString(name) || !plain(value) {
				return false
			}
		}
		return true
	}
	s := k.format(k.get(c))
	if k.allow != "" {
		return slices.Contains(strings.Split(k.allow, "|"), s)
	}
	return plain(s) && c.form(k.Name, s)
}

// bounds reads the tag that holds them. It was written by us, so it parses.
func bounds(k *Key) (low, high any) {
	l, h, _ := strings.Cut(k.allow, "..")
	low, _ = k.parse(l)
	high, _ = k.parse(h)
	return low, high
}

// form checks a text that is more than just text.
func (c *Config) form(name, s string) bool {
	switch name {
	case "name":
		return strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= 80
	case "node":
		return s == "" || nodeForm.MatchString(s)
	case "llm.baseURL":
		return s == "" || isBaseURL(s)
	case "redis.prefix":
		return prefixForm.MatchString(s)
	case "http.listen":
		return s == "" || s == Off || isListen(s)
	}
	return true
}

func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

func isListen(s string) bool {
	_, port, err := net.SplitHostPort(s)
	n, notNumber := strconv.Atoi(port)
	return err == nil && notNumber == nil && n >= 0 && n <= 65535 && !strings.ContainsAny(s, "/@ ")
}

func isAddr(s string) bool {
	if strings.HasPrefix(s, "/") {
		return plain(s)
	}
	host, port, err := net.SplitHostPort(s)
	n, notNumber := strconv.Atoi(port)
	return err == nil && notNumber == nil && host != "" && n > 0 && n <= 65535 && !strings.ContainsAny(host, "/@ ")
}

// together checks what values mean for one another.
func (c *Config) together() []error {
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
	bad(!c.LLM.Configured() || c.LLM.Model != "" || c.LLM.Models.complete(), "llm.model", "",
		"is not set; name the model to use at %s", cmp.Or(c.LLM.BaseURL, "the endpoint that llm.key opens"))
	return append(out, c.redisTogether()...)
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
