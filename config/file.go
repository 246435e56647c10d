package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a configuration file; what is larger is some other file.
const maxFile = 1 << 20

// A layer is what one source sets: parsed values and where each stood.
type layer struct {
	values   map[string]any
	origin   map[string]string
	problems []error
}

func newLayer() *layer {
	return &layer{values: map[string]any{}, origin: map[string]string{}}
}

// maxProblems are told of one source: who hands us a file that is none of ours need not
// read all of it.
const maxProblems = 100

func (l *layer) bad(where, key, value, want string) {
	switch len(l.problems) {
	case maxProblems:
		l.problems = append(l.problems, errors.New("there is more that is wrong; mend this first"))
	case maxProblems + 1:
	default:
		l.problems = append(l.problems, &Problem{where, key, value, want})
	}
}

// readFile reads the YAML file at path. The error is for a file that cannot be
// read at all; what is wrong within it is in the layer's problems.
func readFile(path string) (*layer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read config %s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read config %s: larger than %s", path, Bytes(maxFile))
	}
	return parseFile(path, data)
}

func parseFile(path string, data []byte) (*layer, error) {
	r := &reader{layer: newLayer(), file: path}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF): // nothing but comments
		return r.layer, nil
	case err != nil:
		return nil, fmt.Errorf("read config %s: %w", path, err)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read config %s: more than one YAML document; only one is read", path)
	}
	r.section("", doc.Content[0])
	return r.layer, nil
}

// A reader walks one YAML document. It reads nodes rather than values, since
// only they know their line.
type reader struct {
	*layer
	file string
}

func (r *reader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.file, n.Line) }

// section reads the mapping below a section; prefix is "" or ends in a dot.
func (r *reader) section(prefix string, n *yaml.Node) {
	n = resolve(n)
	if isNull(n) { // a section whose keys are all commented out
		return
	}
	if n.Kind != yaml.MappingNode {
		name := strings.TrimSuffix(prefix, ".")
		if name == "" {
			name = "config"
		}
		r.bad(r.at(n), name, "", "holds keys, not a value: "+strings.Join(children(prefix), ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := prefix + key.Value
		if line, twice := seen[key.Value]; twice {
			r.bad(r.at(key), name, "", fmt.Sprintf("is set twice; first in line %d", line))
			continue
		}
		seen[key.Value] = key.Line
		switch k := byName[name]; {
		case k != nil && !strings.Contains(key.Value, "."):
			r.leaf(k, key, resolve(value))
		case isSection(name) && !strings.Contains(key.Value, "."):
			r.section(name+".", value)
		default:
			r.bad(r.at(key), name, "", unknownKey(prefix, key.Value))
		}
	}
}

// unknownKey words the error for a name that stands where it does not belong.
func unknownKey(prefix, name string) string {
	if byName[name] != nil && strings.Contains(name, ".") {
		return "write sections as nested keys: " + strings.ReplaceAll(name, ".", ": {") + ": …" +
			strings.Repeat("}", strings.Count(name, "."))
	}
	if near := nearest(name, children(prefix)); near != "" {
		return unknown("key", name, children(prefix))
	}
	for i := range keys {
		if strings.HasSuffix(strings.ToLower(keys[i].Name), "."+strings.ToLower(name)) {
			return "there is no such key here; did you mean " + keys[i].Name + "?"
		}
	}
	return "there is no such key; allowed here: " + strings.Join(children(prefix), ", ")
}

func (r *reader) leaf(k *Key, name, n *yaml.Node) {
	where := r.at(name)
	switch {
	case k.Secret:
		r.bad(where, k.Name, "", fmt.Sprintf("a secret must not stand in this file; name a file that holds it with %sFile, or set %s or %s_FILE",
			lastPart(k.Name), k.Env, k.Env))
		return
	case isNull(n):
		r.bad(where, k.Name, "", "has no value; remove the key to leave it at its default; allowed: "+k.Allowed)
		return
	}
	v, ok := r.value(k, n)
	if !ok {
		return
	}
	if s, isText := v.(string); isText && k.path {
		v = below(filepath.Dir(r.file), s)
	}
	r.values[k.Name], r.origin[k.Name] = v, where
}

func (r *reader) value(k *Key, n *yaml.Node) (any, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && k.typ.Kind() != reflect.Map:
		v, err := k.parse(n.Value)
		if err != nil {
			r.bad(r.at(n), k.Name, k.shown(n.Value), err.Error())
			return nil, false
		}
		return v, true
	case n.Kind == yaml.SequenceNode && k.typ.Kind() == reflect.Slice:
		var out []string
		for _, item := range n.Content {
			item = resolve(item)
			if item.Kind != yaml.ScalarNode || isNull(item) || item.Value == "" {
				r.bad(r.at(item), k.Name, "", "each item must be "+k.Allowed)
				return nil, false
			}
			out = append(out, item.Value)
		}
		return out, true
	case n.Kind == yaml.MappingNode && k.typ.Kind() == reflect.Map:
		if k.typ == reflect.TypeFor[Prices]() {
			return readPairs[Prices](r, k, n, readPrice)
		}
		return readPairs[Headers](r, k, n, k.readHeader)
	}
	r.bad(r.at(n), k.Name, "", "want "+k.Allowed)
	return nil, false
}

// secretHeader matches names of headers that carry a credential.
var secretHeader = regexp.MustCompile(`(?i)auth|api-?key|token|secret|cookie|password`)

// readHeader refuses a header that gives away a secret. Its error does not
// repeat the value.
func (k *Key) readHeader(name, value string) (string, error) {
	if secretHeader.MatchString(name) {
		return "", fmt.Errorf("looks like a secret, which must not stand in this file; use %skeyFile, or set %s=%s=…",
			strings.TrimSuffix(k.Name, lastPart(k.Name)), k.Env, name)
	}
	return value, nil
}

// readPairs reads the mapping of a key that holds pairs.
func readPairs[M ~map[string]V, V any](r *reader, k *Key, n *yaml.Node, read func(name, value string) (V, error)) (any, bool) {
	out, ok, seen := M{}, true, map[string]bool{}
	hidden := k.typ == reflect.TypeFor[Headers]()
	want := "want text"
	if !hidden {
		want = errPrice.Error()
	}
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], resolve(n.Content[i+1])
		bad := func(value, want string) {
			r.bad(r.at(name), k.Name+"."+name.Value, value, want)
			ok = false
		}
		switch {
		case seen[name.Value]:
			bad("", "is set twice")
		case value.Kind != yaml.ScalarNode || isNull(value):
			bad("", want)
		default:
			v, err := read(name.Value, value.Value)
			switch {
			case err == nil:
				out[name.Value] = v
			case hidden:
				bad("", err.Error())
			default:
				bad(k.shown(value.Value), err.Error())
			}
		}
		seen[name.Value] = true
	}
	if len(out) == 0 {
		out = nil // as when nothing is set
	}
	return out, ok
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// below reads a path that stands in a file of dir: "~/…" is left for the home
// directory, and a relative path is relative to dir.
func below(dir, path string) string {
	if path == "" || filepath.IsAbs(path) || path == "~" || strings.HasPrefix(path, "~/") {
		return path
	}
	return filepath.Join(dir, path)
}
