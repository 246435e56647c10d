package webread

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html/charset"
)

// read makes a page of a response.
func (r *Reader) read(u *url.URL, resp *http.Response) (Page, error) {
	shown := *u
	shown.User = nil
	p := Page{URL: shown.String(), Status: resp.StatusCode}
	named := resp.Header.Get("Content-Type")
	if mediaType, _, err := mime.ParseMediaType(named); err == nil {
		p.Type = mediaType
	}
	// The transport undoes gzip, and counts what comes out of it below.
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return p, refuse("read %s: it is encoded as %.40q, which was not asked for", u, enc)
	}
	if sort := sortOf(p.Type); sort == other {
		return p, refuse("read %s: it is %s%s, not text", u, p.Type, long(resp.ContentLength))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, r.o.MaxBytes+1))
	if err != nil && len(body) == 0 {
		return p, err
	}
	if int64(len(body)) > r.o.MaxBytes {
		body, p.Partial = body[:r.o.MaxBytes], true
	} else if err != nil {
		p.Partial = true // what came is worth reading
	}
	if p.Type == "" || p.Type == "application/octet-stream" || p.Type == "binary/octet-stream" {
		named = http.DetectContentType(body)
		p.Type, _, _ = mime.ParseMediaType(named)
	}
	kind := sortOf(p.Type)
	if kind == other || kind == unknown || bytes.IndexByte(body[:min(len(body), 8000)], 0) >= 0 && !wide(body, named) {
		return p, refuse("read %s: it is %s%s, not text", u, p.Type, long(resp.ContentLength))
	}
	text := decode(body, named)
	if kind == markup {
		p.Title, text, p.Plain = readable(text, u)
	}
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	p.Whole = len(text)
	p.Text = cut(text, r.o.MaxText)
	return p, nil
}

// A sort is what can be done with a content type.
type sort int

const (
	other   sort = iota + 1
	unknown      // the content decides
	plain
	markup
)

func sortOf(t string) sort {
	switch {
	case t == "", t == "application/octet-stream", t == "binary/octet-stream":
		return unknown
	case t == "text/html", t == "application/xhtml+xml":
		return markup
	case strings.HasPrefix(t, "text/"), strings.HasSuffix(t, "+json"), strings.HasSuffix(t, "+xml"), strings.HasSuffix(t, "+yaml"):
		return plain
	}
	switch t {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript",
		"application/x-javascript", "application/ecmascript", "application/x-sh", "application/sql", "application/x-ndjson", "application/jsonlines",
		"application/graphql", "application/x-tex", "application/rtf", "application/x-subrip", "message/rfc822":
		return plain
	}
	return other
}

// wide reports text in which zero bytes are letters' halves.
func wide(body []byte, named string) bool {
	return bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff")) || strings.Contains(strings.ToLower(named), "utf-16")
}

// decode makes UTF-8 of a body by its byte order mark, the server's word, or the
// page's own, in this order. A wrong word gives replacement characters.
func decode(body []byte, named string) string {
	enc, _, _ := charset.DetermineEncoding(body, named)
	out, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		out = body
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(out), "\uFEFF"), "\uFFFD")
}

func long(n int64) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d bytes", n)
}
