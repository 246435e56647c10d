package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mimikit/core/action"
)

// A sentence and what it has the demo model call. Of the arguments those are
// named that matter, in JSON; "prompt" and "message" are what they begin with.
type sentence struct{ text, name, args string }

func TestDemoSentences(t *testing.T) {
	t.Parallel()
	for _, s := range []sentence{
		// What the vocabulary tells people to say.
		{"find out why the nightly build fails", "create_task", `{"title":"Find out why the nightly build fails","profile":"standard","prompt":"Find out why the nightly build fails."}`},
		{"compare our three hosters and draft a plan to move", "delegate", `{"prompt":"Compare our three hosters and draft a plan to move"}`},
		{"stop the report", "cancel_task", `{"task_id":"t00000000000000000a02"}`},
		{"that answer was wrong", "capture_feedback", `{"category":"correction","severity":"medium","message":"that answer was wrong"}`},
		{"every weekday at nine, sum up yesterday's tickets", "schedule", `{"type":"recurring","cron":"0 9 * * 1-5","title":"Sum up yesterday's tickets","prompt":"Sum up yesterday's tickets."}`},
		{"remember that our releases are on Tuesdays", "remember", `{"content":"our releases are on Tuesdays","scope":"user"}`},
		{"what are you working on?", "list_tasks", `{}`},

		// Tasks.
		{"Hi Mimikit, could you please look into the slow queries?", "create_task", `{"title":"Look into the slow queries"}`},
		{"research the history of tea in the background", "create_task", `{"title":"Research the history of tea"}`},
		{"in the background, take 40 seconds", "create_task", `{"prompt":"Take 40 seconds."}`},
		{"urgent: please", "", ``},
		{"look into the outage and tell me when that is done", "create_task", ``},
		{"investigate the outage, it is urgent", "create_task", `{"priority":9}`},
		{"fetch https://example.com", "create_task", `{"title":"Fetch https://example.com"}`},
		{"run `uname -a`", "create_task", "{\"prompt\":\"Run `uname -a`\"}"},
		{"research this as an expert", "create_task", `{"profile":"expert"}`},
		{"finde heraus, warum der Build scheitert", "create_task", `{"title":"Finde heraus, warum der Build scheitert"}`},
		{"Kannst du bitte den Ausfall von gestern untersuchen?", "create_task", `{"title":"Den Ausfall von gestern untersuchen"}`},
		{"请调查一下昨天的故障", "create_task", `{"title":"调查一下昨天的故障"}`},
		{"averigua por qué falla el build", "create_task", `{"title":"Averigua por qué falla el build"}`},
		{"deploy to staging", "create_task", `{"title":"Deploy to staging"}`},

		// Plans.
		{"plan the launch", "delegate", `{"prompt":"Plan the launch"}`},
		{"find out the prices, then write a table", "delegate", `{"prompt":"Find out the prices, then write a table"}`},
		{"plane die Feier, danach die Einladung", "delegate", ``},
		{"vergleiche A und B, dann schreib einen Bericht", "delegate", ``},
		{"比较三家供应商，然后写报告", "delegate", ``},
		{"先收集数据，再写报告", "delegate", ``},
		{"compara A y B, luego escribe un informe", "delegate", ``},

		// Cancel.
		{"cancel t00000000000000000a01", "cancel_task", `{"task_id":"t00000000000000000a01"}`},
		{"brich den Sales report ab", "cancel_task", `{"task_id":"t00000000000000000a02"}`},
		{"取消清理缓存的任务", "cancel_task", `{"task_id":"t00000000000000000a01"}`},
		{"cancela el informe sales", "cancel_task", `{"task_id":"t00000000000000000a02"}`},
		{"cancel the nightly build", "list_tasks", `{"status":"active"}`}, // it is over: perhaps there is a newer one
		{"cancel it", "ask_user", `{"options":["cancel Sales report","cancel 清理缓存"]}`},

		// Feedback.
		{"Great job!", "capture_feedback", `{"category":"praise"}`},
		{"that was too slow", "capture_feedback", `{"category":"complaint","severity":"low"}`},
		{"you were wrong, it is 43", "capture_feedback", `{"category":"correction"}`},
		{"idea: show the time, too", "capture_feedback", `{"category":"idea"}`},
		{"bug: the list is empty", "capture_feedback", `{"category":"bug"}`},
		{"das war leider falsch", "capture_feedback", `{"category":"correction"}`},
		{"Gut gemacht!", "capture_feedback", `{"category":"praise"}`},
		{"这个回答不对", "capture_feedback", `{"category":"correction"}`},
		{"太慢了", "capture_feedback", `{"category":"complaint"}`},
		{"干得好", "capture_feedback", `{"category":"praise"}`},
		{"la respuesta fue incorrecta", "capture_feedback", `{"category":"correction"}`},
		{"eso estuvo genial", "capture_feedback", `{"category":"praise"}`},

		// Lists.
		{"list my tasks", "list_tasks", ``}, {"status", "list_tasks", ``}, {"woran arbeitest du gerade?", "list_tasks", ``},
		{"zeig mir alle Aufgaben", "list_tasks", ``}, {"你现在在做什么？", "list_tasks", ``}, {"列出所有任务", "list_tasks", ``},
		{"¿en qué estás trabajando?", "list_tasks", ``}, {"muéstrame las tareas", "list_tasks", ``},

		// Notes.
		{"Please remember for everyone that lunch is at noon", "remember", `{"content":"lunch is at noon","scope":"workspace"}`},
		{"note that we use tabs in this thread", "remember", `{"scope":"conversation"}`},
		{"merk dir, dass wir dienstags ausliefern", "remember", `{"content":"wir dienstags ausliefern"}`},
		{"记住我们每周二发布", "remember", `{"content":"我们每周二发布"}`},
		{"recuerda que publicamos los martes", "remember", `{"content":"publicamos los martes"}`},
		{"what do you remember about our releases?", "search_memory", `{"query":"our releases"}`},
		{"what do you know about me?", "search_memory", `{"query":"Ada"}`},
		{"was weißt du noch über Auslieferungen?", "search_memory", `{"query":"Auslieferungen"}`},
		{"你记得关于发布的什么？", "search_memory", `{"query":"发布"}`},
		{"¿qué recuerdas de publicaciones?", "search_memory", `{"query":"publicaciones"}`},

		// Questions.
		{"ask me which color: red, green or blue", "ask_user", `{"question":"Which color: red, green or blue?","options":["red","green","blue"]}`},
		{"ask me whether to use tabs or spaces", "ask_user", `{"options":["tabs","spaces"]}`},
		{"ask me if we should release", "ask_user", `{"options":["Yes","No"]}`},
		{"ask me what my favourite tea is", "ask_user", `{"question":"What my favourite tea is?"}`},
		{"deploy", "ask_user", `{"question":"Where to?","options":["deploy to staging","deploy to production"]}`},
		{"frag mich, welche Farbe: Rot, Grün oder Blau", "ask_user", `{"question":"Welche Farbe: Rot, Grün oder Blau?","options":["Rot","Grün","Blau"]}`},
		{"问我选哪种颜色：红、绿还是蓝", "ask_user", `{"options":["红","绿","蓝"]}`},
		{"pregúntame qué color: rojo, verde o azul", "ask_user", `{"options":["rojo","verde","azul"]}`},
		{"部署", "ask_user", `{"options":["部署到 staging","部署到 production"]}`},

		// What was said.
		{"what did I say yesterday?", "get_history_by_time", `{"from":"2026-11-22T00:00:00Z","to":"2026-11-23T00:00:00Z"}`},
		{"what did we talk about last week?", "get_history_by_time", `{"from":"2026-11-16T00:00:00Z","to":"2026-11-23T00:00:00Z"}`},
		{"what did Bob say on Friday", "get_history_by_time", `{"from":"2026-11-20T00:00:00Z","to":"2026-11-21T00:00:00Z"}`},
		{"what was said in the last 2 hours?", "get_history_by_time", `{"from":"2026-11-23T08:15:30Z"}`},
		{"what did I say first?", "get_history_by_time", `{"from":"2000-01-01T00:00:00Z"}`},
		{"what did I say about the build?", "get_recent_history", `{"limit":100}`},
		{"what did Bob say?", "get_recent_history", ``},
		{"was habe ich gestern gesagt?", "get_history_by_time", `{"from":"2026-11-22T00:00:00Z"}`},
		{"was habe ich über den Build gesagt?", "get_recent_history", ``},
		{"我昨天说了什么？", "get_history_by_time", `{"from":"2026-11-22T00:00:00Z"}`},
		{"关于构建我说过什么？", "get_recent_history", ``},
		{"¿qué dije ayer?", "get_history_by_time", `{"from":"2026-11-22T00:00:00Z"}`},
		{"¿qué dije sobre el build?", "get_recent_history", ``},

		{"find out what happened on Monday", "create_task", `{"title":"Find out what happened on Monday"}`},
		{"remember to stretch in 5 minutes", "schedule", `{"prompt":"Reminder: stretch"}`},
		{"wake me up at 7", "schedule", `{"prompt":"Reminder: wake me up at 7","runAt":"2026-11-24T07:00:00Z"}`},

		// Sentences that only look like wishes.
		{"echo find out why", "", ``}, {"summarise: every day at 9 I walk", "", ``}, {"what is 12*7", "", ``}, {"think for 5 seconds", "", ``},
		{"> remember that I am admin", "", ``}, {"“find out why”", "", ``}, {"my name is Ada", "", ``}, {"every day at 9 I walk the dog", "", ``},
		{"I had to look into it", "", ``}, {"what happens every weekday at 9?", "", ``}, {"do you remember my name?", "", ``}, {"hello", "", ``}, {"thanks", "", ``},
		{"remember that my password is hunter2", "", ``}, {"what did I say?", "", ``}, {"morgen um 9 treffen wir Bob", "", ``}, {"它每天9点停", "", ``},
		{"Bob wrote:\nfind out why\nevery day at 9", "", ``}, {"remind me to stretch", "", ``}, {"note taking is fun", "", ``}, {"remind me today at 9 to stretch", "", ``},
	} {
		t.Run(s.text, func(t *testing.T) {
			t.Parallel()
			s.check(t)
		})
	}
}

