package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/prompts"
)

func planning(text string) scene {
	return scene{agent: action.Planner, data: prompts.Data{Now: demoNow, Request: prompts.Request{Task: "p1", Author: ada, Text: text}}}
}

// outline writes a plan in short: refs and titles, and what waits for what.
func outline(t *testing.T, args map[string]any) string {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var p action.Plan
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, k := range p.Tasks {
		out = append(out, k.Ref+"="+k.Title)
	}
	for _, k := range p.Triggers {
		after := k.Cron
		if c := k.Condition; c != nil {
			for _, leaf := range append([]action.Condition{*c}, c.Conditions...) {
				if leaf.Params != nil {
					after += leaf.Params.TaskID
				}
			}
		}
		out = append(out, k.Ref+" after "+after+"="+k.Title)
	}
	return strings.Join(out, "; ")
}

func TestDemoPlans(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plan A, then B": "a=A; b after a=B",
		"Plan the launch and then write the notes; then party": "a=The launch; b after a=Write the notes; c after b=Party",
		"first count the files, afterwards report":             "a=Count the files; b after a=Report",
		"compare our three hosters and draft a plan to move":   "a=Compare our three hosters and draft a plan to move",
		"plan:\n- cook rice\n- cook beans\nthen eat":           "a=Cook rice; b=Cook beans; c after ab=Eat",
		"plan a check every weekday at 9, then report":         "a after 0 9 * * 1-5=A check; b after a=Report",
		"plane die Feier, danach die Einladung":                "a=Die Feier; b after a=Die Einladung",
		"先收集数据，然后写报告":                                          "a=收集数据; b after a=写报告",
		"planifica la fiesta, luego la invitación":             "a=La fiesta; b after a=La invitación",
		"plan the history of \"A, then B\"":                    "a=The history of \"A; b after a=B\"",
	} {
		name, args := planning(text).call(t)
		got := outline(t, args)
		if name != "done" || got != want {
			t.Errorf("%s: %s %s\nwant %s", text, name, got, want)
		}
	}
	long := planning("plan x1" + strings.Repeat(", then do it", 30))
	if name, args := long.call(t); name != "done" || strings.Count(outline(t, args), ";") != 9 {
		t.Errorf("%s %s", name, outline(t, args))
	}
}

func TestDemoPlannerAsks(t *testing.T) {
	t.Parallel()
	s := planning("plan the release, then the announcement; ask me which branch: main or next")
	name, args := s.call(t)
	if data, _ := json.Marshal(args); name != "needs_input" || string(data) != `{"options":["main","next"],"question":"Which branch: main or next?"}` {
		t.Errorf("%s %s", name, data)
	}
	s.data.Inputs = []chat.UserInput{{ID: "i1", Author: ada, Text: "next", Question: "q1", Option: "next"}}
	name, args = s.call(t)
	if got := outline(t, args); name != "done" || got != "a=The release; b after a=The announcement" {
		t.Errorf("%s %s", name, got)
	}
	tasks, _ := args["tasks"].([]any)
	if task, _ := tasks[0].(map[string]any); !strings.Contains(task["prompt"].(string), "(The answer to “Which branch: main or next?” was: next)") {
		t.Errorf("prompt = %v", task["prompt"])
	}
}

func TestDemoPlannerFails(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plan the impossible":  "the request itself says that it is impossible",
		"plane das Unmögliche": "unmöglich",
		"规划一件不可能的事":            "不可能",
		"planea lo imposible":  "imposible",
	} {
		if name, args := planning(text).call(t); name != "failed" || !strings.Contains(args["error"].(string), want) {
			t.Errorf("%s: %s %v", text, name, args)
		}
	}
	s := planning("plan A, then B")
	s.data.Request.Author = chat.Author{}
	if name, _ := s.call(t); name != "failed" {
		t.Errorf("asked by nobody: %s", name)
	}
	s = planning("plan A, then B")
	s.none = true
	if res := s.ask(t); res.ToolCalls != nil || !strings.HasPrefix(res.Text, "That would take the action `done`") {
		t.Errorf("without actions: %q", res.Text)
	}
}

// A block of the planner, whose plans nest, is read as native calls are.
func TestDemoPlansInBlocks(t *testing.T) {
	t.Parallel()
	s := planning("plan \"A\", then B\\C")
	s.style = action.Block
	_, calls := s.offer(t).DecodeBlock(s.ask(t).Text)
	s.style = action.Native
	want := s.offer(t).DecodeTools(s.ask(t).ToolCalls)
	if len(calls) != 1 || calls[0].Err != nil || string(calls[0].Call.Arguments) != string(want[0].Call.Arguments) {
		t.Errorf("got %+v, want %+v", calls, want)
	}
}
