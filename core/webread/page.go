package webread

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Page is what was read.
type Page struct {
	Asked   string // the address that was asked for
	URL     string // the one that answered, after redirects
	Status  int    // HTTP's
	Type    string // the content type that the server named, without parameters
	Title   string // of an HTML page
	Text    string // Markdown of an HTML page, other text as it is; valid UTF-8
	Whole   int    // bytes of the text before it was cut to Options.MaxText
	Partial bool   // its end was not read: it is beyond Options.MaxBytes, or did not arrive in time
	Plain   string // why HTML was read without its structure; "" if it was not
}

// String is the page for a model: where it is from, then its text.
func (p Page) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "URL: %s\n", p.URL)
	fmt.Fprintf(&b, "Status: %d\nType: %s\n", p.Status, p.Type)
	if p.Title != "" {
		fmt.Fprintf(&b, "Title: %s\n", p.Title)
	}
	if p.Plain != "" {
		fmt.Fprintf(&b, "Note: %s\n", p.Plain)
	}
	b.WriteString("\n")
	b.WriteString(p.Text)
	if p.Text != "" && !strings.HasSuffix(p.Text, "\n") {
		b.WriteString("\n")
	}
	if cut := p.Whole - len(p.Text); cut > 0 {
		fmt.Fprintf(&b, "[… %d of %d bytes of text left out]\n", cut, p.Whole)
	}
	if p.Partial {
		b.WriteString("[… the end of the page is missing: it was too long or did not arrive]\n")
	}
	return b.String()
}

// cut keeps the beginning of a text, to the end of a line where one is near.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	text = text[:end]
	if line := strings.LastIndexByte(text, '\n'); line > end-end/8 {
		text = text[:line+1]
	}
	return text
}
