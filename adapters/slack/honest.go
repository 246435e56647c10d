package slack

import (
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"mimikit/adapters"
)

// labelled are links in Slack's own spelling, <address|words>. A reply is Markdown, in
// which they mean nothing; where Slack reads them all the same, the words could say
// anything.
var labelled = regexp.MustCompile(`<(?i:https?|mailto|tel|slack):[^<>\n]*\|`)

// honest adds to each link whose words name another address where it really leads.
func honest(source string) string {
	source = labelled.ReplaceAllStringFunc(source, func(m string) string { return "<\u2060" + m[1:] })
	if !strings.Contains(source, "](") && !strings.Contains(source, "]:") {
		return source
	}
	type addition struct {
		at   int
		host string
	}
	var list []addition
	src := []byte(source)
	_ = ast.Walk(markdown.Parse(text.NewReader(src)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		var to []byte
		switch n := n.(type) {
		case *ast.Link:
			to = n.Destination
		case *ast.Image:
			to = n.Destination
		default:
			return ast.WalkContinue, nil
		}
		if !entering {
			return ast.WalkContinue, nil
		}
		words, end := labelOf(n, src)
		host, disguised := adapters.Disguised(words, string(to))
		if end >= 0 && disguised && !strings.HasSuffix(words, "("+host+")") { // it may have been said before
			list = append(list, addition{end, host})
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(list, func(a, b addition) int { return b.at - a.at })
	for i, a := range list {
		if i > 0 && list[i-1].at == a.at { // an image in a link
			continue
		}
		source = source[:a.at] + " (" + a.host + ")" + source[a.at:]
	}
	return source
}

// labelOf gives the words of a link, and where in the source they end; -1 where there
// are none.
func labelOf(link ast.Node, src []byte) (words string, end int) {
	end = -1
	var b strings.Builder
	_ = ast.Walk(link, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(src))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
			end = max(end, t.Segment.Stop)
		}
		return ast.WalkContinue, nil
	})
	return b.String(), end
}
