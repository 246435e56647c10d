package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A schema is the part of a JSON schema that descriptions, defaults and the line
// syntax go by, its properties in the order in which they were written. Whether
// arguments fit is decided by the whole schema, elsewhere.
type schema struct {
	types       []string
	description string
	format      string
	ref         string
	enum        []any
	fallback    json.RawMessage // the default
	low, high   json.Number     // of numbers
	least, most *int            // characters of a text, items of a list
	properties  []property
	required    []string
	closed      bool // no other properties
	items       *schema
	any         []*schema // anyOf, oneOf
	defs        []property
}

type property struct {
	name   string
	schema *schema
}

// wire is a schema as it is written.
type wire struct {
	Ref         string          `json:"$ref,omitempty"`
	Type        names           `json:"type,omitempty"`
	Description string          `json:"description,omitempty"`
	Format      string          `json:"format,omitempty"`
	Enum        []any           `json:"enum,omitempty"`
	Minimum     json.Number     `json:"minimum,omitempty"`
	Maximum     json.Number     `json:"maximum,omitempty"`
	MinLength   *int            `json:"minLength,omitempty"`
	MaxLength   *int            `json:"maxLength,omitempty"`
	MinItems    *int            `json:"minItems,omitempty"`
	MaxItems    *int            `json:"maxItems,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Properties  ordered         `json:"properties,omitempty"`
	Required    []string        `json:"required,omitempty"`
	Additional  json.RawMessage `json:"additionalProperties,omitempty"`
	Items       json.RawMessage `json:"items,omitempty"`
	AnyOf       []*schema       `json:"anyOf,omitempty"`
	OneOf       []*schema       `json:"oneOf,omitempty"`
	Defs        ordered         `json:"$defs,omitempty"`
	Definitions ordered         `json:"definitions,omitempty"`
}

// UnmarshalJSON reads a schema; true, false and a list in place of one are read
// as a schema that says nothing.
func (s *schema) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return nil
	}
	var w wire
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&w); err != nil {
		return err
	}
	*s = schema{
		types: w.Type, description: w.Description, format: w.Format, ref: w.Ref, enum: w.Enum, fallback: w.Default,
		low: w.Minimum, high: w.Maximum, least: w.MinLength, most: w.MaxLength,
		properties: w.Properties, required: w.Required, closed: string(w.Additional) == "false",
		any: append(w.AnyOf, w.OneOf...), defs: append(w.Defs, w.Definitions...),
	}
	if w.MinItems != nil {
		s.least = w.MinItems
	}
	if w.MaxItems != nil {
		s.most = w.MaxItems
	}
	if len(w.Items) > 0 {
		s.items = &schema{}
		return json.Unmarshal(w.Items, s.items)
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (s *schema) MarshalJSON() ([]byte, error) {
	w := wire{
		Ref: s.ref, Type: s.types, Description: s.description, Format: s.format, Enum: s.enum, Default: s.fallback,
		Minimum: s.low, Maximum: s.high, Properties: s.properties, Required: s.required, AnyOf: s.any, Defs: s.defs,
	}
	if slices.Contains(s.types, "array") {
		w.MinItems, w.MaxItems = s.least, s.most
	} else {
		w.MinLength, w.MaxLength = s.least, s.most
	}
	if s.closed {
		w.Additional = json.RawMessage("false")
	}
	if s.items != nil {
		var err error
		if w.Items, err = marshal(s.items); err != nil {
			return nil, err
		}
	}
	return marshal(w)
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// names is one name or a list of them.
type names []string

func (n *names) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*n = names{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(n))
}

func (n names) MarshalJSON() ([]byte, error) {
	if len(n) == 1 {
		return json.Marshal(n[0])
	}
	return json.Marshal([]string(n))
}

// ordered keeps the order of an object's fields.
type ordered []property

func (o *ordered) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("read the properties of a schema: want an object, got %.40s", b)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		p := property{schema: &schema{}}
		p.name, _ = t.(string)
		if err := d.Decode(p.schema); err != nil {
			return err
		}
		*o = append(*o, p)
	}
	return nil
}

func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(p.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(p.schema)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// rules is a schema with what its references lead to.
type rules struct {
	root  *schema
	valid validator
}

// follow resolves a reference into the schema's own definitions; any other leads
// to a schema that says nothing.
func (r *rules) follow(s *schema) *schema {
	for range 8 {
		if s == nil || s.ref == "" {
			break
		}
		if s.ref == "#" {
			s = r.root
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(s.ref, "#/$defs/"), "#/definitions/")
		next := named(r.root.defs, name)
		if next == nil {
			return &schema{}
		}
		s = next
	}
	if s == nil {
		return &schema{}
	}
	return s
}

func named(of []property, name string) *schema {
	for _, p := range of {
		if p.name == name {
			return p.schema
		}
	}
	return nil
}

// admitsText says whether a text may be a value of s.
func (r *rules) admitsText(s *schema) bool {
	s = r.follow(s)
	if len(s.types) > 0 {
		return slices.Contains(s.types, "string")
	}
	if len(s.enum) > 0 {
		return slices.ContainsFunc(s.enum, func(v any) bool { _, ok := v.(string); return ok })
	}
	if len(s.any) > 0 {
		return slices.ContainsFunc(s.any, func(o *schema) bool { return o.ref == "" && r.admitsText(o) })
	}
	return len(s.properties) == 0 && s.items == nil
}

// allowed says in words what a value of s may be.
func (r *rules) allowed(s *schema) string { return r.either(s, 3) }

// either is allowed for a schema within depth alternatives of others.
func (r *rules) either(s *schema, depth int) string {
	s = r.follow(s)
	switch {
	case depth == 0:
		return "any value"
	case len(s.enum) > 0:
		var all []string
		for _, v := range s.enum {
			if t, ok := v.(string); ok {
				all = append(all, t)
			} else {
				all = append(all, show(v))
			}
		}
		if len(all) == 1 {
			return all[0]
		}
		return "one of " + strings.Join(all, ", ")
	case len(s.any) > 0:
		var all []string
		for _, o := range s.any {
			if t := r.either(o, depth-1); !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
		return strings.Join(all, ", or ")
	case len(s.types) == 0:
		return "any value"
	}
	var all []string
	for _, t := range s.types {
		switch t {
		case "string":
			switch s.format {
			case "":
				all = append(all, "text"+count(s.least, s.most, "character"))
			case "date-time":
				all = append(all, "a time such as 2026-01-31T12:34:56Z")
			default:
				all = append(all, "text of the format "+s.format)
			}
		case "integer":
			all = append(all, "a whole number"+extent(s.low, s.high))
		case "number":
			all = append(all, "a number"+extent(s.low, s.high))
		case "boolean":
			all = append(all, "true or false")
		case "array":
			all = append(all, "a list"+r.contents(s)+count(s.least, s.most, "item"))
		case "object":
			all = append(all, "an object")
		default:
			all = append(all, t)
		}
	}
	return strings.Join(all, " or ")
}

func (r *rules) contents(s *schema) string {
	switch i := r.follow(s.items); {
	case slices.Equal(i.types, []string{"string"}):
		return " of texts"
	case slices.Equal(i.types, []string{"object"}):
		return " of objects"
	}
	return ""
}

func count(least, most *int, what string) string {
	switch {
	case most != nil && least != nil && *least > 1:
		return fmt.Sprintf(", %d to %d %ss", *least, *most, what)
	case most != nil:
		return fmt.Sprintf(", at most %d %ss", *most, what)
	case least != nil && *least > 1:
		return fmt.Sprintf(", at least %d %ss", *least, what)
	}
	return ""
}

func extent(low, high json.Number) string {
	switch {
	case low != "" && high != "":
		return fmt.Sprintf(" from %s to %s", low, high)
	case low != "":
		return fmt.Sprintf(", at least %s", low)
	case high != "":
		return fmt.Sprintf(", at most %s", high)
	}
	return ""
}
