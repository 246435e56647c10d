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
// between two quotes: it cannot open or close one, not even where a wide form of
// < is read as one. What people do not see but models do goes: control
// characters, and those with which text is hidden or turned around. What is no
// UTF-8 shows as one U+FFFD. And no text names the block that actions are read
// from, so that a model which repeats it does not act.
func escape(b *strings.Builder, s string, marks *[256]bool) {
	for i := actionMark(s); i >= 0; i = actionMark(s) {
		escapePart(b, s[:i], marks)
		b.WriteByte('.')
		s = s[i+1:]
	}
	escapePart(b, s, marks)
}

func escapePart(b *strings.Builder, s string, marks *[256]bool) {
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
			case invisible(r):
				b.WriteString(s[start:i])
				i += size
				start = i
			case r == '\u2028', r == '\u2029': // line and paragraph separators
				b.WriteString(s[start:i])
				if marks == &inAttribute {
					b.WriteByte(' ')
				} else {
					b.WriteByte('\n')
				}
				i += size
				start = i
			case wideLess(r):
				b.WriteString(s[start:i])
				b.WriteString("&lt;")
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

// invisible tells the characters beyond ASCII that are dropped: controls, and
// those that people do not see while a model reads or obeys them. The two
// joiners stay, since Persian, Hindi and families of emoji are written with them;
// of the variants of a character (U+E0100 and up) the character stays.
func invisible(r rune) bool {
	switch {
	case r <= 0x9F, // C1 controls
		r == 0xAD, r == 0x61C, r == 0x180E, // soft hyphen, Arabic letter mark, Mongolian vowel separator
		r == 0x200B, r == 0x200E, r == 0x200F, // zero width space, direction marks
		r >= 0x202A && r <= 0x202E,              // embeddings and overrides of direction
		r >= 0x2060 && r <= 0x206F,              // word joiner, invisible operators, isolates
		r == 0xFEFF, r >= 0xFFF9 && r <= 0xFFFB, // byte order mark, interlinear annotation
		r >= 0xE0000 && r <= 0xE0FFF: // tag characters, supplementary variants
		return true
	}
	return false
}

// actionMark gives the position of the first colon of s that belongs to the tag
// of a block of actions or spells its name, however it is cased and whatever
// invisible characters stand within; -1 when there is none. A colon after the
// program's name alone, as in "mimikit:latest", is no such mark.
func actionMark(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], ':')
		if i < 0 {
			return -1
		}
		i += from
		if head, ok := withoutEnd(s[:i], "mimikit"); ok && (begins(s[i+1:], "actions") || opensTag(head)) {
			return i
		}
		from = i + 1
	}
}

// withoutEnd takes a word off the end of s, and begins looks for one at its
// start. They compare visible letters, whatever their case.
func withoutEnd(s, word string) (string, bool) {
	for i := len(word) - 1; i >= 0; {
		r, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
		switch {
		case size > 0 && unseen(r):
		case size == 1 && lower(byte(r)) == word[i]:
			i--
		default:
			return "", false
		}
	}
	return s, true
}

func begins(s, word string) bool {
	for i := 0; i < len(word); {
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		switch {
		case size > 0 && unseen(r):
		case size == 1 && lower(byte(r)) == word[i]:
			i++
		default:
			return false
		}
	}
	return true
}

// opensTag tells whether s ends where a tag's name, or the slash before it, may
// follow.
func opensTag(s string) bool {
	slash := false
	for s != "" {
		r, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
		switch {
		case r == '<' || wideLess(r):
			return true
		case unseen(r):
		case r == '/' && !slash:
			slash = true
		default:
			return false
		}
	}
	return false
}

// wideLess tells the fullwidth and the small form of <.
func wideLess(r rune) bool { return r == '\uFF1C' || r == '\uFE64' }

// unseen tells what does not keep letters apart: what is dropped, and joiners.
func unseen(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7F
	}
	return invisible(r) || r == 0x200C || r == 0x200D
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
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
