package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A clerk is a mind that sets up what "in 2s:" and "every 1h:" ask for, and whose
// worker says that it is done.
func clerk() *mind {
	return &mind{steps: []llm.ToolCall{tool("respond", map[string]any{"output": "It is time."})}}
}

func (m *mind) schedules(x *llmtest.Exchange) {
	messages := x.Call.Chat.Messages
	last := messages[len(messages)-1]
	said := ""
	if last.Content != nil {
		said = *last.Content
	}
	input := said
	if i := strings.LastIndex(said, "<input "); i >= 0 {
		input = said[i:]
	}
	if last.Role != "tool" && strings.Contains(input, "Remind me in 10 s and every minute") {
		once := tool("schedule", map[string]any{"prompt": "remind", "title": "Once", "type": "scheduled", "runAt": time.Now().Add(10 * time.Second).UTC().Format(time.RFC3339Nano)})
		again := tool("schedule", map[string]any{
			"prompt": "remind again", "title": "Again", "type": "recurring", "interval": 60, "nextRunAt": time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339Nano),
		})
		again.ID = "call-again"
		llmtest.CallsTools("", once, again)(x)
		return
	}
	args := map[string]any{"prompt": "remind", "title": "Reminder"}
	for _, word := range []string{"in ", "every "} {
		_, text, asked := strings.Cut(input, "\n"+word)
		span, _, _ := strings.Cut(text, ":")
		d, err := time.ParseDuration(span)
		switch {
		case !asked || err != nil:
			continue
		case word == "in ":
			args["type"], args["runAt"] = "scheduled", time.Now().Add(d).UTC().Format(time.RFC3339Nano)
		default:
			args["type"], args["interval"] = "recurring", int(d.Seconds())
		}
		llmtest.CallsTools("", tool("schedule", args))(x)
		return
	}
	if last.Role == "tool" {
		llmtest.Answers(said)(x)
		return
	}
	m.behave(x)
}

func (d *deployment) triggers(args ...string) []admin.TriggerView {
	d.Helper()
	out, _ := d.run(0, "", append([]string{"triggers", "--json"}, args...)...)
	return decoded[[]admin.TriggerView](d.T, out)
}

// told waits until so many texts were posted, and gives them.
func (d *deployment) told(talk string, n int) []string {
	d.Helper()
	r := d.record(nil)
	var texts []string
	storetest.Eventually(d, fmt.Sprintf("%d replies", n), func() error {
		if texts, _ = r.posted(talk); len(texts) < n {
			return fmt.Errorf("%q", texts)
		}
		return nil
	})
	return texts
}

// "Remind me in 10 s and every minute": both fire and are told, the one is gone; the
// other is listed, paused, run, resumed and removed, all in the talk itself.
func TestRemindMe(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, clerk().schedules)
	d.serve()
	d.once("t", "Remind me in 10 s and every minute")
	list := d.triggers()
	var id string
	for _, v := range list {
		if v.When == "every minute" {
			id = v.ID
		}
	}
	if id == "" || len(list) > 2 { // the other one may have fired by now
		t.Fatalf("told programs %+v", list)
	}
	p := d.sit("chat", "--as", "Ann", "--talk", "t")
	p.out.shows(t, "/help")
	p.types("/triggers all")
	p.out.shows(t, "Again", "every minute")
	for _, text := range d.told("t", 3)[1:] {
		if text != "The task is over: It is time." {
			t.Errorf("posted %q", text)
		}
	}
	p.types("/trigger pause " + id[:10])
	p.out.shows(t, "Paused ")
	p.types("/trigger " + id)
	p.out.shows(t, "paused by")
	// Paused, nothing comes between: what runs now is what we run.
	storetest.Eventually(t, "all tasks are over", func() error {
		for _, x := range d.tasks() {
			if x.Status != "succeeded" {
				return fmt.Errorf("%+v", x)
			}
		}
		return nil
	})
	before := len(d.tasks())
	posted, _ := d.record(nil).posted("t")
	p.types("/trigger run " + id[:10])
	p.out.shows(t, "Started ")
	d.told("t", len(posted)+1)
	if n := len(d.tasks()); n != before+1 {
		t.Errorf("%d tasks, and %d before", n, before)
	}
	p.types("/trigger resume " + id[:10])
	p.out.shows(t, "Resumed ", "It runs next on")
	if v := decoded[admin.TriggerView](t, first(d.run(0, "", "trigger", id, "--json"))); v.Paused || len(v.Next) != 3 || v.Fired < 2 {
		t.Errorf("told programs %+v", v)
	}
	p.types("/trigger remove " + id[:10])
	p.out.shows(t, "Removed ")
	p.types("/triggers here")
	p.out.shows(t, "There are no triggers")
	p.leave(ctrlD)
	if list := d.triggers(); len(list) != 0 {
		t.Errorf("told programs %+v", list)
	}
}

