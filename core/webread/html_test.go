package webread

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func at(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse("https://example.com/dir/page.html")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const story = "This is a sentence of the story, with some commas, and long enough to count as one that people read. "

func TestReadable(t *testing.T) {
	t.Parallel()
	page := `<!doctype html><html><head><title> A
	 Story </title><style>p{}</style></head><body>
	<nav><a href="/">Home</a><a href="/about">About us</a></nav>
	<article><h1>The Heading</h1><p>` + strings.Repeat(story, 5) + `See <a href="other.html?x=1#y">the other</a>, <a href="/root">root</a>,
	<a href="javascript:steal()">click</a> and <img src="data:image/png;base64,AAAA" alt="pic"> <img src="//cdn.example/p.png" alt="far">.</p>
	<h2>Code</h2><pre><code>if a &lt; b {
	x()
}</code></pre><ul><li>one<ul><li>two</li></ul></li></ul>
	<table><tr><th>k</th><th>v</th></tr><tr><td colspan=100000000 rowspan=100000000>a</td><td>b</td></tr></table>
	<p>` + strings.Repeat(story, 5) + `</p></article>
	<script>alert("script")</script><!-- secret comment --><footer>Imprint and such</footer></body></html>`
	title, md, why := readable(page, at(t))
	if title != "A Story" || why != "" {
		t.Errorf("title %q, why %q", title, why)
	}
	for _, want := range []string{
		"[the other](https://example.com/dir/other.html?x=1#y)", "[root](https://example.com/root)", "https://cdn.example/p.png",
		"## Code", "```\nif a < b {\n\tx()\n}\n```", "- one\n", "  - two", "| a", "| k",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, not := range []string{"javascript", "alert", "base64", "comment", "Imprint", "About us", "p{}"} {
		if strings.Contains(md, not) {
			t.Errorf("there is %q", not)
		}
	}
	if t.Failed() {
		t.Log(md)
	}
}

// A list of links has no main part, and is what people came for.
func TestReadableWithoutAnArticle(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "<li><a href='p%d'>Entry %d</a></li>", i, i)
	}
	_, md, _ := readable("<base href='https://other.example/x/'><ul>"+b.String()+"</ul>", at(t))
	if !strings.Contains(md, "[Entry 0](https://other.example/x/p0)") || !strings.Contains(md, "[Entry 29](https://other.example/x/p29)") {
		t.Error(md)
	}
}

func TestBrokenHTML(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{
		"unclosed": "<p>hello <b>bold <i>both</p><p>next", "no tags": "hello next", "half a tag": "hello next <a href='", "wrong nesting": "<b><p>hello</b> next</p>",
		"bad entities": "hello &nosuch; &#xFFFFFFFF; next", "only head": "<title>hello next</title>", "zero bytes": "hel\x00lo next", "frames": "<frameset><frame src=x></frameset>hello next",
		"wrong base": "<base href='javascript:x'>hello <a href='://'>next</a>", "table": "<table><p>hello<tr>next</table>", "comment": "hello next <!-- ", "plaintext": "hello <plaintext>next",
	} {
		title, md, why := readable(page, at(t))
		if why != "" || !strings.Contains(title+md, "next") && name != "frames" {
			t.Errorf("%s: %q %q %q", name, title, md, why)
		}
	}
}

// Pages that are built to be dear end soon, and give their words.
func TestHostileHTML(t *testing.T) {
	t.Parallel()
	var formats strings.Builder
	for i := range 480 {
		fmt.Fprintf(&formats, "<b a=%d>", i)
	}
	const size = 1 << 20
	fill := func(s string) string { return "hello " + strings.Repeat(s, size/len(s)) }
	for name, page := range map[string]string{
		"deep":          "hello " + strings.Repeat("<div>", 100_000) + "deep" + strings.Repeat("</div>", 100_000),
		"deep inline":   "hello " + strings.Repeat("<span>", 100_000),
		"repairs":       formats.String() + fill("<p>x"),
		"flat":          fill("<p>x</p>"),
		"links":         fill("<a href=x>y</a>"),
		"quotes":        "hello " + strings.Repeat("<blockquote>", 150) + strings.Repeat("<p>x</p>", 15_000),
		"lists":         "hello " + strings.Repeat("<ul><li>", 90) + strings.Repeat("<p>x</p>", 15_000),
		"tables":        "hello " + strings.Repeat("<table><tr><td>", 60) + strings.Repeat("<p>x</p>", 15_000),
		"wide table":    "hello <table>" + strings.Repeat("<tr>"+strings.Repeat("<td>x", 100), 150) + "</table>",
		"ragged table":  "hello <table>" + strings.Repeat("<tr><td>x", 9000) + "<tr>" + strings.Repeat("<td>x", 9000) + "</table>",
		"wide cell":     "hello <table><tr><td>" + strings.Repeat("x", size/2) + strings.Repeat("<tr><td>y", 9000) + "</table>",
		"one attribute": "hello <p title='" + strings.Repeat("x", size) + "'>",
		"attributes":    "hello <p " + strings.Repeat("a ", size/2) + ">",
		"entities":      fill("&amp;"),
		"open brackets": fill("<"),
		"stars":         fill("*_[`"),
		"comments":      fill("<!-- -- >"),
		"one word":      fill("x"),
		"new lines":     fill("\n"),
		"divs":          "hello " + strings.Repeat("<div>x,", 190) + strings.Repeat("<p>x, y</p>", 9000),
		"articles":      "hello " + strings.Repeat("<div class=article><p>"+story+"</p></div>", 4000),
		"brs":           "hello " + strings.Repeat("<br>", 19_000),
		"ld":            `hello <script type="application/ld+json">` + strings.Repeat(`{"a":`, 100_000) + `</script>` + strings.Repeat("<p>x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, md, why := readable(page, at(t))
			took := time.Since(began)
			t.Logf("%s, %d bytes, %s", took.Round(time.Millisecond), len(md), why)
			if took > 2*time.Minute {
				t.Errorf("it took %s", took)
			}
			if !strings.Contains(md, "hello") && name != "repairs" {
				t.Errorf("the words are lost: %.100q", md)
			}
		})
	}
}
