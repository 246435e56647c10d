package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxArguments = 256 << 10 // bytes of the arguments of one call
	maxDepth     = 32        // lists and objects within each other
	maxNumber    = 64        // characters of a number
)

// parseJSON reads exactly one JSON value, its numbers as json.Number. It is
// stricter than encoding/json: a key that comes twice, a number that no float64
// holds and what nests too deep are refused. Such a number would cost whoever
// computes with it exactly, as the schema's validator does, gigabytes.
func parseJSON(raw string) (any, error) {
	if len(raw) > maxArguments {
		return nil, Mistakef("%d bytes of arguments; at most %d are allowed", len(raw), maxArguments)
	}
	if !utf8.ValidString(raw) {
		return nil, Mistakef("the arguments are not UTF-8 text")
	}
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(raw), &whole); err != nil {
		return nil, Mistakef("%s", syntax(raw, err))
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	return value(d, 0)
}

func value(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, Mistakef("%s", err)
	}
	switch t := t.(type) {
	case json.Number:
		return t, number(t)
	case json.Delim:
		if depth++; depth > maxDepth {
			return nil, Mistakef("lists and objects nest more than %d deep", maxDepth)
		}
		if t == '[' {
			return list(d, depth)
		}
		return object(d, depth)
	}
	return t, nil
}

func list(d *json.Decoder, depth int) (any, error) {
	out := []any{}
	for d.More() {
		v, err := value(d, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.Token()
	return out, err
}

func object(d *json.Decoder, depth int) (any, error) {
	out := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, Mistakef("%s", err)
		}
		key, _ := t.(string) // a valid object has no other keys
		if _, twice := out[key]; twice {
			return nil, Mistakef("the field %s is given twice", key)
		}
		if out[key], err = value(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return out, err
}

func number(n json.Number) error {
	f, err := strconv.ParseFloat(string(n), 64)
	small := err == nil && f == 0 && strings.ContainsAny(string(n), "eE") // 1e-999999999
	if err != nil || math.IsInf(f, 0) || small || len(n) > maxNumber {
		return Mistakef("the number %s is out of range", excerpt(string(n)))
	}
	return nil
}

// syntax says where JSON breaks and what stands there.
func syntax(raw string, err error) string {
	var s *json.SyntaxError
	if !errors.As(err, &s) {
		return "the arguments are no JSON: " + err.Error()
	}
	if strings.TrimSpace(raw) == "" {
		return "the arguments are no JSON: there is nothing"
	}
	at := min(max(int(s.Offset)-1, 0), len(raw))
	from, to := max(at-20, 0), min(at+20, len(raw))
	near := strings.ToValidUTF8(raw[from:to], "")
	if s.Error() == "unexpected end of JSON input" {
		return fmt.Sprintf("the arguments are no JSON: they end too early, after %s", strconv.Quote(near))
	}
	return fmt.Sprintf("the arguments are no JSON: %s, at byte %d, near %s", s.Error(), at+1, strconv.Quote(near))
}

// canonical writes a value so that the same value is always the same bytes:
// fields sorted, no white space, whole numbers without fraction or exponent.
func canonical(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(plainNumbers(v)); err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err)) // only values of parseJSON come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(string(v), ".eE") {
			if v == "-0" {
				return json.Number("0")
			}
			return v
		}
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return json.Number(strconv.FormatInt(int64(f), 10))
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}

// excerpt quotes text that a model wrote, so that it is short and on one line.
func excerpt(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// show writes any JSON value short.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return excerpt(v)
	case nil:
		return "null"
	}
	s := string(canonical(v))
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// leading reads the JSON value that s begins with and says how long it is.
func leading(s string) (raw string, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "", Mistakef("it ends too early")
		}
		return "", Mistakef("%s", err)
	}
	return s[:d.InputOffset()], nil
}
