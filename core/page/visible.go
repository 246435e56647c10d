package page

import (
	"fmt"
	"strings"
)

// visible shows what could make a text look like another: characters that turn the
// direction of reading, or that are not seen at all. What scripts and emoji need
// within words stays.
func visible(s string) string {
	if strings.IndexFunc(s, deceptive) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if deceptive(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func deceptive(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == '\u200c', r == '\u200d': // the last two join letters and emoji
		return false
	case r < ' ', r >= 0x7f && r < 0xa0, // they steer terminals, and are nothing here
		r == '\u00ad', r == '\u034f', r == '\u061c', r == '\u115f', r == '\u1160', r == '\u17b4', r == '\u17b5', r == '\u180e', r == '\u3164', r == '\ufeff', r == '\uffa0',
		r >= '\u200b' && r <= '\u200f', r >= '\u2028' && r <= '\u202e', r >= '\u2060' && r <= '\u206f', r >= '\ufff9' && r <= '\ufffb',
		r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
