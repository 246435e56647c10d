package discord

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	extast "github.com/yuin/goldmark/extension/ast"
)

// widestTable is how many columns of text a table may have as a block of code: more
// is broken on a phone's screen, and then is no table any more.
const widestTable = 56

// table shows a table in letters of one width where it fits, else as a list.
func (r renderer) table(t *extast.Table) []string {
	var plain, rich [][]string // :: row → cell; the first row is the header
	for n := t.FirstChild(); n != nil; n = n.NextSibling() {
		var p, q []string
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			p = append(p, strings.Join(strings.Fields(r.literal(c)), " "))
			q = append(q, strings.Join(strings.Fields(r.inline(c)), " "))
		}
		plain, rich = append(plain, p), append(rich, q)
	}
	widths := make([]int, len(plain[0]))
	total := 0
	for c := range widths {
		for _, row := range plain {
			if c < len(row) {
				widths[c] = max(widths[c], ansi.StringWidth(row[c]))
			}
		}
		total += widths[c] + 2
	}
	if total-2 > widestTable {
		return records(rich)
	}
	var b strings.Builder
	for i, row := range plain {
		b.WriteString(tableRow(row, widths, t.Alignments) + "\n")
		if i == 0 {
			rules := make([]string, len(widths))
			for c, w := range widths {
				rules[c] = strings.Repeat("─", w)
			}
			b.WriteString(strings.Join(rules, "  ") + "\n")
		}
	}
	return fenced("", b.String())
}

func tableRow(cells []string, widths []int, how []extast.Alignment) string {
	parts := make([]string, len(widths))
	for c, w := range widths {
		cell := ""
		if c < len(cells) {
			cell = cells[c]
		}
		room := max(w-ansi.StringWidth(cell), 0)
		left := 0
		if c < len(how) {
			switch how[c] {
			case extast.AlignRight:
				left = room
			case extast.AlignCenter:
				left = room / 2
			}
		}
		parts[c] = strings.Repeat(" ", left) + cell + strings.Repeat(" ", room-left)
	}
	return strings.TrimRight(strings.Join(parts, "  "), " ")
}

// records shows each row as an entry, named after its first cell.
func records(rows [][]string) []string {
	var out []string
	head := rows[0]
	for _, row := range rows[1:] {
		for c, cell := range row {
			switch {
			case c == 0:
				out = append(out, "- "+around("**", strings.ReplaceAll(cell, "**", "")))
			case cell != "" && c < len(head):
				out = append(out, "  - "+head[c]+": "+cell)
			}
		}
	}
	if len(out) == 0 { // only a header
		out = []string{strings.Join(head, " · ")}
	}
	return out
}
