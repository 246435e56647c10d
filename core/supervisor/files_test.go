package supervisor

import (
	"strings"
	"testing"

	"mimikit/core/workspace"
)

func TestWorkspaceFiles(t *testing.T) {
	t.Parallel()
	s, err := workspace.Create(t.TempDir(), workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	f := WorkspaceFiles(s)
	if got := f.Storages(); len(got) != 1 || got[0] != s.ID() {
		t.Fatalf("%v", got)
	}
	ctx := t.Context()
	if got := f.Look(ctx, conv("c"), s.ID(), "*.md", true); got.Exists || got.Hash != "" || got.Err != nil {
		t.Errorf("before there is a workspace: %+v", got)
	}
	if there, err := s.Exists(conv("c").Key()); there || err != nil {
		t.Errorf("a look has made the workspace: %v", err)
	}
	ws, err := s.Open(conv("c").Key())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	if _, err := ws.Write(ctx, "a.md", []byte("one")); err != nil {
		t.Fatal(err)
	}
	one := f.Look(ctx, conv("c"), s.ID(), "*.md", true)
	if !one.Exists || one.Hash == "" || one.Err != nil {
		t.Errorf("%+v", one)
	}
	if got := f.Look(ctx, conv("c"), s.ID(), "*.md", false); !got.Exists || got.Hash != "" || got.Err != nil {
		t.Errorf("%+v", got)
	}
	if _, err := ws.Write(ctx, "a.md", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if two := f.Look(ctx, conv("c"), s.ID(), "*.md", true); two.Hash == one.Hash {
		t.Error("a change is not seen")
	}
	if got := f.Look(ctx, conv("d"), s.ID(), "*.md", true); got.Exists {
		t.Error("the files of another conversation are seen")
	}
	if got := f.Look(ctx, conv("c"), "another", "*.md", true); got.Err == nil {
		t.Error("it looks into a storage that it has not")
	}
	if got := f.Look(ctx, conv("c"), s.ID(), "../*", true); got.Err == nil || strings.Contains(got.Err.Error(), "/tmp") {
		t.Errorf("%+v", got)
	}
}

func TestReadAnswers(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		`{"a":true,"b":"No","c":"YES","d":"maybe","e":1,"f":null,"g":false}`: "a=true b=false c=true g=false",
		"Well:\n```json\n{\"a\": true}\n```\n":                               "a=true",
		"no idea":                                                            "",
		"} and {":                                                            "",
		`{"a": true`:                                                         "",
		`["a"]`:                                                              "",
		`{"a":{"b":1}}`:                                                      "",
	} {
		got := readAnswers(out)
		var parts []string
		for _, k := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			if v, ok := got[k]; ok {
				parts = append(parts, k+"="+map[bool]string{true: "true", false: "false"}[v])
			}
		}
		if s := strings.Join(parts, " "); s != want {
			t.Errorf("%s: %q, want %q", out, s, want)
		}
	}
}

// No text can end its own quotation, and what is too long is cut and says so.
func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\nb": "> a\n> b", "a\r\n\rb": "> a\n> \n> b", "": "> ", " x ": "> x", "a\u2028b\vc": "> a\n> b\n> c",
	} {
		if got := quote(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := shorten(strings.Repeat("é", 10), 5); got != "éé\n[cut: 16 of 20 bytes are not shown]" {
		t.Errorf("%q", got)
	}
}
