package history

import (
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"mimikit/core/chat"
)

// A window decodes up to a hundred lines a turn, and encoding/json took most of
// a turn's time for that. What Encode writes is flat and small, so it is read
// here by hand. The reader understands less than JSON and never guesses: what it
// does not understand, broken lines included, it leaves to encoding/json, whose
// answer is the one that counts. FuzzDecode holds the two together.

// read reads s into an empty line, or gives false, and a line that is no use,
// where it does not understand s. Texts without escapes are parts of s, not
// copies.
func read(s string, l *chat.Line) bool {
	r := reader{s: s}
	ok := r.object(func(key string) bool {
		switch key {
		case "id":
			return r.text(&l.ID)
		case "role":
			return r.text((*string)(&l.Role))
		case "author":
			return r.author(&l.Author)
		case "text":
			return r.text(&l.Text)
		case "note":
			return r.text(&l.Note)
		case "at":
			return r.time(&l.At)
		}
		return r.unknown(key, "id", "role", "author", "text", "note", "at")
	})
	r.space()
	return ok && r.i == len(s)
}

func (r *reader) author(a *chat.Author) bool {
	return r.object(func(key string) bool {
		switch key {
		case "id":
			return r.text(&a.ID)
		case "name":
			return r.text(&a.Name)
		case "role":
			return r.number((*int)(&a.Role))
		case "bot":
			return r.flag(&a.Bot)
		}
		return r.unknown(key, "id", "name", "role", "bot")
	})
}

// A reader is a position in a text. Its methods read one thing each, space
// before it included, and give false where something else is there.
type reader struct {
	s string
	i int
}

func (r *reader) space() {
	for r.i < len(r.s) && (r.s[r.i] == ' ' || r.s[r.i] == '\n' || r.s[r.i] == '\t' || r.s[r.i] == '\r') {
		r.i++
	}
}

// take reads one character.
func (r *reader) take(c byte) bool {
	if r.i < len(r.s) && r.s[r.i] == c { // no space, as a rule
		r.i++
		return true
	}
	r.space()
	if r.i < len(r.s) && r.s[r.i] == c {
		r.i++
		return true
	}
	return false
}

// object reads an object; value reads what belongs to a key.
func (r *reader) object(value func(key string) bool) bool {
	if !r.take('{') {
		return false
	}
	if r.take('}') {
		return true
	}
	for {
		var key string
		if !r.text(&key) || !r.take(':') || !value(key) {
			return false
		}
		if !r.take(',') {
			return r.take('}')
		}
	}
}

// text reads a string.
func (r *reader) text(to *string) bool {
	raw, escaped, ok := r.raw()
	if ok && escaped {
		raw, ok = unescape(raw)
	}
	*to = raw
	return ok
}

// raw reads a string as it stands between its quotes.
func (r *reader) raw() (raw string, escaped, ok bool) {
	if !r.take('"') {
		return "", false, false
	}
	start, ascii := r.i, true
	for i := start; ; {
		var clean bool
		i, clean = plain(r.s, i)
		ascii = ascii && clean
		switch {
		case i >= len(r.s):
			return "", false, false
		case r.s[i] == '\\':
			escaped = true
			i += 2 // what follows may be a quote; unescape judges it
			continue
		case r.s[i] != '"':
			return "", false, false // a control character
		}
		r.i, raw = i+1, r.s[start:i]
		// encoding/json mends what is no UTF-8.
		return raw, escaped, ascii || utf8.ValidString(raw)
	}
}

// unescape undoes the escapes of a string that raw gave.
func unescape(raw string) (string, bool) {
	var b strings.Builder
	b.Grow(len(raw)) // no escape is shorter than what it stands for
	for {
		n := strings.IndexByte(raw, '\\')
		if n < 0 {
			b.WriteString(raw)
			return b.String(), true
		}
		b.WriteString(raw[:n])
		c := raw[n+1] // there is one: raw went past it
		raw = raw[n+2:]
		switch c {
		case '"', '\\', '/':
			b.WriteByte(c)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			u, ok := hex4(raw)
			if !ok {
				return "", false
			}
			raw = raw[4:]
			if utf16.IsSurrogate(u) {
				if !strings.HasPrefix(raw, `\u`) {
					return "", false
				}
				low, ok := hex4(raw[2:])
				if u = utf16.DecodeRune(u, low); !ok || u == utf8.RuneError {
					return "", false
				}
				raw = raw[6:]
			}
			b.WriteRune(u)
		default:
			return "", false
		}
	}
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var u rune
	for _, c := range []byte(s[:4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}

// time reads a time. time.Parse reads RFC 3339 by the same code as a time's
// UnmarshalJSON does, and without copies.
func (r *reader) time(to *time.Time) bool {
	raw, escaped, ok := r.raw()
	if !ok || escaped {
		return false
	}
	t, err := time.Parse(time.RFC3339, raw)
	*to = t
	return err == nil
}

// number reads a whole number as Encode writes a role: no sign, few digits.
func (r *reader) number(to *int) bool {
	r.space()
	n, start := 0, r.i
	for r.i < len(r.s) && r.s[r.i] >= '0' && r.s[r.i] <= '9' && r.i-start < 9 {
		n = n*10 + int(r.s[r.i]-'0')
		r.i++
	}
	*to = n
	return r.i-start == 1 || r.i-start > 1 && r.s[start] != '0'
}

func (r *reader) flag(to *bool) bool {
	*to = r.word("true")
	return *to || r.word("false")
}

func (r *reader) word(w string) bool {
	r.space()
	if !strings.HasPrefix(r.s[r.i:], w) {
		return false
	}
	r.i += len(w)
	return true
}

// unknown passes over the value of a key that a newer program may have added: a
// text, a flag or a small number. A key that encoding/json would take for one of
// the known ones, since it does not tell case, is left to it.
func (r *reader) unknown(key string, known ...string) bool {
	for _, k := range known {
		if strings.EqualFold(key, k) {
			return false
		}
	}
	r.space()
	if r.i == len(r.s) {
		return false
	}
	switch r.s[r.i] {
	case '"':
		var s string
		return r.text(&s)
	case 't', 'f':
		var f bool
		return r.flag(&f)
	case 'n':
		return r.word("null")
	}
	var n int
	return r.number(&n)
}
