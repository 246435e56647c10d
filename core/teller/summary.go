package teller

import "strings"

// parseSummary finds the summary in what the model answered: the attribute of
// that name on a line that begins with @digest_context or @handoff_context. All
// other text is passed over; of several lines the last one with a summary
// counts, since models think before they settle. It returns "" when there is none.
func parseSummary(answer string) string {
	found := ""
	for rest := answer; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		attrs, ok := actionLine(line, rest)
		if !ok {
			rest = after
			continue
		}
		values, n := attributes(attrs)
		if s := strings.TrimSpace(values["summary"]); s != "" {
			found = s
		}
		rest = attrs[n:]
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return found
}

// actionLine gives what follows the action's name, up to the end of the answer:
// a value may hold real line breaks where a model forgot to escape them.
func actionLine(line, rest string) (attrs string, ok bool) {
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	for _, action := range []string{"@digest_context", "@handoff_context"} {
		if after, found := strings.CutPrefix(line[indent:], action); found && strings.TrimLeft(after, " \t\r") != after {
			return rest[indent+len(action):], true
		}
	}
	return "", false
}

// attributes reads key="value" pairs from the start of s and returns how much of
// s they take. It stops at the first thing that is none.
func attributes(s string) (values map[string]string, n int) {
	values = map[string]string{}
	for i := 0; ; n = i {
		for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		start := i
		for i < len(s) && (s[i] == '_' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z') {
			i++
		}
		key := s[start:i]
		if key == "" || !strings.HasPrefix(s[i:], `="`) {
			return values, n
		}
		value, size, ok := unquote(s[i+1:])
		if !ok {
			return values, n
		}
		values[key] = value
		i += 1 + size
	}
}

// unquote reads a quoted value at the start of s, its escapes \n, \t, \" and \\
// undone, and returns how much of s it takes. Other escapes stay as they are.
func unquote(s string) (value string, size int, ok bool) {
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
