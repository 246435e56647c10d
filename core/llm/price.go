package llm

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// A Price is what a model's tokens cost, in the currency of the deployment for
// a million of them: 2.5 is two and a half dollars where that is dollars.
type Price struct {
	Model      string  // a name, or a pattern in which "*" stands for anything
	Prompt     float64 // for tokens of the prompt
	Cached     float64 // for those of them that the endpoint had kept; 0 means as Prompt, so that a missing price never counts too little
	Completion float64 // for tokens of the answer
}

// maxPrice bounds a price, far above any, so that no sum overflows.
const maxPrice = 1e5

// Prices are a price list. The zero value prices nothing.
type Prices struct{ rows []priceRow }

// A priceRow counts in millionths of a millionth, which is exact for every
// price with six decimals: floats are summed nowhere.
type priceRow struct {
	pattern                    string
	prompt, cached, completion int64 // 1e-12 of the currency for one token
}

// NewPrices reads a price list. It fails on an empty or doubled pattern and on
// a price that is not a number from 0 to 100,000.
func NewPrices(list ...Price) (Prices, error) {
	var p Prices
	seen := map[string]bool{}
	for _, row := range list {
		if row.Model == "" || seen[row.Model] {
			return Prices{}, fmt.Errorf("price of model %q: want each name or pattern once, and none empty", row.Model)
		}
		seen[row.Model] = true
		r := priceRow{pattern: row.Model}
		for _, f := range []struct {
			name string
			from float64
			to   *int64
		}{{"prompt", row.Prompt, &r.prompt}, {"cached", cmp.Or(row.Cached, row.Prompt), &r.cached}, {"completion", row.Completion, &r.completion}} {
			if !(f.from >= 0 && f.from <= maxPrice) { // so that NaN is refused too
				return Prices{}, fmt.Errorf("price of model %q: %s %v: want 0 to %v for a million tokens", row.Model, f.name, f.from, maxPrice)
			}
			*f.to = int64(math.Round(f.from * 1e6))
		}
		p.rows = append(p.rows, r)
	}
	return p, nil
}

// Cost is the price of a call in millionths of the currency, rounded to the
// nearest. ok is false where no row fits. The model is known by the name it was
// asked by and by the one it answered as; the row that fits one of them most
// closely counts: a name before a pattern, and of patterns the longer one.
func (p Prices) Cost(asked, answered string, u Usage) (micros int64, ok bool) {
	best, score := -1, -1
	for i, r := range p.rows {
		for _, name := range []string{answered, asked} {
			if s := r.fits(name); s > score {
				best, score = i, s
			}
		}
	}
	if best < 0 {
		return 0, false
	}
	r := p.rows[best]
	cached := min(u.Cached, u.Prompt)
	sum := int64(u.Prompt-cached)*r.prompt + int64(cached)*r.cached + int64(u.Completion)*r.completion
	return (sum + 500_000) / 1_000_000, true
}

// fits is how closely a row fits a name: -1 not at all, else more is closer.
func (r priceRow) fits(name string) int {
	const exact = 1 << 20
	switch {
	case name == r.pattern && name != "":
		return exact
	case !wild(r.pattern, name):
		return -1
	}
	return len(r.pattern) - strings.Count(r.pattern, "*")
}

// wild matches a name with a pattern in which "*" stands for any run of
// characters, "/" included: names such as "openai/gpt-5" hold them.
func wild(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = rest
	}
	return strings.HasSuffix(name, last)
}
