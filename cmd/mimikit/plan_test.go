package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A team is an endpoint whose thinker hands "plan:" to the planner, which makes the
// plan that it is given, and whose workers look at A and B and write of both.
type team struct {
	mu   sync.Mutex
	plan func() (name string, arguments map[string]any)
	hang string // who hangs, once: planner, a word of a worker's request, or nobody
	hung chan struct{}
}

func after(refs ...string) map[string]any {
	var all []any
	for _, ref := range refs {
		all = append(all, map[string]any{"type": "task_done", "params": map[string]any{"taskId": ref}})
	}
	if len(all) == 1 {
		return all[0].(map[string]any)
	}
	return map[string]any{"type": "and", "conditions": all}
}

// comparison is the plan of "compare A and B, then write a report".
func comparison() (string, map[string]any) {
	return "done", map[string]any{
		"tasks":    []any{map[string]any{"ref": "a", "prompt": "look at A", "title": "A"}, map[string]any{"ref": "b", "prompt": "look at B", "title": "B"}},
		"triggers": []any{map[string]any{"prompt": "write the report", "title": "Report", "type": "conditional", "condition": after("a", "b")}},
	}
}

func (tm *team) hangs(who string, x *llmtest.Exchange) bool {
	tm.mu.Lock()
	hang := tm.hang == who && who != ""
	if hang {
		tm.hang = ""
	}
	tm.mu.Unlock()
	if hang {
		close(tm.hung)
		llmtest.Hangs()(x)
	}
	return hang
}

func (tm *team) behave(x *llmtest.Exchange) {
	var all []string
	for _, msg := range x.Call.Chat.Messages {
		if msg.Content != nil {
			all = append(all, *msg.Content)
		}
	}
	text, last := strings.Join(all, "\n"), all[len(all)-1]
	answer := func(who, output string) {
		if !tm.hangs(who, x) {
			llmtest.CallsTools("", tool("respond", map[string]any{"output": output}))(x)
		}
	}
	switch {
	case strings.Contains(all[0], "You are the planner"):
		if !tm.hangs("planner", x) {
			name, arguments := tm.plan()
			llmtest.CallsTools("", tool(name, arguments))(x)
		}
	case strings.Contains(all[0], "workspace") && strings.Contains(text, "write the report"):
		output := "I know of nothing."
		if strings.Contains(text, "> A is red.") && strings.Contains(text, "> B is blue.") {
			output = "A is red, B is blue."
		}
		answer("report", output)
	case strings.Contains(all[0], "workspace") && strings.Contains(text, "look at A"):
		answer("A", "A is red.")
	case strings.Contains(all[0], "workspace") && strings.Contains(text, "look at B"):
		answer("B", "B is blue.")
	case strings.Contains(last, "<result "):
		body := last[strings.Index(last, "<result "):]
		var said []string
		for _, part := range strings.Split(body, "<result ")[1:] {
			_, output, _ := strings.Cut(part, ">\n")
			output, _, _ = strings.Cut(output, "</result>")
			said = append(said, strings.TrimSpace(output))
		}
		llmtest.Answers("Over: " + strings.Join(said, " | "))(x)
	case strings.Contains(last, "plan:"):
		llmtest.CallsTools("I am planning it.", tool("delegate", map[string]any{"prompt": "compare A and B, then write a report"}))(x)
	default:
		llmtest.Answers("All is well.")(x)
	}
}

// "Compare A and B, then write a report": a plan of three tasks, the last after the
// others and told of their results; people hear of it once. So it is also when the
// node is killed while any of the four runs.
func TestPlan(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for _, hang := range []string{"nobody", "planner", "A", "report"} {
		t.Run(hang+" is cut off", func(t *testing.T) {
			t.Parallel()
			tm := &team{plan: comparison, hang: hang, hung: make(chan struct{})}
			d := deploy(t, tm.behave, "MIMIKIT_WORKER_LEASE=1s", "MIMIKIT_WORKER_HEARTBEAT=300ms")
			node, _ := d.serve()
			if got := d.once("t", "plan: compare A and B, then write a report"); got != "I am planning it." {
				t.Fatalf("the answer is %q", got)
			}
			if hang != "nobody" {
				select {
				case <-tm.hung:
				case <-time.After(patience):
					t.Fatal("it never came to that")
				}
				node.kill()
				d.serve()
			}
			if texts := d.told("t", 2); texts[1] != "Over: A is red, B is blue." {
				t.Errorf("posted %q", texts)
			}
			list := d.tasks()
			if len(list) != 4 {
				t.Fatalf("%d tasks: %+v", len(list), list)
			}
			ended := map[string]time.Time{}
			for _, x := range list {
				if x.Status != "succeeded" {
					t.Errorf("%+v", x)
				}
				var err error
				if ended[x.Title], err = time.Parse(time.RFC3339Nano, x.CompletedAt); err != nil {
					t.Error(err)
				}
			}
			if !ended["Report"].After(ended["A"]) || !ended["Report"].After(ended["B"]) {
				t.Errorf("ended at %v", ended)
			}
			if left := d.triggers(); len(left) != 0 {
				t.Errorf("left: %+v", left)
			}
			// What came before stands in the history, each once, and nobody was told more.
			d.record(nil).settled()
			past := d.record(nil).history("t")
			for _, line := range []string{" (A) succeeded\nA is red.", " (B) succeeded\nB is blue.", "Then, after “A” and “B”: “Report”."} {
				if strings.Count(past, line) != 1 {
					t.Errorf("the history is\n%s", past)
				}
			}
			if texts, _ := d.record(nil).posted("t"); len(texts) != 2 {
				t.Errorf("posted %q", texts)
			}
		})
	}
}

// What cannot be planned is told with the reason; and a plan that breaks tells of
// what failed and of what does not start for it.
func TestPlansThatFail(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for name, c := range map[string]struct {
		plan func() (string, map[string]any)
		want []string
	}{
		"it says so": {func() (string, map[string]any) { return "failed", map[string]any{"error": "there is no B"} }, []string{"there is no B"}},
		"a task of it fails": {func() (string, map[string]any) {
			_, p := comparison()
			p["tasks"].([]any)[0].(map[string]any)["prompt"] = "look at nothing"
			p["tasks"].([]any)[0].(map[string]any)["retry"] = map[string]any{"maxAttempts": 0, "backoff": 1}
			return "done", p
		}, []string{"no result after", "does not start its task"}},
		"it waits for the clock": {func() (string, map[string]any) {
			return "done", map[string]any{"triggers": []any{map[string]any{"prompt": "look at A", "title": "Daily", "type": "recurring", "cron": "0 9 * * *", "zone": "Europe/Berlin"}}}
		}, []string{"“Daily”, fires every day at 09:00 Europe/Berlin, next on"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tm := &team{plan: c.plan, hung: make(chan struct{})}
			d := deploy(t, tm.behave)
			d.serve()
			d.once("t", "plan: compare A and B")
			storetest.Eventually(t, "it is told", func() error {
				texts, _ := d.record(nil).posted("t")
				all := strings.Join(texts, "\n")
				for _, want := range c.want {
					if !strings.Contains(all, want) {
						return fmt.Errorf("%q lacks %q", all, want)
					}
				}
				return nil
			})
		})
	}
}
