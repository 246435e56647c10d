package prompts

import (
	"strings"
	"testing"
	"unicode"
)

// slowly is what escape does, said in the library's words.
func slowly(s string, attribute bool) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0xE0000 && r <= 0xE007F {
			return -1
		}
		return r
	}, strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(s))
	if attribute {
		s = strings.NewReplacer(`"`, "&quot;", "\n", " ", "\t", " ").Replace(s)
	}
	return s
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{
		"", "plain", "one line of plain words", " two  spaces ", "a & <b> \"c\"\r\n\td\r\r\ne\r", "\x00\x1f\x7f\u0080\u0085\u009f\u00a0\u00ad",
		"a\xff\xfe\xffb\xff\x00\xffc\xc3", "\uFFFD\xff\uFFFD", "\U000E0000\U000E0041\U000E007F\U000E0080", "你好, 世界, ça va?",
		"1234567&", "12345678&", "123456789<", "\"\"\"\"\"\"\"\"\n\n\n\n\n\n\n\n&", "line\u2028separator\v\f",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := body(s), slowly(s, false); got != want {
			t.Errorf("body(%q) = %q, want %q", s, got, want)
		}
		var b strings.Builder
		attribute(&b, "n", s)
		if got, want := b.String(), ` n="`+slowly(s, true)+`"`; got != want {
			t.Errorf("attribute of %q: got %q, want %q", s, got, want)
		}
		if got, want := oneLine(s), strings.Join(strings.Fields(slowly(s, false)), " "); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", s, got, want)
		}
	})
}
