package slack

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"mimikit/core/chat"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

// The corpus is Markdown as models write it: nested, broken off, hostile. What it
// becomes is written down and read by people.
func TestRender(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/render/*.md")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := shown(t, string(source))
			golden := strings.TrimSuffix(name, ".md") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("rendered:\n%s\nwant:\n%s\nIf the new one is right: go test -run TestRender -update", got, want)
			}
		})
	}
}

// shown is a reply as it is sent, with room for little in a message so that short
// texts are cut as well. First what is really sent of it.
func shown(t *testing.T, source string) string {
	t.Helper()
	var b strings.Builder
	buttons := []chat.Button{{Label: "Yes", Value: "yes", Style: "primary"}}
	for _, p := range parts(chat.Reply{ID: "r", Text: source, Buttons: buttons}, 2) {
		data, err := json.Marshal(blocks(p.Text, p.Buttons))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "=== part %d of %d\n%s\n--- fallback\n%s\n", p.Index+1, p.Count, data, fallback(p.Text))
	}
	for i, piece := range split(guarded(source), 200) {
		fmt.Fprintf(&b, "=== piece %d, cut at 200\n%s\n", i+1, strings.ReplaceAll(piece, "\u2060", "[WJ]"))
	}
	return strings.ReplaceAll(b.String(), "\u2060", "[WJ]")
}

// Whatever the text, each piece is short enough, every fence in it is closed, and
// nothing that was written is lost.
func TestSplitKeepsEverything(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	bits := []string{
		"word ", "a longer sentence with words. ", "\n", "\n\n", "```go\n", "```\n", "~~~\n", "# Title\n", "- item\n", "  1. nested\n",
		"| a | b |\n|---|---|\n", "| 1 | 2 |\n", "> quote\n", "日本語。", "🦊🦊", "`code`", "    ```py\n", "- ```sh\n", "\t", "<!channel>", "[a](b)", "***\n",
	}
	for n := range 800 {
		var b strings.Builder
		for range chance.IntN(60) {
			b.WriteString(bits[chance.IntN(len(bits))])
		}
		text := b.String()
		most := 60 + chance.IntN(200)
		checkSplit(t, text, most)
		if t.Failed() {
			t.Fatalf("text %d: %q cut at %d", n, text, most)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("# A\n\n```go\nx\n```\n", 80)
	f.Add("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", 60)
	f.Add("\xff\xfe\n\x00```", 70)
	f.Fuzz(func(t *testing.T, text string, most int) {
		checkSplit(t, text, 60+(most&0xfff))
		_ = fallback(text)
		_ = parts(chat.Reply{Text: text}, 2)
		_ = words(text, "U1", func(string) string { return "" })
	})
}

var letters = regexp.MustCompile(`[\pL\pN🦊]`)

func checkSplit(t *testing.T, text string, most int) {
	t.Helper()
	pieces := split(text, most)
	if len(pieces) == 0 {
		t.Fatal("there is no piece")
	}
	for i, p := range pieces {
		if n := units(p); n > most {
			t.Errorf("piece %d has %d units, %d are allowed: %q", i, n, most, p)
		}
		if utf8.ValidString(text) && !utf8.ValidString(p) {
			t.Errorf("piece %d is torn: %q", i, p)
		}
		if i < len(pieces)-1 && strings.TrimSpace(p) == "" {
			t.Errorf("piece %d is empty", i)
		}
		if i < len(pieces)-1 && open(p) {
			t.Errorf("piece %d leaves a fence open: %q", i, p)
		}
	}
	// Heads of fences and tables are repeated, so the letters of the text must be a
	// subsequence of those of the pieces.
	want := letters.FindAllString(text, -1)
	for _, l := range letters.FindAllString(strings.Join(pieces, "\n"), -1) {
		if len(want) > 0 && want[0] == l {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Errorf("%d letters were lost", len(want))
	}
}

// open reports whether a text ends within a fence.
func open(text string) bool {
	marks := ""
	for line := range strings.Lines(text) {
		m := fenceLine.FindStringSubmatch(bare(line))
		switch {
		case m == nil:
		case marks == "" && (m[2][0] == '~' || !strings.Contains(m[3], "`")):
			marks = m[2]
		case marks != "" && strings.HasPrefix(m[2], marks) && strings.TrimSpace(m[3]) == "":
			marks = ""
		}
	}
	return marks != ""
}

func TestSplitIsPure(t *testing.T) {
	t.Parallel()
	r := chat.Reply{ID: "r", Text: strings.Repeat("A paragraph of words.\n\n", 3000), Buttons: []chat.Button{{Label: "a", Value: "b"}}}
	a, b := fmt.Sprint(parts(r, 2)), fmt.Sprint(parts(r, 2))
	if a != b {
		t.Error("the same reply was cut in two ways")
	}
}

func TestAReplyOfNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\n", " "} {
		list := parts(chat.Reply{ID: "r", Text: text}, 2)
		if len(list) != 1 || list[0].Text != "(no text)" || list[0].Count != 1 {
			t.Errorf("%q became %+v", text, list)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	name := func(id string) string { return map[string]string{"U2": "Ann <3"}[id] }
	for text, want := range map[string]string{
		"<@U1> hello":                            "hello",
		"<@U1>: hello":                           "hello",
		"hello <@U1>, you":                       "hello you",
		"<@U1|bot> hello":                        "hello",
		"ask <@U2> and <@U3> or <@U4|dan>":       "ask @Ann <3 and @U3 or @dan",
		"in <#C1|general> and <#C2>":             "in #general and #C2",
		"<!here> <!channel|channel> <!everyone>": "@here @channel @everyone",
		"<!subteam^S1|@team> <!subteam^S2>":      "@team @group",
		"<!date^1392734382^{date}|Feb 18>":       "Feb 18",
		"<https://a.example/?x=1&amp;y=2>":       "https://a.example/?x=1&y=2",
		"<https://a.example|the page>":           "the page (https://a.example)",
		"<http://a.example|a.example>":           "http://a.example",
		"<mailto:a@b.example|a@b.example>":       "a@b.example",
		"<tel:+123|call>":                        "call",
		"1 &lt; 2 &amp;&amp; 3 &gt; 2":           "1 < 2 && 3 > 2",
		"&amp;lt;@U2&amp;gt;":                    "&lt;@U2&gt;",
		"&lt;@U2&gt;":                            "<@U2>",
		"an open <@U2":                           "an open <@U2",
		"&nbsp; & &":                             "&nbsp; & &",
		"<>":                                     "<>",
		"":                                       "",
		"  spaces\n and lines  ":                 "spaces\n and lines",
		"```\nif a &lt; b {}\n```":               "```\nif a < b {}\n```",
		"<javascript:alert(1)|click>":            "click (javascript:alert(1))",
	} {
		if got := words(text, "U1", name); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestStamps(t *testing.T) {
	t.Parallel()
	at, ok := stampTime("1763692800.000100")
	if !ok || stamp(at) != "1763692800.000100" {
		t.Errorf("read %v, %v", at, ok)
	}
	for _, bad := range []string{"", "1763692800", "1763692800.1", "x.000000", "-763692800.000100", "1763692800.00010x", "1763692800.-00100", "17636928001763692800.000100", "+763692800.000100"} {
		if _, ok := stampTime(bad); ok {
			t.Errorf("%q passed for a time stamp", bad)
		}
	}
	if !after("1763692800.000101", "1763692800.000100") || after("1", "1") || !after("10", "9") || !after("1", "") {
		t.Error("stamps are compared wrong")
	}
}

func BenchmarkSplit(b *testing.B) {
	text := strings.Repeat("# Title\n\nA paragraph of words that goes on.\n\n```go\nfunc main() {}\n```\n\n", 400)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		split(text, maxPart)
	}
}

func BenchmarkWords(b *testing.B) {
	text := strings.Repeat("<@U1> look at <https://a.example|this> &amp; tell <@U2> ", 20)
	for b.Loop() {
		words(text, "U1", func(string) string { return "Ann" })
	}
}
