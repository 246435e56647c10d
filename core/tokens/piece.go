package tokens

import (
	"unicode"
	"unicode/utf8"
)

// The splitting expression of the vocabularies looks ahead, and on white space
// it looks over the same bytes again and again: 32 KiB of blanks and line ends
// in turn took 0.7 s. So a text is counted in pieces: at places where the
// expression divides it in any case when there are such, else at a bound that
// keeps the worst piece cheap. Only the latter can add a token, one in hundreds.
const (
	maxPiece = 4096 // bytes of a piece
	maxSolid = 1024 // bytes without a place where the text divides by itself
	maxBlank = 64   // bytes of white space in a row
)

// piece gives the first piece of a text that is not empty.
func piece(text string) string {
	if len(text) <= maxBlank {
		return text
	}
	seam, blank := 0, 0 // the last seam, and where the running white space began
	for i := 0; i < len(text); {
		white, size := isBlank(text[i]), 1
		if text[i] >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			white = unicode.IsSpace(r)
		}
		switch {
		case white && i-blank+size > maxBlank:
			return text[:i]
		case i-seam+size > maxSolid && seam == 0, i+size > maxPiece && seam == 0:
			return text[:i]
		case i-seam+size > maxSolid, i+size > maxPiece:
			return text[:seam]
		}
		if isSeam(text, i) {
			seam = i
		}
		if i += size; !white {
			blank = i
		}
	}
	return text
}

// isSeam reports whether a text divides before position i by itself: a blank
// between a letter, digit or sign and a letter belongs to what follows.
func isSeam(text string, i int) bool {
	return text[i] == ' ' && i > 0 && i+1 < len(text) && isLetter(text[i+1]) && text[i-1] > ' ' && text[i-1] < utf8.RuneSelf
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isBlank knows the white space of ASCII.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
