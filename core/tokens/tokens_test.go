package tokens

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// whole counts a text as the library does, in one piece.
func whole(t testing.TB, e tokenizer.Encoding, text string) int {
	t.Helper()
	c, err := tokenizer.Get(e)
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const prose = "Ann asked: “Which port does Redis use by default?” It's 6379, unless you've configured\n\tanother one.\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"hello, world\") // 42\n}\n```\nLäuft die Staging-Umgebung schon? 你好，世界。 "

func TestCountIsTheVocabularys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "hello world": 2, "tiktoken is great!": 6, "你好": 1, "a": 1} {
		if got := Count("gpt-5", text); got != want {
			t.Errorf("Count(%q) = %d, want %d", text, got, want)
		}
	}
	for _, n := range []int{1, 10, 200} {
		text := strings.Repeat(prose, n)
		for model, e := range map[string]tokenizer.Encoding{"gpt-5.2-high": tokenizer.O200kBase, "gpt-4": tokenizer.Cl100kBase} {
			if got, want := Count(model, text), whole(t, e, text); got != want {
				t.Errorf("%s: %d times: %d tokens, want %d: the text divides in its blanks", model, n, got, want)
			}
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]*vocabulary{
		"": o200k, "gpt-6-sol": o200k, "gpt-5.2-high": o200k, "gpt-4o": o200k, "gpt-4o-mini": o200k, "gpt-4.1": o200k, "o3-mini": o200k,
		"claude-9": o200k, "llama3:8b": o200k, "openai/gpt-4o": o200k, "ft:gpt-4o:acme::1": o200k,
		"gpt-4": cl100k, "GPT-4-turbo": cl100k, "gpt-3.5-turbo": cl100k, "gpt-35-turbo": cl100k, "openai/gpt-4": cl100k, "ft:gpt-4:acme::1": cl100k,
	} {
		if of(model) != want {
			t.Errorf("%q has vocabulary %d, want %d", model, of(model).seed, want.seed)
		}
	}
	// Not one count is given for the other.
	text := strings.Repeat("ein längerer Satz, 你好 ", 9)
	if a, b := Count("gpt-5", text), Count("gpt-4", text); a >= b || a != Count("", text) || b != Count("gpt-4", text) {
		t.Errorf("%d for gpt-5, %d for gpt-4", a, b)
	}
}

// evil are texts that are slow for a splitting expression or for merging pairs,
// 32 KiB each.
func evil() map[string]string {
	const size = 32 << 10
	full := func(s string) string { return strings.ToValidUTF8(strings.Repeat(s, size/len(s)+1)[:size], "") }
	out := map[string]string{
		"one letter": full("a"), "one capital": full("A"), "capitals, then small": full("A")[1:] + "a", "blanks": full(" "),
		"blanks, then a letter": full(" ")[1:] + "x", "line ends": full("\n"), "blanks and line ends": full(" \n"),
		"blanks and carriage returns": full("  \r"), "wide blanks": full("\u3000\n"), "narrow blanks": full("\u2009"), "tabs": full("\t\n"), "digits": full("7"), "signs": full("!"),
		"slashes": full("/"), "quotes": full("'"), "Chinese": full("你好世界"), "Chinese and capitals": full("你A"), "emoji": full("😀"),
		"marks": full("e\u0301"), "marks alone": full("\u0301"), "nulls": full("\x00"), "case": full("aA"), "contractions": full("'s'S's'T"),
		"no UTF-8": strings.Repeat("\xff", size), "torn UTF-8": strings.Repeat("\xe4\xbd", size/2),
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, alphabet := range []string{
		"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", " \n", " \n\r\t", " \na", "aA 's\n/!1", "你aA\u0301 \n", "\u3000 \n\u00a0",
	} {
		set := []rune(alphabet)
		var b strings.Builder
		for b.Len() < size {
			b.WriteRune(set[r.IntN(len(set))])
		}
		out[fmt.Sprintf("random %d", i)] = b.String()
	}
	return out
}

// Without pieces the worst of these takes 0.7 s, with them a few milliseconds:
// see BenchmarkCount.
func TestEvilTextsAreBounded(t *testing.T) {
	Count("", "load the vocabulary")
	Count("gpt-4", "and the other")
	for name, text := range evil() {
		for _, model := range []string{"", "gpt-4"} {
			if n := Count(model, text); n < 1 || n > len(text) {
				t.Errorf("%s: %d tokens in %d bytes", name, n, len(text))
			}
		}
		rest := valid(text)
		for rest != "" {
			p := piece(rest)
			if len(p) > maxPiece || !utf8.ValidString(p) || p == "" {
				t.Fatalf("%s: a piece of %d bytes", name, len(p))
			}
			run := 0
			for _, r := range p {
				if run += utf8.RuneLen(r); !unicode.IsSpace(r) {
					run = 0
				}
				if run > maxBlank {
					t.Fatalf("%s: a piece with more than %d bytes of white space in a row", name, maxBlank)
				}
			}
			rest = rest[len(p):]
		}
	}
}

// Where a text has to be divided anyhow, the count stays near.
func TestPiecesCostLittle(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"random 0", "random 1", "Chinese", "digits", "signs", "emoji"} {
		text := evil()[name]
		got, want := Count("", text), whole(t, tokenizer.O200kBase, text)
		if got < want*98/100 || got > want*102/100+1 {
			t.Errorf("%s: %d tokens, want about %d", name, got, want)
		}
	}
}

