package action

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// A line is one action as it was written, its values not judged yet.
type line struct {
	name  string
	pairs []pair
	raw   string
	err   error // a *Mistake: what breaks the syntax
}

type pair struct {
	key    string
	text   string // of a quoted value, its escapes undone; else the JSON
	quoted bool
}

// parseLines reads actions in the line syntax; see the package's description.
// What breaks the syntax ends the reading, and is the last line with all that
// comes after it: behind a quotation mark that was forgotten nobody can tell
// what is an action and what is text within a value.
func parseLines(s string) []line {
	var out []line
	for s = trimLeft(s); s != ""; s = trimLeft(s) {
		p := lineParser{s: s}
		l := line{err: p.action()}
		if l.err != nil {
			p.at = len(s)
		}
		l.name, l.pairs, l.raw = p.name, p.pairs, strings.TrimRight(s[:p.at], space)
		out = append(out, l)
		s = s[p.at:]
	}
	return out
}

const space = " \t\r\n"

func trimLeft(s string) string { return strings.TrimLeft(s, space) }

type lineParser struct {
	s     string
	at    int
	name  string
	pairs []pair
}

// action reads one action and leaves at behind it.
func (p *lineParser) action() error {
	if p.s[0] != '@' {
		word, _, _ := strings.Cut(p.s, "\n")
		return Mistakef(`%s is no action; an action is a line of its own: @name key="value"`, excerpt(strings.TrimSpace(word)))
	}
	p.at = 1
	p.name = p.word()
	if p.name == "" {
		return Mistakef(`no name stands after @; an action is a line of its own: @name key="value"`)
	}
	if p.at < len(p.s) && !strings.ContainsRune(space, rune(p.s[p.at])) {
		if p.s[p.at] == '(' {
			return Mistakef(`@%s: no brackets; write the pairs after a space: @%s key="value"`, p.name, p.name)
		}
		return Mistakef(`@%s: a space must follow the name, not %s`, p.name, p.next())
	}
	for {
		rest := trimLeft(p.s[p.at:])
		skipped := p.s[p.at : len(p.s)-len(rest)]
		if rest == "" || rest[0] == '@' && strings.Contains(skipped, "\n") {
			p.at = len(p.s) - len(rest)
			return nil
		}
		p.at = len(p.s) - len(rest)
		if err := p.pair(); err != nil {
			return err
		}
	}
}

// pair reads key="value" and what must follow it: white space or the end.
func (p *lineParser) pair() error {
	if p.s[p.at] == '{' {
		return Mistakef(`@%s: no JSON; write pairs: @%s key="value"`, p.name, p.name)
	}
	key := p.word()
	switch {
	case key == "":
		return Mistakef(`@%s: %s stands where a key="value" pair is wanted`, p.name, p.next())
	case p.at >= len(p.s) || p.s[p.at] != '=':
		return Mistakef(`@%s: after %s an = is wanted, with no space before it: %s="value"`, p.name, key, key)
	case slices.ContainsFunc(p.pairs, func(o pair) bool { return o.key == key }):
		return Mistakef("@%s: %s is given twice", p.name, key)
	}
	p.at++
	v := pair{key: key}
	rest := p.s[p.at:]
	switch {
	case rest == "" || strings.ContainsRune(space, rune(rest[0])):
		return Mistakef(`@%s: %s has no value; write %s="value", with no space after the =`, p.name, key, key)
	case rest[0] == '"':
		text, size, ok := unquote(rest)
		if !ok {
			return Mistakef(`@%s: the value of %s is not closed with a "`, p.name, key)
		}
		v.text, v.quoted = text, true
		p.at += size
	case rest[0] == '\'':
		return Mistakef(`@%s: the value of %s stands in single quotes; write double ones: %s="value"`, p.name, key, key)
	default:
		raw, err := leading(rest)
		if err != nil {
			return Mistakef(`@%s: the value of %s begins with %s; put it in double quotes: %s="value"`, p.name, key, p.next(), key)
		}
		v.text = raw
		p.at += len(raw)
	}
	p.pairs = append(p.pairs, v)
	if p.at < len(p.s) && !strings.ContainsRune(space, rune(p.s[p.at])) {
		return Mistakef(`@%s: %s follows the value of %s; a space is wanted there, and a " within a value is written \"`, p.name, p.next(), key)
	}
	return nil
}

