package prompts

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
)

// A slot is a place where others' words come in.
type slot struct {
	put  func(d *Data, words string)
	path string // the elements around the words
	attr string // the attribute that holds them; empty for the element's own text
	from string // the sender; "*" where the words are the sender
	tr   string // the trust; empty for blocks that the program wrote, which have none
	most int    // characters kept of them; 0 for all
	line bool   // kept on one line, so that it cannot begin another
}

var (
	eve   = chat.Author{ID: "U9", Name: "Eve", Role: chat.RoleUser}
	robot = chat.Author{ID: "B9", Name: "ci", Bot: true}
	slots = map[string]slot{
		"input.text":   {func(d *Data, w string) { d.Inputs[0].Text = w }, "input", "", "Eve", "person", 0, false},
		"input.name":   {func(d *Data, w string) { d.Inputs[0].Author.Name = w }, "input", "from", "*", "person", maxName, true},
		"input.option": {func(d *Data, w string) { d.Inputs[0].Option = w }, "input", "option", "Eve", "person", maxTitle, true},
		"file.text":    {func(d *Data, w string) { d.Inputs[0].Attachments[0].Text = w; d.Inputs[0].Attachments[0].Size = 0 }, "input/file", "", "", "data", 0, false},
		"file.name":    {func(d *Data, w string) { d.Inputs[0].Attachments[0].Name = w }, "input/file", "name", "", "data", maxTitle, true},
		"file.type":    {func(d *Data, w string) { d.Inputs[0].Attachments[0].MediaType = w }, "input/file", "type", "", "data", maxName, true},

		"history.person": {func(d *Data, w string) { d.History[0].Text = w }, "history/line", "", "Eve", "person", 0, false},
		"history.name":   {func(d *Data, w string) { d.History[0].Author.Name = w }, "history/line", "from", "*", "person", maxName, true},
		"history.bot":    {func(d *Data, w string) { d.History[1].Text = w }, "history/line", "", "ci", "bot", 0, false},
		"history.result": {func(d *Data, w string) { d.History[2].Text = w }, "history/line", "", "task", "data", 0, false},
		"summary":        {func(d *Data, w string) { d.Summary = w }, "summary", "", "", "data", 0, false},
		"memory.note":    {func(d *Data, w string) { d.Memory[0].Text = w }, "memory/note", "", "Eve", "data", 0, false},
		"memory.name":    {func(d *Data, w string) { d.Memory[0].Author.Name = w }, "memory/note", "from", "*", "data", maxName, true},

		"result.output": {func(d *Data, w string) { d.Results[0].Output = w }, "result", "", "", "data", 0, false},
		"result.error":  {func(d *Data, w string) { d.Results[0].Error = w }, "result", "", "", "data", 0, false},
		"result.title":  {func(d *Data, w string) { d.Results[0].Title = w }, "result", "title", "", "data", maxTitle, true},
		"tasks":         {func(d *Data, w string) { d.Tasks = w }, "tasks", "", "", "", 0, false},
		"fact":          {func(d *Data, w string) { d.Facts[0].Value = w }, "environment", "", "", "", 0, true},
		"workspace":     {func(d *Data, w string) { d.Workspace[0].Value = w }, "workspace", "", "", "", 0, true},
		"decision":      {func(d *Data, w string) { d.Decision = w }, "thinker_decision", "", "", "", 0, false},

		"request.text":  {func(d *Data, w string) { d.Request.Text = w }, "request", "", "Eve", "person", 0, false},
		"request.name":  {func(d *Data, w string) { d.Request.Author.Name = w }, "request", "from", "*", "person", maxName, true},
		"request.title": {func(d *Data, w string) { d.Request.Title = w }, "request", "title", "Eve", "person", maxTitle, true},
		"step.action":   {func(d *Data, w string) { d.Steps[0].Action = w }, "step", "action", "", "data", maxName, true},
		"step.call":     {func(d *Data, w string) { d.Steps[0].Call = w }, "step/call", "", "", "data", 0, false},
		"step.output":   {func(d *Data, w string) { d.Steps[0].Output = w }, "step/output", "", "", "data", 0, false},
	}
)

