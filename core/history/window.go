package history

import (
	"strconv"
	"unicode/utf8"

	"mimikit/core/chat"
)

// A placed line knows its position in the list and what it takes of a window.
type placed struct {
	at   int
	line chat.Line
	cost cost
	last int64 // the latest time of this line and those before it, Unix milliseconds
}

type cost struct{ bytes, tokens int }

// again places a line behind those before it, and says whether it came among
// them, with the same id and time: a replayed dead letter says it again, and a
// task that is run again has a second end with the same id.
//
// Times rise along a history but for a few places, so a look back at what is as
// late finds nothing to compare as a rule, and needs no map of all that was said.
func (p *placed) again(before []placed) bool {
	at := p.line.At.UnixMilli()
	p.last = at
	for i := len(before) - 1; i >= 0 && before[i].last >= at; i-- {
		p.last = max(p.last, before[i].last)
		if p.line.ID != "" && before[i].line.ID == p.line.ID && before[i].line.At.UnixMilli() == at {
			return true
		}
	}
	return false
}

func (l Limits) normal() Limits {
	if l.Max <= 0 {
		l.Max = 100
	}
	l.Min = min(max(l.Min, 0), l.Max)
	return l
}

// window chooses from lines, which are the newest of a list of total lines.
//
// The start of a window moves in chunks. Too many lines: it is the first
// multiple of a quarter of Max that leaves at most Max, so a full window drops
// to three quarters and then grows again. Too many bytes: it is the first
// multiple of an eighth of Max that fits. Both depend on positions in the list
// only, so every node chooses the same, and appending a line leaves the start
// where it was until a limit is met. (Taking lines off the head of the list,
// which folding will do, moves the positions: one uncached prompt each time.)
//
// When that leaves fewer than Min lines, at least Min are taken after all and
// the longest texts are cut to a common bound, a power of two so that it rarely
// changes.
func window(lines []placed, total int, l Limits) []chat.Line {
	lines = from(lines, min(alignUp(total-l.Max, max(1, l.Max/4)), total-l.Min))
	step := max(1, l.Max/8)
	var sum cost
	for i := range lines {
		lines[i].cost = l.price(lines[i].line)
		sum = sum.plus(lines[i].cost, 1)
	}
	kept := lines
	for len(kept) > 0 && !l.hold(sum) {
		rest := from(kept, alignUp(kept[0].at+1, step))
		for _, p := range kept[:len(kept)-len(rest)] {
			sum = sum.plus(p.cost, -1)
		}
		kept = rest
	}
	if len(kept) >= min(l.Min, len(lines)) {
		return texts(kept)
	}
	floor := lines[len(lines)-min(l.Min, len(lines)):]
	floor = from(lines, floor[0].at/step*step)
	return l.shorten(texts(floor))
}

func from(lines []placed, start int) []placed {
	for len(lines) > 0 && lines[0].at < start {
		lines = lines[1:]
	}
	return lines
}

func alignUp(n, step int) int {
	if n <= 0 {
		return 0
	}
	return (n + step - 1) / step * step
}

func texts(lines []placed) []chat.Line {
	out := make([]chat.Line, len(lines))
	for i, p := range lines {
		out[i] = p.line
	}
	return out
}

// price is what a line takes. Tokens are counted only where they are bounded:
// that walks through every character.
func (l Limits) price(line chat.Line) cost {
	c := cost{bytes: len(line.Text) + len(line.Author.Name)}
	if l.Tokens > 0 {
		c.tokens = estimate(line.Text) + estimate(line.Author.Name)
	}
	return c
}

func (c cost) plus(d cost, times int) cost {
	return cost{c.bytes + times*d.bytes, c.tokens + times*d.tokens}
}

// hold tells whether that much is within the limits.
func (l Limits) hold(c cost) bool {
	return (l.Bytes <= 0 || c.bytes <= l.Bytes) && (l.Tokens <= 0 || c.tokens <= l.Tokens)
}

// minText is the least bound that shorten uses, in bytes. Below it lines would
// stop meaning anything, so a window of Min lines may exceed Bytes when Bytes is
// under Min times this.
const minText = 256

// shorten cuts the longest texts until all fit.
func (l Limits) shorten(lines []chat.Line) []chat.Line {
	cut := make([]chat.Line, len(lines))
	for bound := chat.MaxText; ; bound /= 2 {
		var sum cost
		for i, line := range lines {
			line.Text = Cut(line.Text, bound)
			cut[i] = line
			sum = sum.plus(l.price(line), 1)
		}
		if l.hold(sum) || bound <= minText {
			return cut
		}
	}
}

// Cut bounds a text to size bytes, at a character's edge, and says at its end how
// much was cut. Sizes too small for that note give a bare cut.
func Cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	// The note is as long for the kept as for the whole length, or shorter.
	room := size - len(note(len(s), len(s)))
	if room <= 0 {
		return s[:edge(s, size)]
	}
	kept := edge(s, room)
	return s[:kept] + note(len(s)-kept, len(s))
}

func note(cut, whole int) string {
	return "\n[cut: " + strconv.Itoa(cut) + " of " + strconv.Itoa(whole) + " bytes are not shown]"
}

func edge(s string, n int) int {
	for n = max(n, 0); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return n
}
