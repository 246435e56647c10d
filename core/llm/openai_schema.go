package llm

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
)

// A format is how an endpoint is brought to answer in JSON of one shape: the
// surest way first.
type format int

const (
	schemaFormat format = 0 // it holds its model to the schema
	objectFormat format = 1 // it holds its model to JSON; the schema is told
	toldFormat   format = 2 // the schema is told, and that is all
)

//go:embed schema.md
var schemaWords string

// told is the prompt with the schema in words at its end: its beginning stays
// as it was, so that the endpoint's prompt cache still hits. The words are put
// into the user's last message where that is the end, since many models' templates
// fail on a system message there, or on two messages of one role.
func told(messages []Message, s *Schema) []Message {
	words := strings.NewReplacer("{name}", s.Name, "{schema}", string(s.Schema)).Replace(strings.TrimSpace(schemaWords))
	out := slices.Clone(messages)
	if last := &out[len(out)-1]; last.Role == User {
		last.Content += "\n\n" + words
		return out
	}
	return append(out, Message{Role: User, Content: words})
}

// unfenced takes off the fence that models put around JSON although they are
// told not to.
func unfenced(text string) string {
	inner := strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(inner, "```")
	if !ok {
		return text
	}
	_, rest, ok = strings.Cut(rest, "\n") // the language's name
	if !ok {
		return text
	}
	body, ok := strings.CutSuffix(rest, "```")
	if !ok {
		return text
	}
	return strings.TrimSpace(body)
}

// strictable reports whether a schema keeps the rules of strict mode, as far as
// they are about shape: every object closed and all its properties required.
// A schema that does not would be refused as a whole.
func strictable(schema json.RawMessage) bool {
	var v map[string]any
	if json.Unmarshal(schema, &v) != nil || v["type"] != "object" {
		return false
	}
	return strictValue(v)
}

// strictUnknown are words that strict mode does not take.
var strictUnknown = []string{"allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties", "default"}

func strictValue(v map[string]any) bool {
	for _, word := range strictUnknown {
		if _, has := v[word]; has {
			return false
		}
	}
	properties, _ := v["properties"].(map[string]any)
	kind := v["type"]
	isObject := kind == "object"
	if list, ok := kind.([]any); ok {
		isObject = slices.Contains(list, any("object"))
	}
	if isObject {
		required, _ := v["required"].([]any)
		if v["additionalProperties"] != false {
			return false
		}
		for name := range properties {
			if !slices.Contains(required, any(name)) {
				return false
			}
		}
	}
	for _, p := range properties {
		if !strictPart(p) {
			return false
		}
	}
	for _, word := range []string{"$defs", "definitions"} {
		defs, _ := v[word].(map[string]any)
		for _, d := range defs {
			if !strictPart(d) {
				return false
			}
		}
	}
	if items, has := v["items"]; has && !strictPart(items) {
		return false
	}
	choices, _ := v["anyOf"].([]any)
	for _, p := range choices {
		if !strictPart(p) {
			return false
		}
	}
	return true
}

func strictPart(p any) bool {
	v, ok := p.(map[string]any)
	return ok && strictValue(v)
}
