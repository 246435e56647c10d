package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mimikit/core/action"
	"mimikit/core/llm"
)

// An actor is a model that answers as a script says.
type actor struct {
	style action.Style

	mu     sync.Mutex
	script script
	calls  int
}

func act(s script, style action.Style) *actor {
	s.Thinks = slices.Clone(s.Thinks)
	return &actor{script: s, style: style}
}

// Complete implements llm.Model. What the script does not have is a failed call.
func (a *actor) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, calls, err := a.next(req.Agent)
	if err != nil {
		return llm.Response{}, &llm.Error{Kind: llm.Fatal, Err: err}
	}
	r := llm.Response{Text: text, Model: "script", Finish: "stop"}
	if a.style == action.Block {
		r.Text = strings.TrimSpace(text + "\n\n" + block(calls))
	} else if r.ToolCalls, err = a.toolCalls(calls); err != nil {
		return llm.Response{}, err
	}
	return r, nil
}

func (a *actor) next(agent string) (text string, c calls, err error) {
	take := func(s *string) string {
		text := *s
		*s = ""
		return text
	}
	switch {
	case agent == "teller-digest" && a.script.Digest != "":
		return take(&a.script.Digest), nil, nil
	case agent == "teller" && a.script.Words != "":
		return take(&a.script.Words), nil, nil
	case agent == "thinker" && len(a.script.Thinks) > 0:
		t := a.script.Thinks[0]
		a.script.Thinks = a.script.Thinks[1:]
		return t.Says, t.Calls, nil
	}
	return "", nil, fmt.Errorf("the script has no further answer of the %s", agent)
}

func (a *actor) toolCalls(all calls) ([]llm.ToolCall, error) {
	var out []llm.ToolCall
	for _, c := range all {
		for name, arguments := range c {
			data, err := json.Marshal(orEmpty(arguments))
			if err != nil {
				return nil, err
			}
			a.calls++
			out = append(out, llm.ToolCall{ID: fmt.Sprintf("call_%d", a.calls), Name: name, Arguments: string(data)})
		}
	}
	return out, nil
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// left says what of the script nobody asked for.
func (a *actor) left() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	if a.script.Digest != "" {
		out = append(out, "the digest")
	}
	if n := len(a.script.Thinks); n > 0 {
		out = append(out, fmt.Sprintf("%d of what the thinker answers", n))
	}
	if a.script.Words != "" {
		out = append(out, "the words of the teller")
	}
	return strings.Join(out, ", ")
}

// block spells calls as models without tools write them.
func block(all calls) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<MIMIKIT:actions>\n")
	for _, c := range all {
		for name, arguments := range c {
			b.WriteString("@" + name)
			for _, key := range slices.Sorted(maps.Keys(arguments)) {
				value := ""
				switch v := arguments[key].(type) {
				case string:
					value = v
				case time.Time:
					value = v.Format(time.RFC3339)
				default:
					value = mustJSON(v)
				}
				b.WriteString(" " + key + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`)
			}
			b.WriteString("\n")
		}
	}
	return b.String() + "</MIMIKIT:actions>"
}
