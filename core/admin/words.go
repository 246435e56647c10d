package admin

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// special are the characters that may mean something in the Markdown of one of
// the platforms.
const special = "\\`*_{}[]<>()#+-.!|~@:&"

// opening are those of them that only mean something where a line begins.
const opening = "#+-.!():"

// Escape makes plain text stand in Markdown as it is, on one line. What would
// address people ("@everyone") is broken by an invisible space.
func Escape(s string) string {
	text := []rune(clean(s))
	word := func(i int) bool {
		return i >= 0 && i < len(text) && (unicode.IsLetter(text[i]) || unicode.IsDigit(text[i]))
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '@':
			b.WriteString("@\u200b")
			continue
		case r == '_' && word(i-1) && word(i+1): // within a word it means nothing
		case r == '<' || strings.ContainsRune(special, r) && (i == 0 || !strings.ContainsRune(opening, r)):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// code puts text into a code span.
func code(s string) string {
	return "`" + strings.ReplaceAll(clean(s), "`", "'") + "`"
}

// clean is text on one line without what steers a terminal or turns the
// direction of reading.
func clean(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// Clean takes out of a text what steers a terminal, turns the direction of reading, or
// is not seen, so that no name looks like another; it keeps line breaks and spaces.
func Clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u200b', r == '\u200e', r == '\u200f',
			r == '\u00ad', r == '\u061c', r == '\ufeff', r >= '\u2060' && r <= '\u2064', r >= '\u206a' && r <= '\u206f', r >= 0xe0000 && r <= 0xe007f:
			return -1
		}
		return r
	}, s)
}

// cut shortens to so many characters, with a mark where something is missing.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return strings.TrimSpace(string(r[:most-1])) + "…"
}

// lasting tells a duration in the two units that matter most.
func lasting(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// ago tells a moment by its distance.
func (q *query) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := q.o.Now().Sub(t)
	if d < 0 {
		return "in " + lasting(-d)
	}
	if d < time.Second {
		return "just now"
	}
	return lasting(d) + " ago"
}

// count spells a number of things.
func count(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(one, "y"))
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// grouped spells a number with its thousands apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// money spells millionths of the currency.
func money(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 4, 64) }
