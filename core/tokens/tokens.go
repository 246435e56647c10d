// Package tokens counts what a text costs a model, offline.
//
// It exists because windows, folds and budgets are bounded in tokens, and no one
// may ask a vendor for each line. Counts are exact for the models whose
// vocabulary is public, but for the few tokens that dividing a text without
// spaces may cost, and an estimate for all others.
//
// It promises that counting is safe for concurrent use, that the vocabularies
// are loaded once and only when they are needed, and that it takes a time that
// grows with the text's length and no faster, whatever the text is: see pieces.
package tokens

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

// A vocabulary is one way to cut text into tokens.
type vocabulary struct {
	seed  uint64 // tells it from the others in the cache
	codec func() tokenizer.Codec
}

// Loading takes some 20 ms and, for the larger, some 20 MB.
var (
	o200k  = load(1, tokenizer.O200kBase)
	cl100k = load(2, tokenizer.Cl100kBase)
)

func load(seed uint64, e tokenizer.Encoding) *vocabulary {
	return &vocabulary{seed, sync.OnceValue(func() tokenizer.Codec {
		c, err := tokenizer.Get(e)
		if err != nil {
			panic("tokens: " + err.Error()) // unreachable: both are part of the library
		}
		return c
	})}
}

// older are how the names of models begin that speak cl100k_base. A name that
// goes on without one of these signs is another model: gpt-4o is no gpt-4.
var older = []string{"gpt-4", "gpt-3.5", "gpt-35", "text-embedding"}

// of gives the vocabulary of a model. A vendor before a slash and the mark of a
// fine-tuned model do not count; what is not known is taken for o200k_base,
// which is what OpenAI's models have spoken since gpt-4o and what is as near to
// those of other vendors as any.
func of(model string) *vocabulary {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	model = strings.TrimPrefix(model, "ft:")
	for _, name := range older {
		rest, ok := strings.CutPrefix(model, name)
		if ok && (rest == "" || rest[0] == '-' || rest[0] == ':') {
			return cl100k
		}
	}
	return o200k
}

// Count gives the tokens of a text for a model. An unknown or empty model is
// counted as o200k_base. It never fails; bytes that are no UTF-8 count as one
// replacement character a run.
func Count(model, text string) int {
	v := of(model)
	slot, tag := v.place(text)
	if n, ok := slot.get(tag); ok {
		return n
	}
	n := v.count(text, len(text)) // no token is shorter than a byte
	slot.put(tag, n)
	return n
}

// CountTo is Count that stops when there are more than limit: what it gives then
// is some number above limit. It is for bounds, where how far a text is beyond
// them does not matter.
func CountTo(model, text string, limit int) int {
	if limit < 0 {
		return min(1, len(text))
	}
	if len(text) <= limit {
		return Count(model, text)
	}
	v := of(model)
	slot, tag := v.place(text)
	if n, ok := slot.get(tag); ok {
		return n
	}
	n := v.count(text, limit)
	if n <= limit {
		slot.put(tag, n)
	}
	return n
}

// count counts piece by piece until there are more than limit.
func (v *vocabulary) count(text string, limit int) int {
	text = valid(text)
	n := 0
	for len(text) > 0 && n <= limit {
		p := piece(text)
		n += v.measure(p)
		text = text[len(p):]
	}
	return n
}

// measure counts one piece.
func (v *vocabulary) measure(p string) int {
	n, err := v.codec().Count(p)
	if err != nil {
		return len(p) // unreachable: neither mode nor timeout is set; a safe bound
	}
	return n
}

func valid(text string) string {
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}
