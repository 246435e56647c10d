package discord

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"

	"mimikit/adapters"
)

func (r renderer) inline(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b.WriteString(r.span(n))
	}
	return b.String()
}

var lineBreak = regexp.MustCompile(`(?i)^<br\s*/?>$`)

func (r renderer) span(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		s := escapeBetween(r.before(n.Segment.Start), string(n.Segment.Value(r.src)), r.after(n.Segment.Stop), n.IsRaw())
		if n.SoftLineBreak() || n.HardLineBreak() {
			s = strings.TrimRight(s, " ") + "\n"
		}
		return s
	case *ast.String:
		return escape(string(n.Value), n.IsRaw() || n.IsCode())
	case *ast.CodeSpan:
		return codeSpan(r.literal(n))
	case *ast.Emphasis:
		mark := "*"
		if n.Level > 1 {
			mark = "**"
		}
		return around(mark, r.inline(n))
	case *extast.Strikethrough:
		return around("~~", r.inline(n))
	case *ast.Link:
		return r.link(r.inline(n), r.literal(n), string(n.Destination))
	case *ast.Image:
		words := r.inline(n)
		if words == "" {
			words = "image"
		}
		return r.link(words, r.literal(n), string(n.Destination))
	case *ast.AutoLink:
		return string(n.URL(r.src))
	case *ast.RawHTML:
		raw := string(n.Segments.Value(r.src))
		if lineBreak.MatchString(raw) {
			return "\n"
		}
		return escape(raw, true)
	case *extast.TaskCheckBox:
		if n.IsChecked {
			return "☑ "
		}
		return "☐ "
	}
	return r.inline(n)
}

// around sets marks about words; without words they would mean something else.
func around(mark, words string) string {
	if strings.TrimSpace(words) == "" {
		return words
	}
	return mark + words + mark
}

// codeSpan shows code in a line. Two marks about it leave room for one inside.
func codeSpan(code string) string {
	code = strings.ReplaceAll(clean(code), "\n", " ")
	switch {
	case strings.TrimSpace(code) == "":
		return code
	case !strings.Contains(code, "`"):
		return "`" + code + "`"
	}
	code = strings.ReplaceAll(code, "``", "`\u200b`")
	return "`` " + code + " ``"
}

// literal is the text of a span without how it is set apart.
func (r renderer) literal(n ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(r.src))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

var likeAddress = regexp.MustCompile(`(?i)^(https?://|www\.)|^[a-z0-9-]+(\.[a-z0-9-]+)+(/|$)`)

// link shows a link. Where the words could be taken for another address, or
// Discord makes no link of it, the address is written out.
func (r renderer) link(words, plain, to string) string {
	to = html.UnescapeString(to)
	u, err := url.Parse(to)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	plain = strings.TrimSpace(plain)
	_, disguised := adapters.Disguised(plain, to)
	switch {
	case to == "":
		return words
	case strings.TrimSpace(words) == "":
		return to
	case plain == to || strings.TrimPrefix(to, "mailto:") == plain:
		return strings.TrimSpace(plain)
	case !web || disguised || likeAddress.MatchString(plain):
		return words + " (" + strings.ReplaceAll(to, " ", "%20") + ")"
	}
	to = strings.NewReplacer(" ", "%20", ")", "%29", "(", "%28", "<", "%3C", ">", "%3E").Replace(to)
	return "[" + strings.NewReplacer("[", "(", "]", ")").Replace(words) + "](" + to + ")"
}

// before and after are the runes of the source beside a place: a piece of text may
// end in the middle of a word.
func (r renderer) before(at int) rune {
	c, _ := utf8.DecodeLastRune(r.src[:at])
	return c
}

func (r renderer) after(at int) rune {
	c, _ := utf8.DecodeRune(r.src[at:])
	return c
}

func escape(s string, raw bool) string { return escapeBetween(' ', s, ' ', raw) }

// escapeBetween shows a piece of text as it is. Escapes of the source stay, since
// Discord has the same; with raw there are none.
func escapeBetween(last rune, s string, end rune, raw bool) string {
	var b strings.Builder
	if !raw {
		s = entities(s)
	}
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		rest := s[i+size:]
		next := end
		if rest != "" {
			next, _ = utf8.DecodeRuneInString(rest)
		}
		switch {
		case c == '\\' && !raw && rest != "" && next < 0x80 && unicode.IsPunct(next) || c == '\\' && !raw && strings.ContainsRune("|~`<>$^+=", next) && rest != "":
			b.WriteRune('\\')
			b.WriteRune(next)
			i += size + 1
			last = next
			continue
		case c == '*', c == '`', c == '\\' && raw,
			c == '_' && (!wordly(last) || !wordly(next)),
			c == '~' && (next == '~' || last == '~'), c == '|' && (next == '|' || last == '|'):
			b.WriteRune('\\')
		}
		b.WriteRune(c)
		last = c
		i += size
	}
	return b.String()
}

func wordly(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

var entity = regexp.MustCompile(`&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)

// entities resolves references; what they stand for is no Markdown.
func entities(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	return entity.ReplaceAllStringFunc(s, func(e string) string {
		c := clean(html.UnescapeString(e))
		if len(c) == 1 && strings.ContainsAny(c, "\\`*_{}[]()#+-.!|~<>") {
			return `\` + c
		}
		return strings.ReplaceAll(c, "\n", " ")
	})
}
