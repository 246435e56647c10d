package prompts

import (
	"unicode/utf8"

	"mimikit/core/llm"
)

// A Reuse is how much of a call a provider's prompt cache can take from the call
// before it. Providers reuse exact prefixes only.
type Reuse struct {
	Bytes  int // leading bytes that both calls have in common
	Tokens int // what these count
	Total  int // tokens of the later call
}

// SharedPrefix gives how many leading bytes of text two calls have in common:
// messages that are equal as a whole, then the equal head of the first that is not. A
// message whose role differs shares nothing. Only texts are looked at.
func SharedPrefix(a, b []llm.Message) int {
	n := 0
	for i := range min(len(a), len(b)) {
		if a[i].Role != b[i].Role {
			break
		}
		same := prefix(a[i].Content, b[i].Content)
		n += same
		if same < len(a[i].Content) || same < len(b[i].Content) {
			break
		}
	}
	return n
}

// Shared measures what the later of two calls of an agent shares with the
// earlier one. count gives the tokens of a text.
func Shared(earlier, later []llm.Message, count func(text string) int) Reuse {
	r := Reuse{Bytes: SharedPrefix(earlier, later)}
	left := r.Bytes
	for _, m := range later {
		r.Total += count(m.Content)
		head := m.Content[:min(left, len(m.Content))]
		left -= len(head)
		if head != "" {
			r.Tokens += count(head)
		}
	}
	return r
}

// prefix gives the length of the longest common head of two texts. It never ends
// within a character.
func prefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return n // both are whole characters up to there
	}
	for n > 0 && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}
