package worker

import (
	"encoding/json"
	"fmt"

	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/task"
)

// A checkpoint is what a later run goes on from. It is stored; fields are only
// ever added.
type checkpoint struct {
	Rounds  int       `json:"rounds"`            // that were taken, over all runs
	Steps   []message `json:"steps,omitempty"`   // what they added to the talk with the model
	Storage string    `json:"storage,omitempty"` // where the files are
	Asked   []asked   `json:"asked,omitempty"`   // of a planner: what people have answered
	// Pending is the call that waits for somebody's word, and Allowed what may be done
	// as often as it is wanted, by its digest.
	Pending *pending `json:"pending,omitempty"`
	Allowed []string `json:"allowed,omitempty"`
	// Agent is where an expert's agent stands.
	Agent *agentState `json:"agent,omitempty"`
}

// asked is a question of a planner with its answer.
type asked struct {
	chat.TaskQuestion
	Answer string      `json:"answer"`
	By     chat.Author `json:"by"`
}

// A message is an llm.Message as it is stored.
type message struct {
	Role    llm.Role   `json:"role"`
	Content string     `json:"content,omitempty"`
	Calls   []toolCall `json:"calls,omitempty"`
	CallID  string     `json:"callId,omitempty"`
}

type toolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (c *checkpoint) add(added []llm.Message) {
	c.Rounds++
	for _, m := range added {
		kept := message{Role: m.Role, Content: m.Content, CallID: m.ToolCallID}
		for _, call := range m.ToolCalls {
			kept.Calls = append(kept.Calls, toolCall(call))
		}
		c.Steps = append(c.Steps, kept)
	}
}

func (c *checkpoint) messages() []llm.Message {
	out := make([]llm.Message, 0, len(c.Steps))
	for _, m := range c.Steps {
		msg := llm.Message{Role: m.Role, Content: m.Content, ToolCallID: m.CallID}
		for _, call := range m.Calls {
			msg.ToolCalls = append(msg.ToolCalls, llm.ToolCall(call))
		}
		out = append(out, msg)
	}
	return out
}

// shorter is messages with the outputs cut to a bound that halves with each
// round; the calls stay, since an answer must have its call.
func (c *checkpoint) shorter(round int) []llm.Message {
	out := c.messages()
	most := 4 << 10 >> round
	for i := range out {
		if out[i].Role != llm.Assistant {
			out[i].Content = history.Cut(out[i].Content, most)
		}
	}
	return out
}

// encode spells the checkpoint within its bound: the oldest outputs are cut first,
// then what the model wrote.
func (c *checkpoint) encode() ([]byte, error) {
	for _, most := range []int{0, 8 << 10, 2 << 10, 512, 128} {
		data, err := c.cut(most)
		if err != nil || len(data) <= task.MaxCheckpoint {
			return data, err
		}
	}
	data, err := c.cut(16)
	if err == nil && len(data) > task.MaxCheckpoint {
		err = fmt.Errorf("the work of %d steps does not fit into %d bytes", c.Rounds, task.MaxCheckpoint)
	}
	return data, err
}

// cut encodes the checkpoint with texts of at most so many bytes, but for those of
// the newest round; 0 cuts nothing.
func (c *checkpoint) cut(most int) ([]byte, error) {
	kept := *c
	if most > 0 {
		kept.Steps = make([]message, len(c.Steps))
		copy(kept.Steps, c.Steps)
		for i := range kept.Steps[:max(0, len(kept.Steps)-2)] {
			m := &kept.Steps[i]
			m.Content = history.Cut(m.Content, most)
			calls := make([]toolCall, len(m.Calls))
			for k, call := range m.Calls {
				if len(call.Arguments) > 4*most {
					call.Arguments = "{}" // half of a JSON text is none
				}
				calls[k] = call
			}
			m.Calls = calls
		}
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("encode the checkpoint: %w", err)
	}
	return data, nil
}