func TestCountTo(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("count to ten and no further, ", 500)
	n := Count("", text)
	for _, limit := range []int{-1, 0, 1, 10, n - 1, n, n + 1, len(text), 1 << 30} {
		text := text + fmt.Sprint(limit) // not in the cache
		n := whole(t, tokenizer.O200kBase, text)
		got := CountTo("", text, limit)
		if (got <= limit) != (n <= limit) || got <= limit && got != n {
			t.Errorf("CountTo(%d) = %d of %d", limit, got, n)
		}
	}
	if got := CountTo("", "", -1); got != 0 {
		t.Errorf("nothing has %d tokens", got)
	}
}

func TestConcurrentCounts(t *testing.T) {
	t.Parallel()
	var texts []string
	var want []int
	for i := range 50 {
		texts = append(texts, strings.Repeat(fmt.Sprintf("line %d of many. ", i), i+1))
		want = append(want, whole(t, tokenizer.O200kBase, texts[i]))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				for i, text := range texts {
					if got := Count("x", text); got != want[i] {
						t.Errorf("text %d has %d tokens, want %d", i, got, want[i])
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		limit      int
		want       string
		cut        bool
	}{
		{"it fits", "hello world", 2, "hello world", false},
		{"nothing", "", 0, "", false},
		{"no room", "hello", 0, "", true},
		{"less than none", "hello", -3, "", true},
		{"at a word", "one two three four five six seven eight", 4, "one two three four", true},
		{"in a word where there is no other way", "internationalization", 1, "intern", true},
		{"at a sentence", "This is the first of two sentences. This one is too long", 9, "This is the first of two sentences.", true},
		{"at a line", "a line that is long\nand half of the next one", 7, "a line that is long", true},
		{"at a paragraph", "first line\nsecond line of it\n\nnext. More", 10, "first line\nsecond line of it", true},
		{"at a Chinese sentence", "我们今天决定了。然后我们去吃饭了", 6, "我们今天决定了。", true},
		{"never half a character", "😀😀😀😀", 3, "😀😀😀", true},
	} {
		got, cut := Cut("", c.text, c.limit)
		if got != c.want || cut != c.cut {
			t.Errorf("%s: Cut to %d (%d) = %q, %v; want %q, %v", c.name, c.limit, Count("", c.text), got, cut, c.want, c.cut)
		}
	}
	for name, text := range evil() {
		for _, limit := range []int{1, 300} {
			checkCut(t, text, limit)
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// checkCut holds a cut to what is promised of every text.
func checkCut(t *testing.T, text string, limit int) {
	t.Helper()
	got, cut := Cut("", text, limit)
	switch n := Count("", got); {
	case !cut && got != text:
		t.Errorf("%q became %q, and it is said that nothing was cut", text, got)
	case cut && !strings.HasPrefix(valid(text), got):
		t.Errorf("%q is no beginning of %q", got, text)
	case n > max(limit, 0):
		t.Errorf("%d tokens are left, %d allowed", n, limit)
	case cut && !utf8.ValidString(got):
		t.Errorf("half a character is left of %q", got)
	}
}

func TestCutKeepsMost(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Every good boy deserves fudge, and every bad one too. ", 300)
	got, cut := Cut("", text, 1000)
	if n := Count("", got); !cut || n < 700 || !strings.HasSuffix(got, ".") {
		t.Errorf("%d of 1000 tokens are kept, and it ends with %q", n, got[max(0, len(got)-20):])
	}
}

func FuzzCut(f *testing.F) {
	f.Add(prose, 20)
	f.Add(" \n \n \n", 2)
	f.Add("\xff\xfe", 1)
	f.Add("a\u0301\u0301你", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) { checkCut(t, text, limit%1000) })
}

func BenchmarkCount(b *testing.B) {
	line := prose[:100]
	Count("", line)
	b.Run("line/cached", func(b *testing.B) {
		for b.Loop() {
			Count("", line)
		}
	})
	b.Run("line/new", func(b *testing.B) {
		for b.Loop() {
			o200k.count(line, len(line))
		}
	})
	texts := evil()
	texts["prose"] = strings.Repeat(prose, 150)[:32<<10]
	for _, name := range []string{"prose", "one letter", "random 0", "random 1", "blanks and line ends", "random 3", "no UTF-8"} {
		b.Run("32KiB/"+name, func(b *testing.B) {
			for b.Loop() {
				o200k.count(texts[name], len(texts[name]))
			}
		})
	}
	b.Run("32KiB/to-4096", func(b *testing.B) {
		for b.Loop() {
			o200k.count(texts["prose"], 4096)
		}
	})
}
