package console

import (
	"fmt"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// narrowest is the least width that text is broken to; a terminal that is
// narrower breaks it again.
const narrowest = 10

// deepest is how far lists and quotes are moved in. Below that they go on
// without, so that a text of nothing but ">" stays small.
const deepest = 8

var parser = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM))
})

// render shows Markdown in a terminal of some columns. It is pure: only the
// escape sequences of paint are in what it gives, whatever is in the text. HTML
// is shown as it is written. The plain look shows the Markdown itself.
func render(markdown string, width int, l look) string {
	src := clean(markdown)
	if l == plain {
		return strings.TrimSpace(src)
	}
	r := renderer{look: l, src: []byte(src)}
	doc := parser().Parser().Parse(text.NewReader(r.src))
	return strings.Join(r.blocks(doc, max(width, narrowest), 0, true), "\n")
}

type renderer struct {
	look look
	src  []byte
}

// blocks gives the lines of all children, with an empty line between them if
// they are to be apart.
func (r *renderer) blocks(parent ast.Node, width, depth int, apart bool) []string {
	var out []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := r.block(n, width, depth)
		if apart && len(out) > 0 && len(lines) > 0 {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (r *renderer) block(n ast.Node, width, depth int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		a := bold
		if n.Level == 1 {
			a |= under
		}
		return wrap(r.inline(n, a), width)
	case *ast.Paragraph, *ast.TextBlock:
		return wrap(r.inline(n, 0), width)
	case *ast.ThematicBreak:
		return []string{r.look.paint(faint, strings.Repeat("─", min(width, 40)))}
	case *ast.Blockquote:
		return r.beside(n, "│ ", "│ ", faint, width, depth, true)
	case *ast.List:
		return r.list(n, width, depth)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return r.code(r.lines(n), width)
	case *ast.HTMLBlock:
		raw := r.lines(n)
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(r.src))
		}
		return wrap(strings.TrimRight(clean(raw), "\n"), width)
	case *extast.Table:
		return r.table(n, width)
	case *ast.LinkReferenceDefinition:
		return nil
	}
	return r.blocks(n, width, depth, true)
}

// lines is the source of a block that is not Markdown inside.
func (r *renderer) lines(n ast.Node) string {
	return string(n.Lines().Value(r.src))
}

func (r *renderer) code(src string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(clean(src), "\n"), "\n") {
		for _, part := range hardwrap(line, max(width-2, 1)) {
			out = append(out, "  "+r.look.paint(code, part))
		}
	}
	return out
}

// beside sets a prefix before the lines of a block's children: first before the
// first, rest before the others, which must be as wide.
func (r *renderer) beside(n ast.Node, first, rest string, a attrs, width, depth int, apart bool) []string {
	if depth >= deepest {
		return r.blocks(n, width, depth+1, apart)
	}
	lines := r.blocks(n, max(width-ansi.StringWidth(first), narrowest), depth+1, apart)
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, line := range lines {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		lines[i] = strings.TrimRight(r.look.paint(a, prefix)+line, " ")
	}
	return lines
}

func (r *renderer) list(n *ast.List, width, depth int) []string {
	last := len(fmt.Sprint(n.Start + n.ChildCount() - 1))
	var out []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		marker := "• "
		if n.IsOrdered() {
			marker = fmt.Sprintf("%*d. ", last, number)
			number++
		}
		if !n.IsTight && len(out) > 0 {
			out = append(out, "")
		}
		indent := strings.Repeat(" ", ansi.StringWidth(marker))
		out = append(out, r.beside(item, marker, indent, 0, width, depth, !n.IsTight)...)
	}
	return out
}
