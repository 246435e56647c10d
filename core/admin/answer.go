package admin

import (
	"strings"

	"mimikit/core/chat"
)

// An Answer is what came of a command. A door shows the blocks one after the
// other, or all of them as [Answer.Markdown], and the buttons if it has any: all
// that they do can be written, too.
type Answer struct {
	Blocks  []Block
	Buttons []chat.Button // their values are for [ButtonWords]
	Data    any           // the same as values that encoding/json can write; nil where words say all
}

// A Block is one part of an answer; one of its fields is set.
type Block struct {
	Words string // sentences in Markdown, of code spans and escapes only; see [Unmark]
	Facts []Fact
	Table *Table
	Text  string // what a person or a model wrote, as it is but for control characters
}

// A Fact is a name and what it is, in plain text.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Table has rows of as many cells as the head, in plain text.
type Table struct {
	Head []string
	Rows [][]string
}

func (a *Answer) say(words string)  { a.Blocks = append(a.Blocks, Block{Words: words}) }
func (a *Answer) facts(f []Fact)    { a.Blocks = append(a.Blocks, Block{Facts: f}) }
func (a *Answer) write(text string) { a.Blocks = append(a.Blocks, Block{Text: Clean(text)}) }
func (a *Answer) table(head ...string) *Table {
	t := &Table{Head: head}
	a.Blocks = append(a.Blocks, Block{Table: t})
	return t
}

func (t *Table) row(cells ...string) { t.Rows = append(t.Rows, cells) }

// press adds a button that does what the words do.
func (a *Answer) press(label, style string, words ...string) {
	a.Buttons = append(a.Buttons, Press(label, style, words...))
}

const buttonMark = "admin:"

// ButtonWords gives the words that a pressed button stands for, and whether it is
// one of ours.
func ButtonWords(value string) (words []string, ok bool) {
	rest, ok := strings.CutPrefix(value, buttonMark)
	return strings.Fields(rest), ok
}

// Markdown is the whole answer but the buttons.
func (a Answer) Markdown() string {
	var parts []string
	for _, b := range a.Blocks {
		switch {
		case b.Table != nil:
			parts = append(parts, b.Table.markdown())
		case b.Facts != nil:
			var lines []string
			for _, f := range b.Facts {
				lines = append(lines, "- "+Escape(f.Name)+": "+Escape(f.Value))
			}
			parts = append(parts, strings.Join(lines, "\n"))
		case b.Text != "":
			parts = append(parts, b.Text)
		case b.Words != "":
			parts = append(parts, b.Words)
		}
	}
	return strings.Join(parts, "\n\n")
}

func (t *Table) markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + Escape(c) + " |")
		}
		b.WriteString("\n")
	}
	line(t.Head)
	b.WriteString("|" + strings.Repeat(" --- |", len(t.Head)) + "\n")
	for _, r := range t.Rows {
		line(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Press makes a button that does what the words of a command do.
func Press(label, style string, words ...string) chat.Button {
	return chat.Button{Label: label, Style: style, Value: buttonMark + strings.Join(words, " ")}
}
