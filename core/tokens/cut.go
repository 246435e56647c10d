package tokens

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Cut gives the beginning of a text that has at most limit tokens for a model,
// and whether anything was left out. It ends where a paragraph, a line, a
// sentence or a word does, the first of these that is found in its last quarter,
// else between two characters; white space at that end is left out.
func Cut(model, text string, limit int) (string, bool) {
	if len(text) <= limit || limit > 0 && CountTo(model, text, limit) <= limit {
		return text, false
	}
	if limit <= 0 {
		return "", text != ""
	}
	v, text := of(model), valid(text)
	kept, room := 0, limit
	for kept < len(text) {
		p := piece(text[kept:])
		n := v.measure(p)
		if n > room {
			kept += v.fit(p, room)
			break
		}
		kept, room = kept+len(p), room-n
	}
	// A piece that ends sooner may be divided otherwise, and more tokens come of
	// that; a step back or two mends it.
	for kept > 0 {
		out := strings.TrimRight(text[:border(text, kept)], " \t\r\n")
		if v.count(out, limit) <= limit {
			return out, true
		}
		kept = lastRune(text, kept-1-kept/64)
	}
	return "", true
}

// fit gives the bytes of the longest beginning of a piece that has at most room
// tokens. It looks for it by halves: more text has fewer tokens only now and
// then, by one, and the next lower end is as good.
func (v *vocabulary) fit(p string, room int) int {
	n := sort.Search(len(p), func(i int) bool { return v.measure(p[:lastRune(p, i+1)]) > room })
	return lastRune(p, n)
}

// lastRune is the greatest character's edge of s that is not above n.
func lastRune(s string, n int) int {
	for n = max(n, 0); n > 0 && n < len(s) && !utf8.RuneStart(s[n]); n-- {
	}
	return n
}

// ends are what a cut looks for, the best first; those of one row are as good
// as each other. What stands behind the mark is left out.
var ends = [][]string{
	{"\n\n"}, {"\n"}, {". ", "! ", "? ", "。", "！", "？"}, {"; ", ", ", "；", "，", "、"}, {" "},
}

// border gives the best place to cut text at, n or a little before it.
func border(text string, n int) int {
	if n >= len(text) || text[n] == '\n' {
		return min(n, len(text))
	}
	from := lastRune(text, n-n/4)
	for _, row := range ends {
		best := 0
		for _, e := range row {
			// A mark may stand across the cut with its blank behind it.
			if at := strings.LastIndex(text[from:min(n+1, len(text))], e); at >= 0 {
				best = max(best, min(n, from+at+len(e)))
			}
		}
		if best > 0 {
			return lastRune(text, best)
		}
	}
	return lastRune(text, n)
}
