package history

import (
	"slices"
	"sort"

	"mimikit/core/chat"
	"mimikit/core/tokens"
)

// Limits bound a window. Bytes and Tokens count what [Fit] is told that an item
// has; for lines, their texts and the names of who said them.
type Limits struct {
	Min    int    // items that are given however long they are, their texts cut to fit; 1 to Max
	Max    int    // items at most; 0 means 100
	Bytes  int    // 0 means no bound
	Tokens int    // 0 means no bound
	Model  string // whose tokens; empty or unknown means those of tokens.Count
}

// The windows of the design.
var (
	ThinkerWindow = Limits{Min: 20, Max: 100, Bytes: 20 << 10} // of messages, for the thinker
	TellerWindow  = Limits{Min: 5, Max: 20, Tokens: 4096}      // of messages, for the teller
	TaskWindow    = Limits{Min: 5, Max: 20, Bytes: 20 << 10}   // of tasks
)

func (l Limits) normal() Limits {
	if l.Max <= 0 {
		l.Max = 100
	}
	l.Min = min(max(l.Min, 1), l.Max)
	return l
}

// Fit gives the newest of items within the limits, in their order: the last one
// is the newest, and always in. text tells of an item the text that may be cut,
// and what else of it counts. When fewer than Min items fit, that many are given
// and the longest texts are cut to a common bound, with a note of how much is
// not shown; items itself is never changed.
//
// Only bounds so tight that nothing would be left of a text give fewer than Min,
// and in the end an item without its text.
func Fit[T any](items []T, l Limits, text func(*T) (cut *string, rest string)) []T {
	return slices.Clone(fit(items, func(i int) int { return i }, len(items), 1, 1, l.normal(), text))
}

// FitTexts is Fit for items that are nothing but a text, such as tasks that are
// described one a line.
func FitTexts(items []string, l Limits) []string {
	return Fit(items, l, func(s *string) (*string, string) { return s, "" })
}

// window is Fit for lines, which are the newest of a list of total lines, with a
// start that moves in chunks.
//
// Too many lines: it is the first multiple of a quarter of Max that leaves at
// most Max, so a full window drops to three quarters and then grows again. Too
// many bytes or tokens: it is the first multiple of an eighth of Max that fits.
// Both depend on positions in the list only, so every node chooses the same, and
// appending a line leaves the start where it was until a limit is met. (A fold
// takes lines off the head and moves the positions, but it changes the summary
// that stands before the lines anyhow: one uncached prompt each time.)
func window(lines []placed, total int, l Limits) []placed {
	return fit(lines, func(i int) int { return lines[i].at }, total, max(1, l.Max/4), max(1, l.Max/8), l,
		func(p *placed) (*string, string) { return &p.line.Text, p.line.Author.Name })
}

// fit chooses from items, of which it gives a part or, cut, a copy. They are the
// newest of a list of total; at gives their places in it. The start is a multiple
// of byCount where the number of items decides, and of bySize where their size
// does.
func fit[T any](items []T, at func(int) int, total, byCount, bySize int, l Limits, text func(*T) (*string, string)) []T {
	from := func(place int) int { return sort.Search(len(items), func(i int) bool { return at(i) >= place }) }
	start := from(min(alignUp(total-l.Max, byCount), total-l.Min))
	held, sum := len(items), cost{}
	for ; held > start; held-- { // from the newest, so that what is far beyond the bounds is not even counted
		cut, rest := text(&items[held-1])
		if sum = sum.plus(l.price(*cut, rest, sum)); !l.hold(sum) {
			break
		}
	}
	kept := start
	if held > start {
		kept = from(alignUp(at(held-1)+1, bySize))
	}
	least := min(l.Min, len(items)-start)
	if len(items)-kept >= least {
		return items[kept:]
	}
	return shorten(items[max(start, from(at(len(items)-least)/bySize*bySize)):], l, text)
}

func alignUp(n, step int) int {
	if n <= 0 {
		return 0
	}
	return (n + step - 1) / step * step
}

type cost struct{ bytes, tokens int }

// price is what an item takes, when so much is taken already. Tokens are counted
// only where they are bounded, and no further than it takes to exceed the bound.
func (l Limits) price(text, rest string, taken cost) cost {
	c := cost{bytes: len(text) + len(rest)}
	if l.Tokens > 0 {
		c.tokens = tokens.CountTo(l.Model, text, max(0, l.Tokens-taken.tokens)) + tokens.Count(l.Model, rest)
	}
	return c
}

func (c cost) plus(d cost) cost { return cost{c.bytes + d.bytes, c.tokens + d.tokens} }

// hold tells whether that much is within the limits.
func (l Limits) hold(c cost) bool {
	return (l.Bytes <= 0 || c.bytes <= l.Bytes) && (l.Tokens <= 0 || c.tokens <= l.Tokens)
}

// minText is the least common bound of the texts of several items, in bytes.
// Below it they would stop meaning anything, so items are left out instead.
const minText = 256

// shorten cuts the longest texts until all fit. The bound is a power of two, so
// that it rarely changes from turn to turn.
func shorten[T any](items []T, l Limits, text func(*T) (*string, string)) []T {
	for bound := chat.MaxText; ; bound /= 2 {
		cut := slices.Clone(items)
		var sum cost
		for i := len(cut) - 1; i >= 0 && l.hold(sum); i-- {
			t, rest := text(&cut[i])
			*t = Cut(*t, bound)
			sum = sum.plus(l.price(*t, rest, sum))
		}
		switch {
		case l.hold(sum) || bound == 0:
			return cut
		case bound <= minText && len(items) > 1:
			items, bound = items[1:], 2*minText
		}
	}
}
