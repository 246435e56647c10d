package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/sandbox"
	"mimikit/core/store/storetest"
)

// carried counts how often tasks of the deployment began to run a command.
func (d *deployment) carried() (n int) {
	d.Helper()
	found, err := filepath.Glob(filepath.Join(d.dir, "task-progress", "*.jsonl"))
	if err != nil {
		d.Fatal(err)
	}
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err != nil {
			d.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, `"action_call_start"`) && strings.Contains(line, `"exec_shell"`) {
				n++
			}
		}
	}
	return n
}

// A command that needs somebody's word is asked for, also by a node that is killed
// then. Refused, the task is told so and goes on; allowed, it is carried out once.
func TestApprovals(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	wipe := tool("exec_shell", map[string]any{"command": "rm -rf old && echo wiped >> log"})
	m := &mind{steps: []llm.ToolCall{
		tool("write_file", map[string]any{"path": "old/a.txt", "content": "one\n"}), wipe, wipe,
		tool("respond", map[string]any{"output": "I went on."}),
	}}
	d := deploy(t, m.behave, `MIMIKIT_APPROVALS_COMMANDS=\bgit push\b, \brm\s+-rf\b`, "MIMIKIT_WORKER_LEASE=1s", "MIMIKIT_WORKER_HEARTBEAT=300ms")
	node, _ := d.serve()
	if got := d.once("t", "work: tidy up"); got != "I have started it." {
		t.Fatalf("the answer is %q", got)
	}
	q := d.open("t")
	if !strings.Contains(q.Text, "```\nrm -rf old && echo wiped >> log\n```") || q.Default != "Refuse" || !q.OnlyOptions || q.AskedTo.ID == "" || q.Deadline.IsZero() {
		t.Errorf("%+v", q)
	}
	d.shown(q.ID)
	node.kill()
	node, _ = d.serve()
	// Other words are talk, though nobody else is here.
	if got := d.once("t", "do it all"); got != "All is well." {
		t.Errorf("%q", got)
	}
	if got := d.once("t", "3"); got != "Thank you, I go on with: Refuse" {
		t.Errorf("%q", got)
	}
	second := d.open("t")
	if second.ID == q.ID || d.carried() != 0 {
		t.Fatalf("%+v, carried out %d", second, d.carried())
	}
	node.kill()
	d.serve()
	_, stderr := d.run(1, "", "answer", second.ID[:10], "sure")
	has(t, stderr, "none of its answers")
	out, _ := d.run(0, "", "questions")
	has(t, out, "rm -rf old && echo wiped >> log", "Allow once, Allow for this task, Refuse")
	out, _ = d.run(0, "", "answer", second.ID[:10], "1")
	has(t, out, "You answered: Allow once.")
	storetest.Eventually(t, "the result is told", func() error {
		texts, _ := d.record(nil).posted("t")
		if !strings.Contains(strings.Join(texts, "\n"), "The task is over: I went on.") {
			return fmt.Errorf("%q", texts)
		}
		return nil
	})
	if n := d.carried(); n != 1 {
		t.Errorf("carried out %d times", n)
	}
	told := ""
	for _, c := range d.model.Calls() {
		told += string(c.Body)
	}
	has(t, told, "refused it; do not try it again")
	if sandbox.New(sandbox.Options{}).Available(t.Context()) == nil {
		logs, err := filepath.Glob(filepath.Join(d.dir, "workspaces", "*", "*", "log"))
		if more, _ := filepath.Glob(filepath.Join(d.dir, "workspaces", "*", "log")); len(more) > 0 {
			logs = more
		}
		if err != nil || len(logs) != 1 {
			t.Fatalf("%q, %v", logs, err)
		}
		if data, err := os.ReadFile(logs[0]); err != nil || string(data) != "wiped\n" {
			t.Errorf("%q, %v", data, err)
		}
	}
	out, _ = d.run(0, "", "audit")
	has(t, out, "approve: exec_shell: rm -rf old", "refused", "allowed: Allow once")
}

// A task that is canceled while it asks takes its question back; who was not asked
// can not answer it, and the trail says who tried.
func TestApprovalsEnd(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	m := &mind{steps: []llm.ToolCall{tool("write_file", map[string]any{"path": "a", "content": "b"})}}
	d := deploy(t, m.behave, "MIMIKIT_APPROVALS_TOOLS=write_*", "MIMIKIT_APPROVALS_BY=admin")
	d.serve()
	d.once("t", "work: write")
	q := d.open("t")
	if q.AskedTo.ID != "" || q.AskedRole == 0 || !strings.Contains(q.Text, "Only admins can answer.") {
		t.Errorf("%+v", q)
	}
	st, app := d.questions()
	eve := chat.Author{ID: "eve", Name: "Eve", Role: chat.RoleOperator}
	if said, _, known, err := app.pressed(t.Context(), eve, q.Conversation, q.Buttons()[0].Value); err != nil || !known || said != "This question is for admins." {
		t.Errorf("%q, %v, %v", said, known, err)
	}
	out, _ := d.run(0, "", "audit")
	has(t, out, "Eve", "answer "+q.ID, "refused")
	d.run(0, "", "cancel", q.TaskID)
	storetest.Eventually(t, "it is withdrawn", func() error {
		now, err := st.Get(t.Context(), q.ID)
		if err == nil && now.Status != "withdrawn" {
			err = fmt.Errorf("it is %s", now.Status)
		}
		return err
	})
}
