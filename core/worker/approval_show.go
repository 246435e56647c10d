package worker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"mimikit/core/action"
	"mimikit/core/history"
)

// The bounds of what a person is shown of a call, in bytes.
const (
	maxShown = 3000 // whole, or it is not asked for
	maxWhat  = 400  // in the audit trail
	maxTitle = 120
)

// whole is a call as people decide about it: whole, in a block of code that nothing in
// it can end, and with nothing in it that does not show.
func whole(c action.Call) string {
	if c.Name != action.ExecShell.Name {
		return "```\n" + plainJSON(string(c.Arguments)) + "\n```"
	}
	var command action.Command
	if err := json.Unmarshal(c.Arguments, &command); err != nil {
		return "```\n" + plainJSON(string(c.Arguments)) + "\n```" // unreachable: it fits the schema
	}
	text := fenced(command.Command)
	if command.Workdir != "" && command.Workdir != "." {
		text += "\n\nin the folder\n\n" + fenced(command.Workdir)
	}
	return text
}

// bare is what a call would do, for a list.
func bare(c action.Call) string {
	var command action.Command
	if c.Name == action.ExecShell.Name && json.Unmarshal(c.Arguments, &command) == nil {
		return command.Command
	}
	return string(c.Arguments)
}

// fenced is a text in a block of code: as it is, or quoted where it holds what could
// end the block, or what does not show.
func fenced(s string) string {
	if strings.Contains(s, "```") || strings.ContainsFunc(s, hidden) || strings.TrimSpace(s) != s || !utf8.ValidString(s) {
		s = strings.ReplaceAll(strconv.Quote(s), "`", `\x60`)
	}
	return "```\n" + s + "\n```"
}

// hidden reports whether a character does not show as itself.
func hidden(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }

// plainJSON spells JSON with nothing but what shows; it stays the same JSON, since what
// is spelled otherwise stands only within its texts.
func plainJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r != '`' && unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// inline is a name or title within a line, where it can be nothing but that.
func inline(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '`' || r == '<' || r == '>':
			return '\''
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, s)
	if s = strings.Join(strings.Fields(history.Cut(s, maxTitle)), " "); s == "" {
		return "without a title"
	}
	return s
}