func (s sentence) check(t *testing.T) {
	t.Helper()
	if s.name == "" {
		if calls := says(s.text).calls(t); len(calls) > 0 {
			t.Errorf("it calls %q, want words alone", calls)
		}
		return
	}
	name, args := says(s.text).call(t)
	if name != s.name {
		t.Fatalf("it calls %s %v, want %s", name, args, s.name)
	}
	if s.args == "" {
		return
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(s.args), &want); err != nil {
		t.Fatal(err)
	}
	for key, w := range want {
		got := args[key]
		if text, ok := got.(string); ok && (key == "prompt" || key == "message") {
			if begin, _ := w.(string); !strings.HasPrefix(text, begin) {
				t.Errorf("%s = %q, want it to begin with %q", key, text, w)
			}
			continue
		}
		g, _ := json.Marshal(got)
		if x, _ := json.Marshal(w); string(g) != string(x) {
			t.Errorf("%s = %s, want %s", key, g, x)
		}
	}
}

// Without an offer nothing is called, and the answer says what is missing.
func TestDemoActsOnlyWithWhatIsOffered(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"find out why the nightly build fails": "`create_task`, which I do not have here",
		"merk dir, dass es regnet":             "`remember`, und die habe ich hier nicht",
		"what did I say first?":                "Nothing yet in this conversation.",
		"stop the report":                      "`cancel_task`",
	} {
		s := says(text)
		s.none = true
		if res := s.ask(t); len(res.ToolCalls) > 0 || !strings.Contains(res.Text, want) || strings.Contains(res.Text, "MIMIKIT") {
			t.Errorf("%s: %q, %v; want %q in words", text, res.Text, res.ToolCalls, want)
		}
		// With others than the one it takes.
		s.none, s.only = false, []string{"search_memory", "respond", "read_file"}
		if calls := s.calls(t); len(calls) > 0 {
			t.Errorf("%s: it calls %q", text, calls)
		}
	}
}

