package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

func done(ref string) *action.Condition {
	return &action.Condition{Type: "task_done", Params: &action.ConditionParams{TaskID: ref}}
}

func allDone(refs ...string) *action.Condition {
	c := &action.Condition{Type: "and"}
	for _, ref := range refs {
		c.Conditions = append(c.Conditions, *done(ref))
	}
	return c
}

// "Compare A and B, then write a report, then send it": two tasks side by side, a
// third after both, a fourth after that, each with the results of those before it.
// People hear of the last; that what came before has succeeded stands in the history.
func TestAPlanIsCarriedOut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 2)
		plan := action.Plan{
			Tasks: []action.PlannedTask{
				{Ref: "a", Prompt: "look at A", Title: "A", Profile: "standard", Priority: 7, Timeout: 60, Retry: &action.Retry{MaxAttempts: 4, Backoff: 9}},
				{Ref: "b", Prompt: "look at B", Title: "B", Profile: "standard", Priority: 5},
			},
			Triggers: []action.PlannedTrigger{
				{Ref: "send", Prompt: "send it", Title: "Send", Type: "conditional", Condition: done("report")},
				{Ref: "report", Prompt: "write it", Title: "Report", Type: "conditional", Priority: 9, Condition: allDone("a", "b")},
				{Prompt: "look again", Title: "Weekly", Type: "recurring", Cron: "0 9 * * 1", Zone: "Europe/Berlin", Cooldown: 60},
			},
		}
		r.node(r.sup)
		r.pool(map[string]task.Runner{task.Planner: planner(plan), task.Standard: standard})
		r.run(r.sup.Run)
		root := r.enqueue(toPlan())
		heard := map[string]chat.TaskResult{}
		for _, h := range r.awaitHeard(2) {
			heard[h.Title] = h
		}
		if h := heard["Send"]; len(heard) != 2 || h.Status != task.Succeeded || h.TraceID != "trace-7" || h.ParentTaskID != root || h.Requester != bob {
			t.Errorf("heard %+v", heard)
		}
		// It has set up what nobody would hear of until Monday.
		if h := heard["plan it"]; h.ID != root || !strings.Contains(h.Output, "“Weekly”, fires every Monday at 09:00 Europe/Berlin, next on ") || !strings.Contains(h.Output, "after “A” and “B”: “Report”") {
			t.Errorf("heard %+v", h)
		}
		byTitle := map[string]task.Task{}
		list, err := r.q.List(t.Context(), task.Filter{}, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list.Tasks {
			byTitle[x.Title] = x
		}
		past := strings.Join(r.history(), "\n")
		for _, title := range []string{"A", "B", "Report"} {
			if x := byTitle[title]; !x.Internal || x.TraceID != "trace-7" || x.ParentTaskID != root || strings.Count(past, x.ID) != 1 || !strings.Contains(past, "the output of "+title) {
				t.Errorf("%+v; the history is\n%s", x, past)
			}
		}
		a, report, send := byTitle["A"], byTitle["Report"], byTitle["Send"]
		if a.Priority != 7 || a.Timeout != time.Minute || a.Retry != (task.Retry{MaxAttempts: 4, Backoff: 9 * time.Second}) || a.Storage != "disk" {
			t.Errorf("%+v", a)
		}
		if report.Priority != 9 || report.Storage != "disk" || !report.StartedAt.After(r.taskOf(byTitle["B"].ID).StartedAt) || report.SourceTriggerID == "" {
			t.Errorf("%+v", report)
		}
		if !strings.HasPrefix(report.Prompt, "write it\n") || !strings.Contains(report.Prompt, "> the output of A") || !strings.Contains(report.Prompt, "> the output of B") {
			t.Errorf("the report is written of %q", report.Prompt)
		}
		if !strings.Contains(send.Prompt, "> the output of Report") || strings.Contains(send.Prompt, "output of A") {
			t.Errorf("it is sent with %q", send.Prompt)
		}
		// What has done its work is gone; what recurs stays, until its plan is canceled.
		page, err := r.trig.List(t.Context(), trigger.Filter{}, "", 100)
		if err != nil || len(page.Triggers) != 1 || page.Triggers[0].Title != "Weekly" || page.Triggers[0].ParentTaskID != root || page.Triggers[0].Cooldown != time.Minute {
			t.Errorf("%+v, %v", page.Triggers, err)
		}
		if _, err := r.q.Cancel(t.Context(), root, ann, "no more"); err != nil {
			t.Fatal(err)
		}
		if page, err := r.trig.List(t.Context(), trigger.Filter{}, "", 100); err != nil || len(page.Triggers) != 0 {
			t.Errorf("%+v, %v", page.Triggers, err)
		}
	})
}

