package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// busy is a mind whose workers wait where they are to sit, write a file where they are
// to write, and else are done at once; its thinker sets up triggers, too.
func busy() llmtest.Behavior {
	done := clerk()
	writer := &mind{steps: []llm.ToolCall{
		tool("write_file", map[string]any{"path": "log", "content": "written\n"}), tool("respond", map[string]any{"output": "I went on."}),
	}}
	return func(x *llmtest.Exchange) {
		system, body := *x.Call.Chat.Messages[0].Content, string(x.Call.Body)
		switch works := strings.Contains(system, "respond") && strings.Contains(system, "workspace"); {
		case works && strings.Contains(body, "sit down"):
			llmtest.Hangs()(x)
		case works && strings.Contains(body, "write down"):
			writer.behave(x)
		default:
			done.schedules(x)
		}
	}
}

// grid are the cells of the table that an answer at the terminal has, with its head.
func grid(answer string) (out [][]string) {
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") {
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), " |") {
			cells = append(cells, strings.TrimSpace(c))
		}
		out = append(out, cells)
	}
	return out
}

var nowAndThen = regexp.MustCompile(`^(just now|(in )?\d[\dhmsd.]*[smhd]( ago)?)$`)

// stable is a table without what changes with time, the marks of Markdown and spaces.
func stable(rows [][]string) (out []string) {
	for _, r := range rows {
		var cells []string
		for _, c := range r {
			if nowAndThen.MatchString(c) {
				c = "when"
			}
			cells = append(cells, strings.ReplaceAll(strings.Join(strings.Fields(c), ""), `\`, ""))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

// lists waits until a section of the page lists just what the command lists at the
// terminal, with its head, and gives the rows.
func (h *house) lists(section, words string, n int) (rowsSeen [][]string) {
	h.Helper()
	storetest.Eventually(h, "what the page lists of "+section, func() error {
		v := h.visit()
		rowsSeen = rows(v.section(section))
		got, want := stable(rowsSeen), stable(grid(h.terminal(words)))
		if !slices.Equal(got, want) || len(got) != n+1 {
			return fmt.Errorf("the page lists\n%s\nand the command\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
	return rowsSeen[1:]
}

// What a person sees in the page's sections is what the commands list, and what its
// buttons do is answered as the commands are, on Slack, on Discord and at a terminal: to
// cancel and retry tasks, to pause, resume, run and remove triggers, to answer questions
// and to drop dead letters. Whoever pressed sees at once what came of it.
func TestPageAsTheOtherDoors(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	h := openHouse(t, busy(), "MIMIKIT_WORKER_MAX_CONCURRENT=16", "MIMIKIT_APPROVALS_TOOLS=write_file", "MIMIKIT_APPROVALS_BY=operator")
	places := []func(string) word{h.onSlack, h.onSlack, h.onDiscord, h.onSlack} // of whom each door takes one
	ada := h.chats("U0ADA", h.ada)
	section := ""
	doors := []entrance{
		{"page, button", "page", "page", func(w string) string { return h.visit().press(section, w) }},
		ada[0], ada[2], {"terminal", "console", "", h.terminal},
	}

	// Each door has a task that runs, a question and a trigger of its own.
	threads := map[string]int{} // :: thread → its door
	ask := func(text string) {
		for i, say := range places {
			threads[say(text).thread] = i
		}
	}
	ask("work: sit down")
	ask("work: write down")
	ask("every 1h: remind me")
	var tasks []admin.TaskView
	storetest.Eventually(t, "tasks that run and tasks that wait", func() error {
		tasks = h.tasks()
		n := map[string]int{}
		for _, x := range tasks {
			n[x.Status]++
		}
		if n["running"] != 4 || n["waiting"] != 4 || len(h.triggers()) != 4 {
			return fmt.Errorf("%v tasks, %d triggers", n, len(h.triggers()))
		}
		return nil
	})
	doorOf := func(conversation string) int {
		i, ok := threads[conversation[strings.LastIndex(conversation, "/")+1:]]
		if !ok {
			t.Fatalf("nobody said anything in %s", conversation)
		}
		return i
	}
	var running, questions, triggers [4]string // ids, by door
	for _, x := range tasks {
		if x.Status == "running" {
			running[doorOf(x.Conversation)] = x.ID
		}
	}
	for _, x := range h.triggers() {
		triggers[doorOf(x.Conversation)] = x.ID
	}
	out, _ := h.run(0, "", "questions", "--json")
	for _, x := range decoded[[]admin.QuestionView](t, out) {
		questions[doorOf(x.Conversation)] = x.ID
	}
	r := h.record(nil)
	for _, x := range tasks {
		if x.Status != "running" {
			continue
		}
		err := r.client.XAdd(t.Context(), &redis.XAddArgs{
			Stream: r.keys.Stream(r.keys.Partition(x.Conversation), channel.UserInput),
			Values: []any{"conv", x.Conversation, "inputs", "unreadable", "v", "1", "data", "no JSON"},
		}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	var letters [4]string
	storetest.Eventually(t, "dead letters", func() error {
		list := h.letters()
		for _, d := range list {
			letters[doorOf(d.Conversation)] = d.ID
		}
		if len(list) != 4 {
			return fmt.Errorf("%d", len(list))
		}
		return nil
	})

	// What is listed.
	for _, row := range h.lists("tasks", "tasks all", 8) {
		if !slices.ContainsFunc(tasks, func(x admin.TaskView) bool { return strings.HasPrefix(x.ID, row[0]) && x.Status == row[2] }) {
			t.Errorf("the page lists %q, and programs are told %+v", row, tasks)
		}
	}
	h.lists("triggers", "triggers all", 4)
	h.lists("questions", "questions all", 4)
	h.lists("dead", "dead", 4)
	seen := h.slackSlash("U0ADA", "tasks all") + h.discordSlash(h.ada, "tasks all")
	for _, x := range tasks {
		has(t, seen, x.ID[:10])
	}

	// What can be done, and how it is answered.
	offers := func(id, label string, there bool) {
		t.Helper()
		if got := h.visit().buttons(section); slices.Contains(got, label+": "+id) != there {
			t.Errorf("that the section %s offers %q of %q is %v; it offers\n%s", section, label, id, !there, strings.Join(got, "\n"))
		}
	}
	each := func(command string, ids [4]string, after string, want ...string) {
		t.Helper()
		h.alike(doors, func(e entrance) string {
			i := slices.IndexFunc(doors, func(o entrance) bool { return o.name == e.name })
			return strings.TrimSpace(command + " " + ids[i] + after)
		}, want...)
	}
	section = "tasks"
	offers("cancel "+running[0], "Cancel", true)
	offers("task "+running[0], "Show", true)
	each("cancel", running, "", "Canceling", "(Work): its worker was told to end it.")
	offers("cancel "+running[0], "Cancel", false) // it is under way
	storetest.Eventually(t, "the end of all four", func() error {
		if n := len(h.tasks("--status", "canceled")); n != 4 {
			return fmt.Errorf("%d have ended", n)
		}
		return nil
	})
	each("retry", running, "", "Started", "(Work), the same as", "Its result is told where the first was asked for.")

	section = "questions"
	offers("answer "+questions[0]+" 1", "Allow once", true)
	each("answer", questions, " 1", "You answered: Allow once.")
	offers("answer "+questions[0]+" 1", "Allow once", false)
	v := h.visit()
	has(t, text(v.section("questions")), "There are no open questions.")

	section = "triggers"
	for _, act := range []struct {
		now, then string
		want      []string
	}{
		{"Pause", "Resume", []string{"Paused", "(Reminder)"}},
		{"Resume", "Pause", []string{"Resumed", "It runs next on"}},
		{"Run now", "Run now", []string{"Started"}},
		{"Remove", "", []string{"Removed"}},
	} {
		words := "trigger " + strings.ToLower(strings.Fields(act.now)[0])
		offers(words+" "+triggers[0], act.now, true)
		each(words, triggers, "", act.want...)
		if act.then != act.now {
			offers(words+" "+triggers[0], act.now, false)
		}
		if act.then != "" {
			offers("trigger "+strings.ToLower(strings.Fields(act.then)[0])+" "+triggers[0], act.then, true)
		}
	}
	section = "dead"
	offers("dead drop "+letters[0], "Drop", true)
	offers("dead replay "+letters[0], "Replay", true)
	each("dead drop", letters, "", "Removed 1 dead letter.")
	offers("dead drop "+letters[0], "Drop", false)

	// All of it is in the trail, with the door at which it was done.
	out, _ = h.run(0, "", "audit", "--json", "-n", "200")
	acts := map[string]bool{}
	for _, a := range decoded[[]admin.Act](t, out) {
		acts[a.Door+"|"+a.What+"|"+a.Who.Role.String()] = true
	}
	for i, e := range doors {
		for _, what := range []string{
			"cancel " + running[i], "retry " + running[i], "answer " + questions[i] + " 1", "trigger pause " + triggers[i], "trigger resume " + triggers[i],
			"trigger run " + triggers[i], "trigger remove " + triggers[i], "dead drop " + letters[i],
		} {
			if !acts[e.door+"|"+what+"|admin"] {
				t.Errorf("the trail does not tell of %q at %s", what, e.name)
			}
		}
	}
}
