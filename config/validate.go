package config

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A form is the rule of a text, or of each item of a list, that is more than
// bounds.
type form struct {
	words string
	holds func(string) bool
}

const (
	baseURLForm = "an http or https URL without credentials, query or fragment, like https://api.openai.com/v1"
	headersForm = "pairs of header name and value; in the environment Name=value,Name=value"
	modelForm   = "a model's name without comma, equals sign or outer blanks"
	listed      = " each, with commas between them in the environment"
)

// forms are the rules of the keys that have one.
var forms = with(approvalForms, with(expertForms, with(platformForms, with(telemetryForms, map[string]form{
	"name": {"1 to 80 letters without control characters", func(s string) bool {
		return strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= 80
	}},
	"node":                {"1 to 100 letters, digits, dots, dashes and underscores", optional(nodeForm.MatchString)},
	"fetch.allowHosts":    {"a host name, address or network (10.0.0.0/8)" + listed, isReach},
	"llm.baseURL":         {baseURLForm, optional(isBaseURL)},
	"llm.second.baseURL":  {baseURLForm, optional(isBaseURL)},
	"llm.models.fallback": {"a model's name" + listed + "; no comma, equals sign or outer blanks in it", isModel},
	"budgets.currency":    {"1 to 8 letters or signs, like USD or €", isCurrency},
	"redis.addrs":         {"host:port" + listed, isAddr},
	"redis.prefix":        {"1 to 64 letters, digits, dots, dashes, underscores and colons", prefixForm.MatchString},
	"http.listen": {"host:port, :port, or off", optional(func(s string) bool {
		return s == Off || isListen(s)
	})},
}))))

// with adds rules to others.
func with(more, to map[string]form) map[string]form {
	maps.Copy(to, more)
	return to
}

// optional lets a text be empty, too.
func optional(holds func(string) bool) func(string) bool {
	return func(s string) bool { return s == "" || holds(s) }
}

var (
	nodeForm   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	prefixForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`) // no brace: it would begin a hash tag
	labelForm  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`)
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

// account finds whom an address speaks for, which may hold a password.
var account = regexp.MustCompile(`//[^/\s]*@`)

// problem is a Problem with the place the key was read from, and without an account in
// the value.
func (c *Config) problem(key, value, want string) error {
	where := c.origin[key]
	value = account.ReplaceAllString(value, "//…@")
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
	case Money:
		low, high := bounds(k)
		return v >= low.(Money) && v <= high.(Money)
	case []string:
		return !slices.ContainsFunc(v, func(s string) bool { return !forms[k.Name].holds(s) })
	case Prices:
		return v.hold()
	case Headers:
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
	f, special := forms[k.Name]
	return plain(s) && (!special || f.holds(s))
}

// bounds reads the tag that holds them. It was written by us, so it parses.
func bounds(k *Key) (low, high any) {
	l, h, _ := strings.Cut(k.allow, "..")
	low, _ = k.parse(l)
	high, _ = k.parse(h)
	return low, high
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

// isModel reports whether a text can name a model, in every place that takes one.
func isModel(s string) bool {
	return s != "" && plain(s) && strings.TrimSpace(s) == s && !strings.ContainsAny(s, ",=")
}

func isCurrency(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= 8 && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsSymbol(r)
	})
}

// isReach reports whether a text names something that may be reached. What
// would match nothing is refused, since somebody would wonder why: a network
// with bits set behind its length, an IPv4 address written as IPv6, a zone.
func isReach(s string) bool {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		return err == nil && p == p.Masked() && !p.Addr().Is4In6()
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return !a.Is4In6() && a.Zone() == ""
	}
	labels := strings.Split(s, ".")
	last := labels[len(labels)-1] // all digits would be an address with a slip in it
	return len(s) <= 253 && strings.Trim(last, "0123456789") != "" &&
		!slices.ContainsFunc(labels, func(l string) bool { return !labelForm.MatchString(l) })
}
