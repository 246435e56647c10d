package workspace

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Edited says what an edit did.
type Edited struct {
	Path     string
	Replaced int   // places
	Lines    []int // where they began, in the file as it is now; the first 20
}

const maxPlaces = 20

// Edit replaces a text in a file. It must stand there exactly once, with its
// white space, unless all places are to be replaced. In a file whose lines end
// in CRLF the texts may have plain line ends, and the file keeps its own.
// When the text is not there, the refusal shows where something like it is.
func (w *Workspace) Edit(ctx context.Context, p, old, replacement string, all bool) (Edited, error) {
	rel, err := clean(p)
	switch {
	case err != nil:
		return Edited{}, err
	case old == "":
		return Edited{}, refuse("edit %s: the text to replace is empty; use a write to make a file", say(rel))
	case old == replacement:
		return Edited{}, refuse("edit %s: the new text is the same as the old one", say(rel))
	}
	defer w.storage.take(w.name)()
	at, err := w.resolve(rel)
	if err != nil {
		return Edited{}, explain("edit", rel, err)
	}
	was, err := w.load(at)
	if err != nil {
		return Edited{}, w.missing("edit", rel, err)
	}
	if what := notText(was.content); what != "" {
		return Edited{}, refuse("edit %s: it is not text but %s", say(rel), what)
	}
	text := string(was.content)
	if crlf(was.content) && !strings.Contains(old, "\r\n") {
		old, replacement = toCRLF(old), toCRLF(strings.ReplaceAll(replacement, "\r\n", "\n"))
	}
	switch n := strings.Count(text, old); {
	case n == 0:
		return Edited{}, refuse("edit %s: the text to replace is not in it. %s", say(rel), nearest(text, old))
	case n > 1 && !all:
		return Edited{}, refuse("edit %s: the text to replace stands there %d times, beginning in lines %s; add lines around it until it stands there once, or replace all",
			say(rel), n, list(lineNumbers(text, old)))
	}
	e := Edited{Path: rel, Replaced: strings.Count(text, old)}
	grown := len(text) + e.Replaced*(len(replacement)-len(old))
	if grown > maxFile {
		return Edited{}, refuse("edit %s: it would hold %s; a file that is written may hold %s", say(rel), size(int64(grown)), size(maxFile))
	}
	// A place's line in the new file is its line in the old one and what the
	// places before it added.
	added := strings.Count(replacement, "\n") - strings.Count(old, "\n")
	for i, n := range lineNumbers(text, old) {
		e.Lines = append(e.Lines, n+i*added)
	}
	text = strings.ReplaceAll(text, old, replacement)
	if err := w.commit(ctx, []change{{path: at, was: was, content: []byte(text)}}); err != nil {
		return Edited{}, err
	}
	return e, nil
}

// crlf reports whether all lines of a text end in CRLF.
func crlf(b []byte) bool {
	n := bytes.Count(b, []byte("\r\n"))
	return n > 0 && n == bytes.Count(b, []byte("\n"))
}

func toCRLF(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// lineNumbers says in which lines a text begins, the first of them.
func lineNumbers(text, part string) []int {
	var out []int
	line, from := 1, 0
	for len(out) < maxPlaces {
		at := strings.Index(text[from:], part)
		if at < 0 {
			break
		}
		line += strings.Count(text[from:from+at], "\n")
		out = append(out, line)
		line += strings.Count(part, "\n")
		from += at + len(part)
	}
	return out
}

func list(numbers []int) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}
