package history

import (
	"strconv"
	"unicode/utf8"
)

// Cut bounds a text to size bytes, at a character's edge, and says at its end how
// much was cut. Sizes too small for that note give a bare cut.
func Cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	// The note is as long for the kept as for the whole length, or shorter.
	room := size - len(note(len(s), len(s)))
	if room <= 0 {
		return s[:edge(s, size)]
	}
	kept := edge(s, room)
	return s[:kept] + note(len(s)-kept, len(s))
}

func note(cut, whole int) string {
	return "\n[cut: " + strconv.Itoa(cut) + " of " + strconv.Itoa(whole) + " bytes are not shown]"
}

func edge(s string, n int) int {
	for n = max(n, 0); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return n
}
