package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// A small chaos run of tasks, as a person would start one.
func TestChaosTasks(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, nil)
	p := d.start("chaos", "tasks", "-n", "120", "-C", "15", "--nodes", "2", "--lease", "500ms", "--spread", "4s", "--seed", "5")
	if code := p.within(3 * patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Log(p.out.String())
	has(t, p.out.String(), "120 tasks in 15 conversations, 2 nodes with 12 workers, lease 500ms", "seed 5", "verdict:  clean")
	if p.err.String() != "" {
		t.Errorf("error output %q, want none", p.err)
	}
}

// The oracle finds what it is there to find: each case is a clean run of one or two
// tasks in which one thing went wrong.
func TestTaskOracle(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return chaosEpoch.Add(time.Duration(s) * time.Second) }
	type run struct {
		*taskVerdict
		t *task.Task
	}
	for _, c := range []struct {
		name  string
		plan  taskPlan
		spoil func(r run)
		want  string // in the breach; "" for none
	}{
		{"clean", taskPlan{Do: doWork}, func(run) {}, ""},
		{"clean with retries", taskPlan{Do: doFlaky, Fails: 2, Retries: 2}, func(run) {}, ""},
		{"clean after a lapse", taskPlan{Do: doWork}, func(r run) {
			r.t.Lapses, r.t.Attempts, r.t.Output = 1, 2, "done by run 2"
			r.runs["a"].begun[2] = 1
			r.told["a"][0].Attempts, r.told["a"][0].Output = 2, "done by run 2"
		}, ""},
		{"gone", taskPlan{Do: doWork}, func(r run) { delete(r.tasks, "a"); delete(r.told, "a") }, "is not there"},
		{"not over", taskPlan{Do: doWork}, func(r run) { r.t.Status = task.Running }, "it is not over"},
		{"wrong end", taskPlan{Do: doBroken}, func(r run) { r.t.Status, r.t.FailureReason = task.Succeeded, "" }, "it was to be failed (error)"},
		{"wrong reason", taskPlan{Do: doSlow, Timeout: 9}, func(r run) { r.t.FailureReason = task.ReasonError }, "it was to be failed (timeout)"},
		{"killed too soon", taskPlan{Do: doWork}, func(r run) {
			r.t.Status, r.t.FailureReason, r.t.Lapses, r.t.Attempts = task.Failed, task.ReasonKilled, 2, 2
		}, "takes 3 lapses"},
		{"a retry too many", taskPlan{Do: doFlaky, Fails: 1, Retries: 2}, func(r run) { r.t.Retries++ }, "after 1 retries"},
		{"attempts wrong", taskPlan{Do: doWork}, func(r run) { r.t.Attempts = 2 }, "it was to have 1 attempts"},
		{"a run nobody counted", taskPlan{Do: doWork}, func(r run) { r.runs["a"].begun[2] = 1 }, "a run began attempt 2"},
		{"a run nobody began", taskPlan{Do: doWork}, func(r run) { clear(r.runs["a"].begun) }, "never seen to begin"},
		{"a step done twice", taskPlan{Do: doSteps, Steps: 2}, func(r run) { r.runs["a"].steps[1] = 2 }, "step 1 was kept by 2 runs"},
		{"canceled by nobody", taskPlan{Do: doWork}, func(r run) { r.t.Status = task.Canceled }, "nobody has canceled it"},
		{"marked by nobody", taskPlan{Do: doWork}, func(r run) { r.t.CancelRequestedAt = at(9) }, "nobody has done it"},
		{"a cancel lost", taskPlan{Do: doWork}, func(r run) { r.d.canceled["a"] = []task.Did{task.DidFlag} }, "left no mark"},
		{"a cancel ignored", taskPlan{Do: doWork}, func(r run) {
			r.d.canceled["a"], r.t.CancelRequestedAt, r.t.CanceledBy = []task.Did{task.DidFlag}, at(1), chaosCanceler
		}, "ended only at"},
		{"a child spared", taskPlan{Do: doParent, Kids: 1}, func(r run) {
			r.d.canceled["a"], r.t.CancelRequestedAt, r.t.CanceledBy = []task.Did{task.DidOver}, at(9), chaosCanceler
		}, "was canceled, and it was not"},
		{"a child not made", taskPlan{Do: doParent, Kids: 2}, func(run) {}, "is not there"},
		{"a child of nobody", taskPlan{Do: doWork}, func(r run) { r.tasks["x"] = task.Task{ID: "x", Status: task.Succeeded} }, "nobody has asked for task x"},
		{"not told", taskPlan{Do: doWork}, func(r run) { delete(r.told, "a") }, "was not told"},
		{"told twice", taskPlan{Do: doWork}, func(r run) { r.told["a"] = append(r.told["a"], r.told["a"][0]) }, "told 2 times"},
		{"told to the wrong one", taskPlan{Do: doWork, Internal: true}, func(run) {}, "told 1 times by way of worker-result"},
		{"told wrongly", taskPlan{Do: doWork}, func(r run) { r.told["a"][0].Status = task.Failed }, "was told as"},
		{"never asked", taskPlan{Do: doAsk}, func(run) {}, "has asked 0 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newTaskVerdict(&chaosTasksCmd{Conversations: 1}, &world{}, &taskDriver{canceled: map[string][]task.Did{}})
			v.keys = channel.Keys{Prefix: "x", Partitions: 1}
			is := &task.Issuer{Keys: v.keys}
			clean := func(id string, p taskPlan) task.Task {
				end := p.ending()
				x := task.Task{
					ID: id, ResultID: id, Title: p.title(), Conversation: chaosConversation(0), Status: end.status, FailureReason: end.reason, Retries: end.retries,
					Attempts: end.retries + 1, CreatedAt: at(0), StartedAt: at(1), CompletedAt: at(5),
				}
				if x.Status == task.Succeeded {
					x.Output = fmt.Sprintf("done by run %d", x.Attempts)
				}
				r := &runRecord{begun: map[int]int{}, steps: map[int]int{}, fails: end.retries}
				for n := range x.Attempts {
					r.begun[n+1] = 1
				}
				for n := range p.Steps {
					r.steps[n+1] = 1
				}
				v.runs[id] = r
				v.told[id] = []toldLine{{channel.WorkerResult, id, x.Status, x.FailureReason, x.Attempts, x.Output}}
				return x
			}
			v.d.accepted = map[string]taskPlan{"a": c.plan}
			a := clean("a", c.plan)
			if c.plan.Kids > 0 {
				id := kidID(is, a.Conversation, "a", 0)
				kid := clean(id, c.plan.kid(0))
				kid.ParentTaskID = "a"
				v.tasks[id] = kid
			}
			v.tasks["a"] = a
			c.spoil(run{v, &a})
			if _, there := v.tasks["a"]; there {
				v.tasks["a"] = a
			}
			v.judgeAll(is)
			all := strings.Join(v.breaches, "\n")
			if (c.want == "") != (all == "") || !strings.Contains(all, c.want) {
				t.Errorf("breaches:\n%s\nwant %q", all, c.want)
			}
		})
	}
}