// What succeeds as a step of a plan is not told; what does not is, as are tasks that
// are no steps.
func TestStepsOfAPlan(t *testing.T) {
	t.Parallel()
	task1 := func(ref string) action.PlannedTask { return action.PlannedTask{Ref: ref, Prompt: "x", Title: ref} }
	after := func(ref string, c *action.Condition) action.PlannedTrigger {
		return action.PlannedTrigger{Ref: ref, Prompt: "x", Type: "conditional", Condition: c}
	}
	file := action.Condition{Type: "file_exists", Params: &action.ConditionParams{Path: "a"}}
	failed := done("a")
	failed.Type = "task_failed"
	nested := &action.Condition{Type: "and", Conditions: []action.Condition{*done("a"), *allDone("b", "c")}}
	for name, c := range map[string]struct {
		on    *action.Condition
		steps string
	}{
		"one": {done("a"), "a"}, "all": {nested, "a b c"}, "a failure": {failed, ""}, "of another plan": {done("t1m7z06qfa00000000000"), ""},
		"either":          {&action.Condition{Type: "or", Conditions: []action.Condition{*done("a"), *done("b")}}, ""},
		"and a file":      {&action.Condition{Type: "and", Conditions: []action.Condition{*done("a"), file}}, ""},
		"a trigger's own": {done("later"), "later"},
	} {
		p := action.Plan{Tasks: []action.PlannedTask{task1("a"), task1("b"), task1("c"), task1("")}, Triggers: []action.PlannedTrigger{after("", c.on), after("later", &file)}}
		var got []string
		for ref := range steps(p) {
			got = append(got, ref)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.steps {
			t.Errorf("%s: steps %q, want %s", name, got, c.steps)
		}
	}
}

// In a chain whose first task fails, everybody hears of each that will not start.
func TestAPlanThatBreaks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		plan := action.Plan{
			Tasks: []action.PlannedTask{{Ref: "a", Prompt: "x", Title: "fail A", Profile: "standard", Priority: 5, Retry: &action.Retry{}}},
			Triggers: []action.PlannedTrigger{
				{Ref: "b", Prompt: "x", Title: "B", Type: "conditional", Condition: done("a")},
				{Ref: "c", Prompt: "x", Title: "C", Type: "conditional", Condition: done("b")},
				{Prompt: "x", Title: "mend", Type: "conditional", Condition: &action.Condition{Type: "task_failed", Params: &action.ConditionParams{TaskID: "a"}}},
			},
		}
		r.node(r.sup)
		r.pool(map[string]task.Runner{task.Planner: planner(plan), task.Standard: standard})
		r.run(r.sup.Run)
		r.enqueue(toPlan())
		got := map[string]task.Status{}
		for _, h := range r.awaitHeard(4) {
			got[h.Title] = h.Status
		}
		if want := map[string]task.Status{"fail A": task.Failed, "B": task.Canceled, "C": task.Canceled, "mend": task.Succeeded}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("heard %v, want %v", got, want)
		}
		if page, err := r.trig.List(t.Context(), trigger.Filter{}, "", 100); err != nil || len(page.Triggers) != 0 {
			t.Errorf("%+v, %v", page.Triggers, err)
		}
	})
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// work is a step's work, without a node.
func work(r chat.TaskResult) *channel.Work {
	return &channel.Work{
		Conversation: r.Conversation.Key(), Now: time.Now(), Entries: []*channel.Entry{{Channel: channel.SupervisorEvent, Conversation: r.Conversation.Key(), Value: &r}},
		Field: func(context.Context, channel.Table, string) (string, error) { return "", nil },
	}
}

