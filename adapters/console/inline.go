package console

import (
	"bufio"
	stdhtml "html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer/html"
)

// inline gives the text within a block, painted. A line break in the source is
// one in the terminal too, as on every other platform people chat on.
func (r *renderer) inline(parent ast.Node, a attrs) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b.WriteString(r.span(n, a))
	}
	return b.String()
}

var lineBreak = regexp.MustCompile(`(?i)^<br\s*/?>$`)

func (r *renderer) span(n ast.Node, a attrs) string {
	switch n := n.(type) {
	case *ast.Text:
		s := r.words(n.Segment.Value(r.src), n.IsRaw(), a)
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += "\n"
		}
		return s
	case *ast.String:
		return r.words(n.Value, n.IsRaw() || n.IsCode(), a)
	case *ast.CodeSpan:
		inner := r.inline(n, a|code)
		if r.look == mono { // nothing else would tell it from the rest
			return "`" + inner + "`"
		}
		return inner
	case *ast.Emphasis:
		if n.Level == 1 {
			return r.inline(n, a|italic)
		}
		return r.inline(n, a|bold)
	case *extast.Strikethrough:
		return r.inline(n, a|strike)
	case *ast.Link:
		return r.linked(r.inline(n, a|link), plainText(n, r.src), string(n.Destination))
	case *ast.Image:
		return r.linked("["+r.inline(n, a|link)+"]", "", string(n.Destination))
	case *ast.AutoLink:
		return r.words(n.Label(r.src), true, a|link)
	case *ast.RawHTML:
		raw := string(n.Segments.Value(r.src))
		if lineBreak.MatchString(raw) {
			return "\n"
		}
		return r.words([]byte(raw), true, a)
	case *extast.TaskCheckBox:
		if n.IsChecked {
			return "[x] "
		}
		return "[ ] "
	}
	return r.inline(n, a)
}

// linked shows where a link leads, always: its words may say something else.
func (r *renderer) linked(shown, words, to string) string {
	if to == "" || words == to || "mailto:"+words == to {
		return shown
	}
	return shown + " (" + r.words([]byte(to), false, faint) + ")"
}

// words paints a piece of the source, line by line. References such as &#27; can
// stand for what clean has taken out of the source, so it is cleaned again here,
// where everything that is shown comes by.
func (r *renderer) words(src []byte, raw bool, a attrs) string {
	s := string(src)
	if !raw {
		s = resolve(src)
	}
	parts := strings.Split(clean(s), "\n")
	for i, p := range parts {
		parts[i] = r.look.paint(a, p)
	}
	return strings.Join(parts, "\n")
}

// resolve gives what a piece of Markdown stands for, with \* and &amp; resolved.
// Only goldmark's writer knows how, and it writes HTML.
func resolve(src []byte) string {
	var b strings.Builder
	w := bufio.NewWriter(&b)
	html.DefaultWriter.Write(w, src)
	_ = w.Flush() // a Builder never fails
	return stdhtml.UnescapeString(b.String())
}

// plainText is a span's text without how it is set apart.
func plainText(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(src))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
