package memory

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"mimikit/core/chat"
	"mimikit/core/tokens"
)

// What is shown to a model at most.
const (
	Hits       = 5
	HitsTokens = 2048
)

// Search gives the notes that may be used in a conversation and fit a text best,
// the best first, at most so many (0 means Hits) and HitsTokens tokens of them.
func (s *Store) Search(ctx context.Context, c chat.Conversation, speakers []chat.Author, text string, limit int) ([]Note, error) {
	all, err := s.Usable(ctx, c, speakers)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = Hits
	}
	var out []Note
	left := HitsTokens
	for _, n := range Rank(all, text) {
		left -= tokens.Count("", n.Content)
		if len(out) == limit || left < 0 {
			break
		}
		out = append(out, n)
	}
	return out, nil
}

// The constants of Okapi BM25, as most use them.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// Rank gives the notes that share words with a text, by Okapi BM25, the best
// first; of equals the first of all comes first.
func Rank(all []Note, text string) []Note {
	query := words(text)
	slices.Sort(query)
	query = slices.Compact(query)
	if len(all) == 0 || len(query) == 0 {
		return nil
	}
	counts, length := make([]map[string]int, len(all)), 0
	in := map[string]int{} // :: word → notes that have it
	for i, n := range all {
		counts[i] = map[string]int{}
		for _, w := range words(n.Content) {
			counts[i][w]++
			length++
		}
		for w := range counts[i] {
			in[w]++
		}
	}
	mean := float64(length) / float64(len(all))
	type scored struct {
		note  Note
		score float64
	}
	var hits []scored
	for i, n := range all {
		size := 0
		for _, k := range counts[i] {
			size += k
		}
		score := 0.0
		for _, w := range query {
			k := float64(counts[i][w])
			if k == 0 {
				continue
			}
			rarity := math.Log(1 + (float64(len(all)-in[w])+0.5)/(float64(in[w])+0.5))
			score += rarity * k * (saturation + 1) / (k + saturation*(1-lengthBias+lengthBias*float64(size)/max(mean, 1)))
		}
		if score > 0 {
			hits = append(hits, scored{n, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	out := make([]Note, len(hits))
	for i, h := range hits {
		out[i] = h.note
	}
	return out
}

// empty are words that say nothing of what a text is about, in the languages that
// the demo model speaks.
var empty = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a an and are as at be by do does for from has have i in is it me my of on or our that the their
		they this to was we what when where which who will with you your der die das ein eine und ist ich mein was wer wo wann
		mit von zu el la los las un una y es de en que mi me`) {
		m[w] = true
	}
	return m
}()

// words are what a text is compared by: its words in small letters, without those
// that say nothing, a plural's s taken off; of scripts without spaces, every two
// neighbours.
func words(text string) []string {
	var out []string
	var word []rune
	var last rune // of a script without spaces
	end := func() {
		if w := stem(string(word)); w != "" && !empty[w] {
			out = append(out, w)
		}
		word = word[:0]
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end()
			if last != 0 {
				out = append(out, string([]rune{last, r}))
			} else {
				out = append(out, string(r))
			}
			last = r
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			word = append(word, r)
		default:
			end()
		}
		last = 0
	}
	end()
	return out
}

func stem(w string) string {
	if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		return w[:len(w)-1]
	}
	return w
}
