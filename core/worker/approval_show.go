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
	maxShown = 3000   // in the question
	maxWhole = 20_000 // where they look it up; what is longer is not asked for
	maxWhat  = 400    // in the audit trail
	maxTitle = 120
)

// whole is a call as people decide about it: each of its arguments, in blocks of code
// that nothing in them can end, and with nothing in them that does not show. Of what is
// long at most so many bytes are shown, its beginning and its end; left is how much that
// leaves out.
func whole(c action.Call, most int) (text string, left int) {
	main, rest := argued(c)
	if rest != "" {
		rest = "\n\n" + rest
	}
	// What goes with it is short, or no longer shorter than what it goes with.
	text, left = excerpt(main, max(most-len(rest), most/2))
	return text + rest, left
}

// argued is what a call is about, and what else it says.
func argued(c action.Call) (main, rest string) {
	var command action.Command
	var all map[string]json.RawMessage
	if c.Name != action.ExecShell.Name || json.Unmarshal(c.Arguments, &command) != nil || json.Unmarshal(c.Arguments, &all) != nil {
		return plainJSON(string(c.Arguments)), ""
	}
	var more []string
	if command.Workdir != "" && command.Workdir != "." {
		more = append(more, "in the folder\n\n"+fenced(command.Workdir))
	}
	if command.Timeout != 0 {
		more = append(more, fmt.Sprintf("for at most %d seconds", command.Timeout))
	}
	for _, shown := range []string{"command", "workdir", "timeout"} {
		delete(all, shown)
	}
	if len(all) > 0 { // such as the arguments of a later build
		odd, err := json.Marshal(all)
		if err != nil {
			return plainJSON(string(c.Arguments)), "" // unreachable: it was JSON
		}
		more = append(more, "and with\n\n"+fenced(plainJSON(string(odd))))
	}
	return command.Command, strings.Join(more, "\n\n")
}

// excerpt is a text in a block of code, of at most so many bytes: a longer one is shown by
// its beginning and its end, in a block each, with a sentence between them that says
// what is left out.
func excerpt(s string, most int) (text string, left int) {
	if text = fenced(s); len(text) <= most {
		return text, 0
	}
	for keep := most; ; keep = keep * 3 / 4 { // quoting makes some texts longer
		head, tail := cutTo(s, keep*2/3), cutFrom(s, keep/3)
		left = len(s) - len(head) - len(tail)
		text = fmt.Sprintf("%s\n\n… %d bytes are left out here …\n\n%s", fenced(head), left, fenced(tail))
		if len(text) <= most || keep < 8 {
			return text, left
		}
	}
}

// cutTo is the beginning of a text, cutFrom its end, of at most so many bytes, at whole
// characters.
func cutTo(s string, most int) string {
	for most > 0 && most < len(s) && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:min(most, len(s))]
}

func cutFrom(s string, most int) string {
	from := max(0, len(s)-most)
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}

// bare is what a call would do, for a list.
func bare(c action.Call) string {
	var command action.Command
	if c.Name != action.ExecShell.Name || json.Unmarshal(c.Arguments, &command) != nil {
		return string(c.Arguments)
	}
	with := ""
	if command.Workdir != "" && command.Workdir != "." {
		with += fmt.Sprintf(" (in the folder %q)", command.Workdir)
	}
	if command.Timeout != 0 {
		with += fmt.Sprintf(" (for at most %d s)", command.Timeout)
	}
	return history.Cut(command.Command, maxWhat-100) + history.Cut(with, 100)
}

// fenced is a text in a block of code: as it is, or quoted where it holds what could
// end the block, or what does not show.
func fenced(s string) string {
	if strings.Contains(s, "```") || strings.ContainsFunc(s, hidden) || strings.TrimSpace(s) != s || !utf8.ValidString(s) {
		s = strings.ReplaceAll(spelled(strconv.Quote(s)), "`", `\x60`)
	}
	return "```\n" + s + "\n```"
}

// hidden reports whether a character does not show as itself.
func hidden(r rune) bool { return r != '\n' && r != '\t' && !shows(r) }

// shows reports whether a character leaves a mark. Some that count as letters, marks and
// symbols leave none: any text could be hidden in a row of them.
func shows(r rune) bool {
	return unicode.IsPrint(r) && r != '\u2800' && (r < '\u180b' || r > '\u180f') &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// spelled is a quoted text in which what leaves no mark is spelled out, too.
func spelled(quoted string) string {
	var b strings.Builder
	for _, r := range quoted {
		switch {
		case shows(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// plainJSON spells JSON with nothing but what shows; it stays the same JSON, since what
// is spelled otherwise stands only within its texts.
func plainJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r != '`' && shows(r):
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
		case !shows(r):
			return ' '
		}
		return r
	}, s)
	if s = strings.Join(strings.Fields(history.Cut(s, maxTitle)), " "); s == "" {
		return "without a title"
	}
	return s
}
