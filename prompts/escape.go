package prompts

import (
	"strings"
	"unicode/utf8"
)

// What stands for itself needs no thought, and that is nearly every byte of
// every prompt. These tables mark the others.
var (
	inBody      = marked("&<", "\n\t")
	inAttribute = marked("&<\"", "")
)

// marked makes a table of escaped, of all bytes beyond ASCII, and of the control
// characters but for those that stay.
func marked(escaped, stay string) (t [256]bool) {
	for c := range len(t) {
		control := c < ' ' || c == 0x7F
		t[c] = c >= utf8.RuneSelf || control && strings.IndexByte(stay, byte(c)) < 0 || strings.IndexByte(escaped, byte(c)) >= 0
	}
	return t
}

// next gives the position of the first marked byte of s from i on, or its length.
// It looks at eight bytes at a time, as one number, since texts are long. The
// marks are asked only where that finds something, which may be nothing: a line
// break, or a quote in a body.
func next(s string, i int, marks *[256]bool) int {
	for ; i+8 <= len(s); i += 8 {
		e := s[i : i+8]
		w := uint64(e[0]) | uint64(e[1])<<8 | uint64(e[2])<<16 | uint64(e[3])<<24 |
			uint64(e[4])<<32 | uint64(e[5])<<40 | uint64(e[6])<<48 | uint64(e[7])<<56
		// A subtraction leaves the high bit where a byte is less than what is taken
		// away; a byte beyond ASCII has it from the start.
		const ones, highs = 0x0101010101010101, 0x8080808080808080
		if (w|(w-' '*ones)|((w^'&'*ones)-ones)|((w^'<'*ones)-ones)|((w^'"'*ones)-ones)|((w^0x7F*ones)-ones))&highs == 0 {
			continue
		}
		for j := i; j < i+8; j++ {
			if marks[s[j]] {
				return j
			}
		}
	}
	for ; i < len(s) && !marks[s[i]]; i++ {
	}
	return i
}

// escape writes text so that it is safe between two tags, or with inAttribute
// between two quotes: it cannot open or close one. Control characters go, and so
// do the invisible tag characters with which text is hidden from people but not
// from models. What is no UTF-8 shows as one U+FFFD.
func escape(b *strings.Builder, s string, marks *[256]bool) {
	start := 0 // of what is not written yet
	for i := next(s, 0, marks); i < len(s); i = next(s, i, marks) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				b.WriteString(s[start:i])
				b.WriteRune(utf8.RuneError)
				for ; r == utf8.RuneError && size == 1; r, size = utf8.DecodeRuneInString(s[i:]) {
					i++
				}
				start = i
			case r <= 0x9F || r >= 0xE0000 && r <= 0xE007F: // C1 controls; tag characters
				b.WriteString(s[start:i])
				i += size
				start = i
			default:
				i += size
			}
			continue
		}
		b.WriteString(s[start:i])
		switch c {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '"':
			b.WriteString("&quot;")
		case '\n', '\t': // in an attribute
			b.WriteByte(' ')
		}
		i++
		start = i
	}
	b.WriteString(s[start:])
}

// body is text that is safe between two tags.
func body(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/16)
	escape(&b, s, &inBody)
	return b.String()
}

// attribute writes one attribute with its leading space.
func attribute(b *strings.Builder, name, value string) {
	b.WriteByte(' ')
	b.WriteString(name)
	b.WriteString(`="`)
	escape(b, value, &inAttribute)
	b.WriteByte('"')
}
