package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mimikit/core/tokens"
)

// Whatever is in the history and whatever the limits are, a window obeys all
// three of them and has the newest line.
func TestWindowObeysAllBounds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	words := []string{"a ", "deploy ", "你好 ", "the 4711th time\n", "\t", "ünïcödé ", "😀", "naïvely, "}
	for round := range 300 {
		l := Limits{Min: r.IntN(12), Max: 1 + r.IntN(40), Model: []string{"", "gpt-4"}[r.IntN(2)]}
		if r.IntN(3) > 0 {
			l.Bytes = 1 + r.IntN(6000)
		}
		if r.IntN(3) > 0 {
			l.Tokens = 1 + r.IntN(2000)
		}
		n := 1 + r.IntN(80)
		var lines []placed
		for i := range n {
			if r.IntN(10) == 0 && i < n-1 {
				continue // it could not be decoded
			}
			line := said(i, 1)
			line.Text = strings.Repeat(words[r.IntN(len(words))], 1+r.IntN(60))
			if r.IntN(8) == 0 {
				line.Text = strings.Repeat(line.Text, 30)
			}
			line.Author.Name = []string{"", "Ann"}[r.IntN(2)]
			lines = append(lines, placed{at: i, line: line})
		}
		before := slices.Clone(lines)
		got := window(newest(lines, l), n, l.normal())
		if !slices.Equal(before, lines) {
			t.Fatal("the lines themselves were changed")
		}
		size, count := 0, 0
		for _, p := range got {
			size += len(p.line.Text) + len(p.line.Author.Name)
			count += tokens.Count(l.Model, p.line.Text) + tokens.Count(l.Model, p.line.Author.Name)
		}
		newest := lines[len(lines)-1]
		name := len(newest.line.Author.Name) // which is never cut
		switch {
		case len(got) == 0 || got[len(got)-1].at != newest.at:
			t.Fatalf("round %d, %+v: the newest of %d lines is not in", round, l, n)
		case len(got) > l.Max:
			t.Fatalf("round %d, %+v: %d lines", round, l, len(got))
		case l.Bytes > 0 && size > max(l.Bytes, name):
			t.Fatalf("round %d, %+v: %d bytes in %d lines", round, l, size, len(got))
		case l.Tokens > 0 && count > max(l.Tokens, name):
			t.Fatalf("round %d, %+v: %d tokens in %d lines", round, l, count, len(got))
		}
		for i := range got[1:] {
			if got[i].at >= got[i+1].at {
				t.Fatalf("round %d: out of order", round)
			}
		}
	}
}

func TestTheNewestLineAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		l     Limits
		size  int
		bound int
		note  string
	}{
		{Limits{Max: 20, Bytes: 1000}, 30000, 1000, "of 30000 bytes are not shown]"},
		{Limits{Min: 5, Max: 20, Tokens: 500}, 30000, 30000, "of 30000 bytes are not shown]"},
		{Limits{Max: 20, Bytes: 10}, 300, 10, "x"}, // there is no room for words
		{Limits{Max: 20, Bytes: 10, Tokens: 1}, 300, 10, ""},
	} {
		lines := append(conversation(3, 40), placed{at: 3, line: said(3, c.size)})
		got := window(lines, 4, c.l.normal())
		text := got[len(got)-1].line.Text
		if got[len(got)-1].at != 3 || len(text) > c.bound || !strings.HasSuffix(text, c.note) || text == "" {
			t.Errorf("%+v: %d lines, the last with %d bytes: …%q", c.l, len(got), len(text), text[max(0, len(text)-40):])
		}
	}
}

// Tokens are counted, not guessed: 30 times the same Chinese word is as many
// bytes as 90 letters and a third of the tokens of 30 characters.
func TestTokens(t *testing.T) {
	t.Parallel()
	l := Limits{Max: 16, Tokens: 100}
	var lines []placed
	for i := range 10 {
		line := said(i, 1)
		line.Text = strings.Repeat("你好，", 15)
		lines = append(lines, placed{at: i, line: line})
	}
	each := tokens.Count("", lines[0].line.Text)
	got := window(lines, 10, l.normal())
	if want := 100 / each / 2 * 2; each < 20 || each > 40 || len(got) != want {
		t.Errorf("got %d lines of %d tokens, want %d: windows start at even lines here", len(got), each, want)
	}
	// Lines that are far beyond the bound are not counted to their ends, and those
	// before them not at all; 20 MB would take seconds.
	huge := strings.Repeat("word ", 200<<10)
	for i := range lines {
		lines[i].line.Text = huge + fmt.Sprint(i)
	}
	window(lines, 10, Limits{Min: 2, Max: 16, Tokens: 100}.normal())
}

func TestTaskWindow(t *testing.T) {
	t.Parallel()
	task := func(i, size int) string { return fmt.Sprintf("t%d %s", i, strings.Repeat("x", size)) }
	tasks := func(n, size int) (out []string) {
		for i := range n {
			out = append(out, task(i, size))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		in    []string
		first string
		n     int
	}{
		{"none", nil, "", 0},
		{"few", tasks(3, 10), "t0 ", 3},
		{"more than 20", tasks(33, 10), "t13 ", 20}, // no chunks here: tasks stand where no prompt is cached
		{"more than 20 KiB", tasks(20, 2000), "t10 ", 10},
		{"5 however long", tasks(9, 9000), "t4 ", 5},
	} {
		got := FitTexts(c.in, TaskWindow)
		size := len(strings.Join(got, ""))
		if len(got) != c.n || size > TaskWindow.Bytes || c.n > 0 && !strings.HasPrefix(got[0], c.first) {
			t.Errorf("%s: got %d tasks of %d bytes, want %d from %q on", c.name, len(got), size, c.n, c.first)
		}
	}
	type row struct{ id, text string }
	rows := []row{{"a", strings.Repeat("a", 600)}, {"b", "short"}, {"c", strings.Repeat("c", 600)}}
	got := Fit(rows, Limits{Min: 3, Max: 3, Bytes: 1000}, func(r *row) (*string, string) { return &r.text, r.id })
	if len(got) != 3 || len(got[0].text) > 512 || got[1] != rows[1] || len(rows[0].text) != 600 {
		t.Errorf("got %+v; the long texts share the room, and what was given stays", got)
	}
}

func BenchmarkTellerWindow(b *testing.B) {
	var values []string
	for _, l := range talk(20) {
		values = append(values, Encode(l))
	}
	s := New(nil, nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		_ = window(s.decode("c", values, 0), 20, TellerWindow)
	}
}
