package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// slow is a mind whose worker hangs before its second step.
func slow() *mind {
	return &mind{hang: 1, hung: make(chan struct{}), steps: []llm.ToolCall{
		tool("write_file", map[string]any{"path": "a.txt", "content": "one\n"}),
		tool("respond", map[string]any{"output": "It **is** written."}),
	}}
}

func (m *mind) await(t *testing.T) {
	t.Helper()
	select {
	case <-m.hung:
	case <-time.After(patience):
		t.Fatal("the worker never came to its step")
	}
}

// what a program is told of the tasks.
func (d *deployment) tasks(args ...string) []admin.TaskView {
	d.Helper()
	out, _ := d.run(0, "", append([]string{"tasks", "--json"}, args...)...)
	return decoded[[]admin.TaskView](d.T, out)
}

// From another terminal one sees what runs, and ends it: within a second the
// worker is gone and the conversation is told.
func TestCancelFromTheShell(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	m := slow()
	d := deploy(t, m.behave)
	d.serve()
	out, _ := d.run(0, "", "tasks")
	has(t, out, "There are no tasks.")
	d.once("t", "work: write\x1b[31m a file")
	m.await(t)
	list := d.tasks("--status", "running")
	if len(list) != 1 || list[0].Title != "Work" || list[0].Status != "running" || list[0].Conversation != conversation("t") {
		t.Fatalf("told programs %+v", list)
	}
	id := list[0].ID
	out, _ = d.run(0, "", "tasks")
	plain(t, out)
	has(t, out, "ID", "TITLE", "STATUS", id[:10], "Work", "running", "thinking")
	out, _ = d.run(0, "", "task", id[:10])
	plain(t, out)
	has(t, out, id, "running since", conversation("t"), "WHEN (UTC)", "asked for by", "the first run began on ", "writing a file, ", "progress file")
	if d.tasks("--mine") == nil || len(d.tasks("-s", "failed,canceled")) != 0 || len(d.tasks("all", "active")) != 1 {
		t.Error("the filters choose wrongly")
	}

	// Not all without being sure.
	out, stderr := d.run(1, "", "cancel", "all")
	if out != "" || len(d.tasks("--status", "running")) != 1 {
		t.Errorf("canceled without a confirmation: %q", out)
	}
	has(t, stderr, "This cancels 1 task of 1 person in 1 conversation", "mimikit cancel all yes")

	follow := d.start("task", id, "--follow")
	follow.out.shows(t, "action_call_end")
	began := time.Now()
	out, _ = d.run(0, "", "cancel", id[:10])
	has(t, out, "Canceling", id[:10], "Work")
	storetest.Eventually(t, "the end", func() error {
		if list := d.tasks("-s", "canceled"); len(list) != 1 {
			return fmt.Errorf("%+v", d.tasks())
		}
		return nil
	})
	whole := decoded[admin.TaskDetail](t, first(d.run(0, "", "task", id, "--json")))
	ended, err := time.Parse(time.RFC3339Nano, whole.CompletedAt)
	if err != nil || ended.Before(began) {
		t.Errorf("canceled at %s, asked for at %s (%v)", whole.CompletedAt, began, err)
	}
	if code := follow.within(patience); code != 1 {
		t.Errorf("who followed it ended with %d", code)
	}
	has(t, follow.err.String(), "is canceled")
	storetest.Eventually(t, "the conversation is told", func() error {
		if texts, _ := d.record(nil).posted("t"); len(texts) < 2 {
			return fmt.Errorf("%q", texts)
		}
		return nil
	})

	// Once more, and to its end.
	again := decoded[admin.Retried](t, first(d.run(0, "", "retry", id, "--json")))
	if again.Of != id || again.ID == id || !again.Created {
		t.Fatalf("retried as %+v", again)
	}
	out, _ = d.run(0, "", "task", again.ID, "--follow")
	plain(t, out)
	has(t, out, "standard_start", "It **is** written.")
	if out, _ := d.run(0, "", "task", again.ID, "--output"); out != "It **is** written.\n" {
		t.Errorf("the output is %q", out)
	}
	out, _ = d.run(0, "", "audit")
	has(t, out, "cancel "+id[:10], "flagged", "retry "+id, "started "+again.ID, "cli")
	for args, want := range map[string]string{
		"task t00000000": "There is no task `t00000000`", "retry " + again.ID: "only tasks that failed or were canceled",
		"cancel nothing": "There is no task", "tasks --status runnig": "did you mean `running`?", "tasks -n 0": "1 to 100 are allowed",
		"why nothing": "neither an input's id nor a link", "feedback -n 0": "one number from 1 to 200",
	} {
		out, stderr := d.run(1, "", strings.Fields(args)...)
		if has(t, stderr, want); out != "" {
			t.Errorf("%s printed %q", args, out)
		}
	}
	out, _ = d.run(0, "", "status")
	has(t, out, "1 live, 16 of 16 partitions owned", "1 succeeded, 1 canceled")
	out, _ = d.run(0, "", "usage", "model")
	has(t, out, "test-model", "TOKENS IN")
	out, _ = d.run(0, "", "usage")
	has(t, out, time.Now().UTC().Format(time.DateOnly), "█")
	out, _ = d.run(0, "", "feedback")
	has(t, out, "There is no feedback.")
}