// word reads a name or a key.
func (p *lineParser) word() string {
	start := p.at
	for p.at < len(p.s) && inWord(p.s[p.at]) {
		p.at++
	}
	return p.s[start:p.at]
}

func inWord(c byte) bool {
	return c == '_' || c == '.' || c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// next quotes a bit of what comes.
func (p *lineParser) next() string {
	rest, _, _ := strings.Cut(p.s[p.at:], "\n")
	if end := min(len(rest), 12); end < len(rest) {
		rest = strings.ToValidUTF8(rest[:end], "") + "…"
	}
	return excerpt(rest)
}

// unquote reads a quoted value at the start of s, and how much of s it takes.
func unquote(s string) (text string, size int, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i + 1, true
		case c == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case '"', '\\':
				b.WriteByte(s[i])
			default:
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}

var quoting = strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

func quote(s string) string { return `"` + quoting.Replace(s) + `"` }

// fromLine makes a call of a line, its values read as the schema says.
func (d *Definition) fromLine(l line) (Call, error) {
	c := Call{Name: d.Name, Raw: l.raw}
	if !utf8.ValidString(l.raw) {
		return c, Mistakef("@%s: the line is not UTF-8 text", d.Name)
	}
	s := d.rules.follow(d.rules.root)
	given := map[string]any{}
	for _, p := range l.pairs {
		field := named(s.properties, p.key)
		if p.quoted && (field == nil || d.rules.admitsText(field)) {
			given[p.key] = p.text
			continue
		}
		v, err := parseJSON(p.text)
		if err != nil && p.quoted {
			return c, Mistakef("%s: %s: %s is not allowed; want %s, as JSON in quotes", d.Name, p.key, excerpt(p.text), d.rules.allowed(field))
		}
		if err != nil {
			return c, Mistakef("%s: %s: %s", d.Name, p.key, err)
		}
		given[p.key] = v
	}
	var err error
	c.Arguments, err = d.arguments(given)
	return c, err
}

// Encode writes a call in the line syntax, on one line, its fields in the order
// of the schema. Decoding gives the same call. The call must be one of the
// offer's actions, with arguments that fit.
func (o *Offer) Encode(c Call) (string, error) {
	d, err := o.find(c.Name)
	if err != nil {
		return "", err
	}
	v, err := parseJSON(string(c.Arguments))
	if err != nil {
		return "", err
	}
	raw, err := d.arguments(v)
	if err != nil {
		return "", err
	}
	line := d.line(raw)
	if again := parseLines(line); len(again) != 1 || again[0].err != nil {
		return "", Mistakef("%s: a field's name is none that the line syntax can spell", d.Name)
	}
	return line, nil
}

// line writes arguments that were judged.
func (d *Definition) line(arguments json.RawMessage) string {
	v, _ := parseJSON(string(arguments)) // it was made by canonical
	given, _ := v.(map[string]any)
	s := d.rules.follow(d.rules.root)
	var keys []string
	for _, p := range s.properties {
		if _, ok := given[p.name]; ok {
			keys = append(keys, p.name)
		}
	}
	var others []string
	for k := range given {
		if named(s.properties, k) == nil {
			others = append(others, k)
		}
	}
	slices.Sort(others)
	var b strings.Builder
	b.WriteString("@" + d.Name)
	for _, k := range append(keys, others...) {
		field := named(s.properties, k)
		text, isText := given[k].(string)
		asText := field == nil || d.rules.admitsText(field)
		b.WriteString(" " + k + "=")
		switch {
		case isText && asText:
			b.WriteString(quote(text))
		case asText: // quoted it would be read as text
			b.Write(canonical(given[k]))
		default:
			b.WriteString(quote(string(canonical(given[k]))))
		}
	}
	return b.String()
}
