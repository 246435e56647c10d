package action

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mimikit/core/chat"
)

var update = flag.Bool("update", false, "write the golden files")

// What each agent is told, both ways, for a reader to judge.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	for _, agent := range agents {
		o := vocabulary(t, agent)
		var tools strings.Builder
		for _, tool := range o.Tools() {
			tools.WriteString(tool.Name + "\n  " + tool.Description + "\n  " + string(tool.Schema) + "\n")
		}
		for name, got := range map[string]string{
			agent + "-native": o.Describe(Native) + "\n", agent + "-block": o.Describe(Block) + "\n", agent + "-tools": tools.String(), agent + "-help": o.Help() + "\n",
		} {
			if got == "\n" {
				continue // nothing that people are told
			}
			file := filepath.Join("testdata", "describe", name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is not as in %s; after a look: go test -run Descriptions -update .", name, file)
			}
		}
	}
}

func TestWhoHasWhat(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string][]string{
		TellerDigest: {"digest_context", "handoff_context"},
		Thinker: {"ask_user", "cancel_task", "capture_feedback", "create_task", "delegate", "get_history_by_time", "get_recent_history",
			"list_tasks", "remember", "schedule", "search_memory", "summarize_task_result"},
		Planner: {"done", "failed", "get_history_by_time", "get_recent_history", "list_tasks", "needs_input", "search_memory"},
		WorkerStandard: {"edit_file", "exec_shell", "fetch_url", "patch_file", "read_file", "report_progress", "respond",
			"search_files", "write_file"},
	} {
		if got := vocabulary(t, agent).Names(); !slices.Equal(got, want) {
			t.Errorf("%s has %v; want %v", agent, got, want)
		}
	}
	r, err := Outline(Vocabulary()...)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(r.Names()); got != 26 {
		t.Errorf("the vocabulary has %d actions", got)
	}
	_, err = r.For(Thinker, chat.RoleUser).Do(t.Context(), turn(ann), Call{Name: "list_tasks", Arguments: []byte("{}")})
	if err == nil || !strings.Contains(err.Error(), "outline") {
		t.Errorf("an outline did something: %v", err)
	}
}

