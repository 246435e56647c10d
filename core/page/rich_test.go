package page_test

import (
	"fmt"
	"strings"

	"mimikit/core/admin"
)

// deceiving is a name that reads as another: it turns around, and has letters that
// nobody sees.
const deceiving = "invoice\u202egpj.exe\u2066 ad\u200bmin\u2060\ufeff\U000e0041 שלום"

// asked is what somebody decides about.
const asked = "echo `id`  \\* && rm -rf \"$HOME/a\" <b>\n\n  # " + "aVeryLongArgumentWithoutAnySpaceInIt/aVeryLongArgumentWithoutAnySpaceInIt/aVeryLongArgumentWithoutAnySpaceInIt"

var written = []string{
	hostile, deceiving, strings.Repeat("longword", 30), "two words", "",
	"Sat 2026-11-21 21:07:07, Sun 2026-11-22 00:07:07 America/Argentina/Buenos_Aires", "succeeded", "discord 1189998197191191029",
	"Bartholomew Featherstonehaugh-Cholmondeley", "整理上个星期所有客户的反馈意见并按照重要性排序后写成一份报告", "11m16s ago", "once, on Fri 2026-12-04 07:37:20 UTC",
}

// filled is a table whose cells all hold what somebody may write.
func filled(rows int, head ...string) *admin.Table {
	t := &admin.Table{Head: head}
	for i := range rows {
		row := make([]string, len(head))
		for j := range row {
			row[j] = written[(i+j)%len(written)]
		}
		row[0] = fmt.Sprintf("id%03d", i)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rich is what a busy deployment answers, where people write what they like.
func rich(words []string) admin.Answer {
	var a admin.Answer
	table := func(rows int, head ...string) { a.Blocks = append(a.Blocks, admin.Block{Table: filled(rows, head...)}) }
	switch strings.Join(words, " ") {
	case "status":
		facts := []admin.Fact{{Name: "answers", Value: hostile}, {Name: "nodes", Value: "2 live, 16 of 16 partitions owned: " + deceiving + ", " + strings.Repeat("b", 60)},
			{Name: "model", Value: "the built-in demo model (no AI; set MIMIKIT_LLM_KEY and MIMIKIT_LLM_MODEL for a real one)"}, {Name: "conversation", Value: "slack/T024BE7LD/C0101/1732190000.000101"},
			{Name: "waiting", Value: "1,204 entries, the oldest for 3m20s"}, {Name: "model " + hostile, Value: deceiving}}
		a.Blocks = []admin.Block{{Facts: facts}, {Words: "`dead` lists what was given up. " + admin.Escape(hostile+deceiving)}}
		a.Data = admin.Status{Tasks: map[string]int{"running": 3, "pending": 1200, "deferred": 7, "waiting": 1, "succeeded": 9000, "failed": 12, "canceled": 40}, Holds: map[string]int{deceiving: 6, hostile: 5, "node-c": 5}}
	case "task t1":
		t := &admin.Table{Head: []string{"When (UTC)", "What happened", "Done"}}
		for i, what := range []string{"run 2 began", "progress: read 40 of 200 files", hostile, deceiving, strings.Repeat("longword", 30)} {
			t.Rows = append(t.Rows, []string{"20:00:30, 6m50s ago", what, []string{"", "5%"}[i%2]})
		}
		a.Blocks = []admin.Block{
			{Words: "`t1m7zv4cpzp6nd2k3x30b` " + admin.Escape(hostile)},
			{Facts: []admin.Fact{{Name: "conversation", Value: "discord/1189998197191196743/1189998197191191033/"}, {Name: "waited for by triggers", Value: deceiving}, {Name: "trace", Value: "3542f421bdb12b74befe0df6c7bd3fe4"}}},
			{Table: t}, {Words: "Result:"}, {Text: hostile + "\n" + strings.Repeat("longword", 100)},
		}
		a.Buttons = append(a.Buttons, admin.Press("Cancel", "danger", "cancel", "t1"))
	case "streams":
		t := &admin.Table{Head: []string{"Channel", "Read by", "Entries", "Lag", "Pending", "Oldest"}}
		var views []admin.Stream
		for i, c := range []string{"user-input", "worker-result", "teller-digest", "thinker-decision", "teller-reply", "supervisor-event"} {
			t.Rows = append(t.Rows, []string{c, "teller", fmt.Sprint(i * 100), fmt.Sprint(i * 99), fmt.Sprint(i), "1.2s"})
			views = append(views, admin.Stream{Channel: c, Group: "teller", Entries: int64(i * 100), Lag: int64(i * 99), Pending: int64(i), OldestMs: 1200})
		}
		a.Blocks, a.Data = []admin.Block{{Table: t}, {Words: "2 nodes live, 16 of 16 partitions owned, 3 dead letters."}}, views
	case "triggers all":
		table(3, "ID", "Title", "When", "Next", "For", "State")
		a.Data = []admin.TriggerView{{ID: "g1", Title: hostile}, {ID: "g2", Title: deceiving, Paused: true}, {ID: "g3"}}
	case "questions all":
		table(2, "ID", "Question", "Answers", "For", "Until")
		a.Blocks = append(a.Blocks, admin.Block{Words: "`q1`\n\nThe task wants to use `exec_shell`:\n\n```\n" + asked + "\n```\n\nIt waits for your word."})
		a.Data = &[]admin.QuestionView{{ID: "q1", AskedRole: "admin", Options: []string{"Allow", hostile, deceiving}}, {ID: "q2", AskedTo: "U1", Options: []string{"Yes"}}}
	case "dead":
		table(2, "ID", "Given up", "From", "Tries", "Conversation", "Reason")
		a.Data = []admin.Dead{{ID: "0-a-1-0"}, {ID: "0-b-2-0"}}
		a.Buttons = append(a.Buttons, admin.Press(hostile, "danger", "dead", "drop", "all"))
	case "usage day":
		t, v := &admin.Table{Head: []string{"Day", "Calls", "Tokens in", "Cached", "Tokens out", "Cost", ""}}, admin.UsageView{Of: "the deployment"}
		for i := range 7 {
			day := fmt.Sprintf("2026-11-%02d", 21-i)
			t.Rows = append(t.Rows, []string{day, "120", "1,204,000", "900,000", "40,000", "1.2040", strings.Repeat("█", 12-i)})
			v.Rows = append(v.Rows, admin.UsageRow{Name: day, Calls: 120, Prompt: int64(1204000 / (i + 1)), Completion: 40000, Cost: 1204000})
		}
		a.Blocks, a.Data = []admin.Block{{Table: t}}, v
	case "usage model":
		t := &admin.Table{Head: []string{"Model", "Calls", "Tokens in", "Cached", "Tokens out", "Cost", ""}}
		for _, model := range []string{hostile, deceiving, strings.Repeat("longword", 30), "anthropic/claude-sonnet-4.5"} {
			t.Rows = append(t.Rows, []string{model, "1,919", "112,489,859", "12,000,000", "1,466,636", "1029.6296", strings.Repeat("█", 12)})
		}
		a.Blocks = []admin.Block{{Table: t}}
		a.Data = admin.UsageView{Of: "model", Rows: []admin.UsageRow{{Name: hostile, Calls: 1}}}
	case "feedback 10":
		table(4, "When", "Kind", "Severity", "About", "Who", "Message")
	case "audit 10":
		table(4, "When", "Who", "Where", "Command", "To", "Result")
	default:
		a.Blocks = []admin.Block{{Words: admin.Escape(hostile)}, {Text: deceiving}, {Text: hostile}}
	}
	return a
}
