package action

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mimikit/core/chat"
)

func fine(name string) Definition {
	return Define(Spec[none]{Name: name, Kind: Lookup, Agents: thinks, Description: "Does."},
		func(context.Context, Turn, none) (Outcome, error) { return Outcome{}, nil })
}

func with(change func(*Definition)) Definition {
	d := fine("x")
	change(&d)
	return d
}

func TestARegistryRefusesAtStart(t *testing.T) {
	t.Parallel()
	raw := func(context.Context, Turn, json.RawMessage) (Outcome, error) { return Outcome{}, nil }
	foreign := func(schema string) []Definition {
		return []Definition{Foreign(Spec[json.RawMessage]{Name: "x", Kind: Lookup, Agents: works, Description: "Does."}, json.RawMessage(schema), raw)}
	}
	bad := fine("x")
	bad.Schema, bad.fail = SchemaOf[struct{ A int }]()
	for want, defs := range map[string][]Definition{
		`action "x": the name is taken`:             {fine("x"), fine("y"), fine("x")},
		`action "a.b": a name has`:                  {fine("a.b")},
		`action "": a name has`:                     {fine("")},
		"the json tag names nothing":                {bad},
		"it has no description":                     {with(func(d *Definition) { d.Description = " " })},
		"its kind is 0":                             {with(func(d *Definition) { d.Kind = 0 })},
		"its rights are 7":                          {with(func(d *Definition) { d.Rights = 7 })},
		"no agent may use it":                       {with(func(d *Definition) { d.Agents = nil })},
		`there is no agent "poet"`:                  {with(func(d *Definition) { d.Agents = []string{"poet"} })},
		"it has no function":                        {Remember.Outline()},
		"its function is nil":                       {Define[Note](Remember, nil)},
		"its example @x a=\"1\": x: a: there is":    {with(func(d *Definition) { d.Examples = []string{`@x a="1"`} })},
		"want one line @x":                          {with(func(d *Definition) { d.Examples = []string{`@y`} })},
		"read its schema":                           foreign(`{`),
		"compile its schema":                        foreign(`{"type":"object","properties":{"a":{"type":"nothing"}}}`),
		"must be of the type object":                foreign(`{"type":"string"}`),
		"file:///etc/passwd is outside":             foreign(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`),
		"http://10.0.0.1/s.json is outside":         foreign(`{"type":"object","properties":{"a":{"$ref":"http://10.0.0.1/s.json"}}}`),
		`the field type is given twice`:             foreign(`{"type":"object","type":"string"}`),
		"action \"a b\": a name has 1 to 64":        {fine("z"), fine("a b"), fine("z")},
		strings.Repeat("a", 65) + `": a name has 1`: {fine(strings.Repeat("a", 65))},
	} {
		if r, err := New(defs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want an error with %q", r, err, want)
		}
	}
}

func TestAnOfferIsWhatAgentAndRightsAllow(t *testing.T) {
	t.Parallel()
	r := thinker(t, &noted{})
	user := []string{"break", "create_task", "fall", "list_tasks", "remember", "search_memory"}
	admin := []string{"break", "create_task", "fall", "list_tasks", "purge", "remember", "search_memory"}
	for _, c := range []struct {
		agent  string
		rights chat.Role
		want   []string
	}{
		{Thinker, chat.RoleUser, user}, {Thinker, chat.RoleOperator, user}, {Thinker, chat.RoleAdmin, admin},
		{Thinker, 0, nil}, {Planner, chat.RoleAdmin, []string{"list_tasks", "search_memory"}}, {"poet", chat.RoleAdmin, nil},
	} {
		if got := r.For(c.agent, c.rights).Names(); !slices.Equal(got, c.want) {
			t.Errorf("%s as %s may use %v; want %v", c.agent, c.rights, got, c.want)
		}
	}
	empty := r.For("poet", chat.RoleAdmin)
	if !empty.Empty() || empty.Tools() != nil || empty.Describe(Block) != "" || empty.Help() != "" {
		t.Errorf("an empty offer offers %v %q %q", empty.Tools(), empty.Describe(Block), empty.Help())
	}
}

// The provider's prompt cache hits only what is the same to the byte.
func TestAnOfferIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	defs := Vocabulary()
	a, err := Outline(defs...)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(defs)
	b, err := Outline(defs...)
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range agents {
		x, y := a.For(agent, chat.RoleUser), b.For(agent, chat.RoleUser)
		if !reflect.DeepEqual(x.Tools(), y.Tools()) || x.Describe(Native) != y.Describe(Native) || x.Describe(Block) != y.Describe(Block) {
			t.Errorf("%s is offered something else when the registry is filled in another order", agent)
		}
	}
}

func TestAForeignSchemaIsJudgedByItself(t *testing.T) {
	t.Parallel()
	var got string
	d := Foreign(Spec[json.RawMessage]{Name: "gh-search", Kind: Lookup, Agents: works, Description: "Searches."},
		json.RawMessage(`{"type":"object","properties":{
			"q":{"type":"string","pattern":"^[a-z]+$"},
			"n":{"anyOf":[{"type":"integer"},{"type":"null"}]},
			"since":{"type":["string","null"]},
			"sort-by":{"enum":["new","old"]},
			"at":{"$ref":"#/definitions/point"}},
			"required":["q"],
			"definitions":{"point":{"type":"object","properties":{"x":{"type":"number","exclusiveMinimum":0}}}}}`),
		func(_ context.Context, _ Turn, raw json.RawMessage) (Outcome, error) {
			got = string(raw)
			return Outcome{}, nil
		})
	r, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	o := r.For(WorkerStandard, chat.RoleUser)
	for in, want := range map[string]string{
		`{"q":"a","n":null,"extra":1}`: `{"extra":1,"n":null,"q":"a"}`, // what it leaves open stays open
		`{"q":"A"}`:                    "gh-search: q: 'A' does not match pattern '^[a-z]+$'",
		`{"q":"a","n":"x"}`:            "gh-search: n: it is none of what is allowed; want a whole number, or null",
		`{"q":"a","at":{"x":0}}`:       "gh-search: at.x: exclusiveMinimum: got 0, want 0",
		`{"q":"a","sort-by":"odd"}`:    `gh-search: sort-by: "odd" is not allowed; want one of new, old`,
	} {
		d := tool(o, "gh-search", in)
		if d.Err != nil {
			if d.Err.Error() != want {
				t.Errorf("%s: %v; want %s", in, d.Err, want)
			}
			continue
		}
		mustEqualJSON(t, d.Call.Arguments, want)
	}
	_, calls := o.DecodeBlock(block(`@gh-search q="a" sort-by="new" at="{\"x\":2}" since="2024" more="7"`))
	if len(calls) != 1 || calls[0].Err != nil {
		t.Fatalf("decoded %+v", calls)
	}
	if _, err := o.Do(t.Context(), turn(ann), calls[0].Call); err != nil {
		t.Fatal(err)
	}
	mustEqualJSON(t, json.RawMessage(got), `{"at":{"x":2},"more":"7","q":"a","since":"2024","sort-by":"new"}`)
}
