package page

import (
	"regexp"
	"strings"
)

// A piece is a part of a text on which a line ends in its own way.
type piece struct {
	Text  string
	Whole bool // it stays on one line
	Ends  bool // a line may end behind it
}

var unusual = regexp.MustCompile(`((?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?)|\S{21,}`) // a moment, or a long word

// linesOf finds where a line may not end, which is within a date or time, and where else
// than behind a space it may.
func linesOf(text string) []piece {
	var out []piece
	from := 0
	for _, at := range unusual.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > from {
			out = append(out, piece{Text: text[from:at[0]]})
		}
		if found := text[at[0]:at[1]]; at[2] >= 0 {
			out = append(out, piece{Text: found, Whole: true})
		} else {
			for part := range strings.SplitAfterSeq(found, "/") {
				out = append(out, piece{Text: part, Ends: strings.HasSuffix(part, "/")})
			}
		}
		from = at[1]
	}
	if from < len(text) {
		out = append(out, piece{Text: text[from:]})
	}
	return out
}
