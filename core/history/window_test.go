package history

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// conversation is n lines of the given sizes, repeated.
func conversation(n int, sizes ...int) []placed {
	var out []placed
	for i := range n {
		out = append(out, placed{at: i, line: said(i, sizes[i%len(sizes)])})
	}
	return out
}

// newest is what Window reads of lines.
func newest(lines []placed, l Limits) []placed {
	return lines[max(0, len(lines)-l.normal().Max):]
}

func TestWindowBounds(t *testing.T) {
	t.Parallel()
	thinker := Limits{Min: 20, Max: 100, Bytes: 20 << 10}
	teller := Limits{Min: 5, Max: 20, Tokens: 4096}
	for _, c := range []struct {
		name   string
		limits Limits
		sizes  []int
	}{
		{"short lines, thinker", thinker, []int{40}},
		{"short lines, teller", teller, []int{40}},
		{"middling lines, thinker", thinker, []int{700, 90}},
		{"long lines, thinker", thinker, []int{200, 6000}},
		{"one huge line among short ones", thinker, append(make([]int, 30), 30000)},
		{"huge lines, teller", teller, []int{3000}},
		{"no bounds given", Limits{}, []int{500}},
		{"least over most", Limits{Min: 50, Max: 10}, []int{50}},
		{"one line", Limits{Max: 1, Bytes: 500}, []int{100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := c.limits.normal()
			moved, turns := 0, 0
			last := ""
			all := conversation(300, c.sizes...)
			for n := 1; n <= len(all); n++ {
				lines := all[:n]
				got := texts(window(newest(lines, c.limits), n, l))
				if len(got) > l.Max || len(got) < min(n, max(l.Min, 1)) {
					t.Fatalf("%d lines give %d, want %d to %d", n, len(got), l.Min, l.Max)
				}
				if got[len(got)-1].ID != lines[n-1].line.ID {
					t.Fatalf("%d lines: the newest is not there", n)
				}
				bytes := 0
				for _, line := range got {
					bytes += len(line.Text)
				}
				if l.Bytes > 0 && bytes > l.Bytes {
					t.Fatalf("%d lines give %d bytes, want at most %d", n, bytes, l.Bytes)
				}
				if n > l.Max {
					turns++
					if got[0].ID != last {
						moved++
					}
				}
				last = got[0].ID
			}
			// A turn adds two lines or so: a window of Max lines may start anew in
			// every second turn at the very most, and usually much less.
			if l.Max >= 20 && moved*2 > turns {
				t.Errorf("the window began anew %d times in %d lines", moved, turns)
			}
		})
	}
}

func TestWindowStartsInChunks(t *testing.T) {
	t.Parallel()
	starts := func(l Limits, size, upTo int) string {
		var out []string
		last := -1
		all := conversation(upTo, size)
		for n := 1; n <= upTo; n++ {
			got := window(newest(all[:n], l), n, l.normal())
			first := n - len(got)
			if first != last {
				out = append(out, fmt.Sprintf("%d:%d", n, first))
			}
			last = first
		}
		return strings.Join(out, " ")
	}
	// length of the history : where the window starts from then on
	for _, c := range []struct {
		limits Limits
		size   int
		want   string
	}{
		{Limits{Min: 20, Max: 100}, 10, "1:0 101:25 126:50 151:75"},
		{Limits{Min: 5, Max: 20}, 10, "1:0 21:5 26:10 31:15 36:20 41:25 46:30 51:35 56:40 61:45 66:50 71:55 76:60 81:65 86:70 91:75 96:80 101:85 106:90 111:95 116:100 121:105 126:110 131:115 136:120 141:125 146:130 151:135 156:140"},
		{Limits{Min: 4, Max: 80, Bytes: 3000}, 100, "1:0 31:10 41:20 51:30 61:40 71:50 81:60 91:70 101:80 111:90 121:100 131:110 141:120 151:130"},
	} {
		if got := starts(c.limits, c.size, 160); got != c.want {
			t.Errorf("%+v: starts %s, want %s", c.limits, got, c.want)
		}
	}
}

func TestLongLinesShareTheRoom(t *testing.T) {
	t.Parallel()
	l := Limits{Min: 4, Max: 8, Bytes: 4000}
	lines := conversation(8, 100, 100, 30000, 100)
	got := texts(window(lines, 8, l))
	if len(got) != 4 {
		t.Fatalf("got %d lines, want 4", len(got))
	}
	for i, line := range got {
		if i == 2 {
			if len(line.Text) > 2048 || !strings.Contains(line.Text, "of 30000 bytes are not shown]") {
				t.Errorf("the long line has %d bytes and ends with %q", len(line.Text), line.Text[len(line.Text)-40:])
			}
		} else if len(line.Text) != 100 {
			t.Errorf("a short line was cut to %d bytes", len(line.Text))
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		size int
		want string
	}{
		{"short", 5, "short"},
		{strings.Repeat("a", 100), 60, strings.Repeat("a", 22) + "\n[cut: 78 of 100 bytes are not shown]"},
		{strings.Repeat("a", 100), 10, strings.Repeat("a", 10)},
		{"你好", 4, "你"},
		{"你好", 2, ""},
		{"abc", 0, ""},
	} {
		got := Cut(c.text, c.size)
		if len(got) > c.size || !utf8.ValidString(got) {
			t.Errorf("Cut(%.10q…, %d) gives %d bytes: %q", c.text, c.size, len(got), got)
		}
		if got != c.want {
			t.Errorf("Cut(%.10q…, %d) = %q, want %q", c.text, c.size, got, c.want)
		}
	}
}
