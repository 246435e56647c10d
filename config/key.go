package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Key describes one thing that can be set.
type Key struct {
	Name    string // as in YAML, sections joined by dots: teller.maxInputWait
	Env     string // the one environment variable that sets it: MIMIKIT_TELLER_MAX_INPUT_WAIT
	Default string // as it would be written; empty when there is none
	Allowed string // the bounds or forms a value may take, in words
	Secret  bool   // refused in YAML, masked in print

	typ   reflect.Type
	index []int // field path in Config
	allow string
	path  bool
}

// keys is every key in the order of the struct.
var keys = collect(reflect.TypeFor[Config](), "", nil)

// byName and byEnv find a key by its two names.
var byName, byEnv = func() (map[string]*Key, map[string]*Key) {
	n, e := map[string]*Key{}, map[string]*Key{}
	for i := range keys {
		n[keys[i].Name], e[keys[i].Env] = &keys[i], &keys[i]
	}
	return n, e
}()

// Keys lists every key that can be set, in the order of example.yaml.
func Keys() []Key {
	def := Default()
	out := make([]Key, len(keys))
	for i, k := range keys {
		k.Default = k.format(k.get(&def))
		out[i] = k
	}
	return out
}

func collect(t reflect.Type, section string, index []int) []Key {
	var out []Key
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("koanf")
		if name == "" {
			continue
		}
		at := append(append([]int{}, index...), i)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, collect(f.Type, section+name+".", at)...)
			continue
		}
		k := Key{
			Name:   section + name,
			Env:    envName(section + name),
			Secret: f.Type == reflect.TypeFor[Secret](),
			typ:    f.Type,
			index:  at,
			allow:  f.Tag.Get("allow"),
			path:   f.Tag.Get("path") != "",
		}
		k.Allowed = k.allowed()
		out = append(out, k)
	}
	return out
}

// envName spells a key as an environment variable: a dot or the start of a word
// becomes an underscore, and letters become capitals.
func envName(name string) string {
	var b strings.Builder
	b.WriteString(envPrefix)
	prev := '.'
	for _, r := range name {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r) && unicode.IsLower(prev):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
		prev = r
	}
	return b.String()
}

func (k *Key) get(c *Config) any { return reflect.ValueOf(c).Elem().FieldByIndex(k.index).Interface() }

func (k *Key) set(c *Config, v any) {
	reflect.ValueOf(c).Elem().FieldByIndex(k.index).Set(reflect.ValueOf(v))
}

// allowed is the rule of a key in words.
func (k *Key) allowed() string {
	switch k.typ {
	case reflect.TypeFor[Headers]():
		return headersForm
	case reflect.TypeFor[Prices]():
		return pricesForm
	}
	if f, ok := forms[k.Name]; ok {
		return f.words
	}
	if low, high, ok := strings.Cut(k.allow, ".."); ok {
		what := ""
		switch k.typ {
		case reflect.TypeFor[int]():
			what = "a whole number from "
		case reflect.TypeFor[Money]():
			what = "an amount from "
		}
		return what + low + " to " + high
	}
	if k.allow != "" {
		return strings.Join(strings.Split(k.allow, "|"), ", ")
	}
	switch {
	case k.typ.Kind() == reflect.Bool:
		return "true, false"
	case k.path:
		return "a path"
	}
	return "text without control characters"
}

// parse reads a value as it is written in YAML or environment. The error says
// what form is wanted; it never repeats the value.
func (k *Key) parse(s string) (any, error) {
	switch k.typ {
	case reflect.TypeFor[time.Duration]():
		if s == "0" {
			return time.Duration(0), nil
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return nil, fmt.Errorf("want a number with its unit (ms, s, m or h), like 1.2s; allowed: %s", k.Allowed)
		}
		return d, nil
	case reflect.TypeFor[Bytes]():
		b, err := parseBytes(s)
		if err != nil {
			return nil, fmt.Errorf("%w; allowed: %s", err, k.Allowed)
		}
		return b, nil
	case reflect.TypeFor[Money]():
		m, err := parseMoney(s)
		if err != nil {
			return nil, fmt.Errorf("%w; allowed: %s", err, k.Allowed)
		}
		return m, nil
	case reflect.TypeFor[Headers]():
		return parsePairs[Headers](s, k.Allowed, func(_, value string) (string, error) { return value, nil })
	case reflect.TypeFor[Prices]():
		return parsePairs[Prices](s, k.Allowed, readPrice)
	}
	switch k.typ.Kind() {
	case reflect.Int:
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("want %s", k.Allowed)
		}
		return n, nil
	case reflect.Bool:
		switch s {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("want %s", k.Allowed)
	case reflect.Slice:
		return split(s), nil
	}
	return reflect.ValueOf(s).Convert(k.typ).Interface(), nil
}

// parsePairs reads pairs as the environment spells them.
func parsePairs[M ~map[string]V, V any](s, allowed string, read func(name, value string) (V, error)) (M, error) {
	m := M{}
	for _, pair := range split(s) {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("want %s", allowed)
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("%s is named twice", name)
		}
		v, err := read(name, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m[name] = v
	}
	return m, nil
}

// split cuts a list as the environment spells it: at commas, without blanks.
func split(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// format writes a value as parse reads it; a secret is masked, and so are the
// values of headers, since they often are one.
func (k *Key) format(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return formatDuration(v)
	case []string:
		return strings.Join(v, ",")
	case Headers:
		return v.String()
	case Prices:
		return strings.Join(v.pairs(), ",")
	}
	return fmt.Sprint(v)
}

// formatDuration is the shortest spelling: 5m, not 5m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// shown is a value as an error may repeat it: quoted when it is text, short,
// and never a secret.
func (k *Key) shown(s string) string {
	if k.Secret || k.typ == reflect.TypeFor[Headers]() {
		return mask
	}
	const most = 80
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	kind := k.typ.Kind()
	if kind == reflect.String || kind == reflect.Slice || kind == reflect.Map || s == "" || strings.ContainsFunc(s, unicode.IsControl) {
		return strconv.Quote(s)
	}
	return s
}
