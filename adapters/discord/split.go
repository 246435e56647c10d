package discord

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxUnits bounds a message, in UTF-16 units. Discord counts characters, which are
// never more.
const maxUnits = 2000

// split cuts what render gave into pieces of at most most units: between blocks
// where it can, else between lines, else between words. A block of code is torn
// only when it is longer than a piece; then it is closed in one and opened again
// in the next, with its language.
func split(text string, most int) []string {
	var out []string
	var b piece
	b.most = most
	flush := func() {
		if s := strings.Trim(b.String(), "\n"); s != "" {
			out = append(out, s)
		}
		b = piece{most: most}
	}
	for _, block := range chunks(text) {
		lines := strings.Split(block, "\n")
		if b.units > 0 && b.units+units(block)+1 > most {
			// A better end is not worth a tiny piece.
			if b.units > most/4 || units(block) <= most {
				flush()
			}
		}
		opener := ""
		for _, line := range lines {
			fence := strings.HasPrefix(line, "```")
			reserve := 0
			if opener != "" && !fence {
				reserve = len("\n```")
			}
			for b.units+units(line)+1+reserve > most {
				if b.units > len(opener)+1 && b.lines > btoi(opener != "") {
					if opener != "" {
						b.add("```")
					}
					flush()
					if opener != "" {
						b.add(opener)
					}
					continue
				}
				// The line alone is too long.
				head, rest := cutWords(line, most-b.units-1-reserve, opener != "")
				b.add(head)
				line = rest
				if opener != "" {
					b.add("```")
				}
				flush()
				if opener != "" {
					b.add(opener)
				}
			}
			b.add(line)
			switch {
			case fence && opener == "":
				opener = line
			case fence:
				opener = ""
			}
		}
	}
	flush()
	if len(out) == 0 {
		return []string{"(no text)"}
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A piece is one message in the making.
type piece struct {
	strings.Builder
	most, units, lines int
}

func (p *piece) add(line string) {
	p.WriteString(line)
	p.WriteByte('\n')
	p.units += units(line) + 1
	p.lines++
}

// chunks cuts a text between its blocks; each keeps the empty lines that follow.
func chunks(text string) []string {
	var out []string
	var block []string
	code, blank := false, false
	for line := range strings.SplitSeq(text, "\n") {
		fence := strings.HasPrefix(line, "```")
		if len(block) > 0 && !code && (blank && line != "" || fence) {
			out = append(out, strings.Join(block, "\n"))
			block = nil
		}
		block = append(block, line)
		blank = line == "" && !code
		if fence {
			if code = !code; !code {
				out = append(out, strings.Join(block, "\n"))
				block, blank = nil, false
			}
		}
	}
	if len(block) > 0 {
		out = append(out, strings.Join(block, "\n"))
	}
	return out
}

// cutWords takes at most most units of a line, up to a space where that is not far
// and the line is no code.
func cutWords(line string, most int, code bool) (head, rest string) {
	n, end, space := 0, 0, 0
	for i, r := range line {
		size := 1
		if r > 0xFFFF {
			size = 2
		}
		if n += size; n > most {
			break
		}
		end = i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, w := utf8.DecodeRuneInString(line[i:])
			end = i + w
		}
		if unicode.IsSpace(r) {
			space = end
		}
	}
	if end == 0 && line != "" {
		_, end = utf8.DecodeRuneInString(line)
	}
	if !code && space > end/2 {
		end = space
	}
	return line[:end], line[end:]
}

// cutLines takes the first lines of a text that fit, with a block of code closed.
func cutLines(text string, most int) string {
	if units(text) <= most {
		return text
	}
	return split(text, most)[0]
}
