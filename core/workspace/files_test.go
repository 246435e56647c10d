package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/workspace"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("a.txt", numbered(250))
	f.put("empty", "")
	f.put("noend", "x\ny")
	f.put("dos", "x\r\ny\r\n")
	f.put("latin", "caf\xe9\n")
	f.put("long", strings.Repeat("é", 50_000)+"\nend\n")
	f.put("blank", "\n\n\n")
	for name, c := range map[string]struct {
		path         string
		start, count int
		first, last  string
		lines, total int
	}{
		"default":        {"a.txt", 0, 0, "line 1", "line 100", 100, 250},
		"middle":         {"/workspace/a.txt", 101, 100, "line 101", "line 200", 100, 250},
		"end":            {"./a.txt", 201, 500, "line 201", "line 250", 50, 250},
		"last":           {"a.txt", 250, 1, "line 250", "line 250", 1, 250},
		"no end of line": {"noend", 1, 10, "x", "y", 2, 2},
		"dos":            {"dos", 1, 10, "x", "y", 2, 2},
		"blank":          {"blank", 1, 10, "", "", 3, 3},
		"old encoding":   {"latin", 1, 10, "caf\uFFFD", "caf\uFFFD", 1, 1},
	} {
		p, err := f.Read(t.Context(), c.path, c.start, c.count)
		if err != nil || len(p.Lines) != c.lines || p.TotalLines != c.total || p.Lines[0] != c.first || p.Lines[len(p.Lines)-1] != c.last {
			t.Errorf("%s: got %d lines of %d, %q, %v", name, len(p.Lines), p.TotalLines, p.Lines, err)
		}
	}
	p, err := f.Read(t.Context(), "a.txt", 101, 2)
	want := "a.txt, lines 101 to 102 of 250 (the numbers are not part of the file):\n   101\tline 101\n   102\tline 102\n[… more from line 103]\n"
	if err != nil || p.String() != want {
		t.Errorf("got %q, %v", p, err)
	}
	if p, err = f.Read(t.Context(), "long", 1, 10); err != nil || len(p.Lines) != 2 || p.Lines[1] != "end" ||
		!strings.HasSuffix(p.Lines[0], "é [… 98000 more bytes in this line]") {
		t.Errorf("long line: %v, %q", err, p.Lines[0][max(0, len(p.Lines[0])-60):])
	}
	if p, err = f.Read(t.Context(), "empty", 0, 0); err != nil || p.String() != "empty is empty.\n" {
		t.Errorf("empty: %q, %v", p, err)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("a.txt", numbered(3))
	f.put("b.png", "\x89PNG\r\n\x1a\n\x00\x00\x00")
	f.put("c.txt", "\xff\xfeh\x00i\x00")
	f.put("d/e", "")
	for _, c := range []struct {
		path         string
		start, count int
		says         string
	}{
		{"b.png", 1, 1, "image/png"}, {"c.txt", 1, 1, "UTF-16"}, {"d", 1, 1, "is a folder"},
		{"a.txt", 4, 1, "it has 3 lines"}, {"a.txt", -1, 1, "below 1"}, {"a.txt", 1, 501, "within 1 and 500"},
		{"x.txt", 1, 1, "in . are a.txt, b.png, c.txt, d"}, {"z/x.txt", 1, 1, "no folder z"}, {"a.txt/b", 1, 1, "is a file and not a folder"},
		{strings.Repeat("a", 300), 1, 1, "longer than the 255"}, {strings.Repeat("a/", 600), 1, 1, "at most 1000"},
	} {
		_, err := f.Read(t.Context(), c.path, c.start, c.count)
		f.refused(err, c.says)
	}
}

