package slack

import "strings"

// words makes what a person typed of what Slack sends for it: mentions and links
// become what is seen on the screen, mentions of the bot itself fall away, and
// the three characters that Slack escapes are themselves again. name gives what a
// user is called. It is one pass, so that what a person typed never becomes
// markup by being unescaped.
func words(text, self string, name func(id string) string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "<&")
		if i < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		if text[0] == '&' {
			text = unescape(&b, text)
			continue
		}
		end := strings.IndexByte(text, '>')
		if end < 0 {
			b.WriteString(text)
			break
		}
		inside := text[1:end]
		text = text[end+1:]
		if self != "" && (inside == "@"+self || strings.HasPrefix(inside, "@"+self+"|")) {
			text = strings.TrimLeft(text, ":, ")
			continue
		}
		b.WriteString(token(inside, name))
	}
	return strings.TrimSpace(b.String())
}

var escapes = [...]struct{ code, char string }{{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}

func unescape(b *strings.Builder, text string) string {
	for _, e := range escapes {
		if rest, ok := strings.CutPrefix(text, e.code); ok {
			b.WriteString(e.char)
			return rest
		}
	}
	b.WriteByte('&')
	return text[1:]
}

// unescaped is a text in which only the escapes are undone.
func unescaped(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = unescape(&b, s[i:])
	}
}

// token is what stands on the screen for something in angle brackets.
func token(inside string, name func(string) string) string {
	what, label, labelled := strings.Cut(inside, "|")
	what, label = unescaped(what), unescaped(label)
	switch {
	case strings.HasPrefix(what, "@"):
		if n := name(what[1:]); n != "" {
			return "@" + n
		}
		if label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		return what
	case strings.HasPrefix(what, "#"):
		if label != "" {
			return "#" + label
		}
		return what
	case strings.HasPrefix(what, "!"):
		return special(what[1:], label)
	case strings.HasPrefix(what, "mailto:"), strings.HasPrefix(what, "tel:"):
		if labelled && label != "" {
			return label
		}
		_, bare, _ := strings.Cut(what, ":")
		return bare
	case strings.Contains(what, ":"):
		if labelled && label != "" && label != what && !strings.HasSuffix(what, "://"+label) {
			return label + " (" + what + ")"
		}
		return what
	}
	return "<" + unescaped(inside) + ">" // nothing of Slack's
}

// special is what stands for a broadcast, a group or a date.
func special(what, label string) string {
	kind, _, _ := strings.Cut(what, "^")
	switch kind {
	case "here", "channel", "everyone":
		return "@" + kind
	case "subteam":
		if label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		return "@group"
	}
	return label
}

// mentions reports whether a text mentions a user.
func mentions(text, user string) bool {
	return user != "" && (strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|"))
}
