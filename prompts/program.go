package prompts

import (
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// text/template looks every field up by reflection, which took most of the time
// of a prompt. Our files use little of it: words, fields of a View, if, with and
// template. A file that uses no more is translated once, at [Open], into a
// program that gives the same text. One that uses more, as an override may, is
// left to text/template.
type program struct {
	parts  []part
	stable bool // reads no field that changes from turn to turn
}

// A part is fixed words, or a field, or parts that depend on a condition.
type part struct {
	words string
	field *field
	when  func(*View) bool
	then  []part
	other []part
}

// A field of a View. There is one for each but no more: what is missing here is
// left to text/template, so it is slow but not wrong.
type field struct {
	text   func(*View) string
	truth  func(*View) bool
	stable bool
}

var fields = map[string]*field{
	"Bot":         words(func(v *View) string { return v.Bot }, true),
	"Mode":        words(func(v *View) string { return string(v.Mode) }, true),
	"Actions":     words(func(v *View) string { return v.Actions }, true),
	"History":     words(func(v *View) string { return v.History }, false),
	"Environment": words(func(v *View) string { return v.Environment }, false),
	"Memory":      words(func(v *View) string { return v.Memory }, false),
	"Workspace":   words(func(v *View) string { return v.Workspace }, false),
	"Limits":      words(func(v *View) string { return v.Limits }, false),
	"Tasks":       words(func(v *View) string { return v.Tasks }, false),
	"Request":     words(func(v *View) string { return v.Request }, false),
	"Steps":       words(func(v *View) string { return v.Steps }, false),
	"Results":     words(func(v *View) string { return v.Results }, false),
	"Inputs":      words(func(v *View) string { return v.Inputs }, false),
	"Decision":    words(func(v *View) string { return v.Decision }, false),
	// A flag can be asked for, not shown.
	"Final": {truth: func(v *View) bool { return v.Final }, stable: true},
}

func words(text func(*View) string, stable bool) *field {
	return &field{text: text, truth: func(v *View) bool { return text(v) != "" }, stable: stable}
}

// translate gives the program of a parsed file, or nil. find gives the files
// that it may include.
func translate(tree *parse.Tree, find func(name string) *parse.Tree) *program {
	if tree == nil {
		return nil
	}
	t := translator{find: find, program: &program{stable: true}}
	var ok bool
	if t.program.parts, ok = t.list(tree.Root, nil, 0); !ok {
		return nil
	}
	return t.program
}

type translator struct {
	find    func(string) *parse.Tree
	program *program
}

// deepest bounds files that include one another, which may go on forever.
const deepest = 10

// list translates nodes. dot is what {{.}} stands for there: nil is the View.
func (t *translator) list(l *parse.ListNode, dot *field, depth int) ([]part, bool) {
	if l == nil {
		return nil, true
	}
	var parts []part
	for _, n := range l.Nodes {
		p, ok := t.node(n, dot, depth)
		if !ok {
			return nil, false
		}
		parts = append(parts, p...)
	}
	return parts, true
}

func (t *translator) node(n parse.Node, dot *field, depth int) ([]part, bool) {
	switch n := n.(type) {
	case *parse.TextNode:
		return []part{{words: string(n.Text)}}, true
	case *parse.CommentNode:
		return nil, true
	case *parse.ActionNode:
		f := t.operand(command(n.Pipe, 1), 0, dot)
		return []part{{field: f}}, f != nil && f.text != nil
	case *parse.TemplateNode:
		args := command(n.Pipe, 1)
		if args == nil || args[0].Type() != parse.NodeDot || dot != nil || depth == deepest {
			return nil, false
		}
		tree := t.find(n.Name)
		if tree == nil {
			return nil, false
		}
		return t.list(tree.Root, nil, depth+1)
	case *parse.IfNode:
		return t.branch(&n.BranchNode, t.condition(n.Pipe, dot), dot, dot, depth)
	case *parse.WithNode:
		f := t.operand(command(n.Pipe, 1), 0, dot)
		if f == nil {
			return nil, false
		}
		return t.branch(&n.BranchNode, f.truth, f, dot, depth)
	}
	return nil, false
}

// branch translates an if or a with. inside is what {{.}} stands for in its
// first part, outside in its second.
func (t *translator) branch(n *parse.BranchNode, when func(*View) bool, inside, outside *field, depth int) ([]part, bool) {
	if when == nil {
		return nil, false
	}
	then, ok := t.list(n.List, inside, depth)
	other, ok2 := t.list(n.ElseList, outside, depth)
	return []part{{when: when, then: then, other: other}}, ok && ok2
}

// condition translates .Field, and eq or ne of a field and a text.
func (t *translator) condition(p *parse.PipeNode, dot *field) func(*View) bool {
	if f := t.operand(command(p, 1), 0, dot); f != nil {
		return f.truth
	}
	args := command(p, 3)
	f := t.operand(args, 1, dot)
	if f == nil || f.text == nil {
		return nil
	}
	name, ok := args[0].(*parse.IdentifierNode)
	than, ok2 := args[2].(*parse.StringNode)
	switch {
	case ok && ok2 && name.Ident == "eq":
		return func(v *View) bool { return f.text(v) == than.Text }
	case ok && ok2 && name.Ident == "ne":
		return func(v *View) bool { return f.text(v) != than.Text }
	}
	return nil
}

// operand is the field that an argument names, or nil.
func (t *translator) operand(args []parse.Node, i int, dot *field) *field {
	if i >= len(args) {
		return nil
	}
	var f *field
	switch n := args[i].(type) {
	case *parse.FieldNode:
		if dot == nil && len(n.Ident) == 1 {
			f = fields[n.Ident[0]]
		}
	case *parse.DotNode:
		f = dot
	}
	if f != nil && !f.stable {
		t.program.stable = false
	}
	return f
}

// command gives what a pipe of one command, without variables, consists of; nil
// unless that is n words.
func command(p *parse.PipeNode, n int) []parse.Node {
	if p == nil || len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != n {
		return nil
	}
	return p.Cmds[0].Args
}

// size and write give the text for a View.
func size(parts []part, v *View) int {
	n := 0
	for i := range parts {
		switch p := &parts[i]; {
		case p.field != nil:
			n += len(p.field.text(v))
		case p.when == nil:
			n += len(p.words)
		case p.when(v):
			n += size(p.then, v)
		default:
			n += size(p.other, v)
		}
	}
	return n
}

func write(b *strings.Builder, parts []part, v *View) {
	for i := range parts {
		switch p := &parts[i]; {
		case p.field != nil:
			b.WriteString(p.field.text(v))
		case p.when == nil:
			b.WriteString(p.words)
		case p.when(v):
			write(b, p.then, v)
		default:
			write(b, p.other, v)
		}
	}
}

func (p *program) run(v *View) string {
	var b strings.Builder
	b.Grow(size(p.parts, v))
	write(&b, p.parts, v)
	return b.String()
}

func fieldNames() []string { return slices.Sorted(maps.Keys(fields)) }
