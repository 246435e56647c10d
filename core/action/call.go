package action

import (
	"encoding/json"
	"strings"

	"mimikit/core/llm"
)

// A Call is an action that a model asks for. It is the same whichever way it
// came; the shape is stored in checkpoints, so it is add-only.
type Call struct {
	ID        string          `json:"id"`        // ties an answer to its call; unique within a round
	Name      string          `json:"name"`      // of a registered action, unless decoding failed
	Arguments json.RawMessage `json:"arguments"` // fit the schema, with defaults, and are canonical; nil when decoding failed
	Raw       string          `json:"raw"`       // as the model wrote it
}

// A Decoded is a call as it was read. When Err is not nil it is a *Mistake and
// the call must not be done.
type Decoded struct {
	Call Call
	Err  error
}

// DecodeTools reads native tool calls, in their order, one for each. Names are
// taken as they stand, but for the prefix "functions."; arguments that are empty
// mean an object without fields. Nothing else is repaired.
func (o *Offer) DecodeTools(calls []llm.ToolCall) []Decoded {
	out := make([]Decoded, 0, len(calls))
	for _, t := range calls {
		c := Call{ID: t.ID, Name: t.Name, Raw: t.Arguments}
		d, err := o.find(t.Name)
		if err != nil {
			out = append(out, Decoded{c, err})
			continue
		}
		c.Name = d.Name
		raw := t.Arguments
		if strings.TrimSpace(raw) == "" {
			raw = "{}"
		}
		v, err := parseJSON(raw)
		if err == nil {
			c.Arguments, err = d.arguments(v)
		} else {
			err = Mistakef("%s: %s", d.Name, err)
		}
		out = append(out, Decoded{c, err})
	}
	return out
}
