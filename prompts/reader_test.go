package prompts

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A node is one element of a rendered prompt, read back.
type node struct {
	name  string
	attrs []attr
	text  string // of its own, escapes undone
	nodes []*node
}

type attr struct{ name, value string }

func (n *node) attr(name string) string {
	for _, a := range n.attrs {
		if a.name == name {
			return a.value
		}
	}
	return ""
}

// elements says what may stand where, with which attributes in which order; "?"
// marks those that may be missing. This is the whole language of the blocks.
var elements = map[string]struct{ in, attrs string }{
	"summary":          {"", "trust"},
	"history":          {"", ""},
	"line":             {"history", "role from trust at note?"},
	"memory":           {"", ""},
	"note":             {"memory", "id scope from at trust"},
	"environment":      {"", ""},
	"workspace":        {"", ""},
	"limits":           {"", ""},
	"tasks":            {"", ""},
	"result":           {"", "task status trust title? reason?"},
	"input":            {"", "id from trust at question? option?"},
	"file":             {"input", "name type bytes trust"},
	"thinker_decision": {"", ""},
	"request":          {"", "task from trust title?"},
	"step":             {"", "n action ok trust"},
	"call":             {"step", ""},
	"output":           {"step", ""},
}

// leaves may hold text; the others hold elements and white space.
var leaves = []string{"summary", "line", "note", "environment", "workspace", "limits", "tasks", "result", "input", "file", "thinker_decision", "request", "call", "output"}

var (
	tagStart   = regexp.MustCompile(`^<([a-z_]+)((?: [a-z_]+="[^"<]*")*)(/?)>`)
	tagEnd     = regexp.MustCompile(`^</([a-z_]+)>`)
	attribute1 = regexp.MustCompile(` ([a-z_]+)="([^"<]*)"`)
	entity     = regexp.MustCompile(`&(?:amp|lt|quot);`)
)

// readBlocks reads a message strictly: every < begins a tag that is known, in its
// place, closed, with its attributes and no others; every & is one of the
// escapes. Words of ours stand outside of all elements only.
func readBlocks(s string) (*node, error) {
	root := &node{}
	open := []*node{root}
	for s != "" {
		top := open[len(open)-1]
		i := strings.IndexByte(s, '<')
		if i < 0 {
			i = len(s)
		}
		if i > 0 {
			words := s[:i]
			if n := strings.Count(words, "&"); n != len(entity.FindAllString(words, -1)) {
				return nil, fmt.Errorf("an & that is no escape in %q", words)
			}
			if top != root && !slices.Contains(leaves, top.name) && strings.TrimSpace(words) != "" {
				return nil, fmt.Errorf("text in <%s>: %q", top.name, words)
			}
			top.text += html.UnescapeString(words)
			s = s[i:]
			continue
		}
		if m := tagEnd.FindStringSubmatch(s); m != nil {
			if top == root || top.name != m[1] {
				return nil, fmt.Errorf("%s closes <%s>", m[0], top.name)
			}
			open, s = open[:len(open)-1], s[len(m[0]):]
			continue
		}
		m := tagStart.FindStringSubmatch(s)
		if m == nil {
			return nil, fmt.Errorf("a < that begins no tag: %.40q", s)
		}
		n := &node{name: m[1]}
		for _, a := range attribute1.FindAllStringSubmatch(m[2], -1) {
			n.attrs = append(n.attrs, attr{a[1], html.UnescapeString(a[2])})
		}
		if err := n.check(top); err != nil {
			return nil, err
		}
		top.nodes = append(top.nodes, n)
		if s = s[len(m[0]):]; m[3] == "" {
			open = append(open, n)
		}
	}
	if len(open) != 1 {
		return nil, fmt.Errorf("<%s> is not closed", open[len(open)-1].name)
	}
	return root, nil
}

func (n *node) check(in *node) error {
	e, ok := elements[n.name]
	switch {
	case !ok:
		return fmt.Errorf("unknown element <%s>", n.name)
	case e.in != in.name:
		return fmt.Errorf("<%s> in <%s>", n.name, in.name)
	}
	i := 0
	for _, want := range strings.Fields(e.attrs) {
		name, optional := strings.CutSuffix(want, "?")
		if i < len(n.attrs) && n.attrs[i].name == name {
			i++
		} else if !optional {
			return fmt.Errorf("<%s> lacks %s", n.name, name)
		}
	}
	if i < len(n.attrs) {
		return fmt.Errorf("<%s> has %s, out of order or not its own", n.name, n.attrs[i].name)
	}
	return nil
}

// The strict reader is worth something only if it refuses.
func TestReader(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"<b>", "<input>", "a < b", "a & b", "&#60;", "<tasks>x", "</tasks>", "<tasks></line></tasks>", "<tasks><tasks></tasks></tasks>",
		`<summary trust="data" from="x">s</summary>`, `<summary>s</summary>`, `<request task="1" trust="data" from="x">s</request>`,
		`<history>words</history>`, `<line role="user" from="x" trust="person" at="">x</line>`, `<summary trust="a<b">s</summary>`,
		"<MIMIKIT:actions>", `<tasks ></tasks>`, `<summary trust='data'>s</summary>`, `<summary trust="data"/>x</summary>`,
	} {
		if n, err := readBlocks(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, n)
		}
	}
	n, err := readBlocks("Ours.\n<history>\n<line role=\"user\" from=\"A &quot;\" trust=\"person\" at=\"\" note=\"edited\">a &lt; b</line>\n</history> > end")
	if err != nil || len(n.nodes) != 1 || n.nodes[0].nodes[0].text != "a < b" || n.nodes[0].nodes[0].attr("from") != `A "` || n.text != "Ours.\n > end" {
		t.Errorf("got %+v, %v", n, err)
	}
}
