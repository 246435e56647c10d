package admin

import "strings"

// A Span is a part of a [Block]'s words that is shown in its own way.
type Span struct {
	Text  string
	Code  bool // as it is to be written, or is decided about: each of its letters is shown
	Block bool // code on lines of its own
}

const fence = "```"

// Spans reads the Markdown of a [Block]'s words: code, in lines or within one, and
// escapes. What stands in code is nothing but itself, since it may be what somebody is
// asked to allow.
func Spans(words string) []Span {
	words = strings.ReplaceAll(words, "\u200b", "") // by which @everyone addresses nobody
	var out []Span
	for words != "" {
		before, code, after, found := cutFence(words)
		if before = strings.Trim(before, "\n"); before != "" {
			out = append(out, inline(before)...)
		}
		if found {
			out = append(out, Span{Text: code, Code: true, Block: true})
		}
		words = after
	}
	return out
}

// cutFence finds the first lines between fences. What is not closed is none.
func cutFence(words string) (before, code, after string, found bool) {
	from := fenceIn(words)
	if from < 0 {
		return words, "", "", false
	}
	_, inside, more := strings.Cut(words[from:], "\n") // behind the fence a language may stand
	to := fenceIn(inside)
	if !more || to < 0 {
		return words, "", "", false
	}
	_, after, _ = strings.Cut(inside[to:], "\n")
	return words[:from], strings.TrimSuffix(inside[:to], "\n"), after, true
}

// fenceIn finds the first line that begins with a fence.
func fenceIn(words string) int {
	if strings.HasPrefix(words, fence) {
		return 0
	}
	if i := strings.Index(words, "\n"+fence); i >= 0 {
		return i + 1
	}
	return -1
}

// inline reads what stands on a line.
func inline(words string) []Span {
	var out []Span
	open := map[int]bool{} // how many marks nothing closes from here on
	var b strings.Builder
	for i := 0; i < len(words); i++ {
		c := words[i]
		if c == '\\' && i+1 < len(words) && punctuation(words[i+1]) {
			i++
			b.WriteByte(words[i])
			continue
		}
		if c != '`' {
			b.WriteByte(c)
			continue
		}
		marks := len(words[i:]) - len(strings.TrimLeft(words[i:], "`"))
		to := -1
		if !open[marks] {
			to = closing(words[i+marks:], marks)
		}
		if to < 0 {
			open[marks] = true
			b.WriteString(words[i : i+marks])
			i += marks - 1
			continue
		}
		if b.Len() > 0 {
			out = append(out, Span{Text: b.String()})
			b.Reset()
		}
		out = append(out, Span{Text: words[i+marks : i+marks+to], Code: true})
		i += 2*marks + to - 1
	}
	if b.Len() > 0 {
		out = append(out, Span{Text: b.String()})
	}
	return out
}

// closing finds the next run of exactly so many marks.
func closing(words string, marks int) int {
	for i := 0; i < len(words); i++ {
		n := len(words[i:]) - len(strings.TrimLeft(words[i:], "`"))
		if n == marks {
			return i
		}
		i += n
	}
	return -1
}

func punctuation(c byte) bool {
	return c > ' ' && c < 0x7f && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
}

// Unmark turns the Markdown of a [Block]'s words into plain text, in which code keeps
// its marks.
func Unmark(words string) string {
	var b strings.Builder
	gap := ""
	for _, s := range Spans(words) {
		switch {
		case s.Block:
			if b.Len() > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(fence + "\n" + s.Text + "\n" + fence)
			gap = "\n\n"
			continue
		case s.Code:
			marks := strings.Repeat("`", longest(s.Text)+1)
			b.WriteString(gap + marks + s.Text + marks)
		default:
			b.WriteString(gap + s.Text)
		}
		gap = ""
	}
	return b.String()
}

// longest is the length of the longest run of marks.
func longest(s string) int {
	most, n := 0, 0
	for i := range len(s) {
		if n++; s[i] != '`' {
			n = 0
		}
		most = max(most, n)
	}
	return most
}
