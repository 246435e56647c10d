package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// A visitor is a person with a browser at the operator's page.
type visitor struct {
	*house
	client http.Client
	shown  *html.Node // what is in front of them
}

// visit opens the page.
func (h *house) visit() *visitor {
	h.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.Fatal(err)
	}
	v := &visitor{house: h, client: http.Client{Jar: jar, Timeout: patience, Transport: web.Transport}}
	v.open("/")
	return v
}

// open follows a link.
func (v *visitor) open(path string) {
	v.Helper()
	v.ask(http.MethodGet, path, "")
}

// send sends a form.
func (v *visitor) send(path string, form url.Values) {
	v.Helper()
	v.ask(http.MethodPost, path, form.Encode())
}

func (v *visitor) ask(method, path, form string) {
	v.Helper()
	req, err := http.NewRequestWithContext(v.Context(), method, "http://"+v.page+path, strings.NewReader(form))
	if err != nil {
		v.Fatal(err)
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r, err := v.client.Do(req)
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		v.Fatalf("the page answers %d, %v: %s", r.StatusCode, err, b)
	}
	if v.shown, err = html.Parse(strings.NewReader(string(b))); err != nil {
		v.Fatal(err)
	}
}

// write types a command into the field that is for it, and gives the answer.
func (v *visitor) write(words string) string {
	v.Helper()
	v.open("/")
	form := v.form(func(f *html.Node) bool { return attr(f, "class") == "order" })
	if form == nil {
		v.Fatal("the page has no field for commands")
	}
	form.Set("words", words)
	v.send("/do", form)
	return v.answer()
}

// press presses the button that does this, in a section of the page; where it asks
// once more they are sure. It gives the answer.
func (v *visitor) press(section, words string) string {
	v.Helper()
	v.open("/")
	in := v.section(section)
	if in == nil {
		v.Fatalf("the page has no section %q", section)
	}
	for _, link := range nodes(in, func(n *html.Node) bool {
		return n.Data == "a" && wordsOf(n) == words && strings.HasPrefix(attr(n, "href"), "/sure?")
	}) {
		v.open(attr(link, "href"))
		has(v.T, v.answer(), "cannot be taken back")
		return v.confirm(words)
	}
	form := v.formIn(in, words)
	if form == nil {
		v.Fatalf("no button of the section %q does %q; there are %q", section, words, v.buttons(section))
	}
	v.send("/do", form)
	return v.answer()
}

// confirm presses the button of an answer that does this; "" is its only one.
func (v *visitor) confirm(words string) string {
	v.Helper()
	form := v.formIn(v.shown, words)
	if form == nil {
		v.Fatalf("no button does %q in:\n%s", words, v.answer())
	}
	v.send("/do", form)
	return v.answer()
}

// formIn gives the form whose button does this, as a browser sends it.
func (v *visitor) formIn(in *html.Node, words string) url.Values {
	for _, f := range nodes(in, func(n *html.Node) bool {
		return n.Data == "form" && attr(n, "action") == "/do" && attr(n, "class") != "order"
	}) {
		if form := filled(f); words == "" || form.Get("words") == words {
			return form
		}
	}
	return nil
}

func (v *visitor) form(wanted func(*html.Node) bool) url.Values {
	for _, f := range nodes(v.shown, func(n *html.Node) bool { return n.Data == "form" && wanted(n) }) {
		return filled(f)
	}
	return nil
}

// filled are the fields of a form as it came.
func filled(f *html.Node) url.Values {
	form := url.Values{}
	for _, i := range nodes(f, func(n *html.Node) bool { return n.Data == "input" }) {
		form.Set(attr(i, "name"), attr(i, "value"))
	}
	return form
}

// wordsOf is what a link does.
func wordsOf(a *html.Node) string {
	at, err := url.Parse(attr(a, "href"))
	if err != nil {
		return ""
	}
	return at.Query().Get("words")
}

// section gives the body of a section, nil where there is none.
func (v *visitor) section(id string) *html.Node {
	for _, s := range nodes(v.shown, func(n *html.Node) bool { return n.Data == "section" && attr(n, "id") == id }) {
		return s
	}
	return nil
}

// buttons are all that can be done in a section: the label, and the words.
func (v *visitor) buttons(id string) (list []string) {
	v.Helper()
	for _, n := range nodes(v.section(id), func(n *html.Node) bool { return n.Data == "form" || n.Data == "a" && attr(n, "class") != "" }) {
		if n.Data == "a" {
			list = append(list, label(n)+": "+wordsOf(n))
			continue
		}
		list = append(list, label(n)+": "+filled(n).Get("words"))
	}
	slices.Sort(list)
	return list
}

// label is what is read on a button, but for what it says to those who do not see where
// it stands.
func label(n *html.Node) string {
	aside := nodes(n, func(n *html.Node) bool { return attr(n, "class") == "aside" })
	whole := text(n)
	for _, a := range aside {
		whole = strings.TrimSuffix(whole, text(a))
	}
	return strings.TrimSpace(whole)
}

// rows are the cells of the first table within, without what can be done about them.
func rows(in *html.Node) (out [][]string) {
	for _, r := range nodes(in, func(n *html.Node) bool { return n.Data == "tr" }) {
		var cells []string
		for _, c := range nodes(r, func(n *html.Node) bool { return (n.Data == "td" || n.Data == "th") && attr(n, "class") != "acts" }) {
			if cell := text(c); c.Data != "th" || c.FirstChild == nil || c.FirstChild.Data != actsHead {
				cells = append(cells, cell)
			}
		}
		out = append(out, cells)
	}
	return out
}

// answer is what a person reads below the command, but for the buttons and charts.
func (v *visitor) answer() string {
	v.Helper()
	body := nodes(v.shown, func(n *html.Node) bool { return attr(n, "class") == "body" })
	if len(body) != 1 {
		v.Fatalf("the page has %d answers", len(body))
	}
	return text(body[0])
}

// actsHead is above what can be done about a row.
const actsHead = "What to do"

// inline are the elements that do not part words.
var inline = []string{"span", "code", "strong", "wbr"}

var unread = regexp.MustCompile(`^(acts|charts|more)$`)

// text is what is read in a part of a page.
func text(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case unread.MatchString(attr(n, "class")), n.Data == "th" && n.FirstChild != nil && n.FirstChild.Data == actsHead:
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if n.Type == html.ElementNode && !slices.Contains(inline, n.Data) {
			b.WriteString(" ")
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// nodes are the elements within that are wanted, in their order.
func nodes(in *html.Node, wanted func(*html.Node) bool) (out []*html.Node) {
	if in == nil {
		return nil
	}
	for n := range in.Descendants() {
		if n.Type == html.ElementNode && wanted(n) {
			out = append(out, n)
		}
	}
	return out
}
