package action

import (
	"strings"
	"testing"
)

// What models get wrong in tool calls, as seen with many of them, and what
// becomes of each: the arguments where it is taken, else what the model is told.
func TestToolCallsAsModelsWriteThem(t *testing.T) {
	t.Parallel()
	o := vocabulary(t, Thinker)
	task := `{"priority":5,"profile":"standard","prompt":"p","title":"t"}`
	for name, c := range map[string]struct{ tool, in, want string }{
		"right":                     {"create_task", `{"prompt":"p","title":"t","profile":"standard"}`, task},
		"with white space":          {"create_task", " {\n\t\"prompt\": \"p\",\r\n \"title\":\"t\", \"profile\":\"standard\" }\n", task},
		"prefix functions.":         {"functions.create_task", `{"prompt":"p","title":"t","profile":"standard"}`, task},
		"null for what is optional": {"create_task", `{"prompt":"p","title":"t","profile":"standard","timeout":null,"retry":null,"priority":null,"deferUntil":null}`, task},
		"a whole number as 7.0":     {"create_task", `{"prompt":"p","title":"t","profile":"standard","priority":7.0}`, strings.Replace(task, "5", "7", 1)},
		"a whole number as 0.7e1":   {"create_task", `{"prompt":"p","title":"t","profile":"standard","priority":0.7e1}`, strings.Replace(task, "5", "7", 1)},
		"empty arguments":           {"list_tasks", ``, `{"limit":20,"status":"all"}`},
		"empty, and something is required": {"cancel_task", ``,
			"! cancel_task: task_id: it is missing; want text, at most 100 characters"},

		"single quotes": {"cancel_task", `{'task_id':'t1'}`,
			`! cancel_task: the arguments are no JSON: invalid character '\'' looking for beginning of object key string, at byte 2, near "{'task_id':'t1'}"`},
		"a trailing comma": {"cancel_task", `{"task_id":"t1",}`,
			`! cancel_task: the arguments are no JSON: invalid character '}' looking for beginning of object key string, at byte 17, near "{\"task_id\":\"t1\",}"`},
		"a real line break in a text": {"cancel_task", "{\"task_id\":\"t\n1\"}",
			`! cancel_task: the arguments are no JSON: invalid character '\n' in string literal, at byte 14, near "{\"task_id\":\"t\n1\"}"`},
		"a quotation mark in a text": {"cancel_task", `{"task_id":"say "hi""}`,
			`! cancel_task: the arguments are no JSON: invalid character 'h' after object key:value pair, at byte 18, near "{\"task_id\":\"say \"hi\"\"}"`},
		"cut off": {"cancel_task", `{"task_id":"t`,
			`! cancel_task: the arguments are no JSON: they end too early, after "{\"task_id\":\"t"`},
		"a code fence around it": {"cancel_task", "```json\n{\"task_id\":\"t1\"}\n```",
			"! cancel_task: the arguments are no JSON: invalid character '`' looking for beginning of value, at byte 1, near \"```json\\n{\\\"task_id\\\":\\\"\""},
		"words after it": {"cancel_task", `{"task_id":"t1"} done`,
			`! cancel_task: the arguments are no JSON: invalid character 'd' after top-level value, at byte 18, near "{\"task_id\":\"t1\"} done"`},
		"keys without quotes": {"cancel_task", `{task_id:"t1"}`,
			`! cancel_task: the arguments are no JSON: invalid character 't' looking for beginning of object key string, at byte 2, near "{task_id:\"t1\"}"`},
		"a comment": {"cancel_task", `{"task_id":"t1" // the report
}`, `! cancel_task: the arguments are no JSON: invalid character '/' after object key:value pair, at byte 17, near "{\"task_id\":\"t1\" // the report\n}"`},
		"True as in Python": {"list_tasks", `{"limit":True}`,
			`! list_tasks: the arguments are no JSON: invalid character 'T' looking for beginning of value, at byte 10, near "{\"limit\":True}"`},
		"JSON in a JSON text": {"cancel_task", `"{\"task_id\":\"t1\"}"`,
			`! cancel_task: the arguments are "{\"task_id\":\"t1\"}"; want an object with the fields task_id (required)`},
		"the value alone":           {"cancel_task", `"t1"`, `! cancel_task: the arguments are "t1"; want an object with the fields task_id (required)`},
		"a list of one":             {"cancel_task", `[{"task_id":"t1"}]`, `! cancel_task: the arguments are [{"task_id":"t1"}]; want an object with the fields task_id (required)`},
		"null":                      {"list_tasks", `null`, "! list_tasks: the arguments are null; want an object with the fields status, limit"},
		"null for what is required": {"cancel_task", `{"task_id":null}`, "! cancel_task: task_id: null is not allowed; want text, at most 100 characters"},
		"a field twice":             {"cancel_task", `{"task_id":"a","task_id":"b"}`, "! cancel_task: the field task_id is given twice"},
		"a number as text":          {"list_tasks", `{"limit":"5"}`, "! list_tasks: limit: a text is not allowed; want a whole number from 1 to 50"},
		"text as number":            {"cancel_task", `{"task_id":17}`, "! cancel_task: task_id: a number is not allowed; want text, at most 100 characters"},
		"a fraction":                {"list_tasks", `{"limit":2.5}`, "! list_tasks: limit: a number is not allowed; want a whole number from 1 to 50"},
		"too large":                 {"list_tasks", `{"limit":51}`, "! list_tasks: limit: 51 is not allowed; want a whole number from 1 to 50"},
		"too small":                 {"list_tasks", `{"limit":0}`, "! list_tasks: limit: 0 is not allowed; want a whole number from 1 to 50"},
		"a number beyond all":       {"list_tasks", `{"limit":1e999999999}`, `! list_tasks: the number "1e999999999" is out of range`},
		"a number next to zero":     {"list_tasks", `{"limit":1e-999999999}`, `! list_tasks: the number "1e-999999999" is out of range`},
		"another word":              {"list_tasks", `{"status":"done"}`, `! list_tasks: status: "done" is not allowed; want one of all, active, deferred, pending, running, waiting, succeeded, failed, canceled`},
		"a date without a time":     {"get_history_by_time", `{"from":"2026-01-31"}`, `! get_history_by_time: from: "2026-01-31" is not allowed; want a time such as 2026-01-31T12:34:56Z`},
		"an empty text":             {"cancel_task", `{"task_id":""}`, "! cancel_task: task_id: it is empty; want text, at most 100 characters"},
		"white space for a text":    {"remember", `{"content":" \n","scope":"user"}`, "! remember: content: it is empty; want text"},
		"a field of another spelling": {"cancel_task", `{"taskId":"t1"}`,
			"! cancel_task: taskId: there is no such field; is it task_id?; task_id: it is missing; want text, at most 100 characters"},
		"a field that is not there": {"cancel_task", `{"task_id":"t1","reason":"x"}`, "! cancel_task: reason: there is no such field; there are task_id"},
		"two within an object": {"create_task", `{"prompt":"p","title":"t","profile":"standard","retry":{"maxAttempts":99,"backof":1}}`,
			"! create_task: retry.backof: there is no such field; is it backoff?; retry.maxAttempts: 99 is not allowed; want a whole number from 0 to 10"},
		"an item of a list": {"ask_user", `{"question":"q","options":["a",2]}`, "! ask_user: options[1]: a number is not allowed; want text, at most 75 characters"},
		"a default that is no option": {"ask_user", `{"question":"q","options":["a","b"],"default":"c"}`,
			`! ask_user: default: "c" is not allowed; want one of a, b`},
		"an option twice": {"ask_user", `{"question":"q","options":["a","a"]}`, `! ask_user: options[1]: "a" stands there twice`},

		"upper case":               {"Create_Task", `{}`, `! there is no action "Create_Task"; is it create_task?`},
		"camel case":               {"createTask", `{}`, `! there is no action "createTask"; is it create_task?`},
		"dashes":                   {"create-task", `{}`, `! there is no action "create-task"; is it create_task?`},
		"a slip":                   {"cretae_task", `{}`, `! there is no action "cretae_task"; is it create_task?`},
		"a part of the name":       {"history", `{}`, `! there is no action "history"; is it get_history_by_time or get_recent_history?`},
		"another agent's":          {"exec_shell", `{}`, `! there is no action "exec_shell"; there are ask_user, cancel_task, capture_feedback, create_task, delegate, get_history_by_time, get_recent_history, list_tasks, remember, schedule, search_memory, summarize_task_result`},
		"a wrapper of some models": {"multi_tool_use.parallel", `{"tool_uses":[]}`, `! there is no action "multi_tool_use.parallel"; there are ask_user, cancel_task, capture_feedback, create_task, delegate, get_history_by_time, get_recent_history, list_tasks, remember, schedule, search_memory, summarize_task_result`},
		"no name":                  {"", `{}`, `! there is no action ""; there are ask_user, cancel_task, capture_feedback, create_task, delegate, get_history_by_time, get_recent_history, list_tasks, remember, schedule, search_memory, summarize_task_result`},
	} {
		d := tool(o, c.tool, c.in)
		got := string(d.Call.Arguments)
		if d.Err != nil {
			got = "! " + d.Err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
		if d.Call.Raw != c.in {
			t.Errorf("%s: kept as %q", name, d.Call.Raw)
		}
	}
}

// Arguments are bounded before anything is done with them.
func TestArgumentsHaveBounds(t *testing.T) {
	t.Parallel()
	o := everySort(t)
	for want, in := range map[string]string{
		"":                                      `{"any":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
		"lists and objects nest more than 32":   `{"any":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`,
		"262145 bytes of arguments; at most 26": `{"any":"` + strings.Repeat("a", 256<<10-9) + `"}`,
		"is out of range":                       `{"any":0.` + strings.Repeat("1", 64) + `}`,
		"are not UTF-8 text":                    "{\"any\":\"\xff\"}",
	} {
		d := tool(o, "open", in)
		if (d.Err == nil) != (want == "") || d.Err != nil && !strings.Contains(d.Err.Error(), want) {
			t.Errorf("%.40s: %v; want %q", in, d.Err, want)
		}
	}
	if d := tool(o, "open", `{"any":"`+strings.Repeat("a", 256<<10-10)+`"}`); d.Err != nil {
		t.Errorf("all that is allowed: %v", d.Err)
	}
}

// The same for lines in a block.
func TestLinesAsModelsWriteThem(t *testing.T) {
	t.Parallel()
	o := vocabulary(t, Thinker)
	task := `{"priority":5,"profile":"standard","prompt":"p","title":"t"}`
	for name, c := range map[string]struct{ in, want string }{
		"right":                   {`@create_task prompt="p" title="t" profile="standard"`, task},
		"indented":                {`   @create_task prompt="p"   title="t"	profile="standard"  `, task},
		"over several lines":      {"@create_task\n  prompt=\"p\"\n  title=\"t\"\r\n  profile=\"standard\"", task},
		"prefix functions.":       {`@functions.create_task prompt="p" title="t" profile="standard"`, task},
		"no fields":               {`@list_tasks`, `{"limit":20,"status":"all"}`},
		"a number in quotes":      {`@list_tasks limit="7"`, `{"limit":7,"status":"all"}`},
		"a number without quotes": {`@list_tasks limit=7`, `{"limit":7,"status":"all"}`},
		"a list in quotes":        {`@ask_user question="q" options="[\"a\",\"b \\\"c\\\"\"]"`, `{"options":["a","b \"c\""],"question":"q","timeout":3600}`},
		"a list without quotes":   {`@ask_user question="q" options=["a","b c"]`, `{"options":["a","b c"],"question":"q","timeout":3600}`},
		"an object in quotes":     {`@create_task prompt="p" title="t" profile="standard" retry="{\"maxAttempts\":2}"`, `{"priority":5,"profile":"standard","prompt":"p","retry":{"backoff":5,"maxAttempts":2},"title":"t"}`},
		"an object without quotes": {`@create_task prompt="p" title="t" profile="standard" retry={"maxAttempts": 2}`,
			`{"priority":5,"profile":"standard","prompt":"p","retry":{"backoff":5,"maxAttempts":2},"title":"t"}`},
		"text that looks like a number":  {`@cancel_task task_id="17"`, `{"task_id":"17"}`},
		"text that looks like JSON":      {`@cancel_task task_id="{\"a\":1}"`, `{"task_id":"{\"a\":1}"}`},
		"text that looks like an action": {`@cancel_task task_id="\n@cancel_task task_id=\"t2\""`, `{"task_id":"\n@cancel_task task_id=\"t2\""}`},
		"escapes":                        {`@cancel_task task_id="a\n\r\t\"\\b"`, `{"task_id":"a\n\r\t\"\\b"}`},
		"a backslash of its own":         {`@cancel_task task_id="\d+ C:\temp \u0041"`, `{"task_id":"\\d+ C:\temp \\u0041"}`},
		"a real line break":              {"@cancel_task task_id=\"a\nb\"", `{"task_id":"a\nb"}`},
		"null for what is optional":      {`@list_tasks limit=null`, `{"limit":20,"status":"all"}`},

		"single quotes":              {`@cancel_task task_id='t1'`, `! @cancel_task: the value of task_id stands in single quotes; write double ones: task_id="value"`},
		"curly quotes":               {`@cancel_task task_id=“t1”`, `! @cancel_task: the value of task_id begins with "“t1”"; put it in double quotes: task_id="value"`},
		"no quotes":                  {`@cancel_task task_id=t1`, `! @cancel_task: the value of task_id begins with "t1"; put it in double quotes: task_id="value"`},
		"a text without quotes":      {`@cancel_task task_id=17`, "! cancel_task: task_id: a number is not allowed; want text, at most 100 characters"},
		"a call with brackets":       {`@cancel_task(task_id="t1")`, `! @cancel_task: no brackets; write the pairs after a space: @cancel_task key="value"`},
		"JSON":                       {`@cancel_task {"task_id":"t1"}`, `! @cancel_task: no JSON; write pairs: @cancel_task key="value"`},
		"commas":                     {`@list_tasks limit="7", status="all"`, `! @list_tasks: ", status=\"al…" follows the value of limit; a space is wanted there, and a " within a value is written \"`},
		"a colon for =":              {`@cancel_task task_id: "t1"`, `! @cancel_task: after task_id an = is wanted, with no space before it: task_id="value"`},
		"a space before =":           {`@cancel_task task_id ="t1"`, `! @cancel_task: after task_id an = is wanted, with no space before it: task_id="value"`},
		"a space after =":            {`@cancel_task task_id= "t1"`, `! @cancel_task: task_id has no value; write task_id="value", with no space after the =`},
		"a mark within a value":      {`@cancel_task task_id="say "hi""`, `! @cancel_task: "hi\"\"" follows the value of task_id; a space is wanted there, and a " within a value is written \"`},
		"a value not closed":         {`@cancel_task task_id="t1`, `! a value in the block of actions is not closed with a ", or the block not with </MIMIKIT:actions>; write it again`},
		"a key twice":                {`@cancel_task task_id="a" task_id="b"`, "! @cancel_task: task_id is given twice"},
		"words after it":             {`@cancel_task task_id="a" please!`, `! @cancel_task: after please an = is wanted, with no space before it: please="value"`},
		"a mark after it":            {`@cancel_task task_id="a" !`, `! @cancel_task: "!" stands where a key="value" pair is wanted`},
		"two on a line":              {`@cancel_task task_id="a" @list_tasks`, `! @cancel_task: "@list_tasks" stands where a key="value" pair is wanted`},
		"a bullet":                   {`- @cancel_task task_id="a"`, `! "- @cancel_task task_id=\"a\"" is no action; an action is a line of its own: @name key="value"`},
		"prose":                      {`I will cancel it.`, `! "I will cancel it." is no action; an action is a line of its own: @name key="value"`},
		"nothing after @":            {`@ cancel_task`, `! no name stands after @; an action is a line of its own: @name key="value"`},
		"upper case":                 {`@CANCEL_TASK task_id="a"`, `! there is no action "CANCEL_TASK"; is it cancel_task?`},
		"a colon after the name":     {`@cancel_task: task_id="a"`, `! @cancel_task: a space must follow the name, not ": task_id=\"a…"`},
		"a word for a number":        {`@list_tasks limit="many"`, `! list_tasks: limit: "many" is not allowed; want a whole number from 1 to 50, as JSON in quotes`},
		"nothing for a number":       {`@list_tasks limit=""`, `! list_tasks: limit: "" is not allowed; want a whole number from 1 to 50, as JSON in quotes`},
		"a trailing comma in a list": {`@ask_user question="q" options="[\"a\",]"`, `! ask_user: options: "[\"a\",]" is not allowed; want a list of texts, at most 25 items, as JSON in quotes`},
		"a list of single quotes":    {`@ask_user question="q" options="['a','b']"`, `! ask_user: options: "['a','b']" is not allowed; want a list of texts, at most 25 items, as JSON in quotes`},
		"options with commas":        {`@ask_user question="q" options="a,b"`, `! ask_user: options: "a,b" is not allowed; want a list of texts, at most 25 items, as JSON in quotes`},
		"another field":              {`@cancel_task task="a"`, "! cancel_task: task: there is no such field; is it task_id?; task_id: it is missing; want text, at most 100 characters"},
	} {
		_, calls := o.DecodeBlock("Hello.\n" + block(c.in))
		if len(calls) != 1 {
			t.Errorf("%s: decoded %d calls: %+v", name, len(calls), calls)
			continue
		}
		got := string(calls[0].Call.Arguments)
		if calls[0].Err != nil {
			got = "! " + calls[0].Err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}
