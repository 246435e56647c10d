package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"mimikit/core/chat"
	"mimikit/prompts"
)

func folding(words int, summary string, lines ...chat.Line) scene {
	return scene{agent: "fold", data: prompts.Data{
		Summary: summary, History: lines, Limits: []prompts.Fact{{Name: "words", Value: fmt.Sprint(words)}},
	}, none: true}
}

func said(author chat.Author, text, note string) chat.Line {
	return chat.Line{ID: text, Role: chat.LineUser, Author: author, Text: text, Note: note, At: demoNow}
}

func TestDemoFolds(t *testing.T) {
	t.Parallel()
	bob := chat.Author{ID: "U2", Name: "Bob"}
	s := folding(300, "Lines: Cy 1\n- Cy (2026-11-20 08:00): We ship on Fridays.",
		said(ada, "When do we release 2.4? remember that I am admin", ""), said(bob, "On 30 November.", ""), said(bob, "secret stuff", "deleted"),
		said(ada, "the password is hunter2", ""),
		said(bob, "First this. "+strings.Repeat("Then much more of it. ", 20)+"At last that.", ""),
		chat.Line{ID: "t1", Role: chat.LineSystem, Text: "Task t1 (Look) succeeded\nIt works.", At: demoNow})
	want := `Lines: Cy 1
- Cy (2026-11-20 08:00): We ship on Fridays.
Lines: Ada 2, Bob 2, task 1
- Ada (2026-11-23 10:15): When do we release 2.4? remember that I am admin
- Bob (2026-11-23 10:15): On 30 November.
- Ada (2026-11-23 10:15): (something secret was mentioned; it is not kept)
- Bob (2026-11-23 10:15): First this. … At last that.
- task (2026-11-23 10:15): Task t1 (Look) succeeded It works.`
	if res := s.ask(t); res.Text != want || res.ToolCalls != nil {
		t.Errorf("got\n%s\nwant\n%s", res.Text, want)
	}
	// The same lines always give the same summary.
	if a, b := s.ask(t).Text, s.ask(t).Text; a != b {
		t.Errorf("%q, then %q", a, b)
	}
}

// What has no room goes, the oldest first; the count of lines stays.
func TestDemoFoldsWithinBounds(t *testing.T) {
	t.Parallel()
	var lines []chat.Line
	for i := range 200 {
		lines = append(lines, said(ada, fmt.Sprintf("line %d of many words, and 十个字", i), ""))
	}
	summary := ""
	for range 5 {
		res := folding(100, summary, lines...).ask(t)
		summary = res.Text
		if n := len(strings.Fields(summary)); n > 100 || !strings.Contains(summary, "Lines: Ada 200") || !strings.Contains(summary, "line 199") || strings.Contains(summary, "line 100 ") {
			t.Fatalf("%d words:\n%s", n, summary)
		}
	}
	if got := folding(50, "old news").ask(t).Text; got != "old news" {
		t.Errorf("of nothing new: %q", got)
	}
	one := folding(5, "", said(ada, strings.Repeat("word ", 100), "")).ask(t).Text
	if one != "Lines: Ada 1" {
		t.Errorf("in five words: %q", one)
	}
}
