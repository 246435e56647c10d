package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"mimikit/core/chat"
)

// The agents that actions are offered to, as llm.Request.Agent spells them.
const (
	TellerDigest   = "teller-digest"
	Thinker        = "thinker"
	Planner        = "planner"
	WorkerStandard = "worker-standard"
)

var agents = []string{TellerDigest, Thinker, Planner, WorkerStandard}

// A Kind says when an action is done and what comes of it.
type Kind int

// The kinds. The zero Kind is invalid.
const (
	Lookup Kind = 1 // done at once; the model is given its answer within the run
	Effect Kind = 2 // checked at once, done by the caller's commit
	End    Kind = 3 // ends the run; an agent that has one must use one
)

// String names the kind as logs spell it.
func (k Kind) String() string {
	switch k {
	case Lookup:
		return "lookup"
	case Effect:
		return "effect"
	case End:
		return "end"
	}
	return "unknown"
}

// A Spec is an action as data: all but its function. A is the struct of its
// arguments, whose tags make the schema; see [SchemaOf]. When A, or a pointer to
// it, has a method Check() error, that is asked about the rules that no schema
// can state; what it returns goes to the model.
type Spec[A any] struct {
	Name        string // 1 to 64 of a-z A-Z 0-9 _ -
	Description string // for the model; the first sentence stands for the whole where there is little room
	Kind        Kind
	Agents      []string  // who may use it
	Rights      chat.Role // the least right; zero means RoleUser
	Examples    []string  // in the line syntax; checked at start
	Help        string    // what people are told about it; empty leaves it out of help
	Say         string    // what a person may say to have it done
}

// An Outcome is what a function made of a call.
type Outcome struct {
	// Answer is what the model is told, cut to the run's bound. An effect that
	// answers nothing is reported as done, and does not alone cost another round.
	Answer string
	// Effects are handed to the caller of [Run] as they are.
	Effects []any
	// End ends the run after this call. Actions of kind End do so anyway.
	End bool
}

// A Func does an action, or checks and prepares it where it is an effect. What
// the model can mend it reports by [Mistakef]; of any other error the model
// hears only that it failed, since errors name addresses and keys.
type Func[A any] func(ctx context.Context, t Turn, arguments A) (Outcome, error)

// A Definition is an action that can be registered.
type Definition struct {
	Name        string
	Description string
	Kind        Kind
	Agents      []string
	Rights      chat.Role
	Examples    []string
	Help, Say   string
	Schema      json.RawMessage

	call    Func[json.RawMessage]       // nil in an outline
	check   func(json.RawMessage) error // beyond the schema; nil when there is nothing
	foreign bool                        // the schema is not ours
	fail    error                       // why it cannot be registered
	rules   *rules                      // set by the registry
}

// Define joins a spec with its function.
func Define[A any](s Spec[A], f Func[A]) Definition {
	d := s.Outline()
	if f == nil {
		d.fail = errors.Join(d.fail, errors.New("its function is nil"))
		return d
	}
	d.call = func(ctx context.Context, t Turn, raw json.RawMessage) (Outcome, error) {
		a, err := read[A](raw)
		if err != nil {
			return Outcome{}, err
		}
		return f(ctx, t, a)
	}
	return d
}

// Outline gives the definition without a function, for [Outline], that is for
// documents and previews. [New] refuses it.
func (s Spec[A]) Outline() Definition {
	d := Definition{
		Name: s.Name, Description: s.Description, Kind: s.Kind, Agents: slices.Clone(s.Agents), Rights: s.Rights,
		Examples: slices.Clone(s.Examples), Help: s.Help, Say: s.Say,
		check: func(raw json.RawMessage) error { _, err := read[A](raw); return err },
	}
	d.Schema, d.fail = SchemaOf[A]()
	return d
}

// Foreign defines an action whose schema comes from elsewhere, such as a tool of
// an MCP server. The function is given the arguments as JSON. The schema must be
// one of an object and may refer only to itself; what it leaves open stays open.
func Foreign(s Spec[json.RawMessage], schema json.RawMessage, f Func[json.RawMessage]) Definition {
	d := Definition{
		Name: s.Name, Description: s.Description, Kind: s.Kind, Agents: slices.Clone(s.Agents), Rights: s.Rights,
		Examples: slices.Clone(s.Examples), Help: s.Help, Say: s.Say,
		Schema: slices.Clone(schema), call: f, foreign: true,
	}
	if f == nil {
		d.fail = errors.New("its function is nil")
	}
	return d
}

// read decodes arguments that fit the schema.
func read[A any](raw json.RawMessage) (A, error) {
	var a A
	if err := json.Unmarshal(raw, &a); err != nil {
		// The schema let it pass, and the type does not hold it: a date that is none,
		// a number beyond 64 bits.
		return a, Mistakef("%s", unfit(err))
	}
	var c any = a
	if _, ok := c.(interface{ Check() error }); !ok {
		c = &a
	}
	if c, ok := c.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			var m *Mistake
			if errors.As(err, &m) {
				return a, m
			}
			return a, &Mistake{Text: err.Error()}
		}
	}
	return a, nil
}

// unfit words a decoding error without Go's types.
func unfit(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) && t.Field != "" {
		return fmt.Sprintf("%s: the %s is out of range", t.Field, t.Value)
	}
	return err.Error()
}

// A Mistake is an error that a model can mend. Its text is written for the model
// and for people: it names the field, the value and what is allowed.
type Mistake struct{ Text string }

// Error gives the text.
func (m *Mistake) Error() string { return m.Text }

// Mistakef words a mistake.
func Mistakef(format string, args ...any) *Mistake {
	return &Mistake{Text: fmt.Sprintf(format, args...)}
}
