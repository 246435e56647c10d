package history

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mimikit/core/chat"
)

// write spells a line as encoding/json does without its HTML escapes, or gives
// false for the rare lines that need more than it knows: text that is no UTF-8,
// the two line separators that JSON escapes for JavaScript's sake, and times
// that cannot be spelt. FuzzEncode holds the two together.
func write(l chat.Line) (string, bool) {
	var stamp [len(`"0000-00-00T00:00:00.000000000+00:00"`)]byte
	at, err := l.At.AppendText(stamp[:0])
	if err != nil {
		return "", false
	}
	var b strings.Builder
	b.Grow(160 + len(l.ID) + len(l.Author.ID) + len(l.Author.Name) + len(l.Text)*17/16)
	ok := true
	text := func(name, s string) {
		b.WriteString(name)
		b.WriteByte('"')
		ok = ok && escape(&b, s)
		b.WriteByte('"')
	}
	text(`{"id":`, l.ID)
	text(`,"role":`, string(l.Role))
	if a := l.Author; a != (chat.Author{}) {
		text(`,"author":{"id":`, a.ID)
		if a.Name != "" {
			text(`,"name":`, a.Name)
		}
		b.WriteString(`,"role":`)
		b.WriteString(strconv.Itoa(int(a.Role)))
		if a.Bot {
			b.WriteString(`,"bot":true`)
		}
		b.WriteByte('}')
	}
	text(`,"text":`, l.Text)
	if l.Note != "" {
		text(`,"note":`, l.Note)
	}
	b.WriteString(`,"at":"`)
	b.Write(at)
	b.WriteString(`"}`)
	return b.String(), ok
}

// escape adds s as it stands between the quotes of a JSON string.
func escape(b *strings.Builder, s string) bool {
	ascii := true
	for start := 0; ; {
		end, clean := plain(s, start)
		ascii = ascii && clean
		b.WriteString(s[start:end])
		if end == len(s) {
			break
		}
		b.WriteByte('\\')
		switch c := s[end]; c {
		case '"', '\\':
			b.WriteByte(c)
		case '\n':
			b.WriteByte('n')
		case '\t':
			b.WriteByte('t')
		case '\r':
			b.WriteByte('r')
		case '\b':
			b.WriteByte('b')
		case '\f':
			b.WriteByte('f')
		default:
			const hex = "0123456789abcdef"
			b.WriteString("u00")
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
		start = end + 1
	}
	return ascii || utf8.ValidString(s) && !strings.Contains(s, "\u2028") && !strings.Contains(s, "\u2029")
}
