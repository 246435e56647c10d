package llm

import (
	"errors"
	"math/big"
	"strings"
)

var (
	errZero   = errors.New("division by zero")
	errTooBig = errors.New("number too large")
	errNoSum  = errors.New("not a sum")

	// What may stand around a sum. All that is left must be one, so that
	// "24/7 support" and "2026-11-21 or later" are not.
	sumLead = lazily(`^(?:(?:what's|what is|whats|how much is|calculate|compute|was ist|wie viel ist|wieviel ist|was macht|berechne|rechne|cuánto es|cuanto es|calcula|qué es|计算|算一下|请问|请算)[\s:：]*)+`)
	sumTail = lazily(`(?:[\s=]|please|bitte|por favor|等于多少|等于几|是多少|是几|aus)+$`)
	sumWord = strings.NewReplacer(
		"% of", "/100*", "% von", "/100*", "% de", "/100*",
		"divided by", "/", "geteilt durch", "/", "dividido por", "/", "dividido entre", "/", "除以", "/",
		"multiplied by", "*", "times", "*", "mal", "*", "por", "*", "乘以", "*", "乘", "*", "×", "*", "·", "*",
		"plus", "+", "más", "+", "mas", "+", "und", "+", "加", "+", "minus", "-", "menos", "-", "减", "-", "−", "-",
		"÷", "/", "**", "^", "（", "(", "）", ")",
	)
	date     = lazily(`^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}$`)
	sumTimes = lazily(`(\d)\s*x\s*(\d)`)
)

// workOut finds a sum in a text in lower case and its result. ok is false when
// the text is something else. Numbers are exact; a result that is no whole
// number and longer than six digits behind its point is rounded, with "≈ ".
func workOut(text string) (sum, result string, ok bool, err error) {
	text = strings.TrimSpace(sumTail().ReplaceAllString(sumLead().ReplaceAllString(text, ""), ""))
	if len(text) > 200 || date().MatchString(text) {
		return "", "", false, nil
	}
	s := &sumReader{rest: sumWord.Replace(sumTimes().ReplaceAllString(text, "$1*$2"))}
	if !strings.ContainsAny(s.rest, "+-*/^") {
		return "", "", false, nil
	}
	v, err := s.terms()
	if errors.Is(err, errNoSum) || err == nil && (s.next() != 0 || s.numbers < 2) {
		return "", "", false, nil
	}
	if err != nil {
		return text, "", true, err
	}
	return text, number(v), true, nil
}

func number(v *big.Rat) string {
	if v.IsInt() {
		return v.Num().String()
	}
	text := strings.TrimRight(v.FloatString(6), "0")
	if back, ok := new(big.Rat).SetString(text); ok && back.Cmp(v) == 0 {
		return text
	}
	return "≈ " + strings.TrimSuffix(text, ".")
}

// A sumReader reads + - * / ^ and brackets by recursive descent; the length of
// the text bounds its depth.
type sumReader struct {
	rest    string
	numbers int
}

// next returns the next character without taking it, 0 at the end.
func (s *sumReader) next() byte {
	s.rest = strings.TrimLeft(s.rest, " \t\n")
	if s.rest == "" {
		return 0
	}
	return s.rest[0]
}

func (s *sumReader) take() byte {
	c := s.next()
	s.rest = s.rest[1:]
	return c
}

func (s *sumReader) terms() (*big.Rat, error) {
	v, err := s.factors()
	for err == nil && (s.next() == '+' || s.next() == '-') {
		op := s.take()
		var w *big.Rat
		if w, err = s.factors(); err != nil {
			break
		}
		if op == '-' {
			w.Neg(w)
		}
		v.Add(v, w)
	}
	return v, err
}

func (s *sumReader) factors() (*big.Rat, error) {
	v, err := s.power()
	for err == nil && (s.next() == '*' || s.next() == '/') {
		op := s.take()
		var w *big.Rat
		if w, err = s.power(); err != nil {
			break
		}
		if op == '/' {
			if w.Sign() == 0 {
				return nil, errZero
			}
			w.Inv(w)
		}
		v.Mul(v, w)
		err = small(v)
	}
	return v, err
}

func (s *sumReader) power() (*big.Rat, error) {
	if s.next() == '-' {
		s.take()
		v, err := s.power()
		if err != nil {
			return nil, err
		}
		return v.Neg(v), nil
	}
	v, err := s.single()
	if err != nil || s.next() != '^' {
		return v, err
	}
	s.take()
	e, err := s.power()
	if err != nil {
		return nil, err
	}
	if !e.IsInt() || !e.Num().IsInt64() || e.Num().Int64() < 0 || e.Num().Int64() > 512 {
		return nil, errTooBig
	}
	out := big.NewRat(1, 1)
	for range e.Num().Int64() {
		if err := small(out.Mul(out, v)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *sumReader) single() (*big.Rat, error) {
	if s.next() == '(' {
		s.take()
		v, err := s.terms()
		if err == nil && s.next() != ')' {
			err = errNoSum
		}
		if err != nil {
			return nil, err
		}
		s.take()
		return v, nil
	}
	s.next()
	end := strings.IndexFunc(s.rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s.rest)
	}
	v, ok := new(big.Rat).SetString(s.rest[:end])
	if !ok {
		return nil, errNoSum
	}
	s.rest = s.rest[end:]
	s.numbers++
	return v, nil
}

// small bounds what a sum may cost and how long its result is.
func small(v *big.Rat) error {
	if v.Num().BitLen()+v.Denom().BitLen() > 2048 {
		return errTooBig
	}
	return nil
}
