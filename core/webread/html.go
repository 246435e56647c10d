package webread

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime/metrics"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/go-shiori/go-readability"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of the work on a page. Finding the main part takes time that grows
// faster than the page, and all of it walks the tree by recursion.
const (
	maxNodes   = 60_000
	maxArticle = 20_000    // nodes of a page whose main part is looked for
	maxDepth   = 200       //
	maxNested  = 10        // lists, quotes and tables within each other
	maxLink    = 4096      // bytes
	maxTree    = 256 << 20 // bytes that are allocated while a tree is built
	fewLetters = 250       // less is no article
)

// readable makes Markdown of a page: of its main part where there is one, else
// of all of it. A page that is built to be dear is read as bare words; why then
// says so.
func readable(page string, u *url.URL) (title, markdown, why string) {
	doc, err := parsed(page)
	if err == nil {
		title = titleOf(doc)
		markdown, err = convert(doc, u)
	}
	if err != nil {
		title, markdown = words(page)
		why = fmt.Sprintf("the page was read as bare words, because %s", err)
	}
	return oneLine(title), strings.TrimSpace(markdown) + "\n", why
}

// parsed parses a page and bounds it.
func parsed(page string) (doc *html.Node, err error) {
	doc, err = html.Parse(&metered{page: page, most: allocated() + maxTree})
	if err != nil {
		return nil, errors.New("it is nested too deep or takes too much memory")
	}
	nodes := 0
	var deep func(n *html.Node, depth int) bool
	deep = func(n *html.Node, depth int) bool {
		nodes++
		if depth > maxDepth || nodes > maxNodes {
			return true
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if deep(c, depth+1) {
				return true
			}
		}
		return false
	}
	if deep(doc, 0) {
		return nil, fmt.Errorf("it has more than %d elements or nests more than %d", maxNodes, maxDepth)
	}
	return doc, nil
}

// A metered page ends early when its tree takes too much memory: a parser that
// repairs what is not closed makes a million elements of a few thousand bytes.
// What others allocate meanwhile counts too, and is little in that time.
type metered struct {
	page string
	most uint64
}

func (m *metered) Read(p []byte) (int, error) {
	switch {
	case m.page == "":
		return 0, io.EOF
	case allocated() > m.most:
		return 0, errors.New("its tree is too large")
	}
	n := copy(p[:min(len(p), 2048)], m.page)
	m.page = m.page[n:]
	return n, nil
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// convert makes Markdown of a tree. What fails in a library on a strange page
// must not take the node with it.
func convert(doc *html.Node, u *url.URL) (markdown string, err error) {
	defer func() {
		if r := recover(); r != nil {
			markdown, err = "", errors.New("its structure could not be read")
		}
	}()
	base := baseOf(doc, u)
	tidy(doc, base, 0)
	conv := newConverter()
	if article := mainPart(doc, base); article != nil {
		if md, err := conv.ConvertNode(article); err == nil && len(strings.TrimSpace(string(md))) > 0 {
			return string(md), nil
		}
	}
	md, err := conv.ConvertNode(doc)
	if err != nil {
		return "", errors.New("its structure could not be read")
	}
	return string(md), nil
}

func newConverter() *converter.Converter {
	return converter.NewConverter(
		// Escaping takes time in the square of the page's stars and brackets, and
		// a model reads them as they are.
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))),
	)
}

// mainPart is what people come for, without menus and the like; nil when there
// is no such part, as in a list of links.
func mainPart(doc *html.Node, base *url.URL) *html.Node {
	if count(doc) > maxArticle {
		return nil
	}
	a, err := readability.FromDocument(doc, base)
	if err != nil || a.Node == nil {
		return nil
	}
	// A part that is only a little of the page is a guess.
	if n := letters(a.Node); n < fewLetters || n < letters(doc)/4 {
		return nil
	}
	return a.Node
}

func count(n *html.Node) int {
	total := 1
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		total += count(c)
	}
	return total
}

// letters counts the text that people would see.
func letters(n *html.Node) int {
	if n.Type == html.TextNode {
		return len(strings.TrimSpace(n.Data))
	}
	total := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		total += letters(c)
	}
	return total
}

