package console

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A fence is the line that opens a block of code: up to three spaces, the marks,
// and what language it is.
var fence = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})(.*)$")

// split cuts Markdown into pieces of at most most bytes, at least one: before a
// paragraph where it can, else before a line, and within a block of code only
// when the block alone is too long; then it is closed in one piece and opened
// again in the next. most must have room for two fences.
func split(text string, most int) []string {
	var out []string
	text = strings.TrimLeft(text, "\n")
	for len(text) > most {
		var piece string
		piece, text = cutAt(text, most)
		out = append(out, piece)
	}
	if text == "" && len(out) > 0 {
		return out
	}
	return append(out, text)
}

// cutAt takes a first piece of a text that is longer than most.
func cutAt(text string, most int) (piece, rest string) {
	var (
		paragraph, line, inside int    // the last good ends of the piece, best first; 0 is none
		opener, marks           string // of the block of code that the scan is in
		insideOpener            string // of the block that a cut at inside would tear
		insideMarks             string
	)
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		here := strings.TrimRight(text[at:end], "\n")
		if end > most {
			break
		}
		m := fence.FindStringSubmatch(here)
		switch {
		case marks == "" && m != nil:
			opener, marks = here, m[1]
		case marks != "":
			if m != nil && strings.HasPrefix(m[1], marks) && strings.TrimSpace(m[2]) == "" {
				opener, marks = "", ""
				line = end
			} else if end+len(marks)+1 <= most {
				inside, insideOpener, insideMarks = end, opener, marks
			}
		case strings.TrimSpace(here) == "":
			paragraph, line = end, end
		default:
			line = end
		}
		at = end
	}
	switch {
	case paragraph > most/4: // a better end is not worth a tiny piece
		return strings.TrimRight(text[:paragraph], "\n"), strings.TrimLeft(text[paragraph:], "\n")
	case line > most/4:
		return strings.TrimRight(text[:line], "\n"), strings.TrimLeft(text[line:], "\n")
	case inside > most/4 && len(insideOpener) < most/4:
		return text[:inside] + insideMarks, insideOpener + "\n" + text[inside:]
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], text[most:]
}
