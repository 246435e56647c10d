package console

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	extast "github.com/yuin/goldmark/extension/ast"
)

// gap stands between the columns of a table.
const gap = " │ "

// minColumn is the least width of a column. Where that is too wide, the table is
// shown as one record after the other.
const minColumn = 5

func (r *renderer) table(t *extast.Table, width int) []string {
	var rows [][]string // :: row → cell, painted; the first row is the header
	for n := t.FirstChild(); n != nil; n = n.NextSibling() {
		a := attrs(0)
		if len(rows) == 0 {
			a = bold
		}
		var row []string
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			row = append(row, r.inline(c, a))
		}
		rows = append(rows, row)
	}
	columns := len(rows[0])
	room := width - (columns-1)*ansi.StringWidth(gap)
	if columns*minColumn > room {
		return r.records(rows, width)
	}
	widths := columnWidths(rows, columns, room)
	var out []string
	for i, row := range rows {
		out = append(out, r.row(row, widths, t)...)
		if i == 0 {
			rules := make([]string, columns)
			for c, w := range widths {
				rules[c] = strings.Repeat("─", w)
			}
			out = append(out, r.look.paint(faint, strings.Join(rules, "─┼─")))
		}
	}
	return out
}

// columnWidths gives each column what its widest line needs. When that is more
// than there is room for, the widest columns give way.
func columnWidths(rows [][]string, columns, room int) []int {
	widths := make([]int, columns)
	sum := 0
	for c := range widths {
		for _, row := range rows {
			if c < len(row) {
				for line := range strings.SplitSeq(row[c], "\n") {
					widths[c] = max(widths[c], ansi.StringWidth(line))
				}
			}
		}
		widths[c] = min(max(widths[c], 1), room)
		sum += widths[c]
	}
	for ; sum > room; sum-- {
		widest := 0
		for c, w := range widths {
			if w > widths[widest] {
				widest = c
			}
		}
		widths[widest]--
	}
	return widths
}

// row gives the lines of one row, its cells broken to their columns.
func (r *renderer) row(cells []string, widths []int, t *extast.Table) []string {
	broken := make([][]string, len(widths))
	height := 1
	for c := range widths {
		if c < len(cells) {
			broken[c] = wrap(cells[c], widths[c])
		}
		height = max(height, len(broken[c]))
	}
	out := make([]string, height)
	for i := range out {
		parts := make([]string, len(widths))
		for c, w := range widths {
			s := ""
			if i < len(broken[c]) {
				s = broken[c][i]
			}
			parts[c] = align(s, w, t.Alignments[c])
		}
		out[i] = strings.TrimRight(strings.Join(parts, r.look.paint(faint, gap)), " ")
	}
	return out
}

func align(s string, width int, how extast.Alignment) string {
	pad := max(width-ansi.StringWidth(s), 0)
	left := 0
	switch how {
	case extast.AlignRight:
		left = pad
	case extast.AlignCenter:
		left = pad / 2
	}
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", pad-left)
}

// records shows each row as lines of "header: cell".
func (r *renderer) records(rows [][]string, width int) []string {
	var out []string
	for i, row := range rows[1:] {
		if i > 0 {
			out = append(out, "")
		}
		for c, cell := range row {
			if c < len(rows[0]) {
				out = append(out, wrap(rows[0][c]+": "+cell, width)...)
			}
		}
	}
	return out
}
