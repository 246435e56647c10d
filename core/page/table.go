package page

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mimikit/core/admin"
)

const (
	longWord  = 20 // letters of a word that may be broken; shorter ones are read whole
	briefCell = 12 // letters of a cell that stays on one line
	briefName = 24 // the same of the first cell, which names its row
	broadFrom = 5  // so many columns of words make a table one that wants much room
)

// A column says how the cells below a head are shown.
type column struct {
	Name   string // for those who read a row as a list of its own
	Bar    bool   // it draws what the other cells say, for those who see it
	Number bool
	Code   bool // its cells are to be copied
	First  bool
}

// A grid is a table as it is shown.
type grid struct {
	Head []column
	Rows [][]string
	// Broad tables want a wide window; in others each row is a list of its own.
	Broad bool
}

// Heads of columns whose cells are numbers, and of first columns that are to be copied.
// They are known by name, so that nothing moves with what is in the cells.
var (
	numbers = []string{"Entries", "Lag", "Pending", "Tries", "Calls", "Tokens in", "Cached", "Tokens out", "Cost", "Done", "Spent", "A day"}
	copied  = []string{"ID", "Channel", "Model", "Input"}
)

// gridOf prepares a table. acts says that there is something to do about its rows.
func gridOf(t *admin.Table, acts bool) grid {
	g := grid{Rows: t.Rows}
	words := 0
	for i, name := range t.Head {
		c := column{Name: visible(name), First: i == 0, Number: slices.Contains(numbers, name), Code: i == 0 && slices.Contains(copied, name)}
		if c.Bar = name == ""; c.Bar {
			c.Name = "Share"
		}
		if !c.Bar && !c.Number {
			words++
		}
		g.Head = append(g.Head, c)
	}
	g.Broad = acts || words >= broadFrom
	return g
}

// At gives the column of a cell; a row may have more cells than there are heads.
func (g grid) At(i int) column {
	if i < len(g.Head) {
		return g.Head[i]
	}
	return column{Name: "More"}
}

// Class names how a cell is laid out, so that no short word is broken and a long one
// makes no table wider than the page.
func (c column) Class(cell string) string {
	var out []string
	if cell == "" {
		out = append(out, "none")
	}
	if c.Number {
		out = append(out, "number")
	}
	if c.Bar {
		out = append(out, "bar")
	}
	if c.Code {
		out = append(out, "code")
	}
	cell = visible(cell)
	switch n := utf8.RuneCountInString(cell); {
	case n <= briefCell || c.First && n <= briefName:
		out = append(out, "brief")
	case slices.ContainsFunc(strings.FieldsFunc(cell, ends), func(w string) bool { return utf8.RuneCountInString(w) > longWord }):
		out = append(out, "long")
	}
	return strings.Join(out, " ")
}

// ends reports whether a line may end at a character.
func ends(r rune) bool { return unicode.IsSpace(r) || r == '/' }
