package discord

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each testdata/render/*.md is shown as its .golden says, its parts apart by a
// line of signs.
func TestRenderGolden(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("testdata/render/*.md")
	if err != nil || len(sources) < 10 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	for _, source := range sources {
		t.Run(filepath.Base(source), func(t *testing.T) {
			t.Parallel()
			in, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(renderParts(string(in)), "\n%%%%%%%%\n") + "\n"
			golden := strings.TrimSuffix(source, ".md") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// wellFormed says what is wrong with parts; "" is nothing.
func wellFormed(parts []string) string {
	if len(parts) == 0 {
		return "no part"
	}
	for _, p := range parts {
		switch {
		case units(p) > maxUnits:
			return "a part is too long"
		case strings.TrimSpace(p) == "":
			return "a part is empty"
		case !utf8.ValidString(p):
			return "a part is no UTF-8"
		}
		fences := 0
		for line := range strings.SplitSeq(p, "\n") {
			if strings.HasPrefix(line, "```") {
				fences++
			}
		}
		if fences%2 != 0 {
			return "a block of code is torn"
		}
	}
	return ""
}

func TestPartsAreWellFormed(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"word ", "**bold** ", "\n", "\n\n", "```go\n", "```\n", "~~~\n", "    code\n", "- item\n", "  - inner\n", "1. one\n", "> quote\n",
		"| a | b |\n|---|--:|\n| 1 | 2 |\n", "`x`", "``a`b`` ", "[l](http://x.y)", "<b>", "&amp;", "\\*", "# h\n", "###### h6\n", "---\n", "🎉", "\u202e",
		strings.Repeat("long", 300), strings.Repeat("😀", 600), strings.Repeat("a b ", 700), "\x00", "\xff", "@everyone", "||", "-# ", "```",
	}
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "pieces"), "")
		parts := renderParts(in)
		if wrong := wellFormed(parts); wrong != "" {
			t.Fatalf("%s: %q", wrong, parts)
		}
	})
}

// Cutting loses nothing but the space at the cuts.
func TestSplitKeepsEverything(t *testing.T) {
	t.Parallel()
	words := []string{"alpha", "beta", "gamma\n", "delta\n\n", "x", strings.Repeat("y", 50)}
	rapid.Check(t, func(t *rapid.T) {
		in := strings.TrimSpace(strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 200).Draw(t, "words"), " "))
		got := strings.Join(strings.Fields(strings.Join(split(in, 200), "")), "")
		if want := strings.Join(strings.Fields(in), ""); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestCodeIsOpenedAgain(t *testing.T) {
	t.Parallel()
	parts := renderParts("Before\n\n```go\n" + strings.Repeat("fmt.Println(\"one line of code\")\n", 150) + "```\n\nAfter")
	if len(parts) < 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, p := range parts {
		last := i == len(parts)-1
		if i > 0 && !strings.HasPrefix(p, "```go\n") {
			t.Errorf("part %d begins with %.20q", i, p)
		}
		if !last && !strings.HasSuffix(p, "\n```") {
			t.Errorf("part %d ends with %q", i, p[len(p)-20:])
		}
	}
}

// Time does not grow out of hand with nesting.
func TestDeepNesting(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		strings.Repeat(">", 5000) + "x", strings.Repeat("- ", 3000) + "x", strings.Repeat("*", 20000), strings.Repeat("[", 20000),
		strings.Repeat("`", 20000), strings.Repeat("<", 20000), strings.Repeat("|", 5000) + "\n" + strings.Repeat("|-", 2000),
	} {
		if wrong := wellFormed(renderParts(in)); wrong != "" {
			t.Errorf("%.20q: %s", in, wrong)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("# a\n\n```\nx\n```\n|a|b|\n|-|-|\n|1|2|")
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 20_000 {
			return
		}
		if wrong := wellFormed(renderParts(in)); wrong != "" {
			t.Fatalf("%s: %q", wrong, in)
		}
	})
}

// The words of a link do not hide where it leads.
func TestLinksAreHonest(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"[https://bank.com](https://evil.example/x)":       "https://bank.com (https://evil.example/x)",
		"[go to bank.com now](https://evil.example)":       "go to bank.com now (https://evil.example)",
		"[bank\u200b.com](https://evil.example)":           "bank\u200b.com (https://evil.example)",
		"[bank.com:443](https://evil.example)":             "bank.com:443 (https://evil.example)",
		"[bank&#46;com](https://evil.example)":             "bank\\.com (https://evil.example)",
		"go to [bank.github.io now](https://evil.example)": "go to bank.github.io now (https://evil.example)",
		"[x](https://bank.com@evil.example/)":              "[x](https://bank.com@evil.example/)",
		"[bank.com](https://bank.com@evil.example/)":       "bank.com (https://bank.com@evil.example/)",
		"![bank.com](https://evil.example/a.png)":          "bank.com (https://evil.example/a.png)",
		"[bank.com][1]\n\n[1]: https://evil.example":       "bank.com (https://evil.example)",
		"[the docs of x.com](https://docs.x.com/a)":        "[the docs of x.com](https://docs.x.com/a)",
		"[log in](javascript:alert)":                       "log in (javascript:alert)",
		"[a](https://ok.example) <https://ok.example/b>":   "[a](https://ok.example) https://ok.example/b",
	} {
		if got := render(source); got != want {
			t.Errorf("%q becomes %q, want %q", source, got, want)
		}
	}
}
