package supervisor

import (
	"strings"
	"testing"
	"time"

	"mimikit/core/action"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// A plan whose triggers the conversation cannot take is not carried out by half: it
// is told, and nothing of it begins.
func TestAPlanOfTooManyTriggers(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t), 1)
	for range trigger.MaxPerConversation {
		if _, err := r.trig.Create(t.Context(), trigger.Draft{
			Type: trigger.Recurring, Prompt: "x", Conversation: conv("c"), Requester: ann, Interval: 24 * time.Hour,
		}); err != nil {
			t.Fatal(err)
		}
	}
	plan := action.Plan{
		Tasks:    []action.PlannedTask{{Ref: "a", Prompt: "look at A", Title: "A", Profile: "standard", Priority: 5}},
		Triggers: []action.PlannedTrigger{{Prompt: "write it", Title: "Report", Type: "conditional", Condition: done("a")}},
	}
	r.node(r.sup)
	r.pool(map[string]task.Runner{task.Planner: planner(plan), task.Standard: standard})
	root := r.enqueue(toPlan())
	h := r.awaitHeard(1)[0]
	if h.ID != root || h.Status != task.Failed || !strings.Contains(h.Error, "has 500 triggers already") {
		t.Errorf("heard %+v", h)
	}
	if list, err := r.q.List(t.Context(), task.Filter{}, "", 100); err != nil || len(list.Tasks) != 1 {
		t.Errorf("%+v, %v", list.Tasks, err)
	}
}
