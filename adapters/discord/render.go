package discord

import (
	"fmt"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// deepest is how far lists are moved in; Discord's own client stops far before.
const deepest = 6

var parser = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM))
})

// renderParts shows Markdown in messages of Discord, each of at most maxUnits. It
// is pure, and gives at least one.
func renderParts(markdown string) []string { return split(render(markdown), maxUnits) }

// render turns Markdown into what Discord shows alike. Discord's own Markdown has
// no tables, images, rules or HTML; what it has besides, as spoilers and small
// print, is escaped where a text did not mean it. Blocks of code stand at the
// beginning of a line, so that a cut can close and open them again.
func render(markdown string) string {
	r := renderer{src: []byte(clean(markdown))}
	doc := parser().Parser().Parse(text.NewReader(r.src))
	out := strings.TrimSpace(strings.Join(r.blocks(doc, 0, true), "\n"))
	if out == "" {
		return "(no text)"
	}
	return out
}

// clean takes out what never was meant to be shown.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r < ' ' || r >= 0x7F && r < 0xA0:
			return -1
		}
		return r
	}, s)
}

type renderer struct{ src []byte }

// blocks gives the lines of all children, with an empty one between those that are
// to be apart.
func (r renderer) blocks(parent ast.Node, depth int, apart bool) []string {
	var out []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := r.block(n, depth)
		if apart && len(out) > 0 && len(lines) > 0 {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (r renderer) block(n ast.Node, depth int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		words := r.paragraph(n)
		if n.Level > 3 || len(words) != 1 {
			for i, w := range words {
				words[i] = "**" + w + "**"
			}
			return words
		}
		return []string{strings.Repeat("#", n.Level) + " " + words[0]}
	case *ast.Paragraph, *ast.TextBlock:
		return r.paragraph(n)
	case *ast.ThematicBreak:
		return []string{strings.Repeat("─", 20)}
	case *ast.Blockquote:
		return r.quote(n, depth)
	case *ast.List:
		return r.list(n, depth)
	case *ast.FencedCodeBlock:
		return fenced(string(n.Language(r.src)), string(n.Lines().Value(r.src)))
	case *ast.CodeBlock:
		return fenced("", string(n.Lines().Value(r.src)))
	case *ast.HTMLBlock:
		raw := string(n.Lines().Value(r.src))
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(r.src))
		}
		var out []string
		for line := range strings.SplitSeq(strings.TrimRight(raw, "\n"), "\n") {
			out = append(out, guardLine(escape(line, true)))
		}
		return out
	case *extast.Table:
		return r.table(n)
	case *ast.LinkReferenceDefinition:
		return nil
	}
	return r.blocks(n, depth, true)
}

// paragraph gives a block's text by lines: a line break in the source is one on
// Discord too.
func (r renderer) paragraph(n ast.Node) []string {
	lines := strings.Split(strings.Trim(r.inline(n), "\n"), "\n")
	for i, line := range lines {
		lines[i] = guardLine(strings.TrimSpace(line))
	}
	return lines
}

// guardLine keeps the beginning of a line from meaning something that only Discord
// knows, or that it takes for a block where CommonMark does not.
func guardLine(line string) string {
	switch {
	case strings.HasPrefix(line, "-# "), strings.HasPrefix(line, "# "), strings.HasPrefix(line, "## "), strings.HasPrefix(line, "### "),
		strings.HasPrefix(line, "> "), strings.HasPrefix(line, ">>> "), strings.HasPrefix(line, "- "):
		return `\` + line
	}
	return line
}

// fenced gives a block of code. Discord ends it at the first three marks, so those
// inside are taken apart, and knows only words as languages.
func fenced(language, code string) []string {
	language = strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-.#_", r)) {
			return r
		}
		return -1
	}, language)
	if len(language) > 20 {
		language = ""
	}
	code = strings.ReplaceAll(strings.TrimRight(clean(code), "\n"), "```", "`\u200b`\u200b`")
	if strings.TrimSpace(code) == "" {
		code = " "
	}
	out := append([]string{"```" + language}, strings.Split(code, "\n")...)
	return append(out, "```")
}

// quote sets a mark before each line. Blocks of code are left out of it: Discord
// has none in a quote. A quote in a quote is one quote.
func (r renderer) quote(n ast.Node, depth int) []string {
	var out []string
	code := false
	for _, line := range r.blocks(n, depth, true) {
		fence := strings.HasPrefix(line, "```")
		switch {
		case code || fence, strings.HasPrefix(line, "> "):
			out = append(out, line)
		default:
			out = append(out, strings.TrimRight("> "+line, " ")+pad(line))
		}
		if fence {
			code = !code
		}
	}
	return out
}

// pad keeps an empty line in a quote, which ends at a bare mark.
func pad(line string) string {
	if line == "" {
		return " "
	}
	return ""
}

func (r renderer) list(n *ast.List, depth int) []string {
	var out []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		marker := "- "
		if n.IsOrdered() {
			marker = fmt.Sprintf("%d. ", number)
			number++
		}
		out = append(out, r.item(item, marker, depth)...)
	}
	return out
}

// item moves an entry's lines in behind its marker, but for code.
func (r renderer) item(item ast.Node, marker string, depth int) []string {
	lines := r.blocks(item, depth+1, false)
	if len(lines) == 0 {
		return []string{strings.TrimRight(marker, " ")}
	}
	indent := strings.Repeat(" ", len(marker))
	if depth >= deepest {
		indent = ""
	}
	var out []string
	code := false
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		switch {
		case i == 0 && fence:
			out = append(out, strings.TrimRight(marker, " "), line)
		case i == 0:
			out = append(out, marker+line)
		case code || fence:
			out = append(out, line)
		default:
			out = append(out, indent+line)
		}
		if fence {
			code = !code
		}
	}
	return out
}
