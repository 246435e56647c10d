package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A mind is an endpoint whose thinker starts a task when it is asked to work, and
// tells results; its worker takes the steps that it is given.
type mind struct {
	mu    sync.Mutex
	steps []llm.ToolCall // of the worker, by how many it has taken
	hang  int            // step before which the worker's call hangs, once; 0 is none
	hung  chan struct{}
}

func tool(name string, arguments map[string]any) llm.ToolCall {
	data, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return llm.ToolCall{ID: "call-" + name, Name: name, Arguments: string(data)}
}

func (m *mind) behave(x *llmtest.Exchange) {
	messages := x.Call.Chat.Messages
	said := func(i int) string {
		if c := messages[i].Content; c != nil {
			return *c
		}
		return ""
	}
	system, last := said(0), said(len(messages)-1)
	switch {
	case strings.Contains(system, "respond") && strings.Contains(system, "workspace"):
		m.mu.Lock()
		done := 0
		for _, msg := range messages {
			done += len(msg.ToolCalls)
		}
		hang := m.hang > 0 && done == m.hang
		if hang {
			m.hang = 0
		}
		step := m.steps[min(done, len(m.steps)-1)]
		m.mu.Unlock()
		if hang {
			close(m.hung)
			llmtest.Hangs()(x)
			return
		}
		step.ID += fmt.Sprint(done)
		llmtest.CallsTools("", step)(x)
	case strings.Contains(last, "<result "):
		body := last[strings.Index(last, "<result "):]
		_, text, _ := strings.Cut(body, ">\n")
		text, _, _ = strings.Cut(text, "</result>")
		llmtest.Answers("The task is over: " + strings.TrimSpace(text))(x)
	case strings.Contains(last, "work:"):
		_, what, _ := strings.Cut(last, "work:")
		what, _, _ = strings.Cut(what, "\n")
		llmtest.CallsTools("I have started it.", tool("create_task", map[string]any{"prompt": what, "title": "Work", "profile": "standard"}))(x)
	default:
		llmtest.Answers("All is well.")(x)
	}
}

// A task that is asked for in words is done in the background, and its result
// comes back to the conversation, once, also when the node is killed between any
// two of its steps.
func TestTaskSurvivesKills(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	steps := []llm.ToolCall{
		tool("write_file", map[string]any{"path": "a.txt", "content": "one\ntwo\n"}),
		tool("edit_file", map[string]any{"path": "a.txt", "old_text": "two", "new_text": "three"}),
		tool("read_file", map[string]any{"path": "a.txt"}),
		tool("respond", map[string]any{"output": "It holds one and three."}),
	}
	for hang := range len(steps) {
		t.Run(fmt.Sprintf("killed before step %d", hang+1), func(t *testing.T) {
			t.Parallel()
			m := &mind{steps: steps, hang: hang, hung: make(chan struct{})}
			d := deploy(t, m.behave, "MIMIKIT_WORKER_LEASE=1s", "MIMIKIT_WORKER_HEARTBEAT=300ms")
			node, _ := d.serve()
			if got := d.once("t", "work: fill a file"); got != "I have started it." {
				t.Fatalf("the answer is %q", got)
			}
			if hang > 0 {
				select {
				case <-m.hung:
				case <-time.After(patience):
					t.Fatal("the worker never came to its step")
				}
				node.kill()
				d.serve()
			}
			storetest.Eventually(t, "the result is told", func() error {
				texts, _ := d.record(nil).posted("t")
				if n := len(texts); n < 2 {
					return fmt.Errorf("%d replies: %q", n, texts)
				}
				return nil
			})
			texts, _ := d.record(nil).posted("t")
			if len(texts) != 2 || texts[1] != "The task is over: It holds one and three." {
				t.Errorf("posted %q", texts)
			}
			found, err := filepath.Glob(filepath.Join(d.dir, "tasks", "*", "*.md"))
			if err != nil || len(found) != 1 {
				t.Errorf("archived: %q, %v", found, err)
			}
			calls, err := filepath.Glob(filepath.Join(d.dir, "llm", "*", "*.json"))
			if err != nil || len(calls) < 5 {
				t.Errorf("%d calls are archived, %v", len(calls), err)
			}
			for _, name := range calls {
				if data, err := os.ReadFile(name); err != nil || strings.Contains(string(data), llmtest.Key) {
					t.Errorf("%s: %v, or it has the key", name, err)
				}
			}
		})
	}
}