// baseOf is what relative links of a page are relative to.
func baseOf(doc *html.Node, u *url.URL) *url.URL {
	if n := find(doc, atom.Base); n != nil {
		if to, err := u.Parse(attr(n, "href")); err == nil && (to.Scheme == "http" || to.Scheme == "https") {
			return to
		}
	}
	return u
}

func find(n *html.Node, a atom.Atom) *html.Node {
	if n.Type == html.ElementNode && n.DataAtom == a && n.Namespace == "" {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if found := find(c, a); found != nil {
			return found
		}
	}
	return nil
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// silent are elements that nobody reads.
var silent = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Iframe: true, atom.Object: true, atom.Embed: true,
	atom.Svg: true, atom.Math: true, atom.Canvas: true, atom.Audio: true, atom.Video: true, atom.Dialog: true,
	atom.Input: true, atom.Select: true, atom.Button: true, atom.Textarea: true,
}

// nesting are elements whose Markdown grows with each one around them.
var nesting = map[atom.Atom]bool{
	atom.Ul: true, atom.Ol: true, atom.Blockquote: true, atom.Table: true, atom.Dl: true, atom.Dir: true, atom.Menu: true,
}

// tidy removes what nobody reads, makes links absolute, and flattens what is
// nested only to be dear.
func tidy(n *html.Node, base *url.URL, nested int) {
	if n.Type == html.ElementNode {
		if nesting[n.DataAtom] {
			if nested++; nested > maxNested || n.DataAtom == atom.Table && ragged(n) {
				n.Data, n.DataAtom = "div", atom.Div
			}
		}
		kept := n.Attr[:0]
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src":
				to, ok := absolute(a.Val, base)
				if !ok {
					continue
				}
				a.Val = to
			case "colspan", "rowspan": // a cell can say that it is a million cells
				continue
			}
			kept = append(kept, a)
		}
		n.Attr = kept
	}
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.CommentNode || c.Type == html.ElementNode && silent[c.DataAtom] {
			n.RemoveChild(c)
		} else {
			tidy(c, base, nested)
		}
		c = next
	}
}

// ragged reports a table that would grow when each row gets as many cells as the
// longest: a picture of one, or an attack.
func ragged(table *html.Node) bool {
	rows, cells, longest := 0, 0, 0
	var look func(n *html.Node)
	look = func(n *html.Node) {
		if n.DataAtom == atom.Tr {
			rows++
			own := 0
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
					own++
				}
			}
			cells, longest = cells+own, max(longest, own)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			look(c)
		}
	}
	look(table)
	return rows*longest > 4*cells+1000
}

// absolute is a link as it works elsewhere; false for one that leads nowhere a
// reader could go, such as a script or a picture written out.
func absolute(link string, base *url.URL) (string, bool) {
	if len(link) > maxLink {
		return "", false
	}
	to, err := base.Parse(strings.TrimSpace(link))
	if err != nil {
		return "", false
	}
	switch to.Scheme {
	case "http", "https", "mailto", "tel":
		return to.String(), true
	}
	return "", false
}

func titleOf(doc *html.Node) string {
	n := find(doc, atom.Title)
	if n == nil {
		return ""
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// oneLine is a title as it may stand in a header of ours.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = cut(s, 300) + "…"
	}
	return s
}

// words are the words of a page, read without building its tree.
func words(page string) (title, text string) {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	z.SetMaxBuf(1 << 20)
	skip, inTitle := atom.Atom(0), false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return title, b.String()
		case html.StartTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			switch {
			case skip == 0 && (a == atom.Script || a == atom.Style):
				skip = a
			case a == atom.Title:
				inTitle = true
			case a == atom.P || a == atom.Br || a == atom.Li || a == atom.Tr || a == atom.H1 || a == atom.H2 || a == atom.H3:
				b.WriteString("\n")
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if a == skip {
				skip = 0
			}
			if a == atom.Title {
				inTitle = false
			}
		case html.TextToken:
			t := strings.Join(strings.Fields(string(z.Text())), " ")
			switch {
			case skip != 0 || t == "":
			case inTitle:
				title += t
			default:
				b.WriteString(t + " ")
			}
		}
	}
}