// harmless is a call with something in every slot.
func harmless() Data {
	return Data{
		Summary: "s", Memory: []Note{{ID: "n1", Scope: "user", Author: eve, Text: "x", At: minute(0)}},
		History: []chat.Line{
			{ID: "1", Role: chat.LineUser, Author: eve, Text: "x", At: minute(0)},
			{ID: "2", Role: chat.LineUser, Author: robot, Text: "x", At: minute(0)},
			{ID: "3", Role: chat.LineSystem, Text: "x", At: minute(0)},
			{ID: "4", Role: chat.LineAssistant, Author: us, Text: "x", At: minute(0)},
		},
		Now: minute(1), Platform: "slack", Facts: []Fact{{"summary", "x"}}, Workspace: []Fact{{"folder", "x"}}, Limits: []Fact{{"rounds", "3"}},
		Tasks: "x", Decision: "x", Results: []chat.TaskResult{{ID: "t1", Status: chat.TaskFailed, Title: "x", Output: "x", Error: "x"}},
		Inputs: []chat.UserInput{
			{ID: "i1", Author: eve, Text: "x", Option: "x", At: minute(0), Attachments: []chat.Attachment{{Name: "x", MediaType: "x", Text: "x"}}},
			{ID: "i2", Author: ann, Text: "and me", At: minute(0)},
		},
		Request: Request{Task: "t2", Author: eve, Title: "x", Text: "x"},
		Steps:   []Step{{N: 1, Action: "x", Call: "x", Output: "x"}},
	}
}

// An attempt is one entry of testdata/injection.
type attempt struct{ kind, slot, name, words string }

var (
	heading = regexp.MustCompile(`(?m)^-- ([a-z.]+): (.+) --\n`)
	spelled = regexp.MustCompile(`\\u\{([0-9A-Fa-f]+)\}`)
)

func attempts(t *testing.T) []attempt {
	t.Helper()
	names, err := filepath.Glob("testdata/injection/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []attempt
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all, kind := string(b), strings.TrimSuffix(filepath.Base(name), ".txt")
		heads := heading.FindAllStringSubmatchIndex(all, -1)
		if len(heads) == 0 || heads[0][0] != 0 {
			t.Fatalf("%s does not begin with an attempt", name)
		}
		for i, h := range heads {
			end := len(all)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			words := spelled.ReplaceAllStringFunc(strings.TrimSpace(all[h[1]:end]), func(s string) string {
				n, err := strconv.ParseInt(s[3:len(s)-1], 16, 32)
				if err != nil {
					t.Fatal(err)
				}
				return string(rune(n))
			})
			out = append(out, attempt{kind, all[h[2]:h[3]], all[h[4]:h[5]], words})
		}
	}
	return out
}

// benign stands for the words in the prompt that an attempt is compared with.
const benign = "Zq7benignZq7"

// compose gives the data part of an agent's prompt and the part that is ours.
func compose(t *testing.T, set *Set, agent string, s slot, words string) (data, ours string) {
	t.Helper()
	d := harmless()
	s.put(&d, words)
	p, err := set.Compose(agent, d)
	if err != nil {
		t.Fatal(err)
	}
	return p.History + "\n" + p.Latest, p.System
}

// kept is what of the words must arrive, no more and no less.
func (s slot) kept(words string) string {
	if r := []rune(words); s.most > 0 && len(r) > s.most {
		words = string(r[:s.most]) + "…"
	}
	return html.UnescapeString(slowly(words, s.attr != ""))
}

// dump writes a tree down, with words in place of the benign ones. Space is not
// structure.
func dump(n *node, words string) string {
	var b strings.Builder
	var write func(n *node, indent string)
	write = func(n *node, indent string) {
		say := func(s string) string {
			return strings.Join(strings.Fields(strings.ReplaceAll(s, benign, words)), " ")
		}
		fmt.Fprintf(&b, "%s%s", indent, n.name)
		for _, a := range n.attrs {
			fmt.Fprintf(&b, " %s=%q", a.name, say(a.value))
		}
		fmt.Fprintf(&b, " %q\n", say(n.text))
		for _, c := range n.nodes {
			write(c, indent+"  ")
		}
	}
	write(n, "")
	return b.String()
}

// find gives the elements that hold the benign words, outermost first.
func find(n *node) (path []*node, times int) {
	for _, c := range n.nodes {
		holds := strings.Contains(c.text, benign)
		for _, a := range c.attrs {
			holds = holds || strings.Contains(a.value, benign)
		}
		below, more := find(c)
		if holds {
			path, times = []*node{c}, times+1
		}
		if more > 0 {
			path, times = append([]*node{c}, below...), times+more
		}
	}
	return path, times
}

// actionTag is the block of actions, as a lenient reader might take it.
var actionTag = regexp.MustCompile(`(?i)[<＜﹤]\s*/?\s*mimikit:|mimikit:actions`)