func planResult(r *rig, out string) chat.TaskResult {
	now := time.Now()
	return chat.TaskResult{
		ID: r.tasks.Derive(conv("c"), now, "plan"), Conversation: conv("c"), Title: "plan it", Profile: task.Planner, Status: task.Succeeded,
		Output: out, Requester: bob, TraceID: "trace-7", CompletedAt: now,
	}
}

// What cannot be carried out is carried out in no part, and people hear why.
func TestAPlanIsRefusedWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t), 1)
	ok := `{"prompt":"x","title":"ok"}`
	for out, want := range map[string]string{
		"I think so": "it cannot be read",
		`{}`:         "nothing in the plan",
		`{"tasks":[` + ok + `,{"prompt":" ","title":"y"}]}`:                                                                                 "tasks[1].prompt",
		`{"tasks":[` + ok + `,{"prompt":"x","title":"y","profile":"expert"}]}`:                                                              `tasks[1]: profile: "expert" is not to be had here; there is standard`,
		`{"tasks":[` + ok + `],"triggers":[{"prompt":"x","type":"recurring","cron":"99 * * * *"}]}`:                                         `triggers[0]: create a trigger: cron "99 * * * *"`,
		`{"tasks":[` + ok + `],"triggers":[{"prompt":"x","type":"scheduled","runAt":"2001-01-01T00:00:00Z"}]}`:                              "that is over",
		`{"tasks":[` + ok + `],"triggers":[{"prompt":"x","type":"conditional","condition":{"type":"task_done","params":{"taskId":"zz"}}}]}`: `taskId "zz" is no name of this plan`,
		`{"tasks":[{"prompt":"x","title":"y","priority":11}]}`:                                                                              "priority 11",
		`{"triggers":[{"ref":"a","prompt":"x","type":"conditional","condition":{"type":"task_done","params":{"taskId":"a"}}}]}`:             "waits for itself",
		`{"tasks":[` + strings.TrimSuffix(strings.Repeat(`{"prompt":"`+strings.Repeat("x", 60000)+`","title":"y"},`, 20), ",") + `]}`:       "at most 819200",
	} {
		fx, err := r.sup.step(t.Context(), work(planResult(r, out)))
		if err != nil || len(fx.Calls) > 0 || len(fx.Puts) > 0 || len(fx.Publish) != 1 {
			t.Errorf("%.80s: %d calls, %v", out, len(fx.Calls), err)
			continue
		}
		told := fx.Publish[0].Value.(*chat.TaskResult)
		if fx.Publish[0].To != channel.WorkerResult || told.Status != task.Failed || !strings.Contains(told.Error, want) || told.Output != "" || told.Requester != bob {
			t.Errorf("%.80s: told %q, want %q", out, told.Error, want)
		}
	}
	// Defaults, and the same plan twice is the same.
	for range 2 {
		res := planResult(r, `{"tasks":[`+ok+`,{"prompt":"x","title":"y","priority":0}],"triggers":[{"prompt":"x","type":"recurring","interval":60}]}`)
		res.CompletedAt = time.UnixMilli(1795262400000)
		res.ID = r.tasks.Derive(conv("c"), res.CompletedAt, "plan")
		fx, err := r.sup.step(t.Context(), work(res))
		if err != nil || len(fx.Calls) != 3 || len(fx.Puts) != 1 || fx.Puts[0].Value != "disk" || len(fx.Publish) != 1 {
			t.Fatalf("%+v, %v", fx, err)
		}
		if id := fx.Calls[0].Args[3]; id != r.tasks.Derive(conv("c"), res.CompletedAt, res.ID, "task", "0") {
			t.Errorf("the task is %s", id)
		}
		if !strings.Contains(fx.Calls[0].Args[4], `"priority":5`) || !strings.Contains(fx.Calls[1].Args[4], `"priority":0`) {
			t.Errorf("%q", fx.Calls[0].Args)
		}
	}
}

func TestFailedAndCanceledPlansAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t), 1)
	for _, status := range []task.Status{task.Failed, task.Canceled} {
		res := planResult(r, "")
		res.Status, res.Error = status, "too little is known"
		fx, err := r.sup.step(t.Context(), work(res))
		if err != nil || len(fx.Publish) != 1 || len(fx.Calls) > 0 {
			t.Fatalf("%+v, %v", fx, err)
		}
		if told := fx.Publish[0].Value.(*chat.TaskResult); told.Status != status || told.Error != res.Error {
			t.Errorf("told %+v", told)
		}
	}
	res := planResult(r, "")
	if fx := r.sup.failed(work(res), "it was tried 5 times"); len(fx.Publish) != 1 || !strings.Contains(fx.Publish[0].Value.(*chat.TaskResult).Error, "tried 5 times") {
		t.Errorf("%+v", fx)
	}
	res.Status = task.Waiting
	if fx := r.sup.failed(work(res), "x"); len(fx.Publish) != 0 || len(fx.Calls) != 1 || fx.Calls[0].Args[0] != "cancel" {
		t.Errorf("%+v", fx)
	}
	res.Profile = task.Standard
	if fx := r.sup.failed(work(res), "x"); len(fx.Publish) > 0 {
		t.Errorf("%+v", fx)
	}
	res.Conversation = conv("other")
	w := work(res)
	w.Conversation = conv("c").Key()
	var quiet *channel.GiveUp
	if _, err := r.sup.step(t.Context(), w); !errors.As(err, &quiet) || !quiet.Quiet {
		t.Errorf("a result of another conversation: %v", err)
	}
}

// What a planner must know is asked of who wants the plan; where that cannot be, the
// plan is given up, and the reason told with its end.
func TestAPlannersQuestion(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	var st *question.Store
	r := newRig(t, s, 1)
	var err error
	if st, err = question.New(question.Options{Issuer: question.Issuer{Tasks: r.tasks}, Client: s.Client}); err != nil {
		t.Fatal(err)
	}
	sup := r.supervisor(r.trig, func(o *Options) { o.Questions = st })
	res := planResult(r, "")
	res.Status, res.Question = task.Waiting, &chat.TaskQuestion{ID: "q1", Question: "Which servers?", Options: []string{"old", "new"}}
	fx, err := sup.step(t.Context(), work(res))
	if err != nil || len(fx.Calls) != 1 || fx.Calls[0].Extension != "question" || fx.Calls[0].Args[0] != "create" || len(fx.Publish) != 1 || len(fx.History) != 1 {
		t.Fatalf("%+v, %v", fx, err)
	}
	reply := fx.Publish[0].Value.(*chat.Reply)
	if fx.Publish[0].To != channel.TellerReply || reply.Text != "Which servers?" || len(reply.Buttons) != 2 || !strings.Contains(fx.History[0], "Which servers?") {
		t.Errorf("%+v", reply)
	}
	if again, err := sup.step(t.Context(), work(res)); err != nil || again.Calls[0].Args[4] != fx.Calls[0].Args[4] {
		t.Errorf("asked again as %v", again.Calls)
	}
	for name, sup := range map[string]*Supervisor{"deaf": r.supervisor(r.trig), "full": sup} {
		for range question.MaxOpen {
			if _, err := st.Ask(t.Context(), question.Draft{Conversation: conv("c"), Text: "?"}); err != nil && !errors.Is(err, question.ErrFull) {
				t.Fatal(err)
			}
		}
		fx, err = sup.step(t.Context(), work(res))
		if err != nil || len(fx.Calls) != 1 || fx.Calls[0].Args[0] != "cancel" || !strings.Contains(fmt.Sprint(fx.Calls[0].Args), "Which servers?") || len(fx.Publish) != 0 {
			t.Errorf("%s: %+v, %v", name, fx, err)
		}
	}
}

