package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
)

// maxToolCalls bounds the tool calls of one answer; a model in a loop writes
// them without end.
const maxToolCalls = 128

// An answer is what a stream has come to so far, whichever API it speaks.
type answer struct {
	onDelta func(string)

	text, refusal strings.Builder
	calls         []*partCall
	size          int // bytes of text, refusal and calls
	model         string
	usage         Usage
	began         bool   // something of an answer came
	finish        string // "stop", "length" or "tool_calls" once the endpoint said so
	fault         error  // once the endpoint said that there is no answer
}

// A partCall is a tool call as it comes together.
type partCall struct {
	index     int // where the endpoint puts it
	id, name  string
	arguments strings.Builder
}

// ended reports whether the endpoint has said how the answer ends.
func (a *answer) ended() bool { return a.finish != "" || a.fault != nil }

func (a *answer) addText(s string) error {
	if err := a.grow(len(s)); err != nil || s == "" {
		return err
	}
	a.text.WriteString(s)
	if a.onDelta != nil {
		a.onDelta(s)
	}
	return nil
}

func (a *answer) addRefusal(s string) error {
	a.refusal.WriteString(s)
	return a.grow(len(s))
}

func (a *answer) grow(n int) error {
	if a.size += n; a.size > MaxAnswer {
		return &Error{Kind: Transient, Err: fmt.Errorf("the answer is over %d bytes, the most that is taken", MaxAnswer)}
	}
	return nil
}

// addCall takes a piece of a tool call. Endpoints agree on little here: some
// number the calls, some give each the number 0, some send no ids, and some
// repeat id and name with every piece. So a piece begins a new call when
// its id differs, or when it has a name and the arguments before it are whole.
func (a *answer) addCall(index int, id, name, arguments string) error {
	if err := a.grow(len(id) + len(name) + len(arguments)); err != nil {
		return err
	}
	c := a.call(index)
	switch {
	case c == nil:
	case id != "" && c.id != "" && id != c.id:
		c = nil
	case id == "" && name != "" && c.name != "" && json.Valid([]byte(c.arguments.String())):
		c = nil
	}
	if c == nil {
		if len(a.calls) == maxToolCalls {
			return &Error{Kind: Transient, Err: fmt.Errorf("the answer has over %d tool calls, the most that are taken", maxToolCalls)}
		}
		c = &partCall{index: index}
		a.calls = append(a.calls, c)
	}
	c.id, c.name = cmp.Or(c.id, id), cmp.Or(c.name, name)
	c.arguments.WriteString(arguments)
	return nil
}

// call gives the newest call with an index, nil when there is none.
func (a *answer) call(index int) *partCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].index == index {
			return a.calls[i]
		}
	}
	return nil
}

// use takes the usage numbers. Some endpoints leave the tokens of reasoning out
// of the completion and show them in the total only; they are paid for too.
func (a *answer) use(prompt, completion, total, cached int) {
	prompt = max(prompt, 0)
	completion = max(completion, total-prompt, 0)
	if prompt == 0 && completion == 0 {
		return
	}
	a.usage = Usage{Prompt: prompt, Completion: completion, Cached: min(max(cached, 0), prompt)}
}

// end takes a finish reason. Servers have many words for a good end, so all but
// the known bad ones are one.
func (a *answer) end(reason string) {
	switch strings.ToLower(reason) {
	case "":
	case "error":
		a.fail(&Error{Kind: Transient, Err: errors.New("the endpoint broke off its answer with finish reason \"error\"")})
	case "content_filter", "safety", "prohibited_content", "refusal", "recitation", "blocklist":
		a.fail(&Error{Kind: Refused, Err: fmt.Errorf("the endpoint withheld its answer (finish reason %q)", reason)})
	case "length", "max_tokens", "max_output_tokens":
		a.finish = "length"
	default:
		a.finish = "stop"
	}
}

// fail records that there is no answer; the first reason is the one that counts.
func (a *answer) fail(err error) {
	if a.fault == nil {
		a.fault = err
	}
}

// judge decides whether what came is an answer.
func (a *answer) judge() error {
	switch {
	case a.fault != nil:
		return a.fault
	case strings.TrimSpace(a.text.String()) != "" || len(a.calls) > 0:
		return nil
	case a.refusal.Len() > 0:
		return &Error{Kind: Refused, Err: fmt.Errorf("the model refused: %s", a.refusal.String())}
	case a.finish == "length":
		// The prompt, or reasoning about it, left no room for a single word.
		// To ask the same again would cost the same and end the same.
		return &Error{Kind: TooLong, Err: errors.New("the model answered nothing before its tokens were used up (finish reason \"length\")")}
	}
	return &Error{Kind: Transient, Err: fmt.Errorf("the model answered nothing (finish reason %q)", a.finish)}
}

// result is the answer as callers see it.
func (a *answer) result() (text string, calls []ToolCall, finish string) {
	text, finish = a.text.String(), a.finish
	for i, c := range a.calls {
		call := ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()}
		if call.ID == "" {
			// The result must name its call, and the name must not come twice
			// in a conversation.
			h := fnv.New64a()
			fmt.Fprintf(h, "%d\x00%s\x00%s\x00%s", i, call.Name, call.Arguments, text)
			call.ID = fmt.Sprintf("call_%d_%016x", i, h.Sum64())
		}
		calls = append(calls, call)
	}
	if len(calls) > 0 && finish == "stop" {
		finish = "tool_calls"
	}
	return text, calls, finish
}

// A looseText is a JSON value that should be a string. Some endpoints send null,
// a list of parts, or the object that the string should hold.
type looseText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *looseText) UnmarshalJSON(data []byte) error {
	switch {
	case bytes.Equal(data, []byte("null")):
		*t = ""
		return nil
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(t))
	case data[0] == '[':
		var parts []struct{ Type, Text string }
		if json.Unmarshal(data, &parts) == nil {
			*t = ""
			for _, p := range parts {
				if p.Type == "" || p.Type == "text" || p.Type == "output_text" {
					*t += looseText(p.Text)
				}
			}
			return nil
		}
	}
	*t = looseText(data)
	return nil
}
