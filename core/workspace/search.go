package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a search.
const (
	DefaultHits   = 50
	MaxHits       = 200
	maxQuery      = 500       // bytes
	maxSearched   = 4 << 20   // a longer file is left out
	maxSearch     = 512 << 20 // bytes of all files
	maxSearchTime = 15 * time.Second
	maxHitLine    = 300 // bytes of a line that are shown
	maxMatched    = 64 << 10
	hitContext    = 80 // bytes before a match in a long line
)

// A Query is what to look for. Text is needed.
type Query struct {
	Text  string
	Regex bool   // Text is a regular expression (RE2), for single lines
	Path  string // a folder or file; default all
	Glob  string // only files like this; a pattern without a slash is of names
	Limit int    // hits; default 50, at most 200
}

// A Hit is one line that fits.
type Hit struct {
	Path string
	Line int
	Text string
}

// Hits are what a search found, in the order of paths and lines.
type Hits struct {
	Hits    []Hit
	Files   int    // files that were looked into
	Skipped int    // files that were left out: not text, too long, or not readable
	More    string // why there may be more than these; "" if these are all
}

// Search looks for text in files, links and .git folders left out.
func (w *Workspace) Search(ctx context.Context, q Query) (Hits, error) {
	q.Limit, q.Path = cmp.Or(q.Limit, DefaultHits), cmp.Or(q.Path, ".")
	rel, err := clean(q.Path)
	if err != nil {
		return Hits{}, err
	}
	match, err := q.matcher()
	if err != nil {
		return Hits{}, err
	}
	names, err := newGlob(q.Glob)
	if err != nil {
		return Hits{}, err
	}
	info, err := w.root.Stat(rel)
	if err != nil {
		return Hits{}, w.missing("search", rel, err)
	}
	s := &search{w: w, q: q, match: match}
	timed, cancel := context.WithTimeout(ctx, maxSearchTime)
	defer cancel()
	if info.IsDir() {
		err = w.walk(timed, rel, func(e entry) error {
			switch {
			case e.info.IsDir() && path.Base(e.path) == ".git":
				return fs.SkipDir
			case e.info.Mode().IsRegular() && (names.fits(e.path) || names.fits(below(rel, e.path))):
				return s.file(timed, e.path)
			}
			return nil
		})
	} else {
		err = s.file(timed, rel)
		if errors.Is(err, errEnough) {
			err = nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return Hits{}, fmt.Errorf("search %s: %w", rel, context.Cause(ctx))
	case errors.Is(err, context.DeadlineExceeded):
		s.found.More = fmt.Sprintf("the search was stopped after %s; name a folder or a pattern of files", maxSearchTime)
	case err != nil:
		return Hits{}, explain("search", rel, err)
	}
	return s.found, nil
}

// below is a path seen from a folder: a model that names a folder may mean the
// pattern to begin there.
func below(dir, p string) string {
	if dir == "." {
		return p
	}
	return strings.TrimPrefix(p, dir+"/")
}

// matcher finds the first match in a line; -1 for none.
func (q Query) matcher() (func(line []byte) int, error) {
	switch {
	case q.Text == "":
		return nil, refuse("search: the text to look for is empty")
	case len(q.Text) > maxQuery:
		return nil, refuse("search: the text to look for is %d bytes long, at most %d are allowed", len(q.Text), maxQuery)
	case q.Limit < 1 || q.Limit > MaxHits:
		return nil, refuse("search: limit %d is not within 1 and %d", q.Limit, MaxHits)
	case !q.Regex && strings.ContainsAny(q.Text, "\r\n"):
		return nil, refuse("search: the text to look for has several lines; look for one of them")
	case !q.Regex:
		text := []byte(q.Text)
		return func(line []byte) int { return bytes.Index(line, text) }, nil
	}
	re, err := regexp.Compile(q.Text)
	if err != nil {
		var bad *syntax.Error
		if errors.As(err, &bad) {
			return nil, refuse("search: regular expression %q: %s: %q; the syntax is RE2, without look-around and back references", q.Text, bad.Code, bad.Expr)
		}
		return nil, refuse("search: regular expression %q: %s", q.Text, err)
	}
	return func(line []byte) int {
		if at := re.FindIndex(line[:min(len(line), maxMatched)]); at != nil {
			return at[0]
		}
		return -1
	}, nil
}

// A search is one that is going on.
type search struct {
	w     *Workspace
	q     Query
	match func([]byte) int
	read  int64
	found Hits
}

func (s *search) file(ctx context.Context, rel string) error {
	f, info, err := s.w.openFile(rel)
	if err != nil || info.Size() > maxSearched {
		if err == nil {
			_ = f.Close()
		}
		s.found.Skipped++
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSearched))
	_ = f.Close()
	if err != nil || notText(data) != "" {
		s.found.Skipped++
		return nil
	}
	s.found.Files++
	if s.read += int64(len(data)); s.read > maxSearch {
		s.found.More = fmt.Sprintf("the search was stopped after %s; name a folder or a pattern of files", size(maxSearch))
		return errEnough
	}
	n := 0
	for line := range bytes.Lines(data) {
		if n++; n%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line = bytes.TrimRight(line, "\r\n")
		at := s.match(line)
		if at < 0 {
			continue
		}
		if len(s.found.Hits) == s.q.Limit {
			s.found.More = fmt.Sprintf("these are the first %d hits; there are more", s.q.Limit)
			return errEnough
		}
		s.found.Hits = append(s.found.Hits, Hit{Path: rel, Line: n, Text: around(line, at)})
	}
	return nil
}

// around is a line, or of a long one the part with the match.
func around(line []byte, at int) string {
	if len(line) <= maxHitLine {
		text, _ := shown(line, maxHitLine)
		return text
	}
	begin, before := 0, ""
	if at > hitContext {
		begin, before = at-hitContext, "… "
		for begin < at && !utf8.RuneStart(line[begin]) {
			begin++
		}
	}
	text, cut := shown(line[begin:], maxHitLine)
	if cut > 0 {
		text += " …"
	}
	return before + text
}

// String is the result for a model: path, number and line of each hit.
func (h Hits) String() string {
	var b strings.Builder
	for _, hit := range h.Hits {
		fmt.Fprintf(&b, "%s:%d: %s\n", say(hit.Path), hit.Line, hit.Text)
	}
	if len(h.Hits) == 0 {
		fmt.Fprintf(&b, "Nothing was found in %d files.\n", h.Files)
	}
	if h.Skipped > 0 {
		fmt.Fprintf(&b, "[%d files were left out: not text, longer than %s, or not readable]\n", h.Skipped, size(maxSearched))
	}
	if h.More != "" {
		fmt.Fprintf(&b, "[%s]\n", h.More)
	}
	return b.String()
}
