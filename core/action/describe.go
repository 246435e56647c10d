package action

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// A Style is how a model asks for actions.
type Style int

// The styles. Where a style is an option, zero means Native.
const (
	Native Style = 1 // tool calls
	Block  Style = 2 // lines in a block at the end of the text
)

//go:embed words
var wordFiles embed.FS

// words are what models are told about actions as such, in files, like all such
// words.
var words = template.Must(template.ParseFS(wordFiles, "words/*.md"))

func say(file string, data any) string {
	var b bytes.Buffer
	if err := words.ExecuteTemplate(&b, file, data); err != nil {
		panic(fmt.Sprintf("word %s: %v", file, err)) // the files are ours, and tests render each
	}
	return strings.TrimSpace(b.String())
}

// described is an action as the templates see it.
type described struct {
	Name, Summary, Description, Synopsis string
	Fields, Examples                     []string
}

// Describe gives the text for a prompt's actions, "" when there are none. Native
// models get the schemas with the tools, so theirs is short. The text depends on
// nothing but the offer and the style.
func (o *Offer) Describe(s Style) string {
	if o.Empty() {
		return ""
	}
	var all []described
	for _, d := range o.all {
		all = append(all, described{
			Name: d.Name, Summary: d.summary(), Description: strings.TrimSpace(d.Description), Synopsis: d.synopsis(),
			Fields: d.fieldLines(), Examples: d.Examples,
		})
	}
	file := "native.md"
	if s == Block {
		file = "block.md"
	}
	return say(file, map[string]any{"Actions": all, "Last": o.lastCounts(), "Ends": o.endNames()})
}

// summary is the first sentence.
func (d *Definition) summary() string {
	text := strings.TrimSpace(d.Description)
	if i := strings.Index(text, ". "); i >= 0 {
		return text[:i+1]
	}
	return text
}

// native is the description of a tool, with an example where there is one.
func (d *Definition) native() string {
	text := strings.TrimSpace(d.Description)
	if len(d.Examples) == 0 {
		return text
	}
	p := parseLines(d.Examples[0])[0] // the registry read it
	v := map[string]any{}
	s := d.rules.follow(d.rules.root)
	for _, p := range p.pairs {
		if f := named(s.properties, p.key); p.quoted && (f == nil || d.rules.admitsText(f)) {
			v[p.key] = p.text
		} else if j, err := parseJSON(p.text); err == nil {
			v[p.key] = j
		}
	}
	return text + " Example: " + string(canonical(v))
}

// synopsis is an action's line with all its fields.
func (d *Definition) synopsis() string {
	s := d.rules.follow(d.rules.root)
	var b strings.Builder
	b.WriteString("@" + d.Name)
	for _, p := range s.properties {
		if slices.Contains(s.required, p.name) {
			b.WriteString(" " + p.name + `="…"`)
		}
	}
	for _, p := range s.properties {
		if !slices.Contains(s.required, p.name) {
			b.WriteString(" [" + p.name + `="…"]`)
		}
	}
	return b.String()
}

// maxFieldLines bounds what is told of one action: a foreign schema may refer to
// itself so often that its fields have no end.
const maxFieldLines = 100

// fieldLines describe the fields, those of objects within them in place.
func (d *Definition) fieldLines() []string {
	var out []string
	d.rules.fieldLines(&out, "", d.rules.root, nil)
	return out
}

func (r *rules) fieldLines(out *[]string, within string, s *schema, above []*schema) {
	s = r.follow(s)
	if slices.Contains(above, s) {
		return // it holds itself, and was described
	}
	above = append(above, s)
	for _, p := range s.properties {
		if len(*out) >= maxFieldLines {
			return
		}
		f := r.follow(p.schema)
		about := p.schema.description
		if about == "" {
			about = f.description
		}
		line := within + p.name + ": " + r.allowed(p.schema)
		if p.schema.fallback != nil {
			line += " (default " + strings.Trim(string(p.schema.fallback), `"`) + ")"
		}
		if within != "" && slices.Contains(s.required, p.name) {
			line += " (required)"
		}
		if about != "" {
			line += ": " + about
		}
		*out = append(*out, line)
		switch {
		case len(f.properties) > 0:
			r.fieldLines(out, within+p.name+".", f, above)
		case f.items != nil && len(r.follow(f.items).properties) > 0:
			r.fieldLines(out, within+p.name+"[].", f.items, above)
		}
	}
}

// Help lists for people what can be done, in Markdown; "" when there is nothing.
// Actions without words for people are left out.
func (o *Offer) Help() string {
	var lines []string
	for _, d := range o.all {
		if d.Help == "" {
			continue
		}
		line := "- " + strings.TrimSuffix(strings.TrimSpace(d.Help), ".") + "."
		if d.Say != "" {
			line += " Say, for example: “" + d.Say + "”"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
