package action

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mimikit/core/chat"
)

// judged checks what is promised of every decoded call: it fits and is whole, or
// its error is one that a model can mend.
func judged(t *testing.T, o *Offer, d Decoded) {
	t.Helper()
	if d.Err != nil {
		var m *Mistake
		if !errors.As(d.Err, &m) || m.Text == "" {
			t.Fatalf("%q: %v (%T) is no mistake to mend", d.Call.Raw, d.Err, d.Err)
		}
		if d.Call.Arguments != nil {
			t.Fatalf("%q: arguments %s in spite of %v", d.Call.Raw, d.Call.Arguments, d.Err)
		}
		return
	}
	again := tool(o, d.Call.Name, string(d.Call.Arguments))
	if again.Err != nil || string(again.Call.Arguments) != string(d.Call.Arguments) {
		t.Fatalf("%q gives %s, which gives %s, %v", d.Call.Raw, d.Call.Arguments, again.Call.Arguments, again.Err)
	}
}

func fuzzOffers(f *testing.F) []*Offer {
	f.Helper()
	var all []*Offer
	for _, agent := range agents {
		all = append(all, vocabulary(f, agent))
	}
	return append(all, everySort(f))
}

func FuzzTools(f *testing.F) {
	offers := fuzzOffers(f)
	for _, d := range Vocabulary() {
		r, err := Outline(d)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range d.Examples {
			c, err := r.name[d.Name].example(line)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(d.Name, string(c.Arguments))
		}
		f.Add(d.Name, "{}")
	}
	f.Add("all", `{"text":"t","blank":"","flag":true,"tags":["a"],"in":{"n":1.0},"share":-0,"tree":{"name":"x","below":[]}}`)
	f.Add("open", `{"any":null,"either":1e3,"list":[[[]]],"one":false,"a b":{"c":[1,2]}}`)
	f.Fuzz(func(t *testing.T, name, arguments string) {
		for _, o := range offers {
			d := tool(o, name, arguments)
			if d.Call.Raw != arguments || d.Call.ID != "1" {
				t.Fatalf("kept as %+v", d.Call)
			}
			judged(t, o, d)
			if d.Err == nil {
				line, err := o.Encode(d.Call)
				if err != nil {
					var m *Mistake
					if !errors.As(err, &m) || !strings.Contains(m.Text, "can spell") {
						t.Fatalf("encode %s: %v", d.Call.Arguments, err)
					}
					continue
				}
				_, calls := o.DecodeBlock(block(line))
				if len(calls) != 1 || calls[0].Err != nil || string(calls[0].Call.Arguments) != string(d.Call.Arguments) {
					t.Fatalf("%s written as %s is read as %+v", d.Call.Arguments, line, calls)
				}
			}
		}
	})
}

func FuzzBlock(f *testing.F) {
	offers := fuzzOffers(f)
	for _, p := range pieces {
		f.Add("words "+p+"\n"+block(cancel), 3)
	}
	for _, d := range Vocabulary() {
		for _, line := range d.Examples {
			f.Add("Done.\n\n"+block(line), 7)
		}
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		for _, o := range offers {
			clean, calls := o.DecodeBlock(text)
			acts := 0
			for _, d := range calls {
				judged(t, o, d)
				if d.Err == nil {
					acts++
				}
			}
			if acts > 0 && !strings.HasSuffix(lowered(strings.TrimRight(text, space)), blockClose) {
				t.Fatalf("%q acts and does not end with a block", text)
			}
			if acts > 0 && strings.Count(lowered(clean), blockOpen) > 0 && !strings.Contains(clean, "`") && !strings.Contains(clean, "~~~") {
				t.Fatalf("people see a block in %q", clean)
			}
			if cut = cut % (len(text) + 1); cut < 0 {
				cut = -cut
			}
			var seen strings.Builder
			filter := o.Filter(func(s string) { seen.WriteString(s) })
			filter.Write(text[:cut])
			filter.Write(text[cut:])
			filter.Close()
			if seen.String() != clean {
				t.Fatalf("streamed %q; the whole shows %q", seen.String(), clean)
			}
		}
	})
}

// What a schema is made of may come from a server that is none of ours.
func FuzzForeignSchema(f *testing.F) {
	for _, d := range Vocabulary() {
		f.Add(string(d.Schema), `{"a":1}`)
	}
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}},"$defs":{"x":{"$ref":"#/$defs/x"}}}`, `{"a":{"a":{}}}`)
	f.Add(`{"type":"object","allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"anyOf":[{"$ref":"#/$defs/x"},true]}}}`, `{}`)
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/y"}},"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/y"},true]},"y":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string"}]}}}`, `{"a":"b"}`)
	f.Add(`{"type":"object","$ref":"#/$defs/x","$defs":{"x":{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/x","default":{}},"b":{"$ref":"#/$defs/x"}}}}}`, `{}`)
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/x"}}}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		d := Foreign(Spec[json.RawMessage]{Name: "x", Kind: Lookup, Agents: thinks, Description: "Does."}, json.RawMessage(schema), nil)
		d.fail = nil
		r, err := Outline(d)
		if err != nil {
			return
		}
		o := r.For(Thinker, chat.RoleUser)
		if !strings.Contains(o.Describe(Block), "@x") {
			t.Fatal("it is not described")
		}
		judged(t, o, tool(o, "x", arguments))
	})
}
