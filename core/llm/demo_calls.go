package llm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// How the demo model acts: with native tool calls where tools are offered, else
// by a block of actions where the system prompt tells of one. It knows actions
// by name and JSON only, and uses none that it was not offered.

// A demoCall is a use of an action.
type demoCall struct {
	name string
	args map[string]any
}

func (c demoCall) json() string {
	data, err := json.Marshal(c.args)
	if err != nil {
		return "{}" // unreachable: arguments are texts, numbers, times, and lists of these
	}
	return string(data)
}

// A demoOutcome is what came of a call.
type demoOutcome struct {
	name string
	args string // JSON; "" where it is not known
	ok   bool
	text string // what it gave, or why it failed
}

// reason is why it failed, without the name that errors begin with.
func (o demoOutcome) reason() string {
	text := strings.TrimSpace(strings.TrimPrefix(o.text, "error: "))
	return clip(strings.TrimPrefix(text, o.name+": "), 400)
}

// told is what it said beyond that it is done.
func (o demoOutcome) told() string {
	if text := strings.TrimSpace(o.text); !strings.EqualFold(text, "done") {
		return text
	}
	return ""
}

// A demoOffer is what may be called, and what was.
type demoOffer struct {
	names   map[string]bool // offered now, or called before in this turn
	now     map[string]bool // offered now
	blocks  bool            // calls are written as a block
	closing bool            // the program asks to come to an end
	rounds  [][]demoOutcome // of this turn
	resumed int             // messages of these rounds
}

const (
	blockStart = "<MIMIKIT:actions>"
	blockEnd   = "</MIMIKIT:actions>"
)

var (
	offeredLine = lazily(`(?m)^@([A-Za-z0-9_-]+)(?: |\r?$)`)
	listedLine  = lazily("(?m)^- `([A-Za-z0-9_-]+)`: ")
	answerBlock = block("action_result")
)

// ends are the actions that end a run: all that is left when it is to close.
var ends = []string{"respond", "done", "needs_input", "failed", "digest_context", "handoff_context"}

func readOffer(req Request, rounds []Message) demoOffer {
	o := demoOffer{names: map[string]bool{}, now: map[string]bool{}, resumed: len(rounds)}
	for _, t := range req.Tools {
		o.now[t.Name] = true
	}
	for _, m := range req.Messages {
		if m.Role != System {
			continue
		}
		// The lines that describe actions stand behind the example of a block.
		_, list, ok := strings.Cut(m.Content, blockEnd)
		if ok = ok && len(req.Tools) == 0 && strings.Contains(m.Content, blockStart); ok {
			for _, l := range offeredLine().FindAllStringSubmatch(list, -1) {
				o.now[l[1]], o.blocks = true, true
			}
		}
		if len(rounds) > 0 {
			// In the last round tools are gone that the wishes began with.
			for _, l := range listedLine().FindAllStringSubmatch(m.Content, -1) {
				o.names[l[1]] = true
			}
		}
	}
	maps.Copy(o.names, o.now)
	o.readRounds(rounds)
	if o.closing {
		maps.DeleteFunc(o.now, func(name string, _ bool) bool { return !slices.Contains(ends, name) })
	}
	return o
}

// readRounds pairs calls and answers. What the program says beside answers is
// that it is time to end.
func (o *demoOffer) readRounds(rounds []Message) {
	called := map[string]ToolCall{}
	for i, m := range rounds {
		switch m.Role {
		case Assistant:
			o.rounds = append(o.rounds, nil)
			for _, c := range m.ToolCalls {
				called[c.ID] = c
			}
		case ToolRole:
			c := called[m.ToolCallID]
			o.add(demoOutcome{c.Name, c.Arguments, !strings.HasPrefix(m.Content, "error: "), m.Content})
		case User:
			for _, r := range answerBlock().FindAllStringSubmatch(m.Content, -1) {
				a := attributes(r[1])
				o.add(demoOutcome{a["name"], "", a["error"] != "true", plain(r[2])})
			}
			o.closing = i == len(rounds)-1 && strings.TrimSpace(answerBlock().ReplaceAllString(m.Content, "")) != ""
		}
	}
}

func (o *demoOffer) add(done demoOutcome) {
	if len(o.rounds) == 0 {
		o.rounds = append(o.rounds, nil)
	}
	o.rounds[len(o.rounds)-1] = append(o.rounds[len(o.rounds)-1], done)
	o.names[done.name] = true
}

// offers says whether an action may be used in this turn.
func (o *demoOffer) offers(name string) bool { return o.names[name] }

// may says whether it may be called now.
func (o *demoOffer) may(name string) bool { return o.now[name] }

// done are the outcomes of all rounds, in their order.
func (o *demoOffer) done() []demoOutcome { return slices.Concat(o.rounds...) }

// toolCalls gives calls their native shape. The ids are unique in the turn, also
// where an earlier run of a task made a part of its rounds.
func (o *demoOffer) toolCalls(calls []demoCall) []ToolCall {
	var out []ToolCall
	for i, c := range calls {
		out = append(out, ToolCall{ID: fmt.Sprintf("demo_%d_%d", o.resumed+1, i+1), Name: c.name, Arguments: c.json()})
	}
	return out
}

// actionBlock writes calls as a block.
func actionBlock(calls []demoCall) string {
	var b strings.Builder
	b.WriteString(blockStart + "\n")
	for _, c := range calls {
		b.WriteString("@" + c.name)
		for _, key := range slices.Sorted(maps.Keys(c.args)) {
			value, ok := c.args[key].(string)
			if !ok {
				data, err := json.Marshal(c.args[key])
				if err != nil {
					continue // unreachable, as above
				}
				value = string(data)
			}
			b.WriteString(" " + key + `="` + quoted.Replace(value) + `"`)
		}
		b.WriteString("\n")
	}
	b.WriteString(blockEnd)
	return b.String()
}
