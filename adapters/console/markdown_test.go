package console

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

// What the same Markdown looks like in different terminals. The files are as
// they are printed, with ␛ for the escape character.
func TestRender(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/everything.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file  string
		width int
		look  look
	}{{"colour-60", 60, colour}, {"mono-60", 60, mono}, {"colour-24", 24, colour}, {"plain", 60, plain}} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			got := strings.ReplaceAll(render(string(src), c.width, c.look), "\x1b", "␛") + "\n"
			file := filepath.Join("testdata", c.file+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("rendered:\n%s\nwant:\n%s\nIf the new one is right: go test -run TestRender -update", got, want)
			}
		})
	}
}

// ours are the only escape sequences that may reach a terminal.
var ours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// harmless fails a test if a terminal could be steered by what is shown.
func harmless(t *testing.T, source, shown string) {
	t.Helper()
	for _, r := range ours.ReplaceAllString(shown, "") {
		if r != '\n' && unicode.IsControl(r) || r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' {
			t.Fatalf("%q was shown as %q, with %q in it", source, shown, r)
		}
	}
	for line := range strings.SplitSeq(shown, "\n") {
		open := false
		for _, s := range ours.FindAllString(line, -1) {
			open = s != reset
		}
		if open {
			t.Fatalf("%q was shown as %q, with a line that leaves its colours on", source, shown)
		}
	}
}

// A reply must not be able to steer the terminal, by whatever way it tries.
func TestRenderHostile(t *testing.T) {
	t.Parallel()
	for _, attack := range []string{
		"\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x1b\\", "\u009b31m", "\u009d0;x\u009c", "a\rb", "a\bb", "\x00", "\x7f",
		"&#27;[31m", "&#x1b;]0;x&#7;", "&#155;31m", "&Tab;", "&NewLine;", "\u202eevil\u202c", "\u2066x", "\xff\x1b\xfe[31m",
	} {
		for _, where := range []string{
			"%s", "# %s", "**%s**", "`%s`", "```%s\n%s\n```", "    %s", "> %s", "- %s", "[%s](http://x)", "[x](http://%s)", "[x](<%s>)", "![%s](%s)",
			"<http://%s>", "<b %s>", "<div>\n%s\n</div>", "<!-- %s", "| %s | b |\n|--|--|\n| %s | c |", "[a]: http://%s\n[a]", "~~%s~~", "1. %s", "http://x.example/%s",
		} {
			source := strings.ReplaceAll(where, "%s", attack)
			for _, l := range []look{plain, mono, colour} {
				for _, width := range []int{5, 30} {
					harmless(t, source, render(source, width, l))
				}
			}
		}
	}
}

// Whatever is said, it is shown: quickly, within the width, and harmlessly.
func TestRenderAnything(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"\x1b[", "31m", "&#27;", "> ", "- ", "1. ", "```", "~~~", "`", "**", "_", "|", "|--|--|\n", "<br>", "<div>", "[a](", ")", "[", "]", "!", "\n", "\n\n", "    ",
		"word ", "日本語", "👩‍💻", "e\u0301", "\t", "&amp;", "\\", "#", "---\n", "http://x.example ", "\xff", "\u00ad", "longerwordthatdoesnotfit",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		width := 10 + random.IntN(60)
		shown := render(b.String(), width, colour)
		harmless(t, b.String(), shown)
		for line := range strings.SplitSeq(shown, "\n") {
			// Below the narrowest, indented text is left to the terminal.
			if w := ansi.StringWidth(line); w > max(width, narrowest+2*deepest) {
				t.Fatalf("%q in %d columns has a line of %d: %q", b.String(), width, w, line)
			}
		}
	}
}

// Text made to cost much costs little.
func TestRenderPathological(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"> ", "- ", "1. ", "[", "**a", "`", "<", "|", "![", "_a", "~~", "- > ", "&#", "\\", "a\n> ", "[a](", "日"} {
		source := strings.Repeat(piece, maxPart/4/len(piece))
		if shown := render(source, 60, colour); len(shown) > 40*len(source)+1000 {
			t.Errorf("%d bytes of %q are shown in %d", len(source), piece, len(shown))
		}
	}
}

func TestLooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		terminal bool
		environ  string
		want     look
	}{
		{true, "TERM=xterm", colour}, {true, "TERM=xterm NO_COLOR=1", mono}, {true, "TERM=xterm NO_COLOR=", colour},
		{true, "TERM=dumb", plain}, {true, "", plain}, {false, "TERM=xterm", plain}, {true, "TERM=dumb TERM=xterm", colour},
	} {
		term := Terminal{o: Options{Environ: strings.Fields(c.environ)}}
		if got := lookOf(c.terminal, term.env); got != c.want {
			t.Errorf("terminal %v, %q: look %d, want %d", c.terminal, c.environ, got, c.want)
		}
	}
	for l, want := range map[look]string{plain: "x", mono: "\x1b[1mx\x1b[0m", colour: "\x1b[1;36mx\x1b[0m"} {
		if got := l.paint(bold|code, "x"); got != want {
			t.Errorf("look %d paints %q, want %q", l, got, want)
		}
	}
}

func ExampleTerminal_Conversation() {
	t := New(Options{User: "ann", Place: "work"})
	fmt.Println(t.Conversation())
	// Output: console/local/work/
}