// A task that takes longer than its trigger's interval: no second one is begun, and
// people see why; when it is canceled the trigger goes on.
func TestSlowReminder(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	m := clerk()
	m.steps = append([]llm.ToolCall{tool("report_progress", map[string]any{"message": "one moment"})}, m.steps...)
	m.hang, m.hung = 1, make(chan struct{})
	d := deploy(t, m.schedules)
	d.serve()
	has(t, d.once("t", "every 10s: remind me"), "It fires every 10 seconds")
	id := d.triggers()[0].ID
	select {
	case <-m.hung:
	case <-time.After(patience):
		t.Fatal("it never fired")
	}
	var v admin.TriggerView
	storetest.Eventually(t, "a run is skipped", func() error {
		if v = decoded[admin.TriggerView](t, first(d.run(0, "", "trigger", id, "--json"))); v.Skipped == 0 {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	if list := d.tasks(); len(list) != 1 || v.Fired != 1 {
		t.Errorf("%+v; %+v", list, v)
	}
	out, _ := d.run(0, "", "trigger", id)
	has(t, out, "skipped", "because its task was still running")
	if _, stderr := d.run(1, "", "trigger", "run", id); !strings.Contains(stderr, "is not started: its last task") {
		t.Errorf("run now: %q", stderr)
	}
	d.run(0, "", "cancel", v.LastTaskID)
	storetest.Eventually(t, "it goes on", func() error {
		if v = decoded[admin.TriggerView](t, first(d.run(0, "", "trigger", id, "--json"))); v.Fired < 2 {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	d.run(0, "", "trigger", "remove", id)
}

// "In 2 s, and every hour": the one fires and is gone, the other is listed, paused,
// resumed, run and removed, from the shell and at the terminal.
func TestTriggers(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, clerk().schedules)
	d.serve()
	out, _ := d.run(0, "", "triggers")
	has(t, out, "There are no triggers.")
	has(t, d.once("t", "every 1h: remind me"), "Set up as g", "It fires every hour, next on ")
	has(t, d.once("t", "in 2s: remind me"), "It fires once, on ")
	if texts := d.told("t", 3); texts[2] != "The task is over: It is time." {
		t.Errorf("posted %q", texts)
	}
	list := d.triggers()
	if len(list) != 1 || list[0].When != "every hour" || len(list[0].Next) != 3 || list[0].Conversation != conversation("t") || list[0].Requester == "" {
		t.Fatalf("told programs %+v", list)
	}
	id := list[0].ID
	out, _ = d.run(0, "", "triggers")
	plain(t, out)
	has(t, out, "ID", "WHEN", "NEXT", id[:10], "Reminder", "every hour", "UTC", "waits")
	out, _ = d.run(0, "", "trigger", id[:10])
	plain(t, out)
	has(t, out, id, "fires", "every hour", "remind", conversation("t"))
	out, _ = d.run(0, "", "trigger", "pause", id[:10])
	has(t, out, "Paused")
	if v := decoded[admin.TriggerView](t, first(d.run(0, "", "trigger", id, "--json"))); !v.Paused || len(v.Next) != 0 {
		t.Errorf("told programs %+v", v)
	}
	out, _ = d.run(0, "", "trigger", "resume", id)
	has(t, out, "Resumed", "It runs next on")
	run := decoded[admin.TriggerChange](t, first(d.run(0, "", "trigger", "run", id, "--json")))
	if run.Did != "started" || run.Task == "" {
		t.Errorf("told programs %+v", run)
	}
	if texts := d.told("t", 4); texts[3] != "The task is over: It is time." {
		t.Errorf("posted %q", texts)
	}
	out, _ = d.run(0, "", "task", run.Task)
	has(t, out, "started by trigger", id)

	p := d.sit("chat", "--as", "Ann", "--talk", "t")
	p.out.shows(t, "/help")
	p.types("/triggers all")
	p.out.shows(t, "every hour")
	p.types("/trigger remove " + id[:10])
	p.out.shows(t, "Removed")
	p.leave(ctrlD)
	if list := d.triggers(); len(list) != 0 {
		t.Errorf("told programs %+v", list)
	}
	out, _ = d.run(0, "", "audit")
	has(t, out, "trigger pause", "trigger resume", "trigger run", "trigger remove")
	for args, want := range map[string]string{
		"trigger g00000000": "There is no trigger `g00000000`", "trigger wake " + id: "Allowed: show, pause, resume, run, remove", "triggers -n 0": "1 to 100 are allowed",
		"cancel " + id: "is the id of a trigger",
	} {
		if _, stderr := d.run(1, "", strings.Fields(args)...); !strings.Contains(stderr, want) {
			t.Errorf("%s: %q, want %q", args, stderr, want)
		}
	}
}

// What falls due while no node runs fires once when one does again; and a node that
// is killed again and again around the time makes no second one of it.
func TestTriggersSurviveKills(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, clerk().schedules, "MIMIKIT_WORKER_LEASE=1s", "MIMIKIT_WORKER_HEARTBEAT=300ms")
	node, _ := d.serve()
	has(t, d.once("t", "in 6s: remind me"), "It fires once, on ")
	due := time.Now()
	if list := d.triggers(); len(list) > 0 { // else this machine is slow
		var err error
		if due, err = time.Parse(time.RFC3339Nano, list[0].Next[0]); err != nil {
			t.Fatal(err)
		}
	}
	node.kill()
	for i := range 4 {
		// Each life ends later after the time than the one before.
		node, _ = d.serve()
		if err := pauseFor(t.Context(), time.Until(due)+time.Duration(i)*100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		node.kill()
	}
	d.serve()
	if texts := d.told("t", 2); len(texts) != 2 || texts[1] != "The task is over: It is time." {
		t.Errorf("posted %q", texts)
	}
	if list := d.triggers(); len(list) != 0 {
		t.Errorf("it is still there: %+v", list)
	}
	if list := d.tasks(); len(list) != 1 || list[0].Status != "succeeded" {
		t.Errorf("%d tasks: %+v", len(list), list)
	}
}