// Defaults, bounds and the rules between fields: what is given, and what becomes
// of it.
func TestArguments(t *testing.T) {
	t.Parallel()
	r, err := Outline(Vocabulary()...)
	if err != nil {
		t.Fatal(err)
	}
	const job = `"prompt":"p","title":"t","profile":"expert"`
	const trig = `"prompt":"p"`
	const trigDefaults = `"priority":5,"profile":"standard","prompt":"p"`
	for _, c := range []struct{ name, in, want string }{
		{"digest_context", `{"summary":"s"}`, `{"summary":"s"}`},
		{"handoff_context", `{"summary":" "}`, "! summary: it is empty"},

		{"create_task", `{` + job + `}`, `{"priority":5,"profile":"expert","prompt":"p","title":"t"}`},
		{"create_task", `{` + job + `,"priority":0,"timeout":86400,"retry":{"maxAttempts":0},"deferUntil":"2026-01-31T12:34:56.789Z"}`,
			`{"deferUntil":"2026-01-31T12:34:56.789Z","priority":0,"profile":"expert","prompt":"p","retry":{"backoff":5,"maxAttempts":0},"timeout":86400,"title":"t"}`},
		{"create_task", `{` + job + `,"priority":11}`, "! priority: 11 is not allowed; want a whole number from 0 to 10"},
		{"create_task", `{` + job + `,"timeout":0}`, "! timeout: 0 is not allowed; want a whole number from 1 to 86400"},
		{"create_task", `{"prompt":"p","title":"t","profile":"planner"}`, `! profile: "planner" is not allowed; want one of standard, expert`},
		{"create_task", `{` + job + `,"deferUntil":"tomorrow"}`, "! deferUntil: \"tomorrow\" is not allowed; want a time"},
		{"create_task", `{` + job + `,"deferUntil":"2016-12-31T23:59:60Z"}`, "! create_task:"}, // a leap second: the schema knows it, Go does not
		{"create_task", `{"prompt":"` + strings.Repeat("é", 16000) + `","title":"t","profile":"standard"}`, `{"priority":5,`},
		{"create_task", `{"prompt":"` + strings.Repeat("é", 16001) + `","title":"t","profile":"standard"}`, "! prompt: a text of 16001 characters is not allowed"},
		{"delegate", `{"prompt":"p","timeout":5}`, `{"priority":5,"prompt":"p","timeout":5}`},
		{"cancel_task", `{"task_id":"t1"}`, `{"task_id":"t1"}`},
		{"summarize_task_result", `{"task_id":"t1","summary":"s"}`, `{"summary":"s","task_id":"t1"}`},
		{"capture_feedback", `{"message":"m"}`, `{"category":"other","message":"m","severity":"low"}`},
		{"remember", `{"content":"c"}`, "! scope: it is missing; want one of conversation, user, workspace"},

		{"schedule", `{` + trig + `,"type":"recurring","interval":21600,"cooldown":3600,"nextRunAt":"2026-02-01T00:00:00Z"}`,
			`{"cooldown":3600,"interval":21600,"nextRunAt":"2026-02-01T00:00:00Z",` + trigDefaults + `,"type":"recurring","zone":"UTC"}`},
		{"schedule", `{` + trig + `,"type":"recurring","cron":"0 9 * * 1-5","zone":"Europe/Berlin","timeout":5}`,
			`{"cron":"0 9 * * 1-5",` + trigDefaults + `,"timeout":5,"type":"recurring","zone":"Europe/Berlin"}`},
		{"schedule", `{` + trig + `,"type":"scheduled","runAt":"2026-02-01T09:00:00+01:00"}`,
			`{` + trigDefaults + `,"runAt":"2026-02-01T09:00:00+01:00","type":"scheduled","zone":"UTC"}`},
		{"schedule", `{` + trig + `,"type":"conditional","condition":{"type":"file_changed","params":{"path":"src/**/*.ts","fireOnInit":true}}}`,
			`{"condition":{"params":{"fireOnInit":true,"path":"src/**/*.ts"},"type":"file_changed"},` + trigDefaults + `,"type":"conditional","zone":"UTC"}`},
		{"schedule", `{` + trig + `,"type":"recurring"}`, "! interval, cron: a recurring trigger takes one of them"},
		{"schedule", `{` + trig + `,"type":"recurring","interval":60,"cron":"* * * * *"}`, "! interval, cron: a recurring trigger takes one of them"},
		{"schedule", `{` + trig + `,"type":"recurring","interval":9}`, "! interval: 9 is not allowed; want a whole number from 10 to 31536000"},
		{"schedule", `{` + trig + `,"type":"recurring","interval":60,"zone":"Asia/Tokyo"}`, "! zone: it goes with cron"},
		{"schedule", `{` + trig + `,"type":"recurring","cron":"* * * * *","nextRunAt":"2026-02-01T00:00:00Z"}`, "! nextRunAt: it goes with interval"},
		{"schedule", `{` + trig + `,"type":"recurring","interval":60,"runAt":"2026-02-01T00:00:00Z"}`, "! runAt: a recurring trigger does not take it; it takes interval, cron, zone, nextRunAt"},
		{"schedule", `{` + trig + `,"type":"scheduled"}`, "! runAt: it is missing"},
		{"schedule", `{` + trig + `,"type":"conditional"}`, "! condition: it is missing"},
		{"schedule", `{` + trig + `,"type":"scheduled","runAt":"2026-02-01T00:00:00Z","condition":{"type":"task_done","params":{"taskId":"a"}}}`, "! condition: a scheduled trigger does not take it"},
		{"schedule", `{` + trig + `,"type":"sometimes"}`, `! type: "sometimes" is not allowed; want one of recurring, scheduled, conditional`},

		{"ask_user", `{"question":"q"}`, `{"question":"q","timeout":3600}`},
		{"ask_user", `{"question":"q","timeout":2592001}`, "! timeout: 2592001 is not allowed; want a whole number from 30 to 2592000"},
		{"ask_user", `{"question":"q","options":[` + strings.Repeat(`"a",`, 25) + `"a"]}`, "! options: a list of 26 items is not allowed; want a list of texts, at most 25 items"},
		{"list_tasks", `{}`, `{"limit":20,"status":"all"}`},
		{"search_memory", `{"query":"q"}`, `{"limit":5,"query":"q"}`},
		{"get_recent_history", `{}`, `{"limit":20}`},
		{"get_history_by_time", `{"from":"2026-02-01T00:00:00Z"}`, `{"from":"2026-02-01T00:00:00Z","limit":50}`},
		{"get_history_by_time", `{"from":"2026-02-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}`, "! to: 2026-01-01T00:00:00Z is before from, 2026-02-01T00:00:00Z"},

		{"done", `{}`, "! tasks, triggers: there is nothing in the plan"},
		{"done", `{"tasks":[{"prompt":"p","title":"t"}]}`, `{"tasks":[{"priority":5,"profile":"standard","prompt":"p","title":"t"}]}`},
		{"done", `{"tasks":[{"ref":"a","prompt":"p","title":"t"},{"ref":"a","prompt":"p","title":"t"}]}`, `! tasks[1].ref: "a" is taken`},
		{"done", `{"tasks":[{"prompt":"p","title":" "}]}`, "! tasks[0].title: it is empty"},
		{"done", `{"tasks":[{"prompt":"p"}]}`, "! tasks[0].title: it is missing"},
		{"done", `{"triggers":[{"prompt":"p","type":"recurring"}]}`, "! triggers[0].interval, cron: a recurring"},
		{"done", `{"triggers":[{"ref":"a","prompt":"p","type":"conditional","condition":{"type":"task_done","params":{"taskId":"b"}}},{"ref":"b","prompt":"p","type":"conditional","condition":{"type":"task_done","params":{"taskId":"a"}}}]}`, "! triggers: "},
		{"done", `{"tasks":[{"ref":"a","prompt":"p","title":"t"}],"triggers":[{"ref":"b","prompt":"p","type":"conditional","condition":{"type":"task_done","params":{"taskId":"a"}}},{"ref":"c","prompt":"p","type":"conditional","condition":{"type":"and","conditions":[{"type":"task_done","params":{"taskId":"a"}},{"type":"task_done","params":{"taskId":"b"}}]}}]}`, `{"tasks":`},
		{"needs_input", `{"question":"q","options":["a"],"default":"b"}`, `! default: "b" is not allowed; want one of a`},
		{"needs_input", `{"question":"q"}`, `{"question":"q"}`},
		{"failed", `{"error":"e"}`, `{"error":"e"}`},

		{"read_file", `{"path":"a"}`, `{"line_count":100,"path":"a","start_line":1}`},
		{"read_file", `{"path":"a","line_count":501}`, "! line_count: 501 is not allowed; want a whole number from 1 to 500"},
		{"read_file", `{"path":"a","start_line":0}`, "! start_line: 0 is not allowed; want a whole number, at least 1"},
		{"search_files", `{"query":"q"}`, `{"limit":50,"path":".","query":"q"}`},
		{"search_files", `{"query":"q","limit":201}`, "! limit: 201 is not allowed; want a whole number from 1 to 200"},
		{"write_file", `{"path":"a","content":""}`, `{"content":"","path":"a"}`},
		{"edit_file", `{"path":"a","old_text":"x","new_text":""}`, `{"new_text":"","old_text":"x","path":"a"}`},
		{"edit_file", `{"path":"a","old_text":"x","new_text":"x"}`, "! new_text: it is the same as old_text"},
		{"patch_file", `{"patch":"--- a"}`, `{"patch":"--- a"}`},
		{"exec_shell", `{"command":"ls"}`, `{"command":"ls","timeout":60,"workdir":"."}`},
		{"fetch_url", `{"url":"https://example.org"}`, `{"url":"https://example.org"}`},
		{"report_progress", `{"message":"m","percent":101}`, "! percent: 101 is not allowed; want a whole number from 0 to 100"},
		{"respond", `{"output":"o"}`, `{"output":"o","resultType":"text"}`},
		{"respond", `{"output":"o","resultType":"poem"}`, `! resultType: "poem" is not allowed; want one of text, code_change, analysis, summary`},
	} {
		d := tool(r.For(r.name[c.name].Agents[0], chat.RoleUser), c.name, c.in)
		got := string(d.Call.Arguments)
		if d.Err != nil {
			got = "! " + d.Err.Error()
		}
		want := strings.Replace(c.want, "! ", "! "+c.name+": ", 1)
		if c.want == "! create_task:" {
			want = c.want
		}
		exact := strings.HasPrefix(c.want, "{") && strings.HasSuffix(c.want, "}")
		if exact && got != want || !strings.HasPrefix(got, want) {
			t.Errorf("%s %.300s\ngot  %s\nwant %s", c.name, c.in, got, want)
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	leaf := func() Condition { return Condition{Type: "task_done", Params: &ConditionParams{TaskID: "a"}} }
	nest := func(depth int) Condition {
		c := leaf()
		for range depth {
			c = Condition{Type: "and", Conditions: []Condition{leaf(), c}}
		}
		return c
	}
	wide := Condition{Type: "or"}
	for range 3 {
		wide.Conditions = append(wide.Conditions, Condition{Type: "and", Conditions: slices.Repeat([]Condition{leaf()}, 7)})
	}
	for name, c := range map[string]struct {
		c    Condition
		want string
	}{
		"file_exists":                 {Condition{Type: "file_exists", Params: &ConditionParams{Path: "a"}}, ""},
		"task_failed":                 {Condition{Type: "task_failed", Params: &ConditionParams{TaskID: "a"}}, ""},
		"llm_eval":                    {Condition{Type: "llm_eval", Params: &ConditionParams{Prompt: "is it?"}}, ""},
		"nested":                      {nest(3), ""},
		"too deep":                    {nest(4), "condition.conditions[1].conditions[1].conditions[1].conditions[0]: conditions nest more than 4 deep"},
		"too many":                    {wide, "condition.conditions[2].conditions[6]: there are more than 20 conditions"},
		"without params":              {Condition{Type: "task_done"}, "condition.params.taskId: it is missing; task_done needs it"},
		"another's params":            {Condition{Type: "task_done", Params: &ConditionParams{TaskID: "a", Path: "b"}}, "condition.params.path: task_done does not take it"},
		"fireOnInit elsewhere":        {Condition{Type: "file_exists", Params: &ConditionParams{Path: "a", FireOnInit: true}}, "condition.params.fireOnInit: file_exists does not take it"},
		"and with params":             {Condition{Type: "and", Params: &ConditionParams{TaskID: "a"}}, "condition.params: and takes conditions and no params"},
		"or of nothing":               {Condition{Type: "or"}, "condition.conditions: it is missing; or takes a list of 2 or more"},
		"a leaf with conditions":      {Condition{Type: "task_done", Params: &ConditionParams{TaskID: "a"}, Conditions: []Condition{leaf()}}, "condition.conditions: task_done takes params and no conditions"},
		"wrong deep within":           {Condition{Type: "and", Conditions: []Condition{leaf(), {Type: "llm_eval"}}}, "condition.conditions[1].params.prompt: it is missing; llm_eval needs it"},
		"a path of white space alone": {Condition{Type: "file_exists", Params: &ConditionParams{Path: " "}}, "condition.params.path: it is missing; file_exists needs it"},
	} {
		got := ""
		if err := c.c.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}