func TestReadOfAPageIsBounded(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("wide", strings.Repeat(strings.Repeat("x", 1900)+"\n", 500))
	p, err := f.Read(t.Context(), "wide", 1, 500)
	if err != nil || len(p.String()) > 70<<10 || p.TotalLines != 500 || !strings.Contains(p.String(), "more from line 36") {
		t.Errorf("%d bytes, %d lines, %v", len(p.String()), len(p.Lines), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.put("many", numbered(100_000))
	if _, err := f.Read(ctx, "many", 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("a.go", "package a\nfunc A() {}\n")
	f.put("sub/b.go", "package b\nfunc B() {} // A.\n")
	f.put("sub/c.txt", "func C\n")
	f.put(".git/config", "func hidden\n")
	f.put("bin", "func\x00")
	f.put("wide", strings.Repeat("é", 5000)+"needle"+strings.Repeat("x", 5000))
	for name, c := range map[string]struct {
		q    workspace.Query
		want []string
	}{
		"literal":        {workspace.Query{Text: "func"}, []string{"a.go:2", "sub/b.go:2", "sub/c.txt:1"}},
		"is literal":     {workspace.Query{Text: "A."}, []string{"sub/b.go:2"}},
		"regex":          {workspace.Query{Text: `^func [AC]\b`, Regex: true}, []string{"a.go:2", "sub/c.txt:1"}},
		"no case":        {workspace.Query{Text: `(?i)FUNC c`, Regex: true}, []string{"sub/c.txt:1"}},
		"names":          {workspace.Query{Text: "func", Glob: "*.go"}, []string{"a.go:2", "sub/b.go:2"}},
		"paths":          {workspace.Query{Text: "func", Glob: "sub/*.{go,md}"}, []string{"sub/b.go:2"}},
		"folder":         {workspace.Query{Text: "func", Path: "sub"}, []string{"sub/b.go:2", "sub/c.txt:1"}},
		"folder pattern": {workspace.Query{Text: "func", Path: "/workspace/sub", Glob: "*.txt"}, []string{"sub/c.txt:1"}},
		"file":           {workspace.Query{Text: "package", Path: "a.go"}, []string{"a.go:1"}},
		"limit":          {workspace.Query{Text: "func", Limit: 2}, []string{"a.go:2", "sub/b.go:2"}},
		"nothing":        {workspace.Query{Text: "nowhere"}, nil},
	} {
		h, err := f.Search(t.Context(), c.q)
		var got []string
		for _, x := range h.Hits {
			got = append(got, fmt.Sprintf("%s:%d", x.Path, x.Line))
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
		if (h.More != "") != (name == "limit") {
			t.Errorf("%s: more: %q", name, h.More)
		}
	}
	h, err := f.Search(t.Context(), workspace.Query{Text: "needle"})
	if err != nil || len(h.Hits) != 1 || !strings.Contains(h.Hits[0].Text, "éneedlex") || len(h.Hits[0].Text) > 400 || h.Skipped != 1 {
		t.Errorf("wide line: %+v, %v", h, err)
	}
	for _, c := range []struct {
		q    workspace.Query
		says string
	}{
		{workspace.Query{}, "empty"}, {workspace.Query{Text: "a", Limit: 201}, "within 1 and 200"}, {workspace.Query{Text: "(", Regex: true}, "RE2"},
		{workspace.Query{Text: `(?=a)`, Regex: true}, "look-around"}, {workspace.Query{Text: "a", Glob: "["}, "not complete"},
		{workspace.Query{Text: "a", Glob: strings.Repeat("{a,a*}", 20)}, "at most 3 braces"}, {workspace.Query{Text: strings.Repeat("a", 501)}, "at most 500"},
		{workspace.Query{Text: "a\nb"}, "several lines"}, {workspace.Query{Text: "a", Path: "none"}, "no such file"},
		{workspace.Query{Text: "((a{100}){100}){100}", Regex: true}, "RE2"},
	} {
		_, err := f.Search(t.Context(), c.q)
		f.refused(err, c.says)
	}
}

// Patterns that are slow elsewhere.
func TestHostilePatternsAreFast(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put(strings.Repeat("a", 200)+"/"+strings.Repeat("a", 200), strings.Repeat("a", 1<<20)+"\n")
	// What tries every way would not end before the test's own limit.
	for _, glob := range []string{"*a*a*a*a*a*a*a*a*a*a*a*b", "**/*a*/**/*a*/**/*a*b", "{a*,*a}{a*,*a}{a*,*a}b"} {
		if _, err := f.Search(t.Context(), workspace.Query{Text: "b", Glob: glob}); err != nil {
			t.Errorf("%s: %v", glob, err)
		}
	}
	if _, err := f.Search(t.Context(), workspace.Query{Text: "(a*)*(a|a)*a{50}b", Regex: true}); err != nil {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("a.txt", "abc")
	f.put("d/e/f", "")
	f.put("odd\nname", "")
	l, err := f.List(t.Context(), "", 0)
	if want := "a.txt (3 bytes)\nd/\n\"odd\\nname\" (0 bytes)\n"; err != nil || l.String() != want {
		t.Errorf("got %q, %v", l, err)
	}
	l, err = f.List(t.Context(), "d", 2)
	if want := "d/e/\nd/e/f (0 bytes)\n"; err != nil || l.String() != want {
		t.Errorf("got %q, %v", l, err)
	}
	_, err = f.List(t.Context(), "a.txt", 1)
	f.refused(err, "not a folder")
}

func TestWrite(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	ctx := t.Context()
	w, err := f.Write(ctx, "/workspace/a/b/c.txt", []byte("one"))
	if diff := cmp.Diff(workspace.Written{Path: "a/b/c.txt", Bytes: 3, Created: true}, w); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if err := os.Chmod(filepath.Join(f.dir, "a/b/c.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b/c.txt", filepath.Join(f.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if w, err = f.Write(ctx, "link", []byte("two")); err != nil || w.Created {
		t.Errorf("through a link: %+v, %v", w, err)
	}
	info, err := os.Lstat(filepath.Join(f.dir, "a/b/c.txt"))
	if err != nil || info.Mode().Perm() != 0o750 || f.got("a/b/c.txt") != "two" {
		t.Errorf("the file has %v and holds %q, %v", info.Mode(), f.got("a/b/c.txt"), err)
	}
	if info, err = os.Lstat(filepath.Join(f.dir, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v now", info.Mode())
	}
	if len(f.tree()) != 2 {
		t.Errorf("left behind: %v", f.tree())
	}
	_, err = f.Write(ctx, "a/b", nil)
	f.refused(err, "is a folder")
	_, err = f.Write(ctx, "link/x", nil)
	f.refused(err, "is a file and not a folder")
	_, err = f.Write(ctx, ".", nil)
	f.refused(err, "the workspace itself")
	_, err = f.Write(ctx, "big", make([]byte, 9<<20))
	f.refused(err, "would hold 9 MiB; a file that is written may hold 8 MiB")
}

func TestBoundsOfAWorkspace(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{Bytes: 100, Files: 4})
	ctx := t.Context()
	for _, name := range []string{"a", "d/b"} {
		if _, err := f.Write(ctx, name, []byte(strings.Repeat("x", 40))); err != nil {
			t.Fatal(err)
		}
	}
	before := f.tree()
	_, err := f.Write(ctx, "c", []byte(strings.Repeat("x", 40)))
	f.refused(err, "do not fit")
	_, err = f.Edit(ctx, "a", strings.Repeat("x", 40), strings.Repeat("y", 90), false)
	f.refused(err, "do not fit")
	if diff := cmp.Diff(before, f.tree()); diff != "" {
		t.Errorf("something changed: %s", diff)
	}
	if _, err := f.Write(ctx, "a", []byte("less")); err != nil {
		t.Errorf("a smaller file: %v", err)
	}
	if _, err := f.Write(ctx, "e", nil); err != nil {
		t.Error(err)
	}
	_, err = f.Write(ctx, "f", nil)
	f.refused(err, "4 files and folders")
	if u, err := f.Usage(ctx); err != nil || u != (workspace.Usage{Bytes: 44, Files: 4}) {
		t.Errorf("usage %+v, %v", u, err)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	ctx := t.Context()
	text := "func A() {\n\treturn 1\n}\n\nfunc B() {\n\treturn 1\n}\n"
	for name, c := range map[string]struct {
		text, old, new string
		all            bool
		want           string
		lines          []int
	}{
		"once":        {text, "func B() {\n\treturn 1", "func B() {\n\t// x\n\treturn 2", false, strings.Replace(text, "B() {\n\treturn 1", "B() {\n\t// x\n\treturn 2", 1), []int{5}},
		"all":         {text, "\treturn 1\n", "\t// x\n\treturn 2\n", true, strings.ReplaceAll(text, "\treturn 1\n", "\t// x\n\treturn 2\n"), []int{2, 7}},
		"remove":      {"abc", "b", "", false, "ac", []int{1}},
		"dos":         {"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", []int{1}},
		"dollar":      {"a", "a", "$1 \\1", false, "$1 \\1", []int{1}},
		"not utf8":    {"caf\xe9 x\n", "x", "y", false, "caf\xe9 y\n", []int{1}},
		"mixed lines": {"a\r\nb\nc\r\n", "b\nc", "d", false, "a\r\nd\r\n", []int{2}},
	} {
		file := strings.ReplaceAll(name, " ", "-")
		f.put(file, c.text)
		e, err := f.Edit(ctx, file, c.old, c.new, c.all)
		if err != nil || f.got(file) != c.want || !cmp.Equal(e.Lines, c.lines) {
			t.Errorf("%s: %v, %v, %q", name, err, e.Lines, f.got(file))
		}
	}
	f.put("a.go", text)
	for _, c := range []struct{ old, says string }{
		{"return 1", "2 times, beginning in lines 2, 6"},
		{"func B() {\n    return 1\n}", `begins in line 5; line 6 differs in white space. In the file it is "\treturn 1", in the text "    return 1"`},
		{"func A() {\n\treturn 2\n}", `begins in line 1; line 2 differs. In the file it is "\treturn 1", in the text "\treturn 2"`},
		{"func Z() string\n", "Nothing like it"},
		{"}\n\nfunc B() {\n\treturn 1\n}\n\nfunc C() {", "the file ends before"},
		{"", "is empty"},
	} {
		_, err := f.Edit(ctx, "a.go", c.old, "x", false)
		f.refused(err, c.says)
	}
	_, err := f.Edit(ctx, "a.go", "A", "A", false)
	f.refused(err, "the same")
	_, err = f.Edit(ctx, "b.go", "A", "B", false)
	f.refused(err, "in . are")
	if f.got("a.go") != text {
		t.Errorf("a refused edit changed the file: %q", f.got("a.go"))
	}
}

// An edit multiplies; its size is known before it is made.
func TestEditBomb(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("a", strings.Repeat("a", 1<<20))
	_, err := f.Edit(t.Context(), "a", "a", strings.Repeat("b", 1<<20), true)
	f.refused(err, "may hold 8 MiB")
}

// Tasks of one conversation edit one file at once, and no edit is lost.
func TestEditsTakeTurns(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "<%d>\n", i)
	}
	f.put("a", text.String())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			w, err := f.storage.Open("slack:T1:C1:1.2")
			if err == nil {
				_, err = w.Edit(t.Context(), "a", fmt.Sprintf("<%d>", i), fmt.Sprintf("[%d]", i), false)
				_ = w.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := f.got("a"); strings.Contains(got, "<") {
		t.Errorf("edits were lost: %s", got)
	}
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	ctx := t.Context()
	snap := func(pattern string) workspace.Snapshot {
		t.Helper()
		s, err := f.Snapshot(ctx, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := snap("data/*.csv"); s.Hash != "" || len(s.Files) != 0 {
		t.Errorf("of nothing: %+v", s)
	}
	f.put("data/a.csv", "1")
	f.put("data/b.csv", "2")
	f.put("data/c.txt", "3")
	first := snap("data/*.csv")
	f.put("data/c.txt", "4")
	f.put("data/a.csv", "1") // the same again
	if s := snap("data/*.csv"); s.Hash != first.Hash || s.Hash == "" {
		t.Error("it changed though nothing did")
	}
	f.put("data/a.csv", "5")
	f.put("data/d.csv", "6")
	if err := os.Remove(filepath.Join(f.dir, "data/b.csv")); err != nil {
		t.Fatal(err)
	}
	later := snap("data/*.csv")
	added, changed, removed := first.Changes(later)
	if diff := cmp.Diff([][]string{{"data/d.csv"}, {"data/a.csv"}, {"data/b.csv"}}, [][]string{added, changed, removed}); diff != "" || later.Hash == first.Hash {
		t.Error(diff)
	}
	if s := snap("data/a.csv"); len(s.Files) != 1 {
		t.Errorf("by name: %+v", s)
	}
	if s := snap("*.csv"); len(s.Files) != 2 {
		t.Errorf("in any folder: %+v", s)
	}
	_, err := f.Snapshot(ctx, "")
	f.refused(err, "empty")
}
