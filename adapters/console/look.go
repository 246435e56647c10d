package console

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A look is how much a terminal can show.
type look int

// The looks. The zero look is invalid.
const (
	plain  look = 1 // not a terminal, or a dumb one: Markdown as it is, no escape sequence at all
	mono   look = 2 // bold and underlined, no colour: what NO_COLOR asks for
	colour look = 3
)

// lookOf decides from the environment what an output can show.
func lookOf(terminal bool, env func(string) string) look {
	switch {
	case !terminal || env("TERM") == "dumb" || env("TERM") == "":
		return plain
	case env("NO_COLOR") != "": // https://no-color.org: set and not empty
		return mono
	}
	return colour
}

// attrs is how a piece of text is set apart.
type attrs uint

const (
	bold attrs = 1 << iota
	faint
	italic
	under
	strike
	code
	link
	warn
)

// paint sets a text apart. The text must be clean and of one line: each piece
// begins and ends its own attributes, so lines can be cut and put together.
func (l look) paint(a attrs, text string) string {
	if l == plain || a == 0 || text == "" {
		return text
	}
	var codes []string
	for _, c := range []struct {
		a    attrs
		code string
		ink  bool
	}{
		{bold, "1", false}, {faint, "2", false}, {italic, "3", false}, {under | link, "4", false}, {strike, "9", false},
		{code, "36", true}, {link, "34", true}, {warn, "33", true},
	} {
		if a&c.a != 0 && (l == colour || !c.ink) {
			codes = append(codes, c.code)
		}
	}
	if len(codes) == 0 {
		return text
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + reset
}

const reset = "\x1b[0m"

// clean makes a text harmless to show. What a model or another person wrote must
// not move the cursor, set the title, write to the clipboard or hide what stands
// there, so every control character goes but the line break; a tab becomes four
// spaces; and marks that turn the direction of reading go too, since a terminal
// knows no end of them.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\t", "    ")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		case r < ' ' || r >= 0x7F && r < 0xA0:
			return -1
		case r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069':
			return -1
		}
		return r
	}, s)
}

// wrap breaks painted text into lines of at most width columns, between words
// where it can.
func wrap(s string, width int) []string {
	// Wrap loses count of some runs of spaces; Hardwrap holds the promise.
	return carry(ansi.Hardwrap(ansi.Wrap(s, width, ""), width, true))
}

// hardwrap is wrap for text whose spaces matter.
func hardwrap(s string, width int) []string {
	return carry(ansi.Hardwrap(s, width, true))
}

// carry splits painted text into lines. Attributes that go over a line's end are
// ended there and begun again, so that nothing put beside a line is painted too.
func carry(s string) []string {
	lines := strings.Split(s, "\n")
	open := ""
	for i, line := range lines {
		begun := open
		for rest := line; ; {
			at := strings.IndexByte(rest, '\x1b')
			if at < 0 {
				break
			}
			end := at + strings.IndexByte(rest[at:], 'm') + 1
			if open = rest[at:end]; open == reset {
				open = ""
			}
			rest = rest[end:]
		}
		lines[i] = begun + line
		if open != "" {
			lines[i] += reset
		}
	}
	return lines
}
