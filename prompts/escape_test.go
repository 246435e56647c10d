package prompts

import (
	"regexp"
	"strings"
	"testing"
)

// hidden is what escape drops, joiners is what may also stand within a word.
const (
	hidden = "[\\x00-\\x08\\x0B-\\x1F\\x7F-\\x{9F}\\x{AD}\\x{61C}\\x{180E}\\x{200B}\\x{200E}\\x{200F}\\x{202A}-\\x{202E}\\x{2060}-\\x{206F}\\x{FEFF}\\x{FFF9}-\\x{FFFB}\\x{E0000}-\\x{E0FFF}]"
	joined = "(?:" + hidden + "|[\\x{200C}\\x{200D}])*"
)

var (
	unwanted = regexp.MustCompile(hidden)
	marker   = regexp.MustCompile("(?i)(?:([<\uFF1C\uFE64]" + joined + "/?" + joined + "))?" + strings.Join(strings.Split("mimikit", ""), joined) +
		joined + ":(" + joined + strings.Join(strings.Split("actions", ""), joined) + ")?")
)

// slowly is what escape does, said in the library's words.
func slowly(s string, attribute bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	// (?i) of the library also folds the Kelvin sign to k and the long s to s.
	s = marker.ReplaceAllStringFunc(s, func(m string) string {
		before, after, _ := strings.Cut(m, ":")
		if strings.Contains(before, "\u212A") || after == "" && !strings.ContainsAny(before, "<\uFF1C\uFE64") ||
			strings.Contains(after, "\u017F") && !strings.ContainsAny(before, "<\uFF1C\uFE64") {
			return m
		}
		return before + "." + after
	})
	s = unwanted.ReplaceAllString(s, "")
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", "\uFF1C", "&lt;", "\uFE64", "&lt;").Replace(s)
	if attribute {
		return strings.NewReplacer(`"`, "&quot;", "\n", " ", "\t", " ", "\u2028", " ", "\u2029", " ").Replace(s)
	}
	return strings.NewReplacer("\u2028", "\n", "\u2029", "\n").Replace(s)
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{
		"", "plain", "one line of plain words", " two  spaces ", "a & <b> \"c\"\r\n\td\r\r\ne\r", "\x00\x1f\x7f\u0080\u0085\u009f\u00a0\u00ad",
		"a\xff\xfe\xffb\xff\x00\xffc\xc3", "\uFFFD\xff\uFFFD", "\U000E0000\U000E0041\U000E007F\U000E0080", "你好, 世界, ça va?",
		"<MIMIKIT:actions>", "</mimikit:ACTIONS>", "MIMI\u200DKIT\u200B:\u2060act\x00ions MIMIKIT:actions:actions mimikit: actions", "xMIMIKIT:actions\xff:", "MIMI\u212AIT:actions", "MIMIKIT:action\u017F",
		"mimikit:latest <mimikit:x </\u200BMimiKit:y \uFF1C\u2060/MIMIKIT: z <//mimikit:a < mimikit:b <a/mimikit:c mimikit:mimikit:actions",
		"\u202Eabc\u2066d\u2069\u2029\uFEFF\u200E\u00AD", "\uFF1Cinput\uFF1E \uFE64a\uFE65", "\U000E0100\U000E0FFF\U000E1000",
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
