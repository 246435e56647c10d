package action

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type everything struct {
	Text  string    `json:"text" about:"what <b>" max:"9"`
	Maybe string    `json:"maybe,omitempty" min:"2"`
	Blank string    `json:"blank" min:"0"`
	Kind  string    `json:"kind" enum:"a,b" default:"a"`
	Count int       `json:"count" min:"-1" max:"5" default:"3"`
	Share *float64  `json:"share,omitempty" max:"0.5"`
	Flag  bool      `json:"flag"`
	At    time.Time `json:"at,omitzero"`
	Tags  []string  `json:"tags" max:"2" eachmax:"4"`
	In    inner     `json:"in"`
	Tree  *tree     `json:"tree,omitempty" about:"a tree"`
}

type inner struct {
	N int `json:"n"`
}

type tree struct {
	Name  string  `json:"name"`
	Below []*tree `json:"below,omitempty"`
}

func TestSchemaOfAStruct(t *testing.T) {
	t.Parallel()
	got, err := SchemaOf[everything]()
	if err != nil {
		t.Fatal(err)
	}
	mustEqualJSON(t, got, `{"type":"object","properties":{`+
		`"text":{"type":"string","description":"what <b>","minLength":1,"maxLength":9},`+
		`"maybe":{"type":"string","minLength":2},`+
		`"blank":{"type":"string","minLength":0},`+
		`"kind":{"type":"string","enum":["a","b"],"default":"a"},`+
		`"count":{"type":"integer","minimum":-1,"maximum":5,"default":3},`+
		`"share":{"type":"number","maximum":0.5},`+
		`"flag":{"type":"boolean"},`+
		`"at":{"type":"string","format":"date-time"},`+
		`"tags":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","minLength":1,"maxLength":4}},`+
		`"in":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false},`+
		`"tree":{"$ref":"#/$defs/tree","description":"a tree"}},`+
		`"required":["text","blank","flag","tags","in"],"additionalProperties":false,`+
		`"$defs":{"tree":{"type":"object","properties":{"name":{"type":"string","minLength":1},`+
		`"below":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["name"],"additionalProperties":false}}}`)

	// What is written is read back as it was, so a foreign schema is seen as ours is.
	var s schema
	if err := json.Unmarshal(got, &s); err != nil {
		t.Fatal(err)
	}
	again, err := marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	mustEqualJSON(t, again, string(got))
}

func TestWhatHasNoSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for want, make := range map[string]func() (json.RawMessage, error){
		"want a struct": SchemaOf[[]string],
		"a map[string]int has no schema": SchemaOf[struct {
			M map[string]int `json:"m"`
		}],
		"the json tag names nothing": SchemaOf[struct{ A int }],
		"unknown tag minimum": SchemaOf[struct {
			A int `json:"a" minimum:"1"`
		}],
		`tag min:"x"`: SchemaOf[struct {
			A int `json:"a" min:"x"`
		}],
		`tag max:"-1"`: SchemaOf[struct {
			A string `json:"a" max:"-1"`
		}],
		`tag enum:"a": does not go with`: SchemaOf[struct {
			A int `json:"a" enum:"a"`
		}],
		`tag default:"x": no JSON`: SchemaOf[struct {
			A int `json:"a" default:"x"`
		}],
		"must be exported and have a name": SchemaOf[struct{ inner }],
		"it holds itself":                  SchemaOf[tree],
	} {
		if s, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %s, %v; want an error with %q", s, err, want)
		}
	}
}
