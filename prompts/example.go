package prompts

import (
	"time"

	"mimikit/core/chat"
)

// Example gives two successive calls of an agent in one small conversation, for
// showing and measuring what a model is given. An agent that does not exist has
// none.
func Example(name string) (earlier, later Data) {
	switch name {
	case "teller", "teller-digest", "thinker":
		return talkExample(name)
	case "planner":
		earlier = planExample()
		later = earlier
		later.Steps = append(later.Steps[:1:1], Step{
			N: 2, Action: "needs_input", OK: true, Call: `{"question":"Which branch is released?","options":["main","release-2.4"]}`,
			Output: "Ann answered",
		})
		later.Inputs = []chat.UserInput{{ID: "i9", Author: ann, Text: "release-2.4", Question: "q1", Option: "release-2.4", At: minute(16)}}
		later.Now = minute(17)
		return earlier, later
	case "worker-standard", "worker-expert":
		earlier = workExample()
		later = earlier
		later.Steps = append(earlier.Steps[:1:1], Step{
			N: 2, Action: "fetch_url", OK: false, Call: `{"url":"https://example.org/changes"}`, Output: "404 Not Found",
		})
		later.Limits, later.Now = []Fact{{"time left", "4m20s"}, {"steps left", "27"}}, minute(13)
		return earlier, later
	case "review":
		lines := talkLines()
		limits := []Fact{{"findings", "at most 5"}}
		return Data{History: lines[:4], Limits: limits}, Data{History: lines, Limits: limits}
	case "fold":
		lines := talkLines()
		limits := []Fact{{"words", "300"}}
		return Data{History: lines[:3], Limits: limits},
			Data{Summary: "Open\n- Ann (10:00) wants to know when 2.4 is released.\n", History: lines[3:], Limits: limits}
	}
	return Data{}, Data{}
}

var (
	ann = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleOperator}
	bo  = chat.Author{ID: "U2", Name: "Bo", Role: chat.RoleUser}
	us  = chat.Author{Name: "Mimikit", Bot: true}
)

func minute(n int) time.Time { return time.Date(2026, 11, 23, 10, n, 0, 0, time.UTC) }

func talkLines() []chat.Line {
	return []chat.Line{
		{ID: "i1", Role: chat.LineUser, Author: ann, Text: "When do we release 2.4?", At: minute(0)},
		{ID: "r1", Role: chat.LineAssistant, Author: us, Text: "On 30 November, if the tests of the importer pass by Friday.", At: minute(1)},
		{ID: "i2", Role: chat.LineUser, Author: bo, Text: "they don't pass yet. can you look into `TestImport`?", At: minute(4)},
		{ID: "r2", Role: chat.LineAssistant, Author: us, Text: "I have started looking into `TestImport` and will post what I find here.", At: minute(5)},
		{ID: "t1", Role: chat.LineSystem, Text: "Task t1 (Look into TestImport) succeeded\nIt fails where a row has no date.", At: minute(9)},
		{ID: "r3", Role: chat.LineAssistant, Author: us, Text: "`TestImport` fails where a row has no date.", At: minute(10)},
	}
}

func talkExample(name string) (earlier, later Data) {
	lines := talkLines()
	earlier = Data{
		Summary: "Ann looks after releases, Bo after the importer. Decided on 16 November: 2.4 keeps the old file format.",
		History: lines[:4],
		Memory: []Note{{
			ID: "n1", Scope: "workspace", Author: ann, At: minute(0).AddDate(0, -1, 0), Text: "Releases are announced in #news, on weekdays only.",
		}},
		Now: minute(9), Platform: "slack", Tasks: "t1 succeeded: Look into TestImport",
		Results: []chat.TaskResult{{ID: "t1", Title: "Look into TestImport", Status: chat.TaskSucceeded, Output: "It fails where a row has no date."}},
	}
	later = earlier
	later.History, later.Results, later.Now = lines, nil, minute(15)
	later.Inputs = []chat.UserInput{
		{ID: "i3", Author: bo, Text: "what should a row without a date become? the spec is attached", At: minute(14),
			Attachments: []chat.Attachment{{Name: "spec.md", MediaType: "text/markdown", Size: 61, Text: "## Dates\n\nA row without a date takes that of the row before it."}}},
		{ID: "i4", Author: ann, Text: "und schaffen wir den 30.?", At: minute(14)},
	}
	switch name {
	case "teller":
		earlier.Decision = "Tell Bo: TestImport fails where a row has no date."
		later.Decision = "Bo: by the spec it takes the date of the row before it. Ann: cannot tell yet; nobody has started the change."
	case "thinker":
		later.Facts = []Fact{{"summary", "Bo asks what a row without a date should become (the attached spec says: the date of the row before). Ann asks whether 30 November holds."}}
	}
	return earlier, later
}

func planExample() Data {
	return Data{
		Request: Request{Task: "p1", Author: ann, Title: "Prepare 2.4", Text: "Prepare the release 2.4: run all tests, collect the changes since 2.3 into a draft of the notes, and tell me every Friday at 16:00 UTC what is still open."},
		History: talkLines(), Now: minute(12), Platform: "slack", Tasks: "t1 succeeded: Look into TestImport",
		Limits: []Fact{{"tasks and triggers", "at most 20"}},
		Memory: []Note{{ID: "n1", Scope: "workspace", Author: ann, At: minute(0).AddDate(0, -1, 0), Text: "Releases are announced in #news, on weekdays only."}},
		Steps:  []Step{{N: 1, Action: "search_memory", OK: true, Call: `{"query":"release notes"}`, Output: "no notes match"}},
	}
}

func workExample() Data {
	return Data{
		Request:   Request{Task: "t2", Author: bo, Title: "Collect the changes", Text: "Collect the changes since 2.3 from CHANGES.md and https://example.org/changes into one list, newest first."},
		Workspace: []Fact{{"folder", "/workspace"}, {"files", "214"}, {"network", "none for commands; fetch_url reaches public addresses"}},
		Limits:    []Fact{{"time left", "4m50s"}, {"steps left", "28"}},
		Now:       minute(12), Platform: "slack",
		Steps: []Step{{N: 1, Action: "read_file", OK: true, Call: `{"path":"CHANGES.md"}`, Output: "## 2.3.1\n\n- mend the importer", OutputSize: 4096}},
	}
}
