package config

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Origin says where the value of a key came from: "default", "preset chat",
// "mimikit.yaml:12", "env MIMIKIT_PACE", "file …" or "made at start". It is
// empty for a Config that was not loaded.
func (c *Config) Origin(key string) string { return c.origin[key] }

// Print writes the effective configuration as YAML that Load would take, with
// the origin of each value as a comment. Secrets stand in comments, masked.
func Print(w io.Writer, c Config) error {
	var b bytes.Buffer
	var open []string // sections that the last line stood in
	for i := range keys {
		k := &keys[i]
		parts := strings.Split(k.Name, ".")
		sections, leaf := parts[:len(parts)-1], parts[len(parts)-1]
		for d, s := range sections {
			if d >= len(open) || open[d] != s {
				fmt.Fprintf(&b, "%s%s:\n", indent(d), s)
				open = slices.Clone(sections[:d+1])
			}
		}
		open = sections
		pad := indent(len(sections))
		comment := c.origin[k.Name]
		switch v := k.get(&c).(type) {
		case Secret:
			state := "not set"
			if v != "" {
				state = v.String()
			}
			writeLine(&b, fmt.Sprintf("%s# %s: %s", pad, leaf, state), comment)
		case Headers:
			writeHeaders(&b, pad, leaf, v, comment)
		case Prices:
			writePairs(&b, pad, leaf, v, comment)
		case []string:
			quoted := make([]string, len(v))
			for i, s := range v {
				quoted[i] = scalar(s)
			}
			writeLine(&b, fmt.Sprintf("%s%s: [%s]", pad, leaf, strings.Join(quoted, ", ")), comment)
		case string:
			writeLine(&b, fmt.Sprintf("%s%s: %s", pad, leaf, scalar(v)), comment)
		default:
			writeLine(&b, fmt.Sprintf("%s%s: %s", pad, leaf, k.format(v)), comment)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeHeaders shows values only when they came from the YAML, where secret
// ones are refused.
func writeHeaders(b *bytes.Buffer, pad, leaf string, v Headers, comment string) {
	if len(v) > 0 && (strings.HasPrefix(comment, "env ") || comment == "") {
		writeLine(b, pad+"# "+leaf+": "+v.String(), comment)
		return
	}
	writePairs(b, pad, leaf, v, comment)
}

func writePairs[M ~map[string]V, V any](b *bytes.Buffer, pad, leaf string, v M, comment string) {
	if len(v) == 0 {
		writeLine(b, pad+leaf+": {}", comment)
		return
	}
	writeLine(b, pad+leaf+":", comment)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		writeLine(b, pad+"  "+scalar(name)+": "+scalar(fmt.Sprint(v[name])), "")
	}
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

func writeLine(b *bytes.Buffer, line, comment string) {
	const column = 44
	b.WriteString(line)
	if comment != "" {
		b.WriteString(strings.Repeat(" ", max(2, column-utf8.RuneCountInString(line))))
		b.WriteString("# " + comment)
	}
	b.WriteByte('\n')
}

// scalar writes a text so that YAML reads the same text back.
func scalar(s string) string {
	n := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if s == "" || strings.ContainsAny(s, ",[]{}#:") {
		n.Style = yaml.DoubleQuotedStyle // also safe within [ ]
	}
	out, err := yaml.Marshal(&n)
	if err != nil { // unreachable: a text can always be marshalled
		return `""`
	}
	return strings.TrimSuffix(string(out), "\n")
}

// Secrets lists every secret that is set, for whatever must keep them out of what
// it writes. Of headers it lists those whose name speaks of a secret and, unless they
// stand in the YAML, those whose value looks like one.
func (c *Config) Secrets() []string {
	var out []string
	for i := range keys {
		k := &keys[i]
		switch v := k.get(c).(type) {
		case Secret:
			if words := strings.Fields(v.Reveal()); len(words) > 1 { // with a scheme before it, such as Basic
				out = append(out, words[len(words)-1])
			}
			if v != "" {
				out = append(out, v.Reveal())
			}
		case Headers:
			hidden := strings.HasPrefix(c.origin[k.Name], "env ")
			for _, name := range slices.Sorted(maps.Keys(v)) {
				words := strings.Fields(v[name]) // the last one is without its scheme, such as Bearer
				if len(words) > 0 && (secretHeader.MatchString(name) || hidden && len(words) == 1 && len(words[0]) >= 16 && !strings.Contains(words[0], "/")) {
					out = append(out, words[len(words)-1])
				}
			}
		}
	}
	return out
}
