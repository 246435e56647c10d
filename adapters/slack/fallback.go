package slack

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// fallback is a reply as plain words, for notifications and for readers that
// speak: without it they say nothing of a message made of blocks.
func fallback(source string) string {
	src := []byte(source)
	f := flat{src: src}
	_ = ast.Walk(markdown.Parse(text.NewReader(src)), f.visit) // visit gives no error
	words := strings.TrimSpace(f.b.String())
	if units(words) > maxFallback {
		words = prefix(words, maxFallback-1) + "…"
	}
	if words == "" {
		words = "…"
	}
	return escape(words)
}

// flat gathers the words of a Markdown tree.
type flat struct {
	src []byte
	b   strings.Builder
}

func (f *flat) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		f.leave(n)
		return ast.WalkContinue, nil
	}
	switch n := n.(type) {
	case *ast.Text:
		f.b.Write(n.Value(f.src))
		switch {
		case n.HardLineBreak():
			f.b.WriteByte('\n')
		case n.SoftLineBreak():
			f.b.WriteByte(' ')
		}
	case *ast.String:
		f.b.Write(n.Value)
	case *ast.AutoLink:
		f.b.Write(n.URL(f.src))
		return ast.WalkSkipChildren, nil
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		lines := n.Lines()
		for i := range lines.Len() {
			line := lines.At(i)
			f.b.Write(line.Value(f.src))
		}
		f.end()
		return ast.WalkSkipChildren, nil
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			seg := n.Segments.At(i)
			f.b.Write(seg.Value(f.src))
		}
		return ast.WalkSkipChildren, nil
	case *ast.ListItem:
		f.end()
		f.b.WriteString("• ")
	case *ast.ThematicBreak:
		f.end()
	case *east.TaskCheckBox:
		if n.IsChecked {
			f.b.WriteString("[x] ")
		} else {
			f.b.WriteString("[ ] ")
		}
	case *east.TableCell:
		if n.PreviousSibling() != nil {
			f.b.WriteString(" | ")
		}
	}
	return ast.WalkContinue, nil
}

// leave ends the line of whatever stands on its own.
func (f *flat) leave(n ast.Node) {
	switch n.(type) {
	case *ast.Paragraph, *ast.Heading, *ast.TextBlock, *east.TableRow, *east.TableHeader:
		f.end()
	}
}

func (f *flat) end() {
	if s := f.b.String(); s != "" && !strings.HasSuffix(s, "\n") && !strings.HasSuffix(s, "• ") {
		f.b.WriteByte('\n')
	}
}
