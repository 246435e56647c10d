package action

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mimikit/core/chat"

	"pgregory.net/rapid"
)

// everySort is an action with a field of each sort, closed, and one that is open.
func everySort(t testing.TB) *Offer {
	t.Helper()
	raw := func(context.Context, Turn, json.RawMessage) (Outcome, error) { return Outcome{}, nil }
	r, err := New(
		Define(Spec[everything]{Name: "all", Kind: Lookup, Agents: thinks, Description: "Has every sort of field."},
			func(context.Context, Turn, everything) (Outcome, error) { return Outcome{}, nil }),
		Foreign(Spec[json.RawMessage]{Name: "open", Kind: Lookup, Agents: thinks, Description: "Takes anything."}, json.RawMessage(
			`{"type":"object","properties":{"any":{},"either":{"type":["string","integer","null"]},"list":{"type":"array"},"one":{"anyOf":[{"type":"boolean"},{"type":"string"}]}}}`), raw),
	)
	if err != nil {
		t.Fatal(err)
	}
	return r.For(Thinker, chat.RoleUser)
}

func values() *rapid.Generator[any] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`"`, `\`, "a\nb", `\n`, "@x y=\"1\"", "</MIMIKIT:actions>", "7", "null", "", " ", "```"}))
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(rapid.Int(), func(n int) any { return n }),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }), rapid.Map(text, func(s string) any { return s }))
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(text, leaf, 0, 3), func(m map[string]any) any { return m }))
}

// Whatever the arguments, a call that is written as a line is read as itself.
func TestALineIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	o := everySort(t)
	text := rapid.OneOf(rapid.StringN(1, 9, 30), rapid.SampledFrom([]string{`"`, `\`, `\"`, "\n", "\r\n@all", `a="b"`, `\n`}))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"all", "open"}).Draw(t, "name")
		given := map[string]any{}
		if name == "open" {
			for _, k := range []string{"any", "either", "list", "one", "more", "x-1"} {
				if rapid.Bool().Draw(t, "has "+k) {
					given[k] = values().Draw(t, k)
				}
			}
		} else {
			given = map[string]any{
				"text": text.Draw(t, "text"), "blank": rapid.String().Draw(t, "blank"), "flag": rapid.Bool().Draw(t, "flag"),
				"tags": rapid.SliceOfN(rapid.StringN(1, 4, -1), 1, 2).Draw(t, "tags"), "in": map[string]any{"n": rapid.Int().Draw(t, "n")},
			}
			if rapid.Bool().Draw(t, "more") {
				given["count"] = rapid.IntRange(-1, 5).Draw(t, "count")
				given["share"] = rapid.Float64Range(-10, 0.5).Draw(t, "share")
				given["at"] = "2026-01-31T12:34:56.5+01:00"
				given["tree"] = map[string]any{"name": text.Draw(t, "root"), "below": []any{map[string]any{"name": text.Draw(t, "leaf")}}}
			}
		}
		raw, err := json.Marshal(given)
		if err != nil {
			t.Skip(err)
		}
		d := tool(o, name, string(raw))
		if d.Err != nil {
			t.Skip(d.Err) // the open one's fields have types
		}
		line, err := o.Encode(d.Call)
		if err != nil {
			t.Fatalf("encode %s: %v", d.Call.Arguments, err)
		}
		if strings.ContainsAny(line, "\n\r") {
			t.Fatalf("%q is more than a line", line)
		}
		_, calls := o.DecodeBlock("words\n" + block(line, line))
		if len(calls) != 2 || calls[0].Err != nil || calls[1].Err != nil {
			t.Fatalf("%s is read as %+v", line, calls)
		}
		for _, c := range calls {
			if string(c.Call.Arguments) != string(d.Call.Arguments) || c.Call.Name != name {
				t.Fatalf("%s is read as %s %s; want %s", line, c.Call.Name, c.Call.Arguments, d.Call.Arguments)
			}
		}
	})
}

func TestEncodeRefusesWhatIsNoCall(t *testing.T) {
	t.Parallel()
	o := everySort(t)
	for want, c := range map[string]Call{
		`there is no action "nothing"`: {Name: "nothing"},
		"no JSON":                      {Name: "open", Arguments: json.RawMessage("{")},
		"want an object":               {Name: "open", Arguments: json.RawMessage("1")},
		"text: it is missing":          {Name: "all", Arguments: json.RawMessage("{}")},
		"can spell":                    {Name: "open", Arguments: json.RawMessage(`{"a b":"x"}`)},
	} {
		if line, err := o.Encode(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s is written as %q, %v; want an error with %q", c.Name, c.Arguments, line, err, want)
		}
	}
}
