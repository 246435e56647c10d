package supervisor

import (
	"strings"
	"testing"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// A plan that would wait for what is not of its conversation, or that has more triggers
// than the conversation can take, is refused before it is accepted; and likewise where
// it was accepted earlier.
func TestPlansAreCheckedInTheirConversation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		ctx := t.Context()
		mine := r.enqueue(task.Draft{Profile: task.Standard, Prompt: "x", Conversation: conv("c"), Requester: ann})
		secret := r.enqueue(task.Draft{Profile: task.Standard, Prompt: "x", Conversation: conv("other"), Requester: ann})
		own, its := r.create(recurring("c", "own", time.Hour)), r.create(recurring("other", "its", time.Hour))
		plan := func(more ...action.PlannedTrigger) action.Plan {
			return action.Plan{Tasks: []action.PlannedTask{{Ref: "a", Prompt: "x", Title: "A", Profile: "standard"}}, Triggers: more}
		}
		after := func(c *action.Condition) action.PlannedTrigger {
			return action.PlannedTrigger{Prompt: "x", Title: "B", Type: "conditional", Profile: "standard", Condition: c}
		}
		for id, fine := range map[string]bool{
			"a": true, mine: true, own.ID: true,
			secret: false, its.ID: false, task.NewID(time.Now(), 0, 5): false, trigger.NewID(time.Now(), 0, 5): false, "g1": false, "b": false,
		} {
			p := plan(after(done("a")), after(allDone("a", id)))
			err := r.sup.CheckPlan(ctx, p, conv("c"), ann)
			if fine != (err == nil) || err != nil && !strings.Contains(err.Error(), "triggers[1]: condition: taskId \""+id+"\" is no name of this plan") {
				t.Errorf("%s: %v", id, err)
			}
			fx, err := r.sup.step(ctx, work(planResult(r, encoded(t, p))))
			if err != nil || fine != (len(fx.Calls) == 3) || !fine && (len(fx.Calls) > 0 || len(fx.Puts) > 0) {
				t.Errorf("%s: %d calls, %v", id, len(fx.Calls), err)
			}
			if !fine {
				if told := fx.Publish[0].Value.(*chat.TaskResult); told.Status != task.Failed || !strings.Contains(told.Error, id) {
					t.Errorf("%s: told %+v", id, told)
				}
			}
		}
		for range trigger.MaxPerConversation - 2 {
			r.create(recurring("c", "more", time.Hour))
		}
		if err := r.sup.CheckPlan(ctx, plan(after(done("a"))), conv("c"), ann); err != nil {
			t.Errorf("the last one: %v", err)
		}
		two := plan(after(done("a")), after(done("a")))
		if err := r.sup.CheckPlan(ctx, two, conv("c"), ann); err == nil || !strings.Contains(err.Error(), "has 499 triggers already, and 2 more would be over the 500") {
			t.Errorf("one too many: %v", err)
		}
		if err := r.sup.CheckPlan(ctx, two, conv("d"), ann); err != nil {
			t.Errorf("in another conversation: %v", err)
		}
		if err := r.sup.CheckPlan(ctx, plan(), conv("c"), ann); err != nil {
			t.Errorf("without triggers: %v", err)
		}
	})
}
