package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

type validator = *jsonschema.Schema

// maxProblems bounds what is said about one call: a model mends a few things at
// a time.
const maxProblems = 8

// compile reads a schema. It must be one of an object, and may refer to nothing
// outside of itself: not to a file of this machine, not to the network.
func compile(raw json.RawMessage) (*rules, error) {
	doc, err := parseJSON(string(raw))
	if err != nil {
		return nil, fmt.Errorf("read its schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.AssertFormat()
	const at = "action:arguments"
	if err := c.AddResource(at, doc); err != nil {
		return nil, fmt.Errorf("read its schema: %w", err)
	}
	valid, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("compile its schema: %w", err)
	}
	r := &rules{root: &schema{}, valid: valid}
	if err := json.Unmarshal(raw, r.root); err != nil {
		return nil, fmt.Errorf("read its schema: %w", err)
	}
	if s := r.follow(r.root); !slices.Equal(s.types, []string{"object"}) {
		return nil, errors.New("read its schema: the arguments must be of the type object")
	}
	return r, nil
}

type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside of the schema", url)
}

// arguments judges what a model gave and makes it whole: where the schema is ours,
// a null for a field that is not required means that it is not given, and what is
// not given takes its default. The result is canonical.
func (d *Definition) arguments(v any) (json.RawMessage, error) {
	if _, ok := v.(map[string]any); !ok {
		return nil, Mistakef("%s: the arguments are %s; want an object with the fields %s", d.Name, show(v), d.fields())
	}
	if !d.foreign {
		d.rules.complete(d.rules.root, v)
	}
	if err := d.rules.valid.Validate(v); err != nil {
		var bad *jsonschema.ValidationError
		if !errors.As(err, &bad) {
			return nil, Mistakef("%s: %s", d.Name, err)
		}
		return nil, Mistakef("%s: %s", d.Name, d.problems(bad))
	}
	raw := canonical(v)
	if d.check != nil {
		if err := d.check(raw); err != nil {
			return nil, Mistakef("%s: %s", d.Name, err)
		}
	}
	return raw, nil
}

// complete takes nulls out and puts defaults in.
func (r *rules) complete(s *schema, v any) {
	s = r.follow(s)
	switch v := v.(type) {
	case []any:
		if s.items != nil {
			for _, item := range v {
				r.complete(s.items, item)
			}
		}
	case map[string]any:
		for _, p := range s.properties {
			given, ok := v[p.name]
			if ok && given == nil && !slices.Contains(s.required, p.name) {
				delete(v, p.name)
				ok = false
			}
			switch {
			case ok:
				r.complete(p.schema, given)
			case p.schema.fallback != nil:
				if d, err := parseJSON(string(p.schema.fallback)); err == nil {
					v[p.name] = d
				}
			}
		}
	}
}

// fields lists the fields of an action, the required ones marked.
func (d *Definition) fields() string {
	s := d.rules.follow(d.rules.root)
	if len(s.properties) == 0 {
		return "none"
	}
	return fieldNames(s)
}

func fieldNames(s *schema) string {
	var all []string
	for _, p := range s.properties {
		n := p.name
		if slices.Contains(s.required, n) {
			n += " (required)"
		}
		all = append(all, n)
	}
	return strings.Join(all, ", ")
}

// problems words everything that is wrong, in the order of the fields' paths.
func (d *Definition) problems(bad *jsonschema.ValidationError) string {
	var all []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		switch e.ErrorKind.(type) {
		case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
			for _, c := range e.Causes {
				walk(c)
			}
		default:
			all = append(all, d.problem(e)...)
		}
	}
	walk(bad)
	slices.Sort(all)
	all = slices.Compact(all)
	if more := len(all) - maxProblems; more > 0 {
		all = append(all[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// problem words one: the field, the value, what is allowed.
func (d *Definition) problem(e *jsonschema.ValidationError) []string {
	at := d.rules.at(e.InstanceLocation)
	in := field(e.InstanceLocation)
	allowed := d.rules.allowed(at)
	say := func(got string) []string { return []string{in + ": " + got + " is not allowed; want " + allowed} }
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		var out []string
		for _, name := range k.Missing {
			want := ""
			if s := named(at.properties, name); s != nil {
				want = "; want " + d.rules.allowed(s)
			}
			out = append(out, field(append(slices.Clone(e.InstanceLocation), name))+": it is missing"+want)
		}
		return out
	case *kind.AdditionalProperties:
		var out []string
		for _, name := range k.Properties {
			out = append(out, field(append(slices.Clone(e.InstanceLocation), name))+": there is no such field"+d.insteadOf(at, name))
		}
		return out
	case *kind.Type:
		return say(article(k.Got))
	case *kind.Enum:
		return say(show(k.Got))
	case *kind.Const:
		return []string{in + ": " + show(k.Got) + " is not allowed; want " + show(k.Want)}
	case *kind.Minimum:
		return say(rational(k.Got))
	case *kind.Maximum:
		return say(rational(k.Got))
	case *kind.MinLength:
		if k.Got == 0 {
			return []string{in + ": it is empty; want " + allowed}
		}
		return say(fmt.Sprintf("a text of %d characters", k.Got))
	case *kind.MaxLength:
		return say(fmt.Sprintf("a text of %d characters", k.Got))
	case *kind.MinItems:
		return say(fmt.Sprintf("a list of %d items", k.Got))
	case *kind.MaxItems:
		return say(fmt.Sprintf("a list of %d items", k.Got))
	case *kind.Format:
		return say(show(k.Got))
	case *kind.AnyOf, *kind.OneOf:
		return []string{in + ": it is none of what is allowed; want " + allowed}
	}
	return []string{in + ": " + strings.TrimSpace(e.ErrorKind.LocalizedString(english))}
}

// insteadOf names the field that was meant, or all there are.
func (d *Definition) insteadOf(s *schema, name string) string {
	if len(s.properties) == 0 {
		return "; it has no fields"
	}
	var all []string
	for _, p := range s.properties {
		all = append(all, p.name)
	}
	if near := nearest(name, all); len(near) > 0 {
		return "; is it " + strings.Join(near, " or ") + "?"
	}
	return "; there are " + strings.Join(all, ", ")
}

// at finds the schema of a place in the arguments.
func (r *rules) at(path []string) *schema {
	s := r.follow(r.root)
	for _, step := range path {
		if next := named(s.properties, step); next != nil {
			s = r.follow(next)
			continue
		}
		if _, err := strconv.Atoi(step); err != nil || s.items == nil {
			return &schema{}
		}
		s = r.follow(s.items)
	}
	return s
}

// field writes a path as people do: retry.maxAttempts, options[2].
func field(path []string) string {
	if len(path) == 0 {
		return "the arguments"
	}
	var b strings.Builder
	for i, step := range path {
		if _, err := strconv.Atoi(step); err == nil && i > 0 {
			b.WriteString("[" + step + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		if len(step) > 64 {
			step = excerpt(step)
		}
		b.WriteString(step)
	}
	return b.String()
}

func article(kind string) string {
	switch kind {
	case "null", "true", "false":
		return kind
	case "string":
		return "a text"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + kind
}

func rational(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