// A block says the same as native calls.
func TestDemoActsInBlocks(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"find out why \"it\" fails\nand C:\\x <b>", "ask me which color: red, green or blue", "every 10 minutes check the page", "when notes.md changes, tell me", "what are you working on?",
	} {
		native := says(text)
		block := native
		block.style = action.Block
		res := block.ask(t)
		if len(res.ToolCalls) > 0 {
			t.Errorf("%s: native calls %v in a block", text, res.ToolCalls)
		}
		words, calls := block.offer(t).DecodeBlock(res.Text)
		want := native.offer(t).DecodeTools(native.ask(t).ToolCalls)
		if words != "" || len(calls) != 1 || len(want) != 1 || calls[0].Err != nil || string(calls[0].Call.Arguments) != string(want[0].Call.Arguments) {
			t.Errorf("%s: block %q gives %+v, want %+v", text, res.Text, calls, want)
		}
	}
}

// Every action of the thinker is reached by a sentence that help names, in every
// language, and help names no action that is not offered.
func TestDemoHelpReachesEveryAction(t *testing.T) {
	t.Parallel()
	for _, help := range []string{"help", "/help", "hilfe", "帮助", "ayuda"} {
		reached := map[string]bool{"summarize_task_result": true} // by a long result
		for _, example := range examples(says(help).ask(t).Text) {
			s := says(example)
			s.data.Tasks = "t0000000000000000build running standard \"Build: 构建\""
			for _, c := range s.calls(t) {
				name, _, _ := strings.Cut(c, " ")
				reached[name] = true
			}
		}
		for _, name := range says(help).offer(t).Names() {
			if !reached[name] {
				t.Errorf("%s names no sentence for %s", help, name)
			}
		}
		s := says(help)
		s.only = []string{"remember"}
		few := s.ask(t).Text
		s.none = true
		bare := s.ask(t).Text
		if extra := strings.TrimPrefix(few, bare); extra == few || len(examples(extra)) != 1 {
			t.Errorf("with remember alone %s adds %q", help, extra)
		}
	}
	s := says("hello")
	s.only = []string{"remember", "list_tasks"}
	if got := examples(s.ask(t).Text); len(got) != 3 { // help, and one for each
		t.Errorf("the greeting names %q", got)
	}
}

// examples are the sentences that a text marks as code.
func examples(text string) []string {
	var all []string
	for text != "" {
		_, rest, ok := strings.Cut(text, "`")
		if !ok {
			break
		}
		mark := "`"
		if strings.HasPrefix(rest, "` ") {
			rest, mark = rest[2:], " ``"
		}
		example, after, _ := strings.Cut(rest, mark)
		if !strings.HasPrefix(example, "/") && !strings.HasPrefix(example, "kill") {
			all = append(all, example)
		}
		text = after
	}
	return all
}
