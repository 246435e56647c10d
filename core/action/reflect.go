package action

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SchemaOf makes the JSON schema of the struct A. Fields that it does not name
// are refused. A field is required unless its json tag has omitempty or
// omitzero, or it has a default; a required text or list is not empty unless its
// min says 0. The tags of a field:
//
//	json:"name,omitempty"  its name; a field without one, and an embedded struct, is refused
//	about:"…"              what it is, for the model
//	enum:"a,b"             the texts that are allowed
//	min:"0" max:"10"       of a number; characters of a text; items of a list
//	eachmax:"75"           characters of the texts of a list
//	default:"5"            taken when the field is not given, as JSON; a text as it stands
//
// Texts, booleans, integers, floats, times (RFC 3339), structs, pointers to
// these, and lists of all of them are allowed; a struct may hold itself in a
// list. Any other tag or type is an error.
func SchemaOf[A any]() (json.RawMessage, error) {
	t := reflect.TypeFor[A]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("make a schema of %s: want a struct", t)
	}
	r := reflection{within: map[reflect.Type]bool{}}
	s, err := r.structure(t)
	if err != nil {
		return nil, fmt.Errorf("make a schema of %s: %w", t, err)
	}
	if s.ref != "" {
		return nil, fmt.Errorf("make a schema of %s: it holds itself; put it in a field", t)
	}
	s.defs = r.defs
	return marshal(s)
}

type reflection struct {
	within map[reflect.Type]bool // a struct that is being made; true once it was met within itself
	defs   []property
}

var knownTags = []string{"json", "about", "enum", "min", "max", "eachmax", "default"}

var timeType = reflect.TypeFor[time.Time]()

func (r *reflection) structure(t reflect.Type) (*schema, error) {
	ref := &schema{ref: "#/$defs/" + t.Name()}
	if _, met := r.within[t]; met {
		r.within[t] = true
		return ref, nil
	}
	if named(r.defs, t.Name()) != nil {
		return ref, nil
	}
	r.within[t] = false
	defer delete(r.within, t)
	s := &schema{types: []string{"object"}, closed: true}
	for i := range t.NumField() {
		f := t.Field(i)
		p, required, err := r.field(f)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		s.properties = append(s.properties, p)
		if required {
			s.required = append(s.required, p.name)
		}
	}
	if !r.within[t] {
		return s, nil
	}
	r.defs = append(r.defs, property{t.Name(), s})
	return ref, nil
}

func (r *reflection) field(f reflect.StructField) (property, bool, error) {
	if !f.IsExported() || f.Anonymous {
		return property{}, false, fmt.Errorf("must be exported and have a name")
	}
	for _, k := range tagKeys(f.Tag) {
		if !slices.Contains(knownTags, k) {
			return property{}, false, fmt.Errorf("unknown tag %s; allowed are %s", k, strings.Join(knownTags, ", "))
		}
	}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return property{}, false, fmt.Errorf("the json tag names nothing")
	}
	s, err := r.typed(f.Type)
	if err != nil {
		return property{}, false, err
	}
	required := !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")
	if required && len(s.types) == 1 && s.format == "" && (s.types[0] == "string" || s.types[0] == "array") {
		one := 1
		s.least = &one
	}
	if err := s.tag(f.Tag); err != nil {
		return property{}, false, err
	}
	return property{name, s}, required && s.fallback == nil, nil
}

// tagKeys lists the keys of a tag.
func tagKeys(tag reflect.StructTag) []string {
	var keys []string
	for rest := strings.TrimSpace(string(tag)); rest != ""; {
		key, after, ok := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(after)
		keys = append(keys, key)
		if !ok || err != nil {
			break // go vet's structtag tells of it
		}
		rest = strings.TrimSpace(after[len(quoted):])
	}
	return keys
}

func (r *reflection) typed(t reflect.Type) (*schema, error) {
	if t == timeType {
		return &schema{types: []string{"string"}, format: "date-time"}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return &schema{types: []string{"string"}}, nil
	case reflect.Bool:
		return &schema{types: []string{"boolean"}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schema{types: []string{"integer"}}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{types: []string{"number"}}, nil
	case reflect.Pointer:
		return r.typed(t.Elem())
	case reflect.Slice:
		items, err := r.typed(t.Elem())
		return &schema{types: []string{"array"}, items: items}, err
	case reflect.Struct:
		return r.structure(t)
	}
	return nil, fmt.Errorf("a %s has no schema", t)
}

func (s *schema) tag(tag reflect.StructTag) error {
	s.description = tag.Get("about")
	kind := ""
	if len(s.types) > 0 {
		kind = s.types[0]
	}
	for _, key := range []string{"enum", "min", "max", "eachmax", "default"} {
		text, ok := tag.Lookup(key)
		if !ok {
			continue
		}
		var err error
		switch {
		case key == "enum" && kind == "string":
			for _, v := range strings.Split(text, ",") {
				s.enum = append(s.enum, v)
			}
			s.least = nil
		case key == "default" && kind == "string":
			s.fallback, err = json.Marshal(text)
		case key == "default" && (kind == "integer" || kind == "number" || kind == "boolean"):
			s.fallback = json.RawMessage(text)
			if !json.Valid(s.fallback) {
				err = fmt.Errorf("no JSON")
			}
		case key == "eachmax" && kind == "array" && slices.Contains(s.items.types, "string"):
			s.items.most, err = whole(text)
			one := 1
			s.items.least = &one
		case key == "min" && (kind == "string" || kind == "array"):
			s.least, err = whole(text)
		case key == "max" && (kind == "string" || kind == "array"):
			s.most, err = whole(text)
		case key == "min" && (kind == "integer" || kind == "number"):
			s.low = json.Number(text)
			_, err = s.low.Float64()
		case key == "max" && (kind == "integer" || kind == "number"):
			s.high = json.Number(text)
			_, err = s.high.Float64()
		default:
			err = fmt.Errorf("does not go with this type")
		}
		if err != nil {
			return fmt.Errorf("tag %s:%q: %w", key, text, err)
		}
	}
	return nil
}

func whole(text string) (*int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("want a whole number from 0")
	}
	return &n, nil
}
