package slack

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// units is the length of a text as Slack counts it: in UTF-16, which is never
// less than in characters.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// prefix gives as much of the beginning of a text as is no longer than most.
func prefix(s string, most int) string {
	for i, r := range s {
		if most--; r > 0xFFFF {
			most--
		}
		if most < 0 {
			return s[:i]
		}
	}
	return s
}

// A stretch is some lines of Markdown that belong together, with the blank lines
// below them.
type stretch struct {
	text    string
	head    string // what must stand above its other lines when it is cut: a fence's first line, a table's head
	foot    string // what must stand below
	body    string // the lines between
	heading bool   // it belongs to what follows
}

var (
	fenceLine = regexp.MustCompile("^((?:[ \t]*>)*[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})(.*)$")
	tableRule = regexp.MustCompile(`^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	headLine  = regexp.MustCompile(`^ {0,3}#{1,6}([ \t]|$)`)
	itemMark  = regexp.MustCompile(`(?:[-*+]|[0-9]{1,9}[.)])[ \t]+$`)
)

// stretches reads Markdown line by line. A fence is recognised behind marks of
// quotes and lists and however far it is indented: to take code in a list for a
// fence costs at most a worse place to cut.
func stretches(text string) []stretch {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out []stretch
	for i := 0; i < len(lines); {
		var s stretch
		begin := i
		switch m := fenceLine.FindStringSubmatch(bare(lines[i])); {
		case m != nil && (m[2][0] == '~' || !strings.Contains(m[3], "`")):
			s, i = fenced(lines, i, m)
		case i+1 < len(lines) && strings.Contains(lines[i], "|") && strings.Contains(lines[i+1], "|") && tableRule.MatchString(bare(lines[i+1])):
			s, i = table(lines, i)
		default:
			s.heading = headLine.MatchString(lines[i])
			i++
			for !s.heading && i < len(lines) && !blank(lines[i]) && !begins(lines, i) {
				i++
			}
		}
		for i < len(lines) && blank(lines[i]) {
			i++
		}
		s.text = strings.Join(lines[begin:i], "")
		if s.head == "" {
			s.body = s.text
		}
		out = append(out, s)
	}
	return out
}

func bare(line string) string { return strings.TrimRight(line, "\r\n") }
func blank(line string) bool  { return strings.TrimSpace(line) == "" }

// begins reports whether another stretch begins at a line.
func begins(lines []string, i int) bool {
	m := fenceLine.FindStringSubmatch(bare(lines[i]))
	return m != nil || headLine.MatchString(lines[i]) ||
		i+1 < len(lines) && strings.Contains(lines[i], "|") && strings.Contains(lines[i+1], "|") && tableRule.MatchString(bare(lines[i+1]))
}

func fenced(lines []string, i int, m []string) (stretch, int) {
	indent := itemMark.ReplaceAllStringFunc(m[1], func(mark string) string { return strings.Repeat(" ", len(mark)) })
	s := stretch{head: indent + m[2] + m[3] + "\n", foot: indent + m[2] + "\n"}
	begin := i + 1
	for i++; i < len(lines); i++ {
		if c := fenceLine.FindStringSubmatch(bare(lines[i])); c != nil && strings.HasPrefix(c[2], m[2]) && strings.TrimSpace(c[3]) == "" {
			s.body = strings.Join(lines[begin:i], "")
			return s, i + 1
		}
	}
	s.body = strings.Join(lines[begin:], "")
	return s, i
}

func table(lines []string, i int) (stretch, int) {
	s := stretch{head: lines[i] + lines[i+1]}
	begin := i + 2
	for i = begin; i < len(lines) && strings.Contains(lines[i], "|"); i++ {
	}
	s.body = strings.Join(lines[begin:i], "")
	return s, i
}

// split cuts Markdown into pieces no longer than most: between paragraphs where
// it can, else between lines, else between words. Fences and tables are kept
// whole, and where one alone is too long each piece of it is a whole one again. A
// heading goes with what follows. There is at least one piece, and none is empty
// unless all is.
func split(text string, most int) []string {
	text = strings.Trim(text, "\n")
	if units(text) <= most {
		return []string{text}
	}
	var out []string
	var now strings.Builder // the piece that is being filled
	size, headings := 0, "" // its length; the headings at its end
	flush := func() {
		if t := strings.TrimSpace(now.String()); t != "" {
			out = append(out, strings.Trim(now.String(), "\n"))
		}
		now.Reset()
		size = 0
	}
	add := func(t string) {
		now.WriteString(t)
		size += units(t)
	}
	for _, s := range stretches(text) {
		if size+units(strings.TrimRight(s.text, "\n")) > most {
			kept := headings
			if kept != "" && units(kept)+units(s.text) <= most && units(kept) < size {
				all := now.String()
				now.Reset()
				now.WriteString(strings.TrimSuffix(all, kept))
				flush()
				add(kept)
			} else if size > 0 {
				flush()
			}
			if units(strings.TrimRight(s.text, "\n")) > most {
				for _, piece := range s.cut(most) {
					flush()
					add(piece)
				}
				add(s.text[len(strings.TrimRight(s.text, "\n")):]) // the blank lines below it
				headings = ""
				continue
			}
		}
		add(s.text)
		if s.heading {
			headings += s.text
		} else {
			headings = ""
		}
	}
	flush()
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

// cut cuts a stretch that is longer than most.
func (s stretch) cut(most int) []string {
	room := most - units(s.head) - units(s.foot) - 1
	if s.head == "" || room < most/4 {
		return cutLines(strings.TrimRight(s.text, "\n"), most)
	}
	pieces := cutLines(strings.TrimRight(s.body, "\n"), room)
	for i, p := range pieces {
		pieces[i] = strings.TrimRight(s.head+p+"\n"+s.foot, "\n")
	}
	return pieces
}

// cutLines cuts a text at the ends of lines, or where a line alone is too long
// between words.
func cutLines(text string, most int) []string {
	var out []string
	for {
		head := prefix(text, most)
		at := len(head)
		if at == len(text) {
			return append(out, text)
		}
		for _, end := range []string{"\n", ". ", " "} {
			if i := strings.LastIndex(head, end); i > len(head)/4 {
				at = i + len(end)
				break
			}
		}
		if at == 0 { // most is less than one character
			_, at = utf8.DecodeRuneInString(text)
		}
		out = append(out, strings.TrimRight(text[:at], "\n"))
		text = text[at:]
	}
}