// lenient undoes what a model may undo when it repeats data.
func lenient(s string) string {
	return regexp.MustCompile("[\u200C\u200D]").ReplaceAllString(html.UnescapeString(s), "")
}

// Whatever others write, wherever it comes in, and whichever agent is called: it
// stays in the one element it belongs to, whose sender and trust are what the
// program verified, and nothing else of the prompt changes.
func TestInjection(t *testing.T) {
	t.Parallel()
	set, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	all := attempts(t)
	kinds := map[string]int{}
	for _, a := range all {
		kinds[a.kind]++
		if _, ok := slots[a.slot]; !ok {
			t.Errorf("%s: %s: there is no slot %q", a.kind, a.name, a.slot)
		}
	}
	if len(all) < 60 || len(kinds) < 11 {
		t.Fatalf("only %d attempts of %d kinds were found", len(all), len(kinds))
	}
	for name, s := range slots {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := 0
			for _, agent := range Agents() {
				plain, rules := compose(t, set, agent, s, benign)
				if !strings.Contains(plain, benign) {
					continue // this agent is not given it
				}
				shown++
				tree, err := readBlocks(plain)
				if err != nil {
					t.Fatalf("%s: %v in:\n%s", agent, err, plain)
				}
				s.labelled(t, agent, tree)
				if strings.Contains(rules, benign) {
					t.Errorf("%s: data stands among the rules", agent)
				}
				for _, a := range all {
					got, ours := compose(t, set, agent, s, a.words)
					if ours != rules {
						t.Errorf("%s: %s: %s changes the rules", agent, a.kind, a.name)
					}
					hostile, err := readBlocks(got)
					if err != nil {
						t.Errorf("%s: %s: %s: %v", agent, a.kind, a.name, err)
						continue
					}
					if diff := cmp.Diff(dump(tree, s.kept(a.words)), dump(hostile, "")); diff != "" {
						t.Errorf("%s: %s: %s (-want +got):\n%s", agent, a.kind, a.name, diff)
					}
					if s.line && strings.Count(got, "\n") != strings.Count(plain, "\n") {
						t.Errorf("%s: %s: %s makes lines of its own", agent, a.kind, a.name)
					}
					if m := actionTag.FindString(lenient(got)); m != "" {
						t.Errorf("%s: %s: %s: %q can be repeated as a block of actions", agent, a.kind, a.name, m)
					}
				}
			}
			if shown == 0 {
				t.Error("no agent is given it, so nothing is proved")
			}
		})
	}
}

// labelled checks where the words stand and under which name and trust.
func (s slot) labelled(t *testing.T, agent string, tree *node) {
	t.Helper()
	path, times := find(tree)
	var names []string
	from, tr := "", ""
	for _, n := range path {
		names = append(names, n.name)
		if v := n.attr("from"); v != "" {
			from = v
		}
		if v := n.attr("trust"); v != "" {
			tr = v
		}
		if n.name == "file" {
			from = "" // its sender did not write it
		}
	}
	want := s.from
	if want == "*" {
		want = benign
	}
	if got := strings.Join(names, "/"); times != 1 || got != s.path || from != want || tr != s.tr {
		t.Errorf("%s: stands %d times, in %s from %q, trust %q; want once, in %s from %q, trust %q", agent, times, got, from, tr, s.path, want, s.tr)
	}
	if s.attr != "" && path[len(path)-1].attr(s.attr) != benign {
		t.Errorf("%s: %s is %q", agent, s.attr, path[len(path)-1].attr(s.attr))
	}
}

// What proves that escaping works must see it fail: the same attempts, put in as
// they are, make another prompt.
func TestInjectionIsSeen(t *testing.T) {
	t.Parallel()
	set, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, a := range attempts(t) {
		s := slots[a.slot]
		if !strings.Contains(a.words, "<") && (s.attr == "" || !strings.Contains(a.words, `"`)) {
			continue
		}
		for _, agent := range Agents() {
			plain, _ := compose(t, set, agent, s, benign)
			if !strings.Contains(plain, benign) {
				continue
			}
			tree, err := readBlocks(plain)
			if err != nil {
				t.Fatal(err)
			}
			hostile, err := readBlocks(strings.Replace(plain, benign, a.words, 1))
			if err == nil && dump(hostile, "") == dump(tree, s.kept(a.words)) {
				t.Errorf("%s: %s: %s goes unnoticed where nothing is escaped", agent, a.kind, a.name)
			}
			seen++
		}
	}
	if seen < 40 {
		t.Errorf("only %d attempts would break a prompt", seen)
	}
}
