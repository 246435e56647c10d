package workspace

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Bounds of reading.
const (
	DefaultLines = 100
	MaxLines     = 500
	maxLine      = 2000      // bytes of a line that are shown
	maxPage      = 64 << 10  // bytes of all lines
	maxScan      = 256 << 20 // bytes that are read to count lines
)

// A Page is a part of a text file.
type Page struct {
	Path       string
	Start      int      // the number of the first line, counted from 1
	Lines      []string // without their ends; long ones are cut with a note
	TotalLines int      // of the file
	AtLeast    bool     // TotalLines was not counted to the end, the file is too long
	Bytes      int64    // of the file
}

// Read reads lines of a text file. start counts from 1 (0 means 1), count is at
// most [MaxLines] (0 means [DefaultLines]). A start behind the end is refused
// with the number of lines. Files that are no text are refused with their type.
func (w *Workspace) Read(ctx context.Context, p string, start, count int) (Page, error) {
	rel, err := clean(p)
	if err != nil {
		return Page{}, err
	}
	start, count = cmp.Or(start, 1), cmp.Or(count, DefaultLines)
	switch {
	case start < 1:
		return Page{}, refuse("read %s: start line %d is below 1", rel, start)
	case count < 1 || count > MaxLines:
		return Page{}, refuse("read %s: %d lines are not within 1 and %d", rel, count, MaxLines)
	}
	f, info, err := w.openFile(rel)
	if err != nil {
		return Page{}, w.missing("read", rel, err)
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, 64<<10)
	head, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return Page{}, explain("read", rel, err)
	}
	if what := notText(head); what != "" {
		return Page{}, refuse("read %s: it is not text but %s of %s", rel, what, size(info.Size()))
	}
	page := Page{Path: rel, Start: start, Bytes: info.Size()}
	if err := page.scan(ctx, in, count); err != nil {
		return Page{}, explain("read", rel, err)
	}
	if page.TotalLines < start && (start > 1 || page.TotalLines > 0) {
		return Page{}, refuse("read %s: it has %d lines, so it cannot be read from line %d", rel, page.TotalLines, start)
	}
	return page, nil
}

// scan takes the page's lines and counts the rest.
func (p *Page) scan(ctx context.Context, in *bufio.Reader, count int) error {
	var line []byte
	var scanned, room int64 = 0, maxPage
	longer := 0 // bytes of this line that are not kept
	keep := func() {
		if n := p.TotalLines; n >= p.Start && n < p.Start+count && room > 0 {
			text, cut := shown(line, maxLine)
			if cut += longer; cut > 0 {
				text += fmt.Sprintf(" [… %d more bytes in this line]", cut)
			}
			p.Lines = append(p.Lines, text)
			room -= int64(len(text))
		}
		line, longer = line[:0], 0
	}
	begun := false
	for {
		part, err := in.ReadSlice('\n')
		if scanned += int64(len(part)); len(part) > 0 {
			if !begun {
				begun = true
				p.TotalLines++
			}
			take := min(len(part), max(maxLine+4-len(line), 0)) // the end of a line is two bytes
			if line = append(line, part[:take]...); take < len(part) {
				longer += len(part) - take
				if err == nil {
					longer-- // the end itself
				}
			}
		}
		switch {
		case err == nil:
			keep()
			begun = false
			if p.TotalLines%1000 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		case errors.Is(err, bufio.ErrBufferFull):
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case errors.Is(err, io.EOF):
			if begun {
				keep()
			}
			return nil
		default:
			return err
		}
		if scanned > maxScan {
			p.AtLeast = true
			if begun {
				keep()
			}
			return nil
		}
	}
}

// String is the page for a model: what it is, and its lines with numbers.
func (p Page) String() string {
	var b strings.Builder
	total := fmt.Sprint(p.TotalLines)
	if p.AtLeast {
		total = "more than " + total
	}
	if len(p.Lines) == 0 {
		return fmt.Sprintf("%s is empty.\n", p.Path)
	}
	last := p.Start + len(p.Lines) - 1
	fmt.Fprintf(&b, "%s, lines %d to %d of %s (the numbers are not part of the file):\n", p.Path, p.Start, last, total)
	for i, line := range p.Lines {
		fmt.Fprintf(&b, "%6d\t%s\n", p.Start+i, line)
	}
	if last < p.TotalLines || p.AtLeast {
		fmt.Fprintf(&b, "[… more from line %d]\n", last+1)
	}
	return b.String()
}

// missing explains an error, and where a file is not there says what is.
func (w *Workspace) missing(doing, rel string, err error) error {
	err = explain(doing, rel, err)
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.text, "no such file") {
		return err
	}
	dir := path.Dir(rel)
	f, openErr := openDir(w.root, dir)
	if openErr != nil {
		return refuse("%s; there is no folder %s either", refusal.text, dir)
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(200)
	sortNames(names)
	if len(names) == 0 {
		return refuse("%s; the folder %s is empty", refusal.text, dir)
	}
	more := ""
	if len(names) > 20 {
		names, more = names[:20], ", …"
	}
	for i, name := range names {
		names[i] = say(name)
	}
	return refuse("%s; in %s are %s%s", refusal.text, dir, strings.Join(names, ", "), more)
}
