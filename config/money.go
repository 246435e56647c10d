package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Money is an amount in millionths of a currency: 2_500_000 is written 2.50.
// Whole numbers, so that sums are exact.
type Money int64

const unit Money = 1_000_000

// Float is the amount in the currency's units, exact enough to show and to
// hand on, not to add up.
func (m Money) Float() float64 { return float64(m) / float64(unit) }

// String writes the amount without the currency: whole ones as 2, others with
// two to six decimals.
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign = "-"
	}
	whole, rest := m/unit, m%unit
	if rest == 0 {
		return strconv.FormatInt(int64(whole), 10)
	}
	decimals := fmt.Sprintf("%06d", max(rest, -rest))
	for len(decimals) > 2 && decimals[len(decimals)-1] == '0' {
		decimals = decimals[:len(decimals)-1]
	}
	return fmt.Sprintf("%s%d.%s", sign, max(whole, -whole), decimals)
}

var errMoney = errors.New("want an amount with a point and at most six decimals, like 2.50")

func parseMoney(s string) (Money, error) {
	whole, decimals, point := strings.Cut(s, ".")
	digits := whole + decimals
	const most = 12 // digits before the point, so that nothing overflows
	if whole == "" || len(whole) > most || point && decimals == "" || len(decimals) > 6 || strings.Trim(digits, "0123456789") != "" {
		return 0, errMoney
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", 6-len(decimals)), 10, 64)
	if err != nil { // unreachable: they are digits, and few enough
		return 0, errMoney
	}
	return Money(n), nil
}

// A Price is what a million tokens cost.
type Price struct {
	Prompt     Money // of the prompt
	Cached     Money // of the part of it that the endpoint knew already
	Completion Money // of the answer
}

// maxPrice bounds a price, far above any.
const maxPrice = 100_000 * unit

// String writes the price as it is set: 1.25/0.125/10, or 2/8 when a cached
// prompt costs what any does.
func (p Price) String() string {
	if p.Cached == p.Prompt {
		return fmt.Sprintf("%s/%s", p.Prompt, p.Completion)
	}
	return fmt.Sprintf("%s/%s/%s", p.Prompt, p.Cached, p.Completion)
}

// Prices is a price list: names of models, or patterns of names in which *
// stands for anything.
type Prices map[string]Price

// pricesForm is the rule for prices in words.
var pricesForm = fmt.Sprintf("model names or patterns with *, each with prompt/cached/completion or prompt/completion, "+
	"amounts for a million tokens from 0 to %s; in the environment name=1.25/0.125/10,name=2/8", maxPrice)

var errPrice = fmt.Errorf("want prompt/cached/completion or prompt/completion, amounts for a million tokens from 0 to %s, like 1.25/0.125/10", maxPrice)

// readPrice reads one line of a price list.
func readPrice(model, s string) (Price, error) {
	if !isModel(model) {
		return Price{}, errors.New("want " + modelForm + "; * in it stands for anything")
	}
	parts := strings.Split(s, "/")
	amounts := make([]Money, len(parts))
	for i, part := range parts {
		var err error
		if amounts[i], err = parseMoney(strings.TrimSpace(part)); err != nil || amounts[i] > maxPrice {
			return Price{}, errPrice
		}
	}
	switch len(amounts) {
	case 2:
		return Price{amounts[0], amounts[0], amounts[1]}, nil
	case 3:
		return Price{amounts[0], amounts[1], amounts[2]}, nil
	}
	return Price{}, errPrice
}

// hold reports whether a price list could have been read.
func (p Prices) hold() bool {
	for model, price := range p {
		if !isModel(model) || min(price.Prompt, price.Cached, price.Completion) < 0 ||
			max(price.Prompt, price.Cached, price.Completion) > maxPrice {
			return false
		}
	}
	return true
}

// pairs writes a price list as the environment spells it.
func (p Prices) pairs() []string {
	var out []string
	for _, model := range slices.Sorted(maps.Keys(p)) {
		out = append(out, model+"="+p[model].String())
	}
	return out
}