// The clock keeps the deadlines of questions too.
func TestDeadlinesOfQuestions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 2)
		st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: r.tasks}, Client: s.Client})
		if err != nil {
			t.Fatal(err)
		}
		sup := r.supervisor(r.trig, func(o *Options) { o.Questions, o.Look = st, time.Hour })
		r.run(sup.Run)
		// Once before the clock has looked, and once after.
		for range 2 {
			q, err := st.Ask(t.Context(), question.Draft{Conversation: conv("c"), Text: "?", Default: "yes", Timeout: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			storetest.Eventually(t, "the deadline", func() error {
				now, err := st.Get(t.Context(), q.ID)
				if err == nil && now.Status == question.Open {
					err = errors.New("it is open")
				}
				if err == nil && (now.Answer != "yes" || now.How != question.ByDeadline || now.AnsweredAt.Before(q.Deadline)) {
					t.Errorf("%+v", now)
				}
				return err
			})
		}
	})
}

// A plan goes on with the answer to its question, after days and on any node; and one
// that is canceled asks no more.
func TestAPlanWaitsForAnAnswer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		var st *question.Store
		r := newRig(t, s, 1)
		var err error
		if st, err = question.New(question.Options{Issuer: question.Issuer{Tasks: r.tasks}, Client: s.Client}); err != nil {
			t.Fatal(err)
		}
		sup := r.supervisor(r.trig, func(o *Options) { o.Questions = st })
		r.node(sup)
		r.run(sup.Run)
		asks := func(_ context.Context, run *task.Run) (task.Outcome, error) {
			if run.Task.Answer == "" {
				return task.Outcome{Ask: &chat.TaskQuestion{Question: "Which servers?", Options: []string{"old", "new"}}}, nil
			}
			return task.Outcome{Output: `{"tasks":[{"prompt":"x","title":"the ` + run.Task.Answer + ` ones"}]}`}, nil
		}
		r.pool(map[string]task.Runner{task.Planner: asks, task.Standard: standard})
		open := func() question.Question {
			t.Helper()
			var q question.Question
			storetest.Eventually(t, "a question", func() error {
				list, err := st.Open(t.Context(), conv("c"))
				if err == nil && len(list) != 1 {
					err = fmt.Errorf("%d questions", len(list))
				}
				if err == nil {
					q = list[0]
				}
				return err
			})
			return q
		}
		root := r.enqueue(toPlan())
		q := open()
		if q.AskedTo != bob || q.TaskID != root || !q.Deadline.IsZero() {
			t.Errorf("%+v", q)
		}
		if _, _, err := st.Answer(t.Context(), q, question.Answer{By: bob, Text: "new", Option: "new", How: question.ByButton, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if heard := r.awaitHeard(1); heard[0].Title != "the new ones" || heard[0].Status != task.Succeeded {
			t.Errorf("heard %+v", heard)
		}
		if past := strings.Join(r.history(), "\n"); !strings.Contains(past, `Asked "Which servers?", Bob answered "new".`) || !strings.Contains(past, "1. old\n2. new") {
			t.Errorf("the history is\n%s", past)
		}
		canceled := r.enqueue(toPlan())
		q = open()
		if _, err := r.q.Cancel(t.Context(), canceled, bob, "no more"); err != nil {
			t.Fatal(err)
		}
		r.awaitHeard(2)
		if now, err := st.Get(t.Context(), q.ID); err != nil || now.Status != question.Withdrawn || now.Reason != "the plan is canceled" {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// The end of a step is told unless it is a success, which the history keeps; that of
// any other task of a plan is not told again.
func TestEndsOfSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t), 1)
	root := r.enqueue(toPlan())
	for _, c := range []struct {
		internal   bool
		status     task.Status
		told, kept int
	}{
		{true, task.Succeeded, 0, 1}, {true, task.Failed, 1, 0}, {true, task.Canceled, 1, 0}, {false, task.Succeeded, 0, 0}, {false, task.Failed, 0, 0},
	} {
		id := r.enqueue(task.Draft{Profile: task.Standard, Title: fmt.Sprint(c), Prompt: "x", Conversation: conv("c"), Requester: bob, ParentTaskID: root, Internal: c.internal})
		res := chat.TaskResult{ID: id, Conversation: conv("c"), Profile: task.Standard, Status: c.status, ParentTaskID: root}
		fx, err := r.sup.step(t.Context(), work(res))
		if err != nil || len(fx.Publish) != c.told || len(fx.History) != c.kept {
			t.Errorf("%+v: %+v, %v", c, fx, err)
		}
	}
}