func first(out, _ string) string { return out }

// The terminal lists and ends tasks, and shows how they go, also when the node is
// another process.
func TestTasksAtTheTerminal(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for _, joined := range []bool{false, true} {
		t.Run(fmt.Sprintf("joined %v", joined), func(t *testing.T) {
			t.Parallel()
			m := slow()
			d := deploy(t, m.behave)
			if joined {
				d.serve()
			}
			p := d.sit("chat", "--as", "Ann", "--talk", "t")
			p.out.shows(t, "/help")
			p.types("work: write a file")
			m.await(t)
			p.out.shows(t, "▸ Work · thinking · ")
			p.types("/tasks")
			p.out.shows(t, "running")
			id := d.running()
			p.types("/cancel " + id[:10])
			p.out.shows(t, "was told to end it")
			p.out.shows(t, "The task is over:")
			p.types("/task " + id)
			p.out.shows(t, "canceled by: Ann")
			p.types("/status")
			p.out.shows(t, "1 canceled")
			p.leave(ctrlD)
			if got := p.seen(); strings.Contains(got, "\x1b") {
				t.Errorf("an escape sequence is left in %q", got)
			}
		})
	}
}

// running waits for the one task that runs, and gives its id.
func (d *deployment) running() (id string) {
	d.Helper()
	storetest.Eventually(d, "a running task", func() error {
		list := d.tasks("-s", "running")
		if len(list) != 1 {
			return fmt.Errorf("%+v", list)
		}
		id = list[0].ID
		return nil
	})
	return id
}

// Where a message is can be told while it waits, while it is worked on, and when
// it is answered.
func TestWhy(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Noted."))
	d.model.Next(llmtest.Hangs())
	node, _ := d.serve()
	ask := d.start("chat", "--talk", "t")
	ask.say("where am I?")
	d.thinking(1)
	r := d.record(nil)
	keys, err := r.client.Keys(t.Context(), "*:s:teller-digest").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	id := ""
	for _, k := range keys {
		for _, e := range r.client.XRange(t.Context(), k, "-", "+").Val() {
			id, _ = e.Values["inputs"].(string)
		}
	}
	if id == "" {
		t.Fatal("no digest waits")
	}
	out, _ := d.run(0, "", "why", id)
	has(t, out, "is with the thinker", "accept", "STAGE")
	ask.kill()
	node.kill()
	d.serve()
	r.settled()
	// How it went is written down aside, a moment later.
	storetest.Eventually(t, "the whole way", func() error {
		if out, _ = d.run(0, "", "why", id); !strings.Contains(out, "posted") {
			return errors.New(out)
		}
		return nil
	})
	has(t, out, "was answered", "accept", "decision", "Altogether")
	j := decoded[admin.Journey](t, first(d.run(0, "", "why", id, "--json")))
	if j.Stage != admin.StageAnswered || len(j.Hops) != 5 {
		t.Errorf("told programs %+v", j)
	}
}

// Without a node there is nothing to ask, and that is said.
func TestTasksWithoutANode(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	if err := os.MkdirAll(filepath.Join(d.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"tasks", "task t1", "cancel t1", "retry t1", "status", "usage", "feedback", "audit", "why x"} {
		_, stderr := d.run(1, "", strings.Fields(args)...)
		has(t, stderr, "mimikit serve")
	}
}
